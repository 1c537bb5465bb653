"""Every address with every kind of person, from what each view declares: nothing too open, nothing too closed.

An address whose view declares no guard fails, so does one whose answer is not what its guard says. Who may what is
asked of the rights themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from accounts.guards import Guard, On, guard_of
from accounts.models import Membership, TenantGroup, User
from accounts.rights import Right, grant_right, may
from approvals.models import Attempt
from runs import actions, grants
from runs.clock import database_now
from runs.ledger import load
from runs.models import Agent, Run
from runs.sources.held import PREFIX
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.people import House, advance, assert_replays

METHODS: Final = ("get", "head", "post", "put", "delete", "options")
#: Views that send a form elsewhere, or take one and show none.
POST_ONLY: Final = {"effect-ask", "effect-attest", "run-check", "run-claim", "observations-read"}
#: What stands in an address beside the run.
PARTS: Final = {
    "version": "1", "effect": "1", "obligation": "1", "artifact": "1", "name": "payer", "to": "2",
    "constraint": "1", "policy": "1", "ref": "NEVERWAS00",
    "person_id": "00000000-0000-0000-0000-000000000001", "group_id": "1", "slug": "acme", "token": "x",
    "provider_id": "oidc", "kind": "csv", "value": "1",
    "grant": "00000000-0000-0000-0000-000000000001",
    "what": "membership",
}  # fmt: skip
NO_RUN: Final = "run_NEVERWAS0000"


@dataclass(frozen=True)
class Route:
    """One address: its view's guard, and where it leads for one run."""

    name: str
    guard: Guard
    parts: tuple[str, ...]

    def of(self, run: str, **more: str) -> str:
        """The address for a run, or for what `more` names."""
        known = {**PARTS, "run_id": run, **more}
        return reverse(self.name, kwargs={part: known[part] for part in self.parts})

    @property
    def reads(self) -> bool:
        """Whether it can be looked at."""
        return self.name not in POST_ONLY


def named(patterns: list[URLPattern | URLResolver]) -> Iterator[URLPattern]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from named(pattern.url_patterns)
        else:
            yield pattern


def routes(*on: On) -> list[Route]:
    """The addresses whose views declare that they are about this."""
    found = []
    for pattern in named(get_resolver().url_patterns):
        guard = guard_of(pattern.callback)
        if guard and guard.on in on:
            parts = tuple(pattern.pattern.regex.groupindex)
            found.append(Route(name=str(pattern.name), guard=guard, parts=parts))
    return found


def test_every_view_declares_what_it_is_about() -> None:
    silent = [str(p.name) for p in named(get_resolver().url_patterns) if guard_of(p.callback) is None]
    assert silent == []
    assert len(routes(On.RUN)) > 15 and {r.name for r in routes(On.NOTHING)} >= {"login", "healthz"}


@pytest.fixture
def run(house: House, world: World) -> Run:
    """A run with an approved plan, a file, something that it owes and a payment in doubt, so that every page about it
    has a subject.
    """
    run = house.approved()
    actions.attach_file(
        person=house.operator, run_id=run.pk, name="a.txt", media_type="text/plain", data=b"a",
        submission=uuid4(),
    )  # fmt: skip
    actions.open_obligation(
        person=house.operator, run_id=run.pk, text="tell the auditor", to="", owner=house.operator,
        submission=uuid4(),
    )  # fmt: skip
    world.answers, world.outage = ["lost"], "the bank is closed"
    advance(run)
    return run


@pytest.fixture
def everybody(house: House, run: Run) -> dict[str, User]:
    """One of each kind of person, as far as their rights tell them apart."""
    root = _member(house, "root", None, run)
    User.objects.filter(pk=root.pk).update(is_superuser=True, is_staff=True)
    gone = _member(house, "gone", Right.OPERATE_RUNS, house.tenant)
    Membership.objects.filter(user=gone).update(active=False)
    return {
        "viewer": house.viewer,
        "operator": house.operator,
        "approver": house.approver,
        "policies": _member(house, "policies", Right.MANAGE_POLICIES, house.tenant),
        "people": _member(house, "people", Right.MANAGE_PEOPLE, house.tenant),
        "auditor": _member(house, "auditor", Right.SEE_AUDIT, house.tenant),
        "member": _member(house, "member", None, run),
        "foreign": house.stranger,
        "superuser": root,
        "gone": gone,
        "approver of this run": _member(house, "only", Right.APPROVE_PLANS, run),
    }


def _member(house: House, name: str, right: Right | None, on: object) -> User:
    person = User.objects.create_user(username=name, display_name=name.capitalize())
    Membership.objects.create(user=person, tenant=house.tenant)
    if right:
        grant_right(to=person, right=right, obj=on, actor=None, now=database_now())  # type: ignore[arg-type]
    return person


def _form() -> dict[str, str]:
    """A form with a bit of everything."""
    sent = {"decision": "reject", "conclusion": "happened", "choice": "retry", "reason": "long enough words"}
    return {**sent, "submission": str(uuid4())}


def test_each_kind_of_person_gets_what_the_guard_says(
    run: Run, everybody: dict[str, User], sign_in: SignIn
) -> None:
    wrong = []
    for who, person in everybody.items():
        client, sees = sign_in(person), may(person, Right.VIEW_RUNS, run)
        for route in routes(On.RUN):
            acts = any(may(person, right, run) for right in route.guard.acts)
            status = client.get(route.of(run.pk)).status_code
            if status != (405 if not route.reads else 200 if sees else 404):
                wrong.append((who, "get", route.name, status))
            status = client.post(route.of(run.pk), _form()).status_code
            if not _fits(status, takes=bool(route.guard.acts), sees=sees, acts=acts):
                wrong.append((who, "post", route.name, status))
    assert wrong == []
    assert_replays(run)
    assert Attempt.objects.filter(refusal="not_allowed").exists()


def test_each_kind_of_person_gets_what_the_guard_of_a_policy_says(
    house: House, everybody: dict[str, User], sign_in: SignIn
) -> None:
    actions.add_policy(
        person=everybody["policies"],
        agent=house.agent,
        text='{"rules": []}',
        reason="as agreed",
        submission=uuid4(),
    )
    policies = [route for route in routes(On.AGENT) if route.name.startswith("policy")]
    wrong, of = [], f"?of={house.tenant.slug}"
    for who, person in everybody.items():
        client, acts = sign_in(person), may(person, Right.MANAGE_POLICIES, house.agent)
        sees = acts or may(person, Right.VIEW_RUNS, house.agent)
        for route in policies:
            status = client.get(route.of("") + of).status_code
            if status != (200 if sees else 404):
                wrong.append((who, "get", route.name, status))
            status = client.post(route.of("") + of, _form()).status_code
            if not _fits(status, takes=bool(route.guard.acts), sees=sees, acts=acts):
                wrong.append((who, "post", route.name, status))
    assert wrong == [] and len(policies) == 3
    assert Attempt.objects.filter(refusal="not_allowed").exists()


def _fits(status: int, *, takes: bool, sees: bool, acts: bool) -> bool:
    """Whether a POST was answered as the guard says."""
    if not takes:
        return status == 405
    if not sees:
        return status == 404
    # What is missing or outdated in the form is told to those who may only; the form is empty, so never 404.
    return status in (302, 400, 409, 422) if acts else status == 403


def test_nobody_gets_anything_without_signing_in(run: Run) -> None:
    client, wrong = Client(), []
    for route in routes(On.RUN, On.AGENT, On.TENANT, On.PERSON):
        for method in METHODS:
            answer = getattr(client, method)(route.of(run.pk))
            if answer.status_code != 302 or not answer["Location"].startswith("/login/"):
                wrong.append((method, route.name, answer.status_code))
    assert wrong == []


def test_what_is_foreign_answers_as_what_never_was(house: House, run: Run, sign_in: SignIn) -> None:
    client, wrong = sign_in(house.stranger), []
    client.get(reverse("inbox"))  # whatever is read only once has been
    for route in routes(On.RUN):
        for method in METHODS:
            theirs, asked = _answer(client, method, route.of(run.pk))
            absent, as_much = _answer(client, method, route.of(NO_RUN))
            same = _bare(theirs, run.pk) == _bare(absent, NO_RUN) and theirs.status_code in (404, 405)
            if not same or asked != as_much:
                wrong.append((method, route.name, theirs.status_code, asked, as_much))
    assert wrong == []
    assert not Attempt.objects.exists()


#: What names one thing in an address, with a value that nothing has.
ABSENT: Final = {
    "name": "nobodys", "person_id": str(UUID(int=7)), "group_id": "2147483", "slug": "nowhere",
    "grant": str(UUID(int=7)), "ref": "NEVERWAS00",
}  # fmt: skip


def test_what_is_no_run_and_foreign_answers_as_what_never_was(house: House, sign_in: SignIn) -> None:
    """The stranger holds every right in the other organisation, and names people, groups, grants and so on of this."""
    theirs = _things_of(house)
    client, wrong, walked = sign_in(house.stranger), [], 0
    client.get(reverse("inbox"))
    for route in routes(On.AGENT, On.TENANT, On.PERSON):
        if not ABSENT.keys() & {*route.parts}:
            continue
        for query in ("", *([f"?of={theirs['slug']}"] if route.guard.on is On.AGENT else [])):
            for method in ("get", "post"):
                walked += 1
                there, nowhere = route.of(NO_RUN, **theirs), route.of(NO_RUN, **ABSENT)
                foreign, asked = _answer(client, method, there + query)
                absent, as_much = _answer(client, method, nowhere + query)
                same = _bare(foreign, there) == _bare(absent, nowhere)
                if not same or asked != as_much or foreign.status_code not in (404, 405):
                    wrong.append((method, route.name, query, foreign.status_code, asked, as_much))
    assert wrong == [] and walked > 20
    assert not Attempt.objects.filter(person=house.stranger).exists()


def _things_of(house: House) -> dict[str, str]:
    """One of each thing that an address can name, of the house."""
    manager = _member(house, "policies", Right.MANAGE_POLICIES, house.tenant)
    agent = Agent.objects.create(tenant=house.tenant, name="oursalone", title="Ours alone")
    group = Group.objects.create(name=str(uuid4()))
    TenantGroup.objects.create(group=group, tenant=house.tenant, title="Finance")
    held = actions.add_constraint(
        person=manager, place=agent, name="cap", text="At most 5.", predicate="", reason="as was agreed",
        submission=uuid4(),
    )  # fmt: skip
    actions.add_policy(
        person=manager, agent=agent, text='{"rules": []}', reason="as agreed", submission=uuid4()
    )
    grant = grants.lend(principal=house.operator, agent=agent, scopes=["pay"], now=database_now())
    return {
        "name": agent.name, "person_id": str(house.operator.pk), "group_id": str(group.pk), "slug": house.tenant.slug,
        "grant": str(grant.pk), "ref": held.ref.removeprefix(PREFIX),
    }  # fmt: skip


def _answer(client: Client, method: str, url: str) -> tuple[HttpResponse, int]:
    with CaptureQueriesContext(connection) as asked:
        answer = getattr(client, method)(url, **({"data": _form()} if method == "post" else {}))
    return answer, len(asked)


def _bare(answer: HttpResponse, run: str) -> tuple[int, str, list[tuple[str, str]]]:
    """An answer without what differs between any two: the id asked for, the request's id, token and time."""
    text = answer.content.decode().replace(run, "RUN")
    text = re.sub(r'name="csrfmiddlewaretoken" value="\w+"|data-now="[^"]+"|\b[0-9a-f]{16}\b', "", text)
    text = re.sub(r"\d\d\d\d-\d\d-\d\dT[\d:.+Z]+|\d\d:\d\d:\d\d", "", text)
    headers = [(name, value) for name, value in answer.items() if name != "X-Request-Id"]
    return answer.status_code, text, sorted((n, v) for n, v in headers if n != "Content-Length")


def test_nothing_of_another_tenant_is_in_lists_counts_and_searches(
    house: House, run: Run, sign_in: SignIn
) -> None:
    """Asked for by its id and its person: what was typed is given back, and nothing else."""
    client, told = sign_in(house.stranger), []
    for route in routes(On.PERSON):
        url = route.of(run.pk)
        asked = f"{url}?q={run.pk}&run={run.pk}&view=any&person=Operator"
        answer = client.get(asked)
        assert answer.status_code in (200, 204, 302, 304, 404, 405), route.name
        text = b"".join(answer)
        searched = text.decode().replace(f'value="{run.pk}"', "")
        if "order 2000" in searched or "Operator</" in searched or f"/runs/{run.pk}" in searched:
            told.append(route.name)
    assert told == []


def test_methods_that_no_page_has_are_refused_and_looking_changes_nothing(
    house: House, run: Run, sign_in: SignIn
) -> None:
    client, before = sign_in(house.operator), load(run.pk)
    for route in routes(On.RUN):
        assert client.put(route.of(run.pk)).status_code == 405, route.name
        assert client.delete(route.of(run.pk)).status_code == 405, route.name
        assert client.options(route.of(run.pk)).status_code in (200, 405), route.name
        answer = client.head(route.of(run.pk))
        assert answer.status_code == (200 if route.reads else 405), route.name
        if route.reads:
            assert answer["Cache-Control"] == "no-store, private" and "HX-Request" in answer["Vary"], (
                route.name
            )
    assert load(run.pk) == before


def test_forms_without_their_token_are_refused(house: House, run: Run) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(house.operator, backend="django.contrib.auth.backends.ModelBackend")
    for route in (route for route in routes(On.RUN) if route.guard.acts):
        assert client.post(route.of(run.pk), {"submission": str(uuid4())}).status_code == 403, route.name
    assert Attempt.objects.count() == 0
