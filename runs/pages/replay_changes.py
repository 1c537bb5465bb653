"""What one event changed: the important parts of the states before and after it, compared, as lines for people.

Each line is {mark: added | removed | changed, text, kind?, was?, now?}; where `kind` is set, `was` and `now` are
codes of that table of labels (run, effect, approval).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from django.utils.translation import gettext as _

from runs.machine import state as s
from runs.pages import stated, words
from runs.pages.relatives import what_for

Line = dict[str, Any]


def changes(before: s.RunState | None, after: s.RunState) -> list[Line]:
    """What is different after the event, most important first; empty where nothing is that is shown here."""
    return [line for part in _PARTS for line in part(before, after)]


def _line(mark: str, text: str, **more: object) -> Line:
    return {"mark": mark, "text": text, **more}


def _moved(kind: str, text: str, was: str | None, now: str) -> Line:
    """A part whose state was one code and is another."""
    return _line("changed" if was else "added", text, kind=kind, was=was or "", now=now)


def _run(before: s.RunState | None, after: s.RunState) -> Iterator[Line]:
    was = before.state if before else None
    if was is not after.state:
        yield _moved("run", _("Run"), was, after.state.value)
    if before and before.direction is not after.direction:
        yield _line("changed", _("The run now undoes what it did."))
    version = after.identity.agent_version
    if before and before.identity.agent_version != version:
        facts = {"was": before.identity.agent_version, "now": version}
        yield _line("changed", _("Version of the agent: %(was)s → %(now)s") % facts)
    if after.cancel_requested and not (before and before.cancel_requested):
        undo = _("The run’s end was asked for, and that what it did is undone.")
        yield _line("added", undo if after.undo_requested else _("The run’s end was asked for."))
    if after.successor and not (before and before.successor):
        yield _line("added", _("Successor: %(run)s") % {"run": after.successor})


def _goal(before: s.RunState | None, after: s.RunState) -> Iterator[Line]:
    for goal in after.goals[len(before.goals) if before else 0 :]:
        yield _line("added", _("Goal v%(version)d: %(text)s") % {"version": goal.version, "text": goal.text})


def _constraints(before: s.RunState | None, after: s.RunState) -> Iterator[Line]:
    for found in after.constraints[len(before.constraints) if before else 0 :]:
        yield _line("added", f"C-{found.number}: {found.term.text}")


def _plans(before: s.RunState | None, after: s.RunState) -> Iterator[Line]:
    known = {p.version: p for p in before.plans} if before else {}
    for plan in after.plans:
        name, old = {"version": plan.version, "steps": len(plan.plan.steps)}, known.get(plan.version)
        if old is None:
            yield _line("added", _("Plan v%(version)d, number of steps: %(steps)d") % name)
        elif plan.voided_seq != old.voided_seq:
            yield _line("removed", _("Plan v%(version)d is not valid any more.") % name)
        elif plan.by_policy is not old.by_policy:
            yield _line("changed", _("Plan v%(version)d needs nobody’s approval.") % name)


def _requests(before: s.RunState | None, after: s.RunState) -> Iterator[Line]:
    known = {r.id: r for r in before.requests} if before else {}
    for request in after.requests:
        old = known.get(request.id)
        name = _("Approval of plan v%(version)d") % {"version": request.version}
        if old is None or old.status is not request.status:
            yield _moved("approval", name, old.status.value if old else None, request.status.value)
        for made in request.decisions[len(old.decisions) if old else 0 :]:
            yield _line("added", _("Decision of %(name)s") % {"name": made.name})


def _effects(before: s.RunState | None, after: s.RunState) -> Iterator[Line]:
    known = before.effects if before else {}
    for number, effect in after.effects.items():
        old, title = known.get(number), words.effect_title(effect)
        if old is None or old.status is not effect.status:
            yield _moved("effect", title, old.status.value if old else "planned", effect.status.value)
        if old is not None:
            yield from _effect_parts(old, effect)


def _effect_parts(old: s.Effect, effect: s.Effect) -> Iterator[Line]:
    name = {"effect": f"E-{effect.number}", "number": len(effect.sends), "times": len(effect.asks)}
    if effect.receipt and effect.receipt != old.receipt:
        name["reference"] = effect.receipt.reference or "–"
        by_people = _("%(effect)s: settled by what people stated, reference %(reference)s")
        text = by_people if stated.by(effect) else _("%(effect)s: receipt, reference %(reference)s")
        yield _line("added", text % name)
    if len(effect.sends) > len(old.sends):
        yield _line("added", _("%(effect)s: send %(number)d under the same key") % name)
    if len(effect.asks) > len(old.asks):
        yield _line("added", _("%(effect)s: the other system was asked, time %(times)d") % name)
    if effect.dispatched_seq and not old.dispatched_seq:
        yield _line("added", _("%(effect)s: the call may have begun") % name)
    for said in effect.attestations[len(old.attestations) :]:
        yield _line("added", _("%(effect)s: statement of %(person)s") % {**name, "person": said.name})


def _steps(before: s.RunState | None, after: s.RunState) -> Iterator[Line]:
    if before and len(before.plans) == len(after.plans):
        for step in after.done.keys() - before.done.keys():
            yield _line("changed", _("Step %(step)s is done.") % {"step": step})


def _obligations(before: s.RunState | None, after: s.RunState) -> Iterator[Line]:
    known = {o.number: o for o in before.obligations} if before else {}
    for owed in after.obligations:
        old, name = known.get(owed.number), {"id": f"B-{owed.number}", "text": owed.text}
        if old is None:
            yield _line("added", _("%(id)s opened: %(text)s") % name)
        elif old.open and not owed.open:
            yield _line("removed", _("%(id)s discharged: %(text)s") % name)
        elif owed.handed_over and not old.handed_over:
            yield _line("changed", _("%(id)s handed to a person: %(text)s") % name)
        elif owed.owner != old.owner and owed.owner is not None:
            yield _line(
                "changed", _("%(id)s handed to %(owner)s: %(text)s") % {**name, "owner": owed.owner.name}
            )
        elif owed.overdue_seq and not old.overdue_seq:
            yield _line("changed", _("%(id)s overdue: %(text)s") % name)


def _reasons(before: s.RunState | None, after: s.RunState) -> Iterator[Line]:
    old = before.reasons if before else ()
    for found in after.reasons:
        if found not in old:
            yield _line("added", _("Needs a person: %(why)s") % {"why": words.reason_with_evidence(found)})
    for found in old:
        if found not in after.reasons:
            yield _line("removed", _("No longer a reason: %(why)s") % {"why": words.reason(found)})


def _observations(before: s.RunState | None, after: s.RunState) -> Iterator[Line]:
    known = before.observations if before else {}
    for key, seen in after.observations.items():
        old = known.get(key)
        facts = {"id": f"O-{seen.number}", "resource": seen.resource, "version": seen.version}
        if old is None:
            yield _line("added", _("%(id)s: %(resource)s at version %(version)s") % facts)
        elif old.seq != seen.seq and old.version == seen.version:
            yield _line("changed", _("%(id)s: %(resource)s read again, still version %(version)s") % facts)
        elif seen.reread is not None and seen.reread != old.reread:
            said = _("%(id)s: %(resource)s read again, and found otherwise: version %(now)s")
            yield _line("changed", said % {**facts, "now": seen.reread.version})
        elif old.seq != seen.seq:
            said = _("%(id)s: %(resource)s from version %(was)s to version %(version)s")
            yield _line("changed", said % {**facts, "was": old.version})


def _artifacts(before: s.RunState | None, after: s.RunState) -> Iterator[Line]:
    for number, kept in after.artifacts.items():
        if before is None or number not in before.artifacts:
            yield _line("added", f"A-{number}: {kept.name}")


def _waits(before: s.RunState | None, after: s.RunState) -> Iterator[Line]:
    known = before.waits if before else {}
    for step, wait in after.waits.items():
        old = known.get(step)
        facts = {
            "step": step,
            "what": what_for(wait),
            "until": words.moment(wait.until) if wait.until else "–",
        }
        if old is None or old.began_seq != wait.began_seq:
            yield _line("added", _("Step %(step)s waits for %(what)s") % facts)
        elif old.ended_seq is None and wait.ended_seq is not None:
            yield _line("removed", _("Step %(step)s has what it waited for: %(what)s") % facts)
        elif old.until != wait.until:
            yield _line("changed", _("Step %(step)s waits until %(until)s") % facts)


def _signals(before: s.RunState | None, after: s.RunState) -> Iterator[Line]:
    known = {x.id: x for x in before.signals} if before else {}
    for signal in after.signals:
        old, facts = known.get(signal.id), {"name": signal.name, "step": signal.taken_by}
        if old is None:
            yield _line("added", _("Answer “%(name)s”") % facts)
        elif signal.taken_by and not old.taken_by:
            yield _line("changed", _("Answer “%(name)s” is taken by step %(step)s") % facts)


def _children(before: s.RunState | None, after: s.RunState) -> Iterator[Line]:
    known = before.children if before else {}
    for first, child in after.children.items():
        old, facts = known.get(first), {"run": child.run, "was": first}
        if old is None:
            yield _line("added", _("Started %(run)s") % facts)
        elif old.run != child.run:
            yield _line("changed", _("%(was)s goes on as %(run)s") % {**facts, "was": old.run})
        elif old.open and not child.open:
            yield _moved("run", child.run, None, child.ended)


def _undone(before: s.RunState | None, after: s.RunState) -> Iterator[Line]:
    """What of other runs it undid."""
    for gone in after.undone[len(before.undone) if before else 0 :]:
        facts = {"effect": f"E-{gone.effect}", "run": gone.run}
        yield _line("removed", _("%(effect)s of %(run)s stands no more") % facts)


def _tries(before: s.RunState | None, after: s.RunState) -> Iterator[Line]:
    was = before.retry_at if before else None
    if after.retry_at and after.retry_at != was:
        yield _line("changed", _("Tries again at %(at)s.") % {"at": words.clock(after.retry_at)})
    for operation, number in after.rounds.items():
        if before and before.rounds.get(operation, 0) != number:
            facts = {"operation": operation, "number": number}
            yield _line("changed", _("Round %(number)d of %(operation)s") % facts)


_PARTS: tuple[Callable[[s.RunState | None, s.RunState], Iterator[Line]], ...] = (
    _run, _reasons, _effects, _plans, _requests, _steps, _obligations, _goal, _constraints, _observations,
    _artifacts, _waits, _signals, _children, _undone, _tries,
)  # fmt: skip
