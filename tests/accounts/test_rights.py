"""Rights are read afresh, in one place, and nothing else gives them."""

from __future__ import annotations

from functools import partial

import pytest
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import IntegrityError, connection, transaction
from django.db.utils import DatabaseError
from django.test.utils import CaptureQueriesContext

from accounts.models import Membership, RightChange, Tenant
from accounts.permissions import giving
from accounts.rights import (
    DenialKind,
    MisplacedRightError,
    Place,
    Right,
    grant_right,
    holders,
    may,
    objects_with,
    why_not,
    withdraw_right,
)
from tests.accounts.world import NOW, World, make_person, make_tenant

pytestmark = pytest.mark.django_db
APPROVE = Right.APPROVE_PLANS


@pytest.fixture
def world() -> World:
    return World()


def test_a_right_is_held_directly_or_by_group(world: World) -> None:
    direct, by_group, neither = world.person(APPROVE), world.person(), world.person(Right.VIEW_RUNS)
    world.group(by_group, right=APPROVE)
    assert may(direct, APPROVE, world.agent)
    assert may(by_group, APPROVE, world.agent)
    assert not may(neither, APPROVE, world.agent)
    assert {direct, by_group} == set(holders(APPROVE, world.agent))


def test_a_right_removed_a_second_ago_is_gone_from_an_old_user_object(world: World) -> None:
    person = world.person(APPROVE)
    assert may(person, APPROVE, world.agent)
    withdraw_right(to=person, right=APPROVE, obj=world.agent, actor=None, now=NOW)
    denial = why_not(person, APPROVE, world.agent)
    assert denial is not None and denial.kind == DenialKind.RIGHT_MISSING
    assert person.shown_name in denial.sentence


def test_a_right_on_the_tenant_counts_for_what_belongs_to_it_and_nowhere_else(world: World) -> None:
    person, other = world.person(), World()
    Membership.objects.create(user=person, tenant=other.tenant)
    grant_right(to=person, right=APPROVE, obj=world.tenant, actor=None, now=NOW)
    assert may(person, APPROVE, world.agent) and may(person, APPROVE, world.tenant)
    assert not may(person, APPROVE, other.agent)
    assert list(objects_with(person, APPROVE, Membership)) == list(
        Membership.objects.filter(tenant=world.tenant)
    )
    assert holders(APPROVE, world.agent) == [person] and _standing(world, [person.pk]) == 1
    withdraw_right(to=person, right=APPROVE, obj=world.tenant, actor=None, now=NOW)
    assert not may(person, APPROVE, world.agent) and _standing(world, [person.pk]) == 0


def test_who_may_act_may_see_and_the_database_says_so_too(world: World) -> None:
    for right in Right:
        with connection.cursor() as cursor:
            cursor.execute("select handoff_rights_giving(%s)", [right.value])
            assert set(cursor.fetchone()[0]) == {enough.value for enough in giving(right)}
    approver, owner = world.person(APPROVE), world.person(Right.SEE_VALUES, Right.MANAGE_POLICIES)
    assert may(approver, Right.VIEW_RUNS, world.agent) and not may(owner, Right.VIEW_RUNS, world.agent)
    assert holders(Right.VIEW_RUNS, world.agent) == [approver]


def test_a_right_is_only_given_where_it_means_something(world: World) -> None:
    Permission.objects.filter(
        content_type=ContentType.objects.get_for_model(Membership), codename="see_audit"
    ).delete()
    with pytest.raises(MisplacedRightError):
        grant_right(to=world.person(), right=Right.SEE_AUDIT, obj=world.agent, actor=None, now=NOW)
    assert RightChange.objects.count() == 0


def test_leaving_a_group_ends_its_rights(world: World) -> None:
    person = world.person()
    group = world.group(person, right=APPROVE)
    assert may(person, APPROVE, world.agent)
    person.groups.remove(group)
    assert not may(person, APPROVE, world.agent)


def test_who_is_not_active_may_nothing_although_the_object_in_hand_says_otherwise(world: World) -> None:
    person = world.person(APPROVE)
    type(person).objects.filter(pk=person.pk).update(is_active=False)
    denial = why_not(person, APPROVE, world.agent)
    assert person.is_active and denial is not None and denial.kind == DenialKind.NOT_ACTIVE
    assert holders(APPROVE, world.agent) == []


def test_who_left_the_tenant_may_nothing_although_the_right_is_still_stored(world: World) -> None:
    person = world.person(APPROVE)
    Membership.objects.filter(user=person).update(active=False)
    denial = why_not(person, APPROVE, world.agent)
    assert denial is not None and denial.kind == DenialKind.NOT_MEMBER
    assert list(person.tenants()) == []


def test_a_member_of_another_tenant_with_the_same_right_there_may_nothing_here(world: World) -> None:
    stranger = World().person(APPROVE)
    denial = why_not(stranger, APPROVE, world.agent)
    assert denial is not None and denial.kind == DenialKind.NOT_MEMBER


def test_a_superuser_flag_gives_nothing(world: World) -> None:
    root = world.person()
    type(root).objects.filter(pk=root.pk).update(is_superuser=True)
    root.refresh_from_db()
    assert not may(root, APPROVE, world.agent)


def test_a_person_who_does_not_exist_may_nothing(world: World) -> None:
    nobody = make_person()
    type(nobody).objects.filter(pk=nobody.pk).delete()
    denial = why_not(nobody, APPROVE, world.agent)
    assert denial is not None and denial.kind == DenialKind.NOT_ACTIVE


def test_asking_takes_one_query(world: World) -> None:
    person = world.person(APPROVE)
    place = Place.of(world.agent)
    with CaptureQueriesContext(connection) as asked:
        assert may(person, APPROVE, world.agent)
    assert len(asked) == 1 and place.tenant_id == world.tenant.pk


def test_objects_with_a_right_are_one_query_and_only_of_ones_own_tenants(world: World) -> None:
    person, other = world.person(APPROVE), World()
    grant_right(to=person, right=APPROVE, obj=other.agent, actor=None, now=NOW)
    ContentType.objects.get_for_models(Membership, Tenant)  # a process reads these once
    with CaptureQueriesContext(connection) as asked:
        found = list(objects_with(person, APPROVE, Membership))
    assert found == [world.agent] and len(asked) == 1
    Membership.objects.create(user=person, tenant=other.tenant)
    assert set(objects_with(person, APPROVE, Membership)) == {world.agent, other.agent}


def test_grants_and_withdrawals_are_logged_once_each_and_for_ever(world: World) -> None:
    actor, person = world.person(), world.person()
    grant = partial(grant_right, to=person, right=APPROVE, obj=world.agent, actor=actor, now=NOW)
    withdraw = partial(withdraw_right, to=person, right=APPROVE, obj=world.agent, actor=actor, now=NOW)
    assert [grant(), grant(), withdraw(), withdraw()] == [True, False, True, False]
    logged = RightChange.objects.filter(person=person).order_by("pk")
    assert [(entry.granted, entry.actor, entry.at) for entry in logged] == [
        (True, actor, NOW),
        (False, actor, NOW),
    ]
    for spoil in (partial(logged.update, granted=True), logged.delete):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            spoil()


def test_the_function_of_the_send_counts_distinct_people_who_still_may(world: World) -> None:
    one, two, three = world.person(APPROVE), world.person(APPROVE), world.person(APPROVE)
    world.group(one, right=APPROVE)
    assert _standing(world, [one.pk, one.pk, two.pk, three.pk]) == 3
    withdraw_right(to=two, right=APPROVE, obj=world.agent, actor=None, now=NOW)
    Membership.objects.filter(user=three).update(active=False)
    assert _standing(world, [one.pk, two.pk, three.pk]) == 1
    assert _standing(world, []) == 0


def _standing(world: World, people: list[object]) -> int:
    place = Place.of(world.agent)
    with connection.cursor() as cursor:
        cursor.execute(
            "select handoff_approvers_standing(%s, %s::uuid[], %s, %s, %s)",
            [place.tenant_id, people, APPROVE.value, place.object_type_id, place.object_pk],
        )
        return int(cursor.fetchone()[0])


@pytest.mark.parametrize("slug", ["", "a b", "Ümlaut", "-x", " a"])
def test_a_tenant_has_a_plain_slug(slug: str) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Tenant.objects.create(slug=slug, name="Name")


def test_a_person_is_a_member_once() -> None:
    person, tenant = make_person(), make_tenant()
    Membership.objects.create(user=person, tenant=tenant)
    with pytest.raises(IntegrityError), transaction.atomic():
        Membership.objects.create(user=person, tenant=tenant)
