"""What cancelling, deciding and asking for approval again would do, in words, before it is done."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.rights import Right
from runs.machine import state as s
from runs.machine.canonical import canonical, digest
from runs.machine.events import CancelRequested
from runs.machine.safety import decisions_of
from runs.machine.transitions import Decision, allows
from runs.models import Run
from runs.pages import deciding, ending, next_action, undo, words
from runs.pages.run_page import Reader, heading
from runs.pages.who import why_not

Context = dict[str, Any]
DECIDABLE = (Decision.RESUME, Decision.RETRY, Decision.REPLAN, Decision.RESTART, Decision.END)


def stop(run: Run, state: s.RunState, reader: Reader) -> Context:
    """All of runs/stop.html but what a sent form adds."""
    return {
        "run": heading(run, state),
        "does": _does(state),
        "does_not": _does_not(state),
        "waits": _waits(state),
        "undo": _undo(run, state),
        "already": _already(state),
        **may("may_cancel", Right.CANCEL_RUNS, reader),
        "owners": _owners(reader),
        "values": {"owner": str(reader.person.pk)},
        "errors": [],
    }


def _owners(reader: Reader) -> list[dict[str, str]]:
    """Who can keep what the run still owes: who may do something about it, and the person who asks for the end."""
    holders = (p for right in (Right.ATTEST_EFFECTS, Right.OPERATE_RUNS) for p in reader.holders[right])
    people = {p.pk: p for p in (reader.person, *holders)}
    return [{"value": str(p.pk), "label": p.shown_name} for p in people.values()]


def may(name: str, right: Right, reader: Reader) -> Context:
    """Whether this person may do it, under that name; else why not."""
    if right in reader.mine:
        return {name: True}
    return {name: False, "why_not": why_not(reader.person, right, reader.holders[right])}


def _undo(run: Run, state: s.RunState) -> Context | None:
    """The other choice: what would be undone, in which order, and what stays all the same. None: there is nothing."""
    agent = undo.code_of(run)
    if not undo.offered(state, agent):
        return None
    return {
        "undone": undo.undone(state, agent),
        "in_doubt": undo.in_doubt(state, agent),
        "stays": undo.not_undone(state, agent),
        "children": bool(state.open_children),
    }


def _does(state: s.RunState) -> list[str]:
    found = [_("No new effect starts.")]
    steps = [step for step in state.remaining if step.wait is None and not state.stands(step)]
    found += [_("Not sent any more: %(title)s.") % {"title": words.inside(step.title)} for step in steps]
    waits = [step for step in state.remaining if step.wait is not None]
    found += [
        _("Not waited for any more: %(title)s.") % {"title": words.inside(step.title)} for step in waits
    ]
    text = _("Ends too, since this run started it: %(run)s (%(agent)s): %(goal)s")
    found += [
        text % {"run": x.run, "agent": x.agent, "goal": words.ended(x.goal)} for x in state.open_children
    ]
    owed = len(state.open_obligations)
    if owed:
        text = ngettext(
            "%(number)d open obligation is handed to a person and stays in the inbox until it is done.",
            "%(number)d open obligations are handed to a person and stay in the inbox until they are done.",
            owed,
        )
        found.append(text % {"number": owed})
        found += [_("Still owed: %(text)s.") % {"text": words.inside(o.text)} for o in state.open_obligations]
    return found


def _does_not(state: s.RunState) -> list[str]:
    found = [*_doubtful(state), *_confirmed(state), *_inherited(state)]
    return found or [_("Nothing was done yet, so there is nothing that it could leave undone.")]


def _doubtful(state: s.RunState) -> list[str]:
    text = _("%(effect)s may have happened. Ending the run does not undo it and does not settle it.")
    return [text % {"effect": words.effect_title(e)} for e in state.open_effects]


def _confirmed(state: s.RunState) -> list[str]:
    done = [e for e in state.effects.values() if e.status is s.EffectStatus.CONFIRMED and not e.undoes]
    if not done:
        return []
    text = ngettext(
        "It does not undo the %(number)d confirmed effect.",
        "It does not undo the %(number)d confirmed effects.",
        len(done),
    )
    kept = [_("Stays as it is: %(effect)s.") % {"effect": words.effect_title(e)} for e in done]
    return [text % {"number": len(done)}, *kept]


def _inherited(state: s.RunState) -> list[str]:
    text = _("Stays as it is: %(title)s, done by %(run)s before.")
    return [text % {"title": x.title, "run": x.run} for x in state.inherited]


def _waits(state: s.RunState) -> str:
    said = []
    if state.open_effects:
        text = _(
            "The run does not end before %(effects)s is settled. It stays open until then and ends by itself."
        )
        said.append(text % {"effects": ending.open_names(state)})
    if state.open_children:
        runs = [x.run for x in state.open_children]
        text = ngettext(
            "The run does not end before %(runs)s has ended.",
            "The run does not end before %(runs)s have ended.",
            len(runs),
        )
        said.append(text % {"runs": words.joined(runs)})
    return " ".join(said)


def _already(state: s.RunState) -> str:
    if state.cancel_requested:
        return _("The end of this run was asked for already.")
    return "" if allows(state.state, CancelRequested) else _("This run is over.")


def subject(state: s.RunState) -> str:
    """What a decision on a stopped run is about: its reasons and its plan version. A note does not change it."""
    reasons = [[r.code, r.subject, r.evidence] for r in state.reasons]
    plan = state.plan.digest if state.plan else ""
    request = state.request.id if state.request else ""
    status = state.request.status.value if state.request else ""
    version = state.identity.agent_version
    return digest("subject", canonical([state.state.value, reasons, plan, request, status, version]))


def decide(run: Run, state: s.RunState, reader: Reader) -> Context:
    """All of runs/decide.html for a stopped run."""
    decisions = decisions_of(state)
    allowed = [d for d in decisions if d in DECIDABLE]
    mine = [d for d in allowed if deciding.right_of(d) in reader.mine]
    stopped = state.state is s.State.NEEDS_HUMAN
    return {
        "run": heading(run, state),
        "title": _("How does this run go on?"),
        "why": [words.reason_with_evidence(r) for r in state.reasons],
        "choices": [deciding.choice(d, state, reader) for d in allowed] if stopped else [],
        "nothing": _nothing(state, allowed),
        "stop": _stop(state) if stopped and Decision.CANCEL in decisions else None,
        "subject": subject(state),
        "hint": _("It is shown in the timeline and in the audit log.") if state.undoing else "",
        "commit": _("Record decision"),
        **({"may_decide": True} if mine else may("may_decide", _first_right(allowed), reader)),
        "values": {},
        "errors": [],
    }


def _first_right(allowed: list[Decision]) -> Right:
    return deciding.right_of(allowed[0]) if allowed else Right.OPERATE_RUNS


def _stop(state: s.RunState) -> Context | None:
    """Cancelling as one of the choices: it has a page of its own, which says all that it does."""
    if state.cancel_requested:
        return None
    name, does = words.DECISIONS[Decision.CANCEL.value]
    return {"title": name, "text": does, "url": reverse("run-stop", args=[state.identity.run])}


def _nothing(state: s.RunState, allowed: list[Decision]) -> str:
    if state.state is not s.State.NEEDS_HUMAN:
        return _("This run is not stopped for a person, so there is nothing to decide.")
    if state.open_effects:
        return _("An effect is in doubt: reconcile it first. Then the run goes on by itself.")
    if state.contradicted and not allowed:
        facts = {"effect": f"E-{state.contradicted[0].number}"}
        return _("Evidence contradicts the record of %(effect)s: settle that first.") % facts
    return "" if allowed else _("Its reasons allow only the end of this run.")


def renew(run: Run, state: s.RunState, reader: Reader) -> Context:
    """All of runs/decide.html for asking for approval again."""
    request = state.request
    waits = state.state is s.State.WAITING_APPROVAL and not (request and request.status in s.OPEN_REQUEST)
    version = state.plan.version if state.plan else 0
    return {
        "run": heading(run, state),
        "title": _("Ask for approval of plan v%(version)d again?") % {"version": version},
        "why": [next_action.why_not_open(state), next_action.changes_sentence(state)] if waits else [],
        "choices": [],
        "single": waits,
        "nothing": "" if waits else _("No approval of this run’s plan can be asked for now."),
        "subject": subject(state),
        "commit": _("Ask for approval again"),
        **may("may_decide", Right.OPERATE_RUNS, reader),
        "values": {},
        "errors": [],
    }
