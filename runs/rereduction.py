"""Re-reduction: a log's rows made again from its events, and compared with those that stand beside it.

Reads events, calls nothing outside. It has no code in common with replay or restart beyond the reducer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import msgspec
from django.db import transaction
from django.db.models import Model

from approvals.models import Decision, Request
from runs.ledger import chain_problem, load
from runs.machine import projection
from runs.machine import state as s
from runs.models import (
    Assumption,
    Child,
    Constraint,
    Effect,
    Event,
    Obligation,
    Observation,
    PlanVersion,
    Run,
    Wait,
)
from runs.prepared import Prepared

#: Each table with what tells its rows of one run apart.
_TABLES: dict[str, tuple[type[Model], tuple[str, ...]]] = {
    "effects": (Effect, ("number",)),
    "plans": (PlanVersion, ("version",)),
    "assumptions": (Assumption, ("plan_version", "number")),
    "constraints": (Constraint, ("number",)),
    "obligations": (Obligation, ("number",)),
    "observations": (Observation, ("number",)),
    "waits": (Wait, ("step",)),
    "children": (Child, ("seq",)),
}


def differences(run_id: str) -> list[str]:
    """What differs between the rows beside the log and those that its events amount to; empty where nothing does.

    A broken hash chain is a difference. Raises ledger.LogUnreadable.
    """
    state = load(run_id)
    found = [problem] if (problem := chain_problem(run_id)) else []
    return found + _differences(state)


def _differences(state: s.RunState) -> list[str]:
    found = _run_differs(state)
    for name, rows in projection.changes(None, state).items():
        found += _rows_differ(state, name, rows)
    return found + list(_requests_differ(state))


def _either_way(expected: str, stored: str) -> str:
    return f"EXISTS ((({expected}) EXCEPT ({stored})) UNION ALL (({stored}) EXCEPT ({expected})))"


def _compared() -> Iterator[str]:
    """Per table, whether its rows of the run are others than those that the parameter holds; the run's own, too."""
    # When it wakes is a hint that is also moved without an event.
    yield (
        "(SELECT jsonb_populate_record(r, all_.x->'run') IS DISTINCT FROM r FROM runs_run r WHERE r.id = all_.x->>'id')"
    )
    for name, (model, _) in _TABLES.items():
        table = model._meta.db_table
        expected = f"SELECT * FROM jsonb_populate_recordset(NULL::{table}, all_.x->'{name}')"
        yield _either_way(expected, f"SELECT * FROM {table} WHERE run_id = all_.x->>'id'")
    yield _REQUESTS
    yield _either_way(_LOGGED, _STORED)


_REQUESTS = """EXISTS (SELECT 1 FROM jsonb_array_elements(all_.x->'requests') AS e
    LEFT JOIN approvals_request q ON q.id = (e->>'id')::uuid
    WHERE q.id IS NULL OR jsonb_populate_record(q, e) IS DISTINCT FROM q)"""
_LOGGED = """SELECT d.request, d.person, d.verdict, d.reason FROM jsonb_to_recordset(all_.x->'decisions')
    AS d(request uuid, person uuid, verdict text, reason text)"""
_STORED = """SELECT d.request_id, d.person_id, d.verdict::text, d.reason FROM approvals_decision d WHERE d.needed
    AND d.request_id IN (SELECT (e->>'id')::uuid FROM jsonb_array_elements(all_.x->'requests') AS e)"""

_DIFFERS = Prepared(
    name="handoff_rows_differ",
    sql=f"SELECT ({' OR '.join(_compared())})::text FROM (SELECT %s::jsonb AS x) all_",
)
_encode = msgspec.json.Encoder().encode


def first_difference(state: s.RunState) -> str:
    """What differs first between the rows beside the log and those that the state amounts to; empty where nothing does.

    One statement tells whether anything does, since each revalidation asks it.
    """
    run = {name: value for name, value in projection.run_row(state).items() if name != "wake_at"}
    requests = _requests_here(state)
    rows = {
        "id": state.identity.run, "run": run, **projection.changes(None, state),
        "requests": [{"id": r.id, **_request_row(r)} for r in requests],
        "decisions": [
            {"request": r.id, "person": d.person, "verdict": d.verdict, "reason": d.reason}
            for r in requests for d in r.decisions
        ],
    }  # fmt: skip
    return "" if _DIFFERS.call([_encode(rows).decode()]) == "false" else next(iter(_differences(state)), "")


def rebuild(run_id: str) -> None:
    """Make the run's rows beside its log anew from its events, in one transaction. Decisions are people's
    rows and stay.

    Raises ledger.LogUnreadable, ledger.RunMissing; nothing was changed then.
    """
    with transaction.atomic():
        Run.objects.select_for_update(of=("self",)).filter(pk=run_id).first()
        rebuild_rows(load(run_id))


def rebuild_rows(state: s.RunState) -> None:
    """Make the rows anew of a state that is all of the run's log. Inside a transaction that holds the run's lock."""
    run_id = state.identity.run
    head = Event.objects.filter(run_id=run_id, seq=state.seq).values_list("hash", flat=True).get()
    for name, rows in projection.changes(None, state).items():
        model, _ = _TABLES[name]
        model._base_manager.filter(run_id=run_id).delete()
        model._base_manager.bulk_create([model(**row) for row in rows])
    Run.objects.filter(pk=run_id).update(**projection.run_row(state), seq=state.seq, at=state.at, head=head)


def _run_differs(state: s.RunState) -> list[str]:
    expected = {**projection.run_row(state), "seq": state.seq, "at": state.at}
    stored = _plain(Run.objects.values(*expected).get(pk=state.identity.run))
    return _differing("run", expected, stored)


def _rows_differ(state: s.RunState, name: str, rows: list[projection.Row]) -> Iterator[str]:
    model, keys = _TABLES[name]
    found = model._base_manager.filter(run_id=state.identity.run).values()
    stored = {_named(row, keys): row for row in found}
    for row in rows:
        key = _named(row, keys)
        yield from _differing(f"{name} {key}", _plain(row), _plain(stored.pop(key, {})))
    for left in stored:
        yield f"{name} {left} stands in the table and in no event"


def _named(row: dict[str, Any], keys: tuple[str, ...]) -> str:
    return ".".join(str(row[key]) for key in keys)


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
    for request in _requests_here(state):
        row, expected = Request.objects.get(pk=request.id), _request_row(request)
        yield from _differing(f"request {request.id}", expected, {n: getattr(row, n) for n in expected})
        decided = Decision.objects.filter(request=row, needed=True).order_by("at")
        stored = [(str(d.person_id), d.verdict, d.reason) for d in decided]
        logged = [(d.person, d.verdict, d.reason) for d in request.decisions]
        yield from _differing(f"request {request.id}", {"decisions": logged}, {"decisions": stored})


def _requests_here(state: s.RunState) -> list[s.Request]:
    """Those that have a row: what was asked where the run was before it was taken in has none, none came along."""
    since = state.taken_in.seq if state.taken_in else 0
    return [request for request in state.requests if request.seq > since]


def _request_row(request: s.Request) -> dict[str, Any]:
    """The columns of a request that its run's events move."""
    return {
        "digest": request.digest,
        "conditions": request.conditions,
        "state": request.status.value,
        "expires_at": request.expires_at,
        "needed": request.needed,
    }
