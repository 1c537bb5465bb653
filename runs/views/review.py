"""Reviewing a plan version: what would be executed, and the decision about it."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid4

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.guards import On, guarded
from accounts.rights import Right
from approvals.binding import Change
from approvals.models import LEAST_REASON, Verdict
from approvals.outcomes import (
    CheckFailedError,
    ConflictError,
    DecisionRefusedError,
    ExpiredError,
    StaleError,
    ValuesUnopenedError,
)
from runs import actions, agents
from runs.access import run_for
from runs.machine import leaves
from runs.machine import state as s
from runs.machine.canonical import digest
from runs.machine.events import Cause
from runs.pages import assumed, long_values, plans, reviewing, words
from runs.pages.conflict import Pair, conflict
from runs.views.again import phrase_errors, typed_again
from runs.views.frame import (
    Context,
    console_page,
    kept_texts,
    new_submission,
    number,
    person_of,
    signed_in_at,
    submission_of,
    typed,
)
from runs.views.pages import Opened, opened, predecessor, show_about
from runs.views.refusals import Bare, Errors, FormWrong, Refusal, Tried, attempt, form_id, longer
from runs.views.results import to_run


@console_page
@guarded(On.RUN, acts=(Right.APPROVE_PLANS,))
@require_http_methods(["GET", "HEAD", "POST"])
def review(request: HttpRequest, run_id: str, version: int) -> HttpResponse:
    """GET shows what is decided about; POST records a decision on just that."""
    page = opened(person_of(request), run_id)
    plan = plans.version_of(page.state, version)
    if plan is None:
        raise Http404
    if request.method != "POST":
        return _page(request, page, plan, {"values": kept_texts(request)})
    if "renew" in request.POST:
        return _renew(request, page, plan)
    tried = Tried(
        run=page.run,
        action=f"decide {request.POST.get('decision', '')}".strip(),
        subject=actions.subject_of(run_id, version),
        seen=request.POST.get("digest", ""),
        reason=request.POST.get("reason", ""),
    )
    return attempt(
        request,
        tried,
        lambda: _decide(request, page, plan),
        lambda error, status: _again(request, run_id, version, error, status),
    )


def _page(
    request: HttpRequest, page: Opened, plan: s.PlanVersion, more: Context, *, status: int = 200
) -> HttpResponse:
    agent = agents.registered().get((page.run.agent.name, page.run.agent_version))
    context = reviewing.context(page.run, page.state, plan, page.reader, agent)
    if long := leaves.to_open(page.state, plan):
        read = actions.opened_by(page.reader.person, tenant_id=page.run.tenant_id, digest=plan.digest)
        context |= long_values.context(page.run.pk, plan, long, read, context["changes"])
    context["predecessor"] = predecessor(page.reader.person, page.run)
    context["assumptions"] = assumed.of_plan(page.state, plan, page.log, page.reader.now)
    context |= {"submission": new_submission(), **more}
    return show_about(request, page, "runs/review.html", context, status=status)


def _renew(request: HttpRequest, page: Opened, plan: s.PlanVersion) -> HttpResponse:
    """Ask anew where the time was over, and show the page again at once: what was typed stays in it."""
    tried = Tried(
        run=page.run, action="renew", subject=actions.subject_of(page.run.pk, plan.version),
        seen=request.POST.get("digest", ""), reason=request.POST.get("reason", ""),
    )  # fmt: skip

    def act() -> HttpResponse:
        submission = form_id(request)
        actions.renew_request(
            person=person_of(request), run_id=page.run.pk, request=uuid4(), submission=submission
        )
        values = typed_again(request, "reason")
        return _page(request, opened(person_of(request), page.run.pk), plan, {"values": values})

    return attempt(
        request, tried, act, lambda error, status: _again(request, page.run.pk, plan.version, error, status)
    )


def _decide(request: HttpRequest, page: Opened, plan: s.PlanVersion) -> HttpResponse:
    sent = request.POST
    submission = submission_of(request)
    verdict, reason = sent.get("decision", ""), typed(request, "reason")
    if not sent.get("digest") or not sent.get("conditions"):
        run_for(person_of(request), page.run.pk, Right.APPROVE_PLANS)
        raise Bare(_bare())
    if submission is None or (errors := _errors(request, page, plan, submission)):
        raise FormWrong(errors if submission else _nothing_chosen())
    actions.decide_plan(
        person=person_of(request), run_id=page.run.pk, version=plan.version, verdict=Verdict(verdict), reason=reason,
        digest=sent.get("digest", ""), conditions_digest=sent.get("conditions", ""), submission=submission,
        signed_in_at=signed_in_at(request), overrides=sent.getlist("override"),
    )  # fmt: skip
    return to_run(page.run.pk, submission)


def _bare() -> Errors:
    message = _(
        "This form does not say which plan and which request it decides about, so nothing was recorded. Open the page "
        "again."
    )
    return [{"field": "", "message": message}]


def _nothing_chosen() -> Errors:
    return [{"field": "decision", "message": _("Choose what you decide.")}]


def _errors(request: HttpRequest, page: Opened, plan: s.PlanVersion, submission: UUID) -> Errors:
    """What is missing in the form. The phrase is asked of approvals with a change that cannot be undone."""
    verdict, reason = request.POST.get("decision", ""), typed(request, "reason")
    if verdict not in (Verdict.APPROVE, Verdict.REJECT, Verdict.ASK):
        return _nothing_chosen()
    if verdict == Verdict.ASK and plan.plan.undo:
        return [
            {"field": "decision", "message": str(actions.NothingToChange(page.state.state, "ChangesAsked"))}
        ]
    if too_long := longer(reason, "reason"):
        return too_long
    if verdict != Verdict.APPROVE:
        return _short(reason)
    if request.POST.getlist("override") and (short := _short(reason)):
        return short
    phrase = reviewing.phrase(page.state, plan)
    if request.POST.get("digest") != digest("plan", plan.document):
        return []  # It is another plan than the page showed: that is said first, and its phrase is not asked for.
    return phrase_errors(request, phrase)


def _short(reason: str) -> Errors:
    if len(reason) >= LEAST_REASON:
        return []
    message = _("Enter a reason of at least 10 characters. The agent and the next operator will read it.")
    return [{"field": "reason", "message": message}]


def _again(request: HttpRequest, run_id: str, version: int, error: Refusal, status: int) -> HttpResponse:
    """The page as it is now, with what was typed. After a conflict nothing is selected."""
    page = opened(person_of(request), run_id)
    plan = plans.version_of(page.state, version)
    if plan is None:
        raise Http404
    values: Context = {name: request.POST.get(name, "") for name in ("decision", "reason", "phrase")}
    values["overrides"] = request.POST.getlist("override")
    if status != 409:
        errors = error.errors if isinstance(error, FormWrong) else [_error(error)]
        return _page(request, page, plan, {"values": values, "errors": errors}, status=status)
    kept = {**values, "decision": "", "phrase": ""}
    more: Context = {"values": kept, "conflict": _conflict(request, page, plan, error)}
    if not isinstance(error, ExpiredError):  # that is asked anew beside what was typed
        more |= {"decided": "", "may_decide": True}
    return _page(request, page, plan, more, status=409)


def _error(error: Refusal) -> dict[str, str]:
    sentence = error.sentence if isinstance(error, DecisionRefusedError) else str(error)
    return {"field": _field(error), "message": sentence}


def _field(error: Refusal) -> str:
    if isinstance(error, ValuesUnopenedError):
        return "decision"
    return "overrides" if isinstance(error, CheckFailedError) and not error.hard else "reason"


def _conflict(request: HttpRequest, page: Opened, plan: s.PlanVersion, error: Refusal) -> Context:
    facts = {"version": plan.version, "why": _why(error)}
    text = _("Your decision on plan v%(version)d was not recorded and nothing was sent. %(why)s") % facts
    since = number(request.POST.get("run_seq"))
    compared = _compared(page, plan, error)
    field = "field-reason" if request.POST.get("reason", "").strip() else ""
    return conflict(page.state, page.log, text=text, since=since, compared=compared, field=field)


def _why(error: Refusal) -> str:
    """Why it was not recorded; that it was not is said once, by the panel."""
    match error:
        case ConflictError():
            who = error.who.shown_name if error.who else _("the policy")
            facts = {"who": who, "what": error.what.label}
            return _("It was already decided by %(who)s: %(what)s.") % facts
        case StaleError():
            return _("What you saw has changed since.")
        case DecisionRefusedError():
            return error.sentence
        case _:
            return ""


def _compared(page: Opened, plan: s.PlanVersion, error: Refusal) -> Sequence[Pair]:
    """What the person saw and what is true now, both as sentences."""
    saw = _("plan v%(version)d, waiting for approval") % {"version": plan.version}
    match error:
        case ConflictError():
            facts = {
                "version": plan.version,
                "state": str(error.what.label).lower(),
                "name": error.who.shown_name if error.who else _("the policy"),
                "at": words.clock(error.when),
            }
            return [{"saw": saw, "now": _("plan v%(version)d: %(state)s, by %(name)s at %(at)s") % facts}]
        case StaleError():
            return [_changed(change) for change in error.changes]
        case ExpiredError():
            now = _("It expired at %(at)s. Nothing was approved.") % {"at": words.clock(error.at)}
            return [{"saw": saw, "now": now}]
        case _:
            now = plans.became(page.state, plan) or _("It is not waiting for approval.")
            return [{"saw": saw, "now": now}]


def _changed(change: Change) -> Pair:
    of_what, _dot, person = change.what.partition(".")
    if of_what == "approvers":
        lost = Cause(what=of_what, subject=person, was="", now=change.after or "")
        saw = _("an approval by %(name)s that counts") % {"name": person}
        return {"saw": saw, "now": words.cause(lost)}
    name = words.binding(change.what)
    was, now = words.times_in(change.before or "–"), words.times_in(change.after or "–")
    return {
        "saw": _("%(what)s: %(value)s") % {"what": name, "value": was},
        "now": _("%(what)s: %(value)s") % {"what": name, "value": now},
    }
