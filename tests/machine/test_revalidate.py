"""Revalidation: all checks are made, the first failure in the order decides, and what follows from each."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from runs.machine import decide, expiry
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.constraints import Became, SourceNow
from runs.machine.projection import PROJECTED
from runs.machine.revalidate import ORDER, Fresh, Person, failed, report
from tests.machine.lives import (
    ANNA,
    PRINCIPAL,
    REST,
    SEEN,
    T0,
    Life,
    approved,
    facts,
    observed,
    planning,
    proposed,
    requirement,
    step,
    unknown,
    waiting,
)

READ = (REST.tool, REST.arguments)
WITHDRAWN = SourceNow(became=Became.WITHDRAWN, why="it is too narrow")
AMENDED = SourceNow(
    became=Became.AMENDED,
    term=e.Term(
        text="Pay open orders of today.", source_kind="configuration", source_ref="x", source_version="2"
    ),
)
LOST = Person(id="p-anna", name="Anna", lost="right_missing:approve_plans")


def _revalidated(life: Life, **more: Any) -> list[e.Event]:
    known = facts(**{"approvers": (ANNA,), **more})
    return list(
        decide.revalidated(life.state, known, requirement=requirement(1), request="again", now=life.at)
    )


def _reasons(events: list[e.Event]) -> list[str]:
    return [r.code for event in events if isinstance(event, e.HumanNeeded) for r in event.reasons]


def test_where_all_holds_it_passes_and_says_what_was_checked() -> None:
    (event,) = _revalidated(approved())
    assert isinstance(event, e.RevalidationPassed)
    names = [c.name for c in event.checks]
    assert names == sorted(names, key=ORDER.index)
    assert {"log", "effects", "schema", "code", "cancel", "approval", "constraints", "goal", "plan"} <= set(
        names
    )
    assert {"approvers", "authority", "policy", "resources", "observations"} <= set(names)


TO_HUMAN: dict[str, tuple[dict[str, Any], str]] = {
    "log": ({"log_problem": "event 3 is not as it was stored"}, "log_damaged"),
    "rows": ({"rows_differ": "effects 1: status is 'confirmed', the log says 'unknown'"}, "log_damaged"),
    "schema": ({"schema_version": 2}, "schema_incompatible"),
    "code": ({"code": "2"}, "version_unavailable"),
    "no code": ({"code": ""}, "version_unavailable"),
    "constraint withdrawn": ({"constraints_now": {1: WITHDRAWN}}, "constraint_withdrawn"),
    "constraint amended": ({"constraints_now": {1: AMENDED}}, "constraint_amended"),
    "constraint not asked": ({"constraints_now": {}}, "observation_stale"),
    "authority": ({"principal": Person(id="p", name="Olga", lost="not_member")}, "authority_lost"),
    "unreadable": ({"fresh": {READ: Fresh(failure="503")}}, "observation_stale"),
    "not read": ({"fresh": {}}, "observation_stale"),
}


@pytest.mark.parametrize(("changed", "code"), TO_HUMAN.values(), ids=list(TO_HUMAN))
def test_what_stops_the_run_for_a_person(changed: dict[str, Any], code: str) -> None:
    life = approved()
    events = _revalidated(life, **changed)
    assert isinstance(events[0], e.RevalidationRefused)
    assert _reasons(events) == [code]
    assert life.take(*events).state.state is s.State.NEEDS_HUMAN


def test_a_passed_deadline_needs_a_person_and_the_moment_itself_is_in_time() -> None:
    life = planning(deadline=T0 + timedelta(minutes=5)).take(observed())
    life.take(*proposed(life, step(rests_on=(REST,))))
    life.after(timedelta(minutes=5))
    assert isinstance(_revalidated(life, approvers=())[0], e.RevalidationPassed)
    life.after(timedelta(microseconds=1))
    assert _reasons(_revalidated(life, approvers=())) == ["deadline_passed"]


def test_an_approval_whose_time_is_over_has_expired() -> None:
    life = approved().after(timedelta(hours=1))
    events = _revalidated(life)
    assert [type(x) for x in events] == [e.RevalidationRefused, e.ApprovalExpired]
    life.take(*events)
    assert life.state.state is s.State.WAITING_APPROVAL
    assert life.state.requests[-1].status is s.RequestStatus.EXPIRED


def test_an_approver_who_lost_the_right_voids_the_approval_and_others_are_asked() -> None:
    life = approved()
    events = _revalidated(life, approvers=(LOST,))
    assert [type(x) for x in events] == [e.RevalidationRefused, e.ApprovalVoided, e.ApprovalRequested]
    life.take(*events)
    old, new = life.state.requests
    assert (old.status, new.status) == (s.RequestStatus.VOIDED, s.RequestStatus.PENDING)
    assert [(c.what, c.subject, c.now) for c in old.causes] == [("approvers", "Anna", LOST.lost)]
    assert (new.digest, new.version) == (old.digest, old.version)
    assert life.state.state is s.State.WAITING_APPROVAL


def test_where_nobody_is_left_who_may_approve_a_person_is_needed() -> None:
    life = approved()
    events = _revalidated(life, approvers=(LOST,), others_may_approve=False)
    assert _reasons(events) == ["authority_lost"]
    assert life.take(*events).state.state is s.State.NEEDS_HUMAN


def test_too_few_approvers_are_no_quorum() -> None:
    checks = failed(report(approved().state, facts(approvers=()), T0))
    assert [(c.name, c.subject) for c in checks] == [("approvers", "quorum")]


REPLANNED: dict[str, tuple[dict[str, Any], str, str]] = {
    "resource": ({"fresh": {READ: Fresh(value=SEEN, version="v2")}}, "resources", "v2"),
    "value": ({"fresh": {READ: Fresh(value="{}", version="v1")}}, "observations", "{}"),
    "policy": ({"policy_version": "2"}, "policy", "2"),
}


@pytest.mark.parametrize(("changed", "what", "now"), REPLANNED.values(), ids=list(REPLANNED))
def test_what_voids_the_plan_says_from_what_to_what(changed: dict[str, Any], what: str, now: str) -> None:
    life = approved()
    events = _revalidated(life, **changed)
    assert [type(x) for x in events] == [e.RevalidationRefused, e.PlanVoided]
    life.take(*events)
    assert life.state.state is s.State.PLANNING
    cause = life.state.plans[-1].voided[0]
    assert (cause.what, cause.now) == (what, now)
    assert life.state.requests[-1].status is s.RequestStatus.VOIDED


@pytest.mark.parametrize("gone", ["approver", "time"])
def test_nobody_is_asked_anew_about_a_plan_that_is_void_as_well(gone: str) -> None:
    life = approved()
    changed: dict[str, Any] = {"fresh": {READ: Fresh(value=SEEN, version="v2")}}
    if gone == "time":
        life.after(timedelta(hours=1))
    else:
        changed["approvers"] = (LOST,)
    events = _revalidated(life, **changed)
    assert [type(x) for x in events] == [e.RevalidationRefused, e.PlanVoided]
    assert life.take(*events).state.state is s.State.PLANNING
    causes = life.state.plans[-1].voided
    assert [c.what for c in causes] == (["approvers", "resources"] if gone == "approver" else ["resources"])
    assert "quorum" not in [c.subject for c in causes]


def test_the_third_change_in_a_row_needs_a_person() -> None:
    life = approved()
    changed = {"fresh": {READ: Fresh(value=SEEN, version="v2")}}
    for _ in range(2):
        life.take(*_revalidated(life, **changed))
        life.take(*proposed(life, step(rests_on=(REST,))))
    assert _reasons(_revalidated(life, approvers=(), **changed)) == ["resource_changed"]


def test_a_version_that_the_runs_own_receipt_made_is_no_change() -> None:
    life = approved()
    state = life.state
    own = s.RunState(
        **{n: getattr(state, n) for n in state.__struct_fields__} | {"produced": {"order:7": "v2"}}
    )
    checks = report(own, facts(approvers=(ANNA,), fresh={READ: Fresh(value=SEEN, version="v2")}), T0)
    assert failed(checks) == ()


def test_an_unknown_effect_is_settled_before_anything_else_is_looked_at() -> None:
    life = unknown()
    checks = failed(report(life.state, facts(code="2"), T0))
    assert [c.name for c in checks][:2] == ["effects", "code"]


def test_a_cancel_decides_before_a_deadline() -> None:
    life = approved().take(e.CancelRequested(note=""))
    events = _revalidated(life)
    assert [type(x) for x in events] == [e.RevalidationRefused, e.CancelBegan]


def test_a_plan_whose_bytes_are_not_the_approved_ones_is_never_executed() -> None:
    life = approved()
    plan = life.state.plans[-1]
    fields = {n: getattr(plan, n) for n in plan.__struct_fields__}
    other = s.PlanVersion(**fields | {"document": plan.document.replace("10.00", "99.00")})
    state = life.state
    bent = s.RunState(**{n: getattr(state, n) for n in state.__struct_fields__} | {"plans": (other,)})
    events = decide.revalidated(
        bent, facts(approvers=(ANNA,)), requirement=requirement(1), request="again", now=T0
    )
    assert _reasons(list(events)) == ["log_damaged"]


def test_rows_that_another_version_made_are_no_damage_and_made_anew_as_an_event() -> None:
    life = approved()
    assert decide.projected_anew(life.state) == ()
    older = replace(life.state, projected="0.9")

    (made,) = decide.projected_anew(older)
    checks = report(older, facts(approvers=(ANNA,), rows_differ="effects 1: ..."), T0)

    assert made == e.ProjectionRebuilt(was="0.9", now=PROJECTED)
    assert [c.passed for c in checks if c.name == "log"] == [True, True]
    assert life.take(made).state.projected == PROJECTED


def test_another_history_is_reported_and_decides_nothing_since_each_send_asks_first() -> None:
    life = approved()
    for state, history in (
        (life.state, ("7/1/0", "7/2/0")), (replace(life.state, history_lost=True), ("7/2/0", "7/2/0")),
    ):  # fmt: skip
        checks = report(state, facts(approvers=(ANNA,), history=history), T0)
        (told,) = [c for c in checks if c.name == "history"]
        assert (told.passed, told.was, told.now) == (False, *history)
        assert failed(checks) == ()
    for history in (("", "7/2/0"), ("7/2/0", "7/2/0")):
        checks = report(life.state, facts(approvers=(ANNA,), history=history), T0)
        assert all(c.passed for c in checks)


def test_all_reasons_are_kept_and_the_first_in_the_order_leads() -> None:
    life = approved()
    events = _revalidated(
        life,
        code="2",
        constraints_now={1: WITHDRAWN},
        principal=Person(id="p", name="O", lost="not_member"),
    )
    assert _reasons(events) == ["version_unavailable", "constraint_withdrawn", "authority_lost"]


PROBES: dict[str, dict[str, Any]] = {
    "log": {"log_problem": "x"}, "schema": {"schema_version": 2}, "code": {"code": "2"},
    "constraints": {"constraints_now": {1: WITHDRAWN}}, "approvers": {"approvers": (LOST,)},
    "authority": {"principal": Person(id="p", name="O", lost="not_member")}, "policy": {"policy_version": "2"},
    "resources": {"fresh": {READ: Fresh(value=SEEN, version="v2")}},
}  # fmt: skip


@pytest.mark.parametrize("first", PROBES)
@pytest.mark.parametrize("second", PROBES)
def test_of_two_failures_the_earlier_in_the_order_decides(first: str, second: str) -> None:
    known = facts(**{"approvers": (ANNA,), **PROBES[first], **PROBES[second]})
    names = [c.name for c in failed(report(approved().state, known, T0))]
    assert names[0] == min(first, second, key=ORDER.index)
    assert {first, second} <= set(names)


def test_a_pending_request_is_announced_to_end_once_and_expires_at_its_moment() -> None:
    life = waiting()
    until = life.state.requests[-1].expires_at
    soon = until - timedelta(minutes=15)
    assert expiry.recorded(life.state, soon - timedelta(microseconds=1)) == ()
    assert [type(x) for x in expiry.recorded(life.state, until)] == [e.ApprovalExpired]
    life.after(soon - life.at).take(*expiry.recorded(life.state, soon))
    assert life.state.requests[-1].announced_seq == life.state.seq
    assert expiry.recorded(life.state, until - timedelta(microseconds=1)) == ()
    assert [type(x) for x in expiry.recorded(life.state, until)] == [e.ApprovalExpired]
    assert PRINCIPAL.lost == ""
