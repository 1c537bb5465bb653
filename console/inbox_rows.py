"""The rows of the inbox: why a run is there, its next step, and whether this person may take it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import User
from accounts.rights import Denial, DenialKind, Right
from approvals.models import Request, RequestState
from console.inbox_waits import waits
from runs.access import permitted
from runs.machine import events as e
from runs.machine.events import Reason, decode
from runs.machine.expiry import announced_from
from runs.machine.hidden import Hidden
from runs.machine.safety import Action, SafeAction, right_to
from runs.machine.transitions import Decision, allowed_decisions
from runs.models import CLOSED, Effect, Event, Obligation, Run
from runs.outdated import Outdated, outdated
from runs.pages import next_action, shortcuts, words
from runs.pages.who import ACTING
from runs.pages.working import who
from runs.queries import TIERS, approved_by, disputed, doubts, excluded_from, last_requests, owed
from runs.seeing import hidden_rows
from runs.working import Workers, workers

Row = dict[str, Any]
STOPPING = (e.HumanNeeded.__name__, e.PlanRejected.__name__)


@dataclass(frozen=True, kw_only=True)
class Known:
    """What is known of all rows of a page, read in a few queries whatever their number."""

    person: User
    now: datetime
    doubts: dict[str, list[Effect]]
    owed: dict[str, list[Obligation]]
    asked: dict[str, Request]  #: the newest request about the plan of a run that waits
    reasons: dict[str, list[Reason]]
    disputed: dict[str, tuple[int, str]]  #: evidence against the record: effect, reference
    excluded: frozenset[str]  #: runs whose request this person may not decide, by its own rule
    approved: frozenset[str]  #: runs whose open request this person has approved already
    outdated: dict[
        str, Outdated
    ]  #: runs whose open request was made under another policy than the one in force
    waits: dict[str, str]  #: what a run waits for, where that is no person
    mine: dict[Right, frozenset[str]]  #: right -> the runs on which this person holds it
    workers: dict[str, Workers]  #: who works on a run, or was asked to
    hidden: dict[str, Hidden]  #: what this person may not see of a run, where there is anything


def groups(runs: Sequence[Run], person: User, now: datetime, *, ranked: bool) -> list[dict[str, Any]]:
    """The `groups` of console/inbox.html, in the order of the runs."""
    ids, asked = [run.pk for run in runs], last_requests(runs)
    mine = permitted(person, ACTING, ids)
    known = Known(
        person=person, now=now, doubts=doubts(ids), owed=owed(ids), reasons=_reasons(runs),
        excluded=excluded_from(person, ids), waits=waits(runs),
        asked=asked, approved=approved_by(person, asked.values()),
        disputed=disputed([run.pk for run in runs if "effect_conflict" in run.reasons]),
        mine=mine, hidden=hidden_rows(run for run in ids if run not in mine[Right.SEE_VALUES]),
        outdated=outdated(runs), workers=workers(ids, now),
    )  # fmt: skip
    if not ranked:
        return [{"risk": "", "runs": [_row(run, known) for run in runs]}]
    by_tier = groupby(runs, key=lambda run: TIERS[run.tier])  # type: ignore[attr-defined]
    return [{"risk": tier, "runs": [_row(run, known) for run in group]} for tier, group in by_tier]


def _row(run: Run, known: Known) -> Row:
    action = _action(run, known)
    row: Row = {
        "id": run.pk,
        "title": _seen(run, run.goal, known),
        "url": reverse("run", args=[run.pk]),
        "agent": run.agent.title,
        "agent_version": run.agent_version,
        "state": words.shown_state(run.state, run.reasons),
        "why": _seen(run, _why(run, known), known),
        "since": run.since,
        "keys": _keys(run, known),
        **_worked_on(run, known),
    }
    if action:
        watching = _watching(run, action, known)
        taken = next_action.as_taken(action, _rights(run, known)) or action
        url = None if watching else next_action.address(run.pk, taken)
        row |= {"next": {"label": next_action.label(taken), "url": url}, "watching": watching}
    elif run.pk in known.owed and (run.state in CLOSED or _overdue(run, known)):
        row |= _owing(run, known)
    return row


def _keys(run: Run, known: Known) -> dict[str, str]:
    doubtful = [(effect.number, effect.reversible) for effect in known.doubts.get(run.pk, ())]
    plan = run.plan_version if run.state == "waiting_approval" else None
    return shortcuts.addresses(run.pk, plan=plan, unknown=doubtful)


def _worked_on(run: Run, known: Known) -> Row:
    found = known.workers.get(run.pk, Workers())
    return {
        "working": {**who(found.claim), "you": found.claim.person_id == known.person.pk} if found.claim else None,
        "assigned": found.assignment.person.shown_name if found.assignment else "",
    }  # fmt: skip


def _owing(run: Run, known: Known) -> Row:
    """What is owed has to be done and stated by a person: what is due first."""
    first = known.owed[run.pk][0].number
    may = run.pk in known.mine[Right.ATTEST_EFFECTS]
    denial = Denial(kind=DenialKind.RIGHT_MISSING, person=known.person, right=Right.ATTEST_EFFECTS)
    label = _("State that %(obligation)s is done") % {"obligation": f"B-{first}"}
    url = reverse("obligation-attest", args=[run.pk, first])
    return {"next": {"label": label, "url": url if may else None}, "watching": "" if may else denial.sentence}


def _overdue(run: Run, known: Known) -> bool:
    """Whether anything that the run owes had to be done by now."""
    due = known.owed[run.pk][0].due_at if run.pk in known.owed else None
    return due is not None and due <= known.now


def _seen(run: Run, text: str, known: Known) -> str:
    hidden = known.hidden.get(run.pk)
    return hidden.text(text) if hidden else text


def _action(run: Run, known: Known) -> SafeAction | None:
    """The next safe action by the same rules as on the run page, as far as a person takes it."""
    plan = run.plan_version
    if run.pk in known.doubts:
        effect = known.doubts[run.pk][0].number
        return SafeAction(action=Action.RECONCILE, right="reconcile_effects", rule="NSA-4", effect=effect)
    if run.pk in known.disputed and (run.state == "needs_human" or run.state in CLOSED):
        effect = known.disputed[run.pk][0]
        return SafeAction(action=Action.FIND, right="reconcile_effects", rule="NSA-11", effect=effect)
    if run.state == "needs_human":
        decisions = _decisions(run, known)
        right = right_to(decisions[0]) if decisions else "operate_runs"
        return SafeAction(action=Action.DECIDE, right=right, rule="NSA-8", decisions=decisions)
    if run.pk in known.outdated:
        return None
    if run.state == "waiting_approval" and run.expires_at is not None:  # type: ignore[attr-defined]
        return SafeAction(action=Action.REVIEW, right="approve_plans", rule="NSA-6", plan=plan)
    if run.state == "waiting_approval":
        return SafeAction(action=Action.RENEW, right="operate_runs", rule="NSA-5", plan=plan)
    return None


def _decisions(run: Run, known: Known) -> tuple[Decision, ...]:
    """What the run's reasons allow, as far as its rows tell; its page says exactly that."""
    reasons = tuple(known.reasons.get(run.pk, ()))
    return allowed_decisions(reasons, open_effects=False, undoing=run.direction == "undo")


def _rights(run: Run, known: Known) -> frozenset[Right]:
    return frozenset(right for right, runs in known.mine.items() if run.pk in runs)


def _watching(run: Run, action: SafeAction, known: Known) -> str:
    """Why this person cannot take the action; empty where they can."""
    right = Right(action.right or Right.VIEW_RUNS)
    if next_action.as_taken(action, _rights(run, known)) is None:
        return Denial(kind=DenialKind.RIGHT_MISSING, person=known.person, right=right).sentence
    if action.action is Action.REVIEW and run.pk in known.excluded:
        return _("You have a part in this plan, so somebody else must decide.")
    if action.action is Action.REVIEW and run.pk in known.approved:
        return _("You have approved it; somebody else must approve it too.")
    return ""


def _reasons(runs: Sequence[Run]) -> dict[str, list[Reason]]:
    """Why each run stopped, with what it is about, from the events that say so."""
    stopped = {run.pk: run for run in runs if run.reasons}
    said: dict[tuple[str, str], Reason] = {}
    events = Event.objects.filter(run_id__in=stopped, type__in=STOPPING, body__isnull=False)
    for event in events.order_by("seq"):
        told = decode(seq=event.seq, type_=event.type, version=event.version, body=event.body or "")
        said |= {(event.run_id, reason.code): reason for reason in _told(told)}
    return {
        pk: [
            said.get((pk, code)) or Reason(code=code, subject=f"v{run.plan_version}") for code in run.reasons
        ]
        for pk, run in stopped.items()
    }


def _told(event: e.Event) -> tuple[Reason, ...]:
    match event:
        case e.HumanNeeded():
            return event.reasons
        case e.PlanRejected():
            return (Reason(code="plan_rejected", subject=f"v{event.version}", evidence=event.reason),)
        case _:
            return ()


def _why(run: Run, known: Known) -> str:
    if run.pk in known.doubts:
        return _doubt(run, known)
    if run.state == "needs_human":
        return " ".join(words.reason_with_evidence(r) for r in known.reasons.get(run.pk, []))
    if run.state == "waiting_approval":
        return _waits(run, known)
    if run.state in CLOSED and run.pk in known.disputed:
        effect, reference = known.disputed[run.pk]
        facts = {"effect": f"E-{effect}", "reference": reference or "–"}
        return _("Over, and evidence contradicts the record of %(effect)s: %(reference)s.") % facts
    if run.state in CLOSED and run.pk in known.owed:
        promised = words.inside(words.clauses(_promise(x, known) for x in known.owed[run.pk]))
        return _("Obligation open: the run is over and still owes: %(promised)s.") % {"promised": promised}
    if run.state in CLOSED:
        return _("Over.")
    if _overdue(run, known):
        late = [x for x in known.owed[run.pk] if x.due_at and x.due_at <= known.now]
        facts = {
            "promised": words.inside(words.clauses(_promise(x, known) for x in late)),
            "moves": _moves(run, known),
        }
        return _("%(promised)s. %(moves)s") % facts
    return _moves(run, known)


def _promise(owed: Obligation, known: Known) -> str:
    """What is owed, to whom, by when and who keeps it; what is overdue says so first."""
    facts = {
        "text": words.inside(owed.text),
        "to": owed.to_whom,
        "owner": owed.owner_name,
        "due": words.moment(owed.due_at) if owed.due_at else "",
    }
    parts = [facts["text"]]
    if owed.to_whom:
        parts.append(_("to %(to)s") % facts)
    if owed.due_at:
        parts.append(_("due %(due)s") % facts)
    if owed.owner_name:
        parts.append(_("owner %(owner)s") % facts)
    said = words.joined(parts)
    late = owed.due_at is not None and owed.due_at <= known.now
    return _("Overdue: %(promise)s") % {"promise": said} if late else said


def _moves(run: Run, known: Known) -> str:
    """What moves a run that waits for no person."""
    if run.pk in known.waits:
        said = known.waits[run.pk]
        return _("%(said)s Its end was asked for.") % {"said": said} if run.cancel_requested else said
    if run.direction == "undo":
        return _("Its end was asked for; a worker ends it, and first undoes what is to be undone.")
    return _("A worker moves it.")


def _doubt(run: Run, known: Known) -> str:
    effects = known.doubts[run.pk]
    hard = sum(not effect.reversible for effect in effects)
    facts = {"number": len(effects), "hard": hard, "title": words.inside(effects[0].title)}
    text = (
        ngettext(
            "%(number)d effect has no receipt (%(hard)d cannot be undone): %(title)s.",
            "%(number)d effects have no receipt (%(hard)d cannot be undone), first: %(title)s.",
            len(effects),
        )
        % facts
    )
    if run.state == "unknown":
        return _("%(doubt)s A worker is asking the other system.") % {"doubt": text}
    reasons = " ".join(words.reason_with_evidence(r) for r in known.reasons.get(run.pk, []))
    return _("%(doubt)s %(reasons)s") % {"doubt": text, "reasons": reasons}


def _waits(run: Run, known: Known) -> str:
    if changed := known.outdated.get(run.pk):
        return words.policy_changed(changed.was, changed.now)
    said = _asked_for(run, known)
    return _("Expires soon. %(said)s") % {"said": said} if _ends_soon(run, known) else said


def _asked_for(run: Run, known: Known) -> str:
    hard: int = run.irreversible or 0  # type: ignore[attr-defined]
    until: datetime | None = run.expires_at  # type: ignore[attr-defined]
    facts = {"version": run.plan_version, "hard": hard}
    if until is None:
        return _not_asked(run, known)
    if run.direction == "undo":
        text = _(
            "The request for approval of plan v%(version)d, which undoes what the run did, expires at %(until)s."
        )
        return text % {**facts, "until": words.clock(until)}
    text = ngettext(
        "The request for approval of plan v%(version)d expires at %(until)s; %(hard)d change cannot be undone.",
        "The request for approval of plan v%(version)d expires at %(until)s; %(hard)d changes cannot be undone.",
        hard,
    )
    return text % {**facts, "until": words.clock(until)}


def _ends_soon(run: Run, known: Known) -> bool:
    asked = known.asked.get(run.pk)
    if asked is None or asked.state != RequestState.PENDING or known.now >= asked.expires_at:
        return False
    return known.now >= announced_from(asked.opened_at, asked.expires_at)


def _not_asked(run: Run, known: Known) -> str:
    """Why nobody can decide on the plan, and what is needed."""
    last = known.asked.get(run.pk)
    facts = {"version": run.plan_version, "at": words.clock(last.expires_at) if last else ""}
    if last is None:
        return _("Nobody was asked for approval of plan v%(version)d: it needs to be asked for.") % facts
    if last.state in (RequestState.EXPIRED, RequestState.PENDING):
        text = _(
            "Request expired at %(at)s: approval of plan v%(version)d needs to be asked for again. Nothing was sent."
        )
        return text % facts
    return (
        _("The approval of plan v%(version)d does not stand any more: it needs to be asked for again.")
        % facts
    )
