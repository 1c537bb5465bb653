"""The next safe action in words: what, why, until when, what is not safe and why, and where to take it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from msgspec.structs import replace

from accounts.rights import Right
from approvals.binding import condition_changes
from runs.machine import state as s
from runs.machine.events import CancelRequested
from runs.machine.safety import Action, SafeAction, next_safe_action, right_to
from runs.machine.transitions import ROWS, Decision, allows, first_reason
from runs.machine.waits import WaitKind
from runs.pages import ending, owed, words

Sentences = tuple[str, str, str]  # what, why, what it waits for


def shown(state: s.RunState, mine: frozenset[Right]) -> dict[str, Any]:
    """The `next` of runs/run.html. The link stands only where this person may take it."""
    action = next_safe_action(state)
    do, why, wait = _SAY[action.action](state, action)
    facts = {"rule": action.rule, "seq": state.seq}
    found = {
        "do": do,
        "why": why,
        "wait": wait,
        "not_safe": not_safe(action),
        "ending": ending.would_wait(state),
        "decided": _("Decided by rule %(rule)s from version %(seq)d, not by the agent.") % facts,
    }
    if taken := as_taken(action, mine):
        found |= {"url": address(state.identity.run, taken), "label": label(taken)}
    if (name := awaited(state)) and Right.OPERATE_RUNS in mine:
        found |= {
            "url": answer_address(state.identity.run),
            "label": _("Give the answer “%(name)s”") % {"name": name},
        }
    if ending.owes(state) and action.action is Action.NONE and Right.ATTEST_EFFECTS in mine:
        first = owed.first_due(state)
        found |= {
            "url": reverse("obligation-attest", args=[state.identity.run, first.number]),
            "label": _("State that %(obligation)s is done") % {"obligation": f"B-{first.number}"},
        }
    if state.successor:
        successor = {"run": state.successor}
        found |= {"url": reverse("run", args=[state.successor]), "label": _("Open %(run)s") % successor}
    if Right.CANCEL_RUNS in mine and allows(state.state, CancelRequested) and not state.cancel_requested:
        found["other_url"] = reverse("run-stop", args=[state.identity.run])
    return found


def as_taken(action: SafeAction, mine: Collection[Right]) -> SafeAction | None:
    """The action as somebody with these rights may take it: of several decisions those that they may. None: they may
    not.
    """
    if action.right is None:
        return None
    if not action.decisions or action.action is not Action.DECIDE:
        return action if Right(action.right) in mine else None
    left = tuple(d for d in action.decisions if Right(right_to(d)) in mine)
    return replace(action, decisions=left) if left else None


def without_review(found: dict[str, Any], why: str) -> dict[str, Any]:
    """The same where the request that it names cannot be decided any more, and why; the link to it goes."""
    left = {key: value for key, value in found.items() if key not in ("url", "label")}
    return left | {"do": _("Wait: a worker makes another plan."), "why": why, "wait": ""}


def awaited(state: s.RunState) -> str:
    """The name of the answer that a waiting run waits for; empty where it waits for none."""
    wait = state.wait if state.state is s.State.WAITING else None
    came = wait and any(x.name == wait.signal and not x.taken_by for x in state.signals)
    return wait.signal if wait and wait.kind is WaitKind.SIGNAL and not came else ""


def answer_address(run: str) -> str:
    """Where an answer is given."""
    return reverse("run-answer", args=[run])


def accept_address(state: s.RunState) -> str:
    """Where the first of the amendments that wait is accepted for the run."""
    first = next(c.number for c in state.constraints if c.amended and not c.withdrawn)
    return reverse("constraint-accept", args=[state.identity.run, first])


def not_safe(action: SafeAction) -> list[str]:
    """What must not be done now, each with why. Asking for the end is safe, since it waits: `ending` says so."""
    facts = {"effect": f"E-{action.effect}", "plan": action.plan}
    return [str(words.NOT_SAFE[code]) % facts for code in action.not_safe if code != "end"]


def label(action: SafeAction) -> str:
    """The action as the text of a link."""
    facts = {"effect": f"E-{action.effect}", "plan": action.plan}
    match action.action:
        case Action.RECONCILE:
            return _("Reconcile %(effect)s") % facts
        case Action.REVIEW:
            return _("Review plan v%(plan)d") % facts
        case Action.RENEW:
            return _("Ask for approval of plan v%(plan)d again") % facts
        case Action.FIND:
            return _("Settle the evidence against %(effect)s") % facts
        case Action.DECIDE if action.decisions[:1] == (Decision.LEND,):
            return str(words.DECISIONS[Decision.LEND.value][0])
        case Action.DECIDE if action.decisions == (Decision.CANCEL,):
            return str(words.DECISIONS[Decision.CANCEL.value][0])
        case Action.DECIDE:
            return _("Decide how it goes on")
        case _:
            return _("Open the run")


def address(run: str, action: SafeAction) -> str:
    """Where the action is taken."""
    match action.action:
        case Action.RECONCILE:
            return reverse("effect-reconcile", args=[run, action.effect])
        case Action.REVIEW:
            return reverse("plan-review", args=[run, action.plan])
        case Action.RENEW:
            return reverse("run-renew", args=[run])
        case Action.FIND:
            return reverse("effect-finding", args=[run, action.effect])
        case Action.DECIDE if action.decisions[:1] == (Decision.LEND,):
            return reverse("run-lend", args=[run])
        case Action.DECIDE if action.decisions == (Decision.CANCEL,):
            return reverse("run-stop", args=[run])
        case Action.DECIDE:
            return reverse("run-decide", args=[run])
        case _:
            return reverse("run", args=[run])


def _of(state: s.RunState, action: SafeAction) -> tuple[s.Effect, dict[str, str]]:
    effect = state.effects[action.effect or 0]
    facts = {
        "effect": words.effect_title(effect),
        "id": f"E-{effect.number}",
        "system": effect.system,
        "at": words.clock(effect.last_send.at),
    }
    return effect, facts


def _may_have_been_sent(facts: dict[str, str]) -> str:
    return _("%(effect)s may have been sent after %(at)s and no receipt was stored.") % facts


def _ask(state: s.RunState, action: SafeAction) -> Sentences:
    effect, facts = _of(state, action)
    do = _("Wait: a worker asks %(system)s what became of %(id)s.") % facts
    until = words.clock(effect.next_ask_at) if effect.next_ask_at else ""
    wait = _("Nothing to do for a person: it is asked again at %(at)s.") % {"at": until} if until else ""
    return do, _may_have_been_sent(facts), wait


def _resend(state: s.RunState, action: SafeAction) -> Sentences:
    _effect, facts = _of(state, action)
    do = _("Wait: a worker sends %(id)s again under the same key, which %(system)s honours.") % facts
    until = words.clock(action.until) if action.until else ""
    wait = _("Nothing to do for a person: it is tried at %(at)s.") % {"at": until} if until else ""
    return do, _may_have_been_sent(facts), wait


def _reconcile(state: s.RunState, action: SafeAction) -> Sentences:
    effect, facts = _of(state, action)
    if effect.terms.queryable:
        do = _("Ask %(system)s what happened to effect %(id)s, and record what it answers.") % facts
    else:
        do = _("Find out what happened to effect %(id)s and state it: %(system)s cannot be asked.") % facts
    stopped = words.reason_with_evidence(first_reason(state.reasons))
    return do, _("%(sent)s %(stopped)s") % {"sent": _may_have_been_sent(facts), "stopped": stopped}, ""


def _settle(state: s.RunState, action: SafeAction) -> Sentences:
    _effect, facts = _of(state, action)
    do = _("Wait: %(id)s is being sent to %(system)s now.") % facts
    why = _("%(effect)s was begun at %(at)s and has no receipt yet.") % facts
    until = words.clock(action.until) if action.until else ""
    return do, why, _("If no receipt is stored by %(at)s, a worker asks what became of it.") % {"at": until}


def _review(state: s.RunState, action: SafeAction) -> Sentences:
    do = _review_what(state, action)
    until = words.clock(action.until) if action.until else ""
    why = " ".join(filter(None, (lost_before(state), changes_sentence(state))))
    return do, why, _("The request expires at %(at)s.") % {"at": until}


def _review_what(state: s.RunState, action: SafeAction) -> str:
    facts = {"plan": action.plan}
    if state.undoing:
        return _("Review plan v%(plan)d, which undoes what the run did: approve it or reject it.") % facts
    return _("Review plan v%(plan)d: approve it, reject it or ask for changes.") % facts


def lost_before(state: s.RunState) -> str:
    """Why the approval or plan before this request lost its validity; empty where there was none."""
    last = state.requests[-2] if len(state.requests) > 1 else None
    if last is None:
        return ""
    if ended := _ended(state, last):
        return ended
    if not last.causes:
        return ""
    facts = {"version": last.version, "causes": " ".join(words.cause(c) for c in last.causes)}
    if last.decisions:
        return _("The earlier approval of plan v%(version)d was voided. %(causes)s") % facts
    return _("The earlier request to approve plan v%(version)d was voided. %(causes)s") % facts


def _ended(state: s.RunState, last: s.Request) -> str:
    """That a request was taken back or expired, by whom and when; empty where it ended another way."""
    facts = {"version": last.version, "at": words.moment(last.closed_at or last.expires_at)}
    if last.status is s.RequestStatus.EXPIRED:
        told = _("The earlier request to approve plan v%(version)d expired at %(at)s.") % facts
        return f"{told} {_since(last, state.requests[-1])}".rstrip()
    if last.status is not s.RequestStatus.TAKEN_BACK:
        return ""
    by = last.decisions[-1]
    text = _("%(name)s took the approval of plan v%(version)d back at %(at)s: “%(reason)s”")
    return text % {**facts, "name": by.name, "reason": by.reason}


def _since(before: s.Request, now: s.Request) -> str:
    """What of all that an approval is bound to differs from when the same plan was asked about before."""
    if before.version != now.version:
        return ""
    changes = [c for c in condition_changes(before.conditions, now.conditions) if c.what != "expires_at"]
    if not changes:
        return _("Nothing else that an approval is bound to has changed since.")
    facts = {"changes": words.joined([words.bound_change(c) for c in changes])}
    return _("Changed since: %(changes)s.") % facts


def changes_sentence(state: s.RunState) -> str:
    """How many changes the plan makes and how many of them cannot be undone."""
    steps = [step for step in state.remaining if step.wait is None]
    if state.undoing:
        return _undoing_sentence(state, len(steps))
    hard = sum(not step.reversible for step in steps)
    facts = {"number": len(steps), "hard": hard}
    text = ngettext(
        "The plan makes %(number)d change outside; %(hard)d of it cannot be undone.",
        "The plan makes %(number)d changes outside; %(hard)d of them cannot be undone.",
        len(steps),
    )
    return " ".join(filter(None, (text % facts, _starts_sentence(state))))


def _undoing_sentence(state: s.RunState, number: int) -> str:
    text = ngettext(
        "The end of the run was asked for; the plan undoes %(number)d effect.",
        "The end of the run was asked for; the plan undoes %(number)d effects, the latest first.",
        number,
    )
    return text % {"number": number}


def _starts_sentence(state: s.RunState) -> str:
    """How many runs the rest of the plan starts; empty where it starts none."""
    number = sum(len(step.wait.children) for step in state.remaining if step.wait and not state.waited(step))
    if not number:
        return ""
    text = ngettext("It starts %(number)d run.", "It starts %(number)d runs.", number)
    return text % {"number": number}


def _renew(state: s.RunState, action: SafeAction) -> Sentences:
    do = _("Ask for approval of plan v%(plan)d again.") % {"plan": action.plan}
    return do, why_not_open(state), _("Nothing is sent while no approval stands.")


def why_not_open(state: s.RunState) -> str:
    """Why the latest request is not open any more."""
    request = state.request
    if request is None:
        return _("Nobody was asked yet.")
    if request.status is s.RequestStatus.VOIDED:
        return _("The approval was voided. %(causes)s") % {
            "causes": " ".join(words.cause(c) for c in request.causes)
        }
    at = words.clock(request.closed_at or request.expires_at)
    return _("The request expired at %(at)s and nobody’s approval stands.") % {"at": at}


def _decide(state: s.RunState, action: SafeAction) -> Sentences:
    why = " ".join(words.reason_with_evidence(r) for r in state.reasons)
    ends = _("The run is being ended, and does not go on towards its goal.") if state.undoing else ""
    return _decide_what(action.decisions), why, " ".join(filter(None, (_made_anew_first(state), ends)))


def _decide_what(decisions: tuple[Decision, ...]) -> str:
    first, *others = [str(words.DECISIONS[d.value][0]) for d in decisions] or [""]
    facts = {"first": first, "decisions": words.joined([first, *others]), "others": words.joined(others)}
    if decisions[:1] != (Decision.LEND,):
        return _("Decide how the run goes on: %(decisions)s.") % facts
    if not others:
        return _("%(first)s: then a person approves the rest of the plan again.") % facts
    return (
        _("%(first)s: then a person approves the rest of the plan again. Or decide otherwise: %(others)s.")
        % facts
    )


def _made_anew_first(state: s.RunState) -> str:
    """What comes before going on where the rows beside the log are damaged; the log itself is whole."""
    if not any((r.code, r.subject) == ("log_damaged", ROWS) for r in state.reasons):
        return ""
    return _("First have the rows made anew from the log, on the page that compares both.")


def _find(state: s.RunState, action: SafeAction) -> Sentences:
    effect = state.effects[action.effect or 0]
    came = effect.contradicted
    facts = {
        "effect": words.effect_title(effect),
        "id": f"E-{effect.number}",
        "seq": came.seq if came else 0,
        "reference": (came.reference if came else "") or "–",
    }
    do = _("Find out which is true of %(id)s, the record or the evidence that came later.") % facts
    why = _("Evidence in event %(seq)d contradicts the record of %(effect)s: %(reference)s.") % facts
    over = state.state in s.TERMINAL
    return (
        do,
        why,
        _("The run is over and stays so; it leaves the inbox once this is settled.") if over else "",
    )


def _run(state: s.RunState, action: SafeAction) -> Sentences:
    do = _("Nothing to do: a worker goes on with the run.")
    why = _("Nothing is in flight or unknown, and nothing waits for a person.")
    until = words.clock(action.until) if action.until else ""
    return do, why, _("It is tried again at %(at)s.") % {"at": until} if until else ""


def _wait(state: s.RunState, action: SafeAction) -> Sentences:
    wait, until = state.wait, words.moment(action.until) if action.until else ""
    if wait is None or wait.kind is WaitKind.TIMER:
        return _("Wait until %(at)s.") % {"at": until}, _("The plan says so. Nothing is held meanwhile."), ""
    if wait.kind is WaitKind.CHILDREN:
        return _wait_for_runs(state, wait.step)
    do = _("Wait for the answer “%(signal)s”, or give it.") % {"signal": wait.signal}
    why = _("The plan waits for it since %(at)s.") % {"at": words.moment(wait.began_at)}
    return do, why, _("If none comes by %(at)s, a person is asked.") % {"at": until} if until else ""


#: Runs that a sentence names; the section below has all of them.
_NAMED = 3


def _wait_for_runs(state: s.RunState, step: str) -> Sentences:
    runs = [c.run for c in state.open_children if state.cancel_requested or c.step == step]
    facts = {"runs": words.joined(runs[:_NAMED]), "more": len(runs) - _NAMED}
    if len(runs) > _NAMED:
        facts["runs"] = _("%(runs)s and %(more)d more") % facts
    if state.cancel_requested:
        do = ngettext(
            "Wait: the run ends when %(runs)s has ended.",
            "Wait: the run ends when %(runs)s have ended.",
            len(runs),
        )
        return (
            do % facts,
            _("The end of this run was asked for, and that reaches the runs that it started."),
            "",
        )
    do = ngettext(
        "Wait: the run goes on when %(runs)s has ended.",
        "Wait: the run goes on when %(runs)s have ended.",
        len(runs),
    )
    why = ngettext(
        "A step started it and waits for its end. Nothing is held meanwhile.",
        "A step started them and waits until all have ended. Nothing is held meanwhile.",
        len(runs),
    )
    return do % facts, why, ""


def _undo(state: s.RunState, action: SafeAction) -> Sentences:
    do = _("Nothing to do: a worker undoes what the run did, the latest first.")
    until = words.clock(action.until) if action.until else ""
    left = sum(1 for step in state.remaining if step.undoes)
    why = ngettext(
        "The end of the run was asked for; %(number)d effect is still to be undone.",
        "The end of the run was asked for; %(number)d effects are still to be undone.",
        left,
    )
    return (
        do,
        why % {"number": left},
        _("It is tried again at %(at)s.") % {"at": until} if until else "",
    )


def _finish(state: s.RunState, action: SafeAction) -> Sentences:
    why = _("Its end was asked for, and nothing is in flight or unknown.")
    if state.undo_requested:
        do = _(
            "Nothing to do: a worker plans how what the run did is undone, and ends it where nothing can be."
        )
        until = words.clock(action.until) if action.until else ""
        return do, why, _("It is tried again at %(at)s.") % {"at": until} if until else ""
    return _("Nothing to do: a worker ends the run."), why, ""


def _over(state: s.RunState, action: SafeAction) -> Sentences:
    if state.successor:
        facts = {"run": state.successor}
        return (
            _("Go on with %(run)s.") % facts,
            _("This run was closed; %(run)s is its successor.") % facts,
            "",
        )
    if ending.owes(state):
        names = [f"B-{o.number} ({o.text})" for o in state.open_obligations]
        do = _("Do what the run still owes, then state that it is done: %(owed)s.") % {
            "owed": words.joined(names)
        }
        return do, _("The run is over, so no worker does it any more."), ending.kept_by(state)
    return _("Nothing. The run is over."), _("Nothing is in flight, unknown or owed."), ""


_SAY: dict[Action, Callable[[s.RunState, SafeAction], Sentences]] = {
    Action.RUN: _run,
    Action.ASK: _ask,
    Action.RESEND: _resend,
    Action.REVIEW: _review,
    Action.RENEW: _renew,
    Action.RECONCILE: _reconcile,
    Action.FIND: _find,
    Action.DECIDE: _decide,
    Action.SETTLE: _settle,
    Action.WAIT: _wait,
    Action.UNDO: _undo,
    Action.FINISH_CANCEL: _finish,
    Action.NONE: _over,
}
