"""Re-reduction: a log's rows made again from its events, and compared with those that stand beside it.

Reads events, calls nothing outside. It has no code in common with replay or restart beyond the reducer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Model

from approvals.models import Decision, Request
from runs.ledger import chain_problem, load
from runs.machine import projection
from runs.machine import state as s
from runs.models import Child, Constraint, Effect, Event, Obligation, Observation, PlanVersion, Run, Wait

_TABLES: dict[str, tuple[type[Model], str]] = {
    "effects": (Effect, "number"),
    "plans": (PlanVersion, "version"),
    "constraints": (Constraint, "number"),
    "obligations": (Obligation, "number"),
    "observations": (Observation, "number"),
    "waits": (Wait, "step"),
    "children": (Child, "seq"),
}


def differences(run_id: str) -> list[str]:
    """What differs between the rows beside the log and those that its events amount to; empty where nothing does.

    A broken hash chain is a difference. Raises ledger.LogUnreadable.
    """
    state = load(run_id)
    found = [problem] if (problem := chain_problem(run_id)) else []
    found += _run_differs(state)
    for name, rows in projection.changes(None, state).items():
        found += _rows_differ(state, name, rows)
    return found + list(_requests_differ(state))


def rebuild(run_id: str) -> None:
    """Make the run's rows beside its log anew from its events, in one transaction. Decisions are people's
    rows and stay.

    Raises ledger.LogUnreadable, ledger.RunMissing; nothing was changed then.
    """
    with transaction.atomic():
        Run.objects.select_for_update(of=("self",)).filter(pk=run_id).first()
        state = load(run_id)
        head = Event.objects.filter(run_id=run_id, seq=state.seq).values_list("hash", flat=True).get()
        for name, rows in projection.changes(None, state).items():
            model, _ = _TABLES[name]
            model._base_manager.filter(run_id=run_id).delete()
            model._base_manager.bulk_create([model(**row) for row in rows])
        Run.objects.filter(pk=run_id).update(
            **projection.run_row(state), seq=state.seq, at=state.at, head=head
        )


def _run_differs(state: s.RunState) -> list[str]:
    expected = {**projection.run_row(state), "seq": state.seq, "at": state.at}
    stored = _plain(Run.objects.values(*expected).get(pk=state.identity.run))
    return _differing("run", expected, stored)


def _rows_differ(state: s.RunState, name: str, rows: list[projection.Row]) -> Iterator[str]:
    model, key = _TABLES[name]
    stored = {row[key]: row for row in model._base_manager.filter(run_id=state.identity.run).values()}
    for row in rows:
        yield from _differing(f"{name} {row[key]}", _plain(row), _plain(stored.pop(row[key], {})))
    for left in stored:
        yield f"{name} {left} stands in the table and in no event"


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Ids as text: the machine knows no UUID."""
    return {name: str(value) if isinstance(value, UUID) else value for name, value in row.items()}


def _differing(what: str, expected: dict[str, Any], stored: dict[str, Any]) -> list[str]:
    return [
        f"{what}: {name} is {stored.get(name)!r}, the log says {value!r}"
        for name, value in expected.items()
        if stored.get(name) != value
    ]


def _requests_differ(state: s.RunState) -> Iterator[str]:
    for request in state.requests:
        if state.taken_in and request.seq <= state.taken_in.seq:
            continue  # it was asked where the run was before, and no row of it came along
        row = Request.objects.get(pk=request.id)
        expected = {
            "digest": request.digest,
            "conditions": request.conditions,
            "state": request.status.value,
            "expires_at": request.expires_at,
            "needed": request.needed,
        }
        yield from _differing(f"request {request.id}", expected, {n: getattr(row, n) for n in expected})
        decided = Decision.objects.filter(request=row, needed=True).order_by("at")
        stored = [(str(d.person_id), d.verdict, d.reason) for d in decided]
        logged = [(d.person, d.verdict, d.reason) for d in request.decisions]
        yield from _differing(f"request {request.id}", {"decisions": logged}, {"decisions": stored})
