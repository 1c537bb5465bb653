"""The fence: what is withdrawn is unusable from its commit on, by whatever path it was withdrawn."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction
from guardian.models import UserObjectPermission

from accounts.fence import FenceRefusedError, fence_exclusive, fence_shared
from accounts.models import Membership, TenantGroup, User
from accounts.people import add_member
from accounts.rights import Right, grant_right, may, withdraw_right
from tests.accounts.world import NOW, World, in_thread, other_connection, wait_until, waiting_for_lock

APPROVE = Right.APPROVE_PLANS
Removal = Callable[[World, User, Group], object]

REMOVALS: dict[str, Removal] = {
    "withdraw_right": lambda w, p, g: withdraw_right(to=p, right=APPROVE, obj=w.agent, actor=None, now=NOW),
    "guardian row deleted": lambda w, p, g: UserObjectPermission.objects.filter(user=p).delete(),
    "guardian row moved": lambda w, p, g: UserObjectPermission.objects.filter(user=p).update(object_pk="0"),
    "group's right withdrawn": lambda w, p, g: withdraw_right(
        to=g, right=Right.START_RUNS, obj=w.agent, actor=None, now=NOW
    ),
    "left the group": lambda w, p, g: p.groups.remove(g),
    "group deleted": lambda w, p, g: g.delete(),
    "membership ended": lambda w, p, g: Membership.objects.filter(user=p).update(active=False),
    "membership deleted": lambda w, p, g: Membership.objects.filter(user=p).delete(),
    "deactivated": lambda w, p, g: User.objects.filter(pk=p.pk).update(is_active=False),
}


@pytest.mark.usefixtures("live_db")
@pytest.mark.parametrize("removal", REMOVALS.values(), ids=list(REMOVALS))
def test_a_removal_waits_for_the_decisions_that_rest_on_it(removal: Removal) -> None:
    world = World()
    person = world.person(APPROVE)
    group = world.group(person, right=Right.START_RUNS)
    done: list[bool] = []

    def remove() -> None:
        removal(world, person, group)
        done.append(True)

    with transaction.atomic():
        fence_shared(world.tenant.pk)
        assert may(person, APPROVE, world.agent)
        thread = in_thread(remove)
        wait_until(waiting_for_lock)
        # What was read still holds, although the other side has already removed it.
        assert may(person, APPROVE, world.agent) and not done
    thread.join(10)
    assert done == [True]
    assert not (may(person, APPROVE, world.agent) and may(person, Right.START_RUNS, world.agent))


@pytest.mark.usefixtures("live_db")
@pytest.mark.parametrize("how", ["update", "delete"])
def test_another_title_of_a_group_waits_for_the_decisions_that_policies_made_by_it(how: str) -> None:
    world = World()
    group = world.group(world.person(APPROVE), right=Right.START_RUNS)
    titled = TenantGroup.objects.create(group=group, tenant=world.tenant, title="Finance")
    rows = TenantGroup.objects.filter(pk=titled.pk)
    with transaction.atomic():
        fence_shared(world.tenant.pk)
        thread = in_thread(rows.delete if how == "delete" else partial(rows.update, title="Others"))
        wait_until(waiting_for_lock)
        assert rows.get().title == "Finance"
    thread.join(10)
    assert [row.title for row in rows] == ([] if how == "delete" else ["Others"])


@pytest.mark.usefixtures("live_db")
@pytest.mark.parametrize("how", ["added", "added again", "a row"])
def test_joining_another_tenant_waits_for_decisions_of_the_first(how: str) -> None:
    """Its policy may leave out who belongs elsewhere."""
    world, other = World(), World()
    person = world.person(APPROVE)
    if how == "added again":
        Membership.objects.create(user=person, tenant=other.tenant, active=False)
    joined = Membership.objects.filter(user=person, tenant=other.tenant, active=True)
    ways: dict[str, Callable[[], object]] = {
        "added": partial(add_member, person=person, tenant=other.tenant, actor=None, now=NOW),
        "added again": partial(add_member, person=person, tenant=other.tenant, actor=None, now=NOW),
        "a row": partial(Membership.objects.create, user=person, tenant=other.tenant),
    }
    with transaction.atomic():
        fence_shared(world.tenant.pk)
        thread = in_thread(ways[how])
        wait_until(waiting_for_lock)
        assert not joined.exists()
    thread.join(10)
    assert joined.exists()


@pytest.mark.usefixtures("live_db")
def test_a_decision_that_waited_for_a_removal_sees_it() -> None:
    world = World()
    person = world.person(APPROVE)
    seen: list[bool] = []

    def decide() -> None:
        with transaction.atomic():
            fence_shared(world.tenant.pk)
            seen.append(may(person, APPROVE, world.agent))

    with transaction.atomic():
        withdraw_right(to=person, right=APPROVE, obj=world.agent, actor=None, now=NOW)
        thread = in_thread(decide)
        wait_until(waiting_for_lock)
        assert seen == []
    thread.join(10)
    assert seen == [False]


@pytest.mark.usefixtures("live_db")
def test_decisions_do_not_wait_for_each_other_nor_for_other_tenants() -> None:
    world, other = World(), World()
    with transaction.atomic():
        fence_shared(world.tenant.pk)
        with other_connection() as session:
            assert _could_take(session, "pg_try_advisory_xact_lock_shared", world)
            assert not _could_take(session, "pg_try_advisory_xact_lock", world)
            assert _could_take(session, "pg_try_advisory_xact_lock", other)


@pytest.mark.usefixtures("live_db")
def test_signing_in_and_being_granted_a_right_elsewhere_take_no_fence() -> None:
    world = World()
    person = world.person(APPROVE)
    with transaction.atomic():
        User.objects.filter(pk=person.pk).update(last_login=NOW, is_active=True)
        with other_connection() as session:
            assert _could_take(session, "pg_try_advisory_xact_lock_shared", world)


def _could_take(session: object, lock: str, world: World) -> bool:
    row = session.execute(f"select {lock}(handoff_fence_key(%s))", [world.tenant.pk]).fetchone()  # type: ignore[attr-defined]
    return bool(row[0])


@pytest.mark.usefixtures("live_db")
def test_a_grant_takes_the_fence_until_its_commit() -> None:
    world = World()
    person = world.person()
    with transaction.atomic():
        grant_right(to=person, right=APPROVE, obj=world.agent, actor=None, now=NOW)
        with other_connection() as session:
            assert not _could_take(session, "pg_try_advisory_xact_lock_shared", world)


@pytest.mark.usefixtures("live_db")
@pytest.mark.parametrize("fence", [fence_shared, fence_exclusive])
def test_there_is_no_fence_outside_a_transaction_or_with_one_old_snapshot(fence: Callable[..., None]) -> None:
    world = World()
    with pytest.raises(FenceRefusedError):
        fence(world.tenant.pk)
    with pytest.raises(FenceRefusedError), transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("set transaction isolation level repeatable read")
        fence(world.tenant.pk)


@pytest.mark.usefixtures("live_db")
def test_keys_are_the_same_in_every_session_and_differ_between_tenants() -> None:
    first, second = World().tenant.pk, World().tenant.pk
    with other_connection() as session:
        row = session.execute(
            "select handoff_fence_key(%(a)s), handoff_fence_key(%(a)s), handoff_fence_key(%(b)s)",
            {"a": first, "b": second},
        ).fetchone()
    assert row is not None and row[0] == row[1] != row[2]


@pytest.mark.usefixtures("live_db")
def test_people_removed_from_several_tenants_in_opposite_orders_block_nobody() -> None:
    worlds = [World(), World()]
    people = [worlds[0].person(APPROVE), worlds[1].person(APPROVE)]
    for world in worlds:
        for person in people:
            Membership.objects.get_or_create(user=person, tenant=world.tenant)
    done: list[bool] = []

    def withdraw(world: World, person: User) -> None:
        done.append(withdraw_right(to=person, right=APPROVE, obj=world.agent, actor=None, now=NOW))

    with transaction.atomic():
        for world in worlds:
            fence_shared(world.tenant.pk)
        threads = [in_thread(partial(withdraw, *pair)) for pair in zip(worlds, people, strict=True)]
        wait_until(waiting_for_lock)
    for thread in threads:
        thread.join(10)
    assert done == [True, True]
