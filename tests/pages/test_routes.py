"""Every address with every kind of person: nothing stands open that should not, and nothing is shut by mistake.

The table is checked against the address map, so that an address without a line here fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from approvals.models import Attempt, Decision
from runs import actions
from runs.ledger import load
from runs.models import Run
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.people import House, advance

#: Pages about one run: those that only read, and those that also take a POST with the right that it takes.
READ = {"run", "run-notices", "run-handoff", "plan", "run-events", "run-replay", "run-artifact"}
ACT = {
    "plan-review": ("approver", "second"),
    "plan-take-back": (
        "operator",
        "approver",
        "second",
        "viewer",
    ),  # one's own: there is nothing of others to take
    "effect-reconcile": ("operator",),
    "effect-ask": ("operator",),
    "effect-attest": (),
    "effect-finding": ("operator",),
    "run-stop": ("operator",),
    "run-decide": ("operator",),
    "run-move": ("operator",),
    "run-renew": ("operator",),
    "run-answer": ("operator",),
    "run-artifacts": ("operator",),
}
POST_ONLY = {"effect-ask", "effect-attest"}
OPEN = {"healthz", "readyz", "login", "account_login", "mfa_authenticate", "logout", "home"}
OWN = {"sign-in-again", "inbox", "inbox-notices", "runs", "audit", "agents"}
INSIDERS = ("operator", "approver", "second", "viewer")


def named(patterns: list[URLPattern | URLResolver]) -> Iterator[URLPattern]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from named(pattern.url_patterns)
        else:
            yield pattern


def address(name: str, run: str) -> str:
    one = {
        "plan", "plan-review", "plan-take-back", "effect-reconcile", "effect-ask", "effect-attest",
        "effect-finding", "run-artifact",
    }  # fmt: skip
    return reverse(name, args=[run, *([1] if name in one else [])])


@pytest.fixture
def run(house: House, world: World) -> Run:
    """A run with an approved plan, a file and a payment in doubt, so that every page about it has a subject."""
    run = house.approved()
    actions.attach_file(
        person=house.operator,
        run_id=run.pk,
        name="a.txt",
        media_type="text/plain",
        data=b"a",
        submission=uuid4(),
    )
    world.answers, world.outage = ["lost"], "the bank is closed"
    advance(run)
    return run


def test_every_address_is_in_the_table() -> None:
    names = {pattern.name for pattern in named(get_resolver().url_patterns)}
    assert (
        names == READ | set(ACT) | OPEN | OWN | {"agent", "agent-move"} | {"start", "start-progress"} & names
    )


def test_no_page_opens_without_signing_in(run: Run) -> None:
    for name in sorted(READ | set(ACT)):
        for method in (Client().get, Client().post):
            assert method(address(name, run.pk))["Location"].startswith("/login/"), name
    for name in sorted(OWN - {"runs"}):
        assert Client().get(reverse(name))["Location"].startswith("/login/"), name


def test_those_who_may_look_do_and_strangers_find_nothing(house: House, run: Run, sign_in: SignIn) -> None:
    for name in sorted((READ | set(ACT)) - POST_ONLY):
        for who in INSIDERS:
            answer = sign_in(getattr(house, who)).get(address(name, run.pk))
            assert answer.status_code == 200, (name, who)
            assert answer["Cache-Control"] == "no-store, private", name
            assert "HX-Request" in answer["Vary"], name
        assert sign_in(house.stranger).get(address(name, run.pk)).status_code == 404, name
    for name in sorted(POST_ONLY):
        assert sign_in(house.operator).get(address(name, run.pk)).status_code == 405


def test_only_those_who_may_act_can(house: House, run: Run, sign_in: SignIn) -> None:
    for name, allowed in ACT.items():
        for who in INSIDERS:
            status = _post(sign_in(getattr(house, who)), address(name, run.pk))
            assert status in ((302, 409, 422) if who in allowed else (403,)), (name, who)
        assert _post(sign_in(house.stranger), address(name, run.pk)) == 404, name
    refused = Attempt.objects.filter(refusal="not_allowed")
    assert refused.count() == sum(len(INSIDERS) - len(allowed) for allowed in ACT.values())
    assert not Decision.objects.exclude(verdict__in=("approve", "take_back")).exists()


def _post(client: Client, url: str) -> int:
    """A form with a bit of everything."""
    sent = {"decision": "reject", "conclusion": "happened", "choice": "retry", "reason": "long enough words"}
    return client.post(url, {**sent, "submission": str(uuid4())}).status_code


def test_a_page_that_reads_takes_no_post(house: House, run: Run, sign_in: SignIn) -> None:
    for name in sorted(READ):
        assert sign_in(house.operator).post(address(name, run.pk)).status_code == 405, name


def test_looking_changes_nothing(house: House, run: Run, sign_in: SignIn) -> None:
    before = load(run.pk)
    for name in sorted(READ | set(ACT)):
        for method in ("get", "head", "options"):
            getattr(sign_in(house.operator), method)(address(name, run.pk))
    assert load(run.pk) == before


def test_forms_without_their_token_are_refused(house: House, run: Run) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(house.operator, backend="django.contrib.auth.backends.ModelBackend")
    for name in sorted(ACT):
        assert client.post(address(name, run.pk), {"submission": str(uuid4())}).status_code == 403
    assert Attempt.objects.count() == 0
