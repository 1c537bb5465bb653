"""What one run tells another, each in a transaction of its own: a child's end, the end of a parent, an undone effect.

Told after commit; a message that is lost is found again by the sweep (`untold`). No transaction holds two runs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from django.db import connection, transaction

from accounts.fence import fence_shared
from runs.actions import writing  # the module: it tells on, so each needs the other
from runs.clock import database_now
from runs.ledger import load
from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.models import CLOSED, Run
from runs.outbox import wake_on_commit

log = logging.getLogger(__name__)
SYSTEM = e.Actor(e.ActorKind.SYSTEM, "relatives", "relatives")

_ENDED = """
SELECT c.run_id, c.child_id FROM runs_child c JOIN runs_run k ON k.id = c.child_id JOIN runs_run p ON p.id = c.run_id
WHERE c.ended_seq IS NULL AND k.state = ANY(%(closed)s) AND NOT p.state = ANY(%(closed)s) LIMIT %(most)s
"""
_LEFT = """
SELECT c.run_id, c.child_id FROM runs_child c JOIN runs_run k ON k.id = c.child_id JOIN runs_run p ON p.id = c.run_id
WHERE c.ended_seq IS NULL AND NOT k.state = ANY(%(closed)s) AND NOT k.cancel_requested
    AND (p.cancel_requested OR p.state = ANY(%(closed)s)) LIMIT %(most)s
"""
_UNDONE = """
SELECT u.run_id, u.number, o.run_id, o.number FROM runs_effect u
JOIN runs_effect o ON o.run_id = u.undoes_run AND o.number = u.undoes_effect
WHERE u.undoes_run <> '' AND u.undoes_run <> u.run_id AND u.status = 'confirmed' AND o.status = 'confirmed'
LIMIT %(most)s
"""
_STANDS = """
SELECT u.run_id, u.number, o.run_id, o.number FROM runs_effect u
JOIN runs_effect o ON o.run_id = u.undoes_run AND o.number = u.undoes_effect
WHERE u.undoes_run <> '' AND u.undoes_run <> u.run_id AND u.status = 'not_executed' AND o.status = 'compensated'
    AND NOT EXISTS (SELECT FROM runs_effect x WHERE x.undoes_run = o.run_id AND x.undoes_effect = o.number
        AND x.status = 'confirmed')
LIMIT %(most)s
"""


def tell_on_commit(before: s.RunState | None, after: s.RunState) -> None:
    """Once the transaction under way has committed, tell the runs that this change concerns."""
    for tell in _to_tell(before, after):
        transaction.on_commit(tell, robust=True)


def _to_tell(before: s.RunState | None, after: s.RunState) -> list[Callable[[], None]]:
    told: list[Callable[[], None]] = []
    ended = after.state in s.TERMINAL
    if ended and after.identity.parent:
        told.append(partial(child_moved, after.identity.parent, after.identity.run))
    if after.open_children and (ended or after.cancel_requested):
        told += [partial(stop_child, after.identity.run, child.run) for child in after.open_children]
    known = len(before.undone) if before else 0
    if len(after.undone) > known:
        told += [partial(_tell_undone, after, gone) for gone in after.undone[known:]]
    if before and len(after.undone) < known:
        told += [partial(_tell_stands, after, x) for x in before.undone if x not in after.undone]
    return told


def _tell_stands(state: s.RunState, back: e.Inherited) -> None:
    target = s.Undoes(run=back.run, effect=back.effect)
    for tried in state.effects.values():
        if tried.undoes == target and tried.status is s.EffectStatus.NOT_EXECUTED:
            effect_stands(state.identity.run, tried.number, back.run, back.effect)


def _tell_undone(state: s.RunState, gone: e.Inherited) -> None:
    target = s.Undoes(run=gone.run, effect=gone.effect)
    tries = (x for x in state.effects.values() if x.undoes == target)
    by = next(x.number for x in tries if x.status is s.EffectStatus.CONFIRMED)
    effect_undone(state.identity.run, by, gone.run, gone.effect)


def child_moved(parent_id: str, child_id: str) -> None:
    """Tell a parent that its child ended or was restarted."""
    child = load(child_id)
    _tell(parent_id, lambda state: decide.child_moved(state, child))


def stop_child(parent_id: str, child_id: str) -> None:
    """End a child whose parent ends or has ended; with what it did undone where that was asked of the parent."""
    parent = load(parent_id)
    _tell(child_id, lambda state: _stop(state, parent))


def _stop(child: s.RunState, parent: s.RunState) -> decide.Events:
    if child.state in s.TERMINAL or child.cancel_requested:
        return ()
    note, owner = f"parent {parent.identity.run}", decide.keeper(parent)
    return decide.cancel(child, note=note, undo=parent.undo_requested, owner=owner)


def effect_undone(run_id: str, number: int, of_run: str, of_effect: int) -> None:
    """Tell a run that has ended that another one undid its effect."""
    _tell(of_run, lambda state: decide.compensated(state, of_effect, by_run=run_id, by_effect=number))


def effect_stands(run_id: str, number: int, of_run: str, of_effect: int) -> None:
    """Tell a run that has ended that its effect, which another one was taken to have undone, stands."""
    _tell(of_run, lambda state: decide.not_compensated(state, of_effect, by_run=run_id, by_effect=number))


def _tell(run_id: str, decider: Callable[[s.RunState], decide.Events]) -> None:
    tenant = Run.objects.filter(pk=run_id).values_list("tenant_id", flat=True).first()
    if tenant is None:
        log.warning("a relative is not here: the run was taken in without it", extra={"run": run_id})
        return
    with transaction.atomic():
        fence_shared(tenant)
        run = Run.objects.select_for_update(of=("self",)).select_related("agent").get(pk=run_id)
        state = load(run_id)
        events = decider(state)
        if events:
            writing.write(state, events, run=run, actor=SYSTEM, now=database_now())
            wake_on_commit(run_id=run_id, agent=run.agent.name, version=run.agent_version)


def tell_untold(most: int) -> None:
    """Tell again what a process that died after its commit did not tell."""
    for query, tell in (
        (_ENDED, child_moved),
        (_LEFT, stop_child),
        (_UNDONE, effect_undone),
        (_STANDS, effect_stands),
    ):
        with connection.cursor() as cursor:
            cursor.execute(query, {"closed": CLOSED, "most": most})
            rows = cursor.fetchall()
        for row in rows:
            _told(tell, row)


def _told(tell: Callable[..., None], row: tuple[object, ...]) -> None:
    """One that fails keeps none of the others from being told."""
    try:
        tell(*row)
    except Exception:
        log.exception("a run could not be told", extra={"row": list(row)})
