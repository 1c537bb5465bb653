"""What a recorded action did, told on the page that it leads to. The same form sent twice leads to the same page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import User
from approvals.models import Decision, Verdict
from runs.clock import database_now
from runs.models import Submission
from runs.views.frame import uuid_of

Said = dict[str, Any]


def to_run(run_id: str, submission: UUID) -> HttpResponse:
    """Where a recorded action leads: the run's page, which then says what was recorded."""
    return HttpResponseRedirect(f"{reverse('run', args=[run_id])}?done={submission}")


def keep_result(
    submission: UUID, person: User, tenant_id: UUID, action: str, result: dict[str, int | str]
) -> None:
    """Keep what a form did that is about no single run. IntegrityError: the same form was recorded meanwhile."""
    Submission.objects.create(
        id=submission, tenant_id=tenant_id, person=person, action=action, result=result, at=database_now()
    )


def kept_result(submission: UUID | str, person: User, action: str) -> dict[str, int | str] | None:
    """What `keep_result` kept under the id; None for an id that this person's form never had."""
    id_ = uuid_of(str(submission))
    found = Submission.objects.filter(pk=id_, person=person, action=action).first() if id_ else None
    result: dict[str, int | str] | None = found.result if found else None
    return result


def result_of(request: HttpRequest, run_id: str, person: User) -> Said | None:
    """What this person's form of that id recorded about the run; None where the address names none."""
    submission = uuid_of(request.GET.get("done", ""))
    if submission is None:
        return None
    done = Submission.objects.filter(pk=submission, person=person, run_id=run_id).first()
    if done:
        text, detail = ACTIONS.get(_did(done), _recorded)()
        return {"text": text, "detail": detail, "at": done.at, "action": done.action, "seq": done.seq}
    decision = Decision.objects.select_related("request").filter(submission=submission, person=person).first()
    return _decided(decision) if decision and decision.request.subject.startswith(f"{run_id}:") else None


def _did(form: Submission) -> str:
    """What the form did, as `ACTIONS` names it: a form about who works on a run may have done different things."""
    outcome = form.result.get("outcome")
    return f"{form.action} {outcome}" if outcome else form.action


def _decided(decision: Decision) -> Said:
    version = decision.request.subject.rpartition(":")[2]
    text, detail = VERDICTS[Verdict(decision.verdict)]()
    if not decision.needed:
        detail = _("It was already decided the same way, so your decision was kept and was not needed.")
    elif decision.verdict == Verdict.APPROVE and decision.approvals_after < decision.request.needed:
        facts = {"given": decision.approvals_after, "needed": decision.request.needed}
        detail = _("%(given)d of %(needed)d approvals are given. Nothing is sent before all are.") % facts
    return {"text": text % {"version": version}, "detail": detail, "at": decision.at}


VERDICTS: dict[Verdict, Callable[[], tuple[str, str]]] = {
    Verdict.APPROVE: lambda: (
        _("You approved plan v%(version)s."),
        _("Nothing was sent by this. A worker makes all checks again before each change."),
    ),
    Verdict.REJECT: lambda: (
        _("You rejected plan v%(version)s."),
        _("The run needs a person now. Nothing was cancelled or undone."),
    ),
    Verdict.ASK: lambda: (
        _("You asked for changes to plan v%(version)s."),
        _("The agent gets your text and proposes another version."),
    ),
    Verdict.TAKE_BACK: lambda: (
        _("You took your approval of plan v%(version)s back."),
        _("Nothing more is sent on it. What was sent before stands, as the ledger below shows."),
    ),
}


def _recorded() -> tuple[str, str]:
    return _("Recorded."), ""


def _claimed() -> str:
    return _(
        "Others see that you work on it, and may act all the same. Nothing was sent and nothing was moved."
    )


ACTIONS: dict[str, Callable[[], tuple[str, str]]] = {
    "limit run": lambda: (
        _("The constraint was added."),
        _("Nothing is sent on the plan before. The agent makes another under this constraint too."),
    ),
    "confirm constraint": lambda: (
        _("The constraint was confirmed."),
        _("It binds the run as before, and its source stays shown. Your name stands beside it."),
    ),
    "attach": lambda: (
        _("The file was attached."),
        _("It was kept as it came, with its hash. It moves nothing."),
    ),
    "ask": lambda: (
        _("The answer was stored as evidence."),
        _("Nothing was sent and nothing was concluded."),
    ),
    "conclude": lambda: (
        _("Your conclusion was recorded."),
        _("The ledger below shows what is certain now. Nothing was sent by this."),
    ),
    "attest": lambda: (
        _("Your statement was recorded."),
        _(
            "It is kept with your name and is never shown as a receipt. Where the effect cannot be undone, "
            "two people must state the same before it counts."
        ),
    ),
    "settle": lambda: (
        _("Your finding was recorded."),
        _(
            "The record and the evidence against it stay shown. Where the record would change and the effect cannot "
            "be undone, two people must find the same before it counts."
        ),
    ),
    "renew": lambda: (_("Approval was asked for again."), _("Nothing is sent before it is given.")),
    "resume": lambda: (
        _("Your decision was recorded: the run goes on."),
        _("A worker makes all checks again first."),
    ),
    "retry": lambda: (
        _("Your decision was recorded: the refused step is tried again."),
        _("A worker makes all checks again first."),
    ),
    "check": lambda: (
        _("All checks were made now."),
        _("Nothing was moved. What they found stands under “Authority and checks”."),
    ),
    "lend": lambda: (
        _("Authority was lent to the run anew."),
        _("A person has to approve the rest of its plan before anything is sent."),
    ),
    "move": lambda: (
        _("The run was moved to another version of its agent."),
        _("A worker of that version makes all checks again before anything is sent."),
    ),
    "revise goal": lambda: (
        _("The goal was revised."),
        _(
            "Nothing more is sent for the goal before. The agent makes another plan, which is reviewed like any other."
        ),
    ),
    "revoke here": lambda: (
        _("The constraint was revoked for this run."),
        _("The run does not go on. It can be restarted without the constraint, or cancelled."),
    ),
    "revoke_constraint": lambda: (
        _("The constraint was revoked everywhere it applies."),
        _("From now on no run that accepted it sends anything. Their pages say so one after the other."),
    ),
    "accept amendment": lambda: (
        _("The new text was accepted for this run."),
        _("The agent makes another plan under it, which is reviewed like any other."),
    ),
    "replan": lambda: (
        _("Your decision was recorded: the agent makes another plan."),
        _("Nothing is sent before that plan is approved."),
    ),
    "restart": lambda: (
        _("This run was closed and restarted as a new one."),
        _("The new run begins with planning. No approval was taken over."),
    ),
    "cancel": lambda: (
        _("The end of the run was asked for."),
        _("No new effect starts. What is in flight or unknown is settled first; nothing done is undone."),
    ),
    "cancel undo": lambda: (
        _("The end of the run was asked for, and that what it did is undone."),
        _(
            "No new effect starts. What is in flight or unknown is settled first. Then a plan is made that undoes, and "
            "reviewed like any other."
        ),
    ),
    "end": lambda: (
        _("The run was ended as it is."),
        _("Nothing more is undone. What still stands is listed below."),
    ),
    "owe": lambda: (
        _("What the run owes was written down."),
        _("The run does not succeed before it is discharged. Nothing was sent by this."),
    ),
    "attest_obligation": lambda: (
        _("Your statement was recorded: what was owed is done."),
        _("It is kept with your name and is never shown as a receipt."),
    ),
    "hand_on": lambda: (
        _("What is owed was handed on."),
        _("It stays open, and its owner keeps it from now on."),
    ),
    "reread": lambda: (
        _("It was read again now."),
        _("Nothing was moved. What changed stands under “Observations”."),
    ),
    "rereduce": lambda: (
        _("The rows of this run were made anew from its log."),
        _("Nothing outside was called and the run was not moved. What still differs is listed below."),
    ),
    "note noted": lambda: (
        _("Your note was kept."),
        _("It is shown to whoever sees the run. It moved nothing, and no approval rests on it."),
    ),
    "claim claimed": lambda: (_("You claimed this run."), _claimed()),
    "claim yours": lambda: (_("You claimed this run before."), _claimed()),
    "claim taken_over": lambda: (_("You took this run over from whoever worked on it."), _claimed()),
    "claim held": lambda: (
        _("Somebody else works on this run: it was not claimed for you."),
        _("You may do all that you could before. Ask them, or take it over."),
    ),
    "release released": lambda: (
        _("You released this run."),
        _("Nobody is shown as working on it. It was not moved."),
    ),
    "release held": lambda: (
        _("Somebody else works on this run: nothing was released."),
        _("The run was not moved."),
    ),
    "release not_yours": lambda: (
        _("You were not shown as working on this run: nothing was released."),
        _("A claim lapses where its person does nothing about the run for a while."),
    ),
    "assign assigned": lambda: (
        _("The run was assigned."),
        _("It moved nothing, and gives nobody a right."),
    ),
    "assign unassigned": lambda: (_("The run is assigned to nobody any more."), _("It was not moved.")),
    "assign same": lambda: (_("It was assigned like that before."), _("Nothing was changed.")),
    "signal": lambda: (
        _("Your answer was recorded."),
        _("It is kept until a step waits for it. A worker goes on where one waits now."),
    ),
}
