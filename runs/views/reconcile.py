"""Reconciling an effect whose outcome is unknown: ask the other system, then record a conclusion."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from accounts.guards import On, guarded
from accounts.models import User
from accounts.rights import Right
from runs import actions, agents, artifacts, recovery
from runs.access import run_for
from runs.machine import state as s
from runs.machine.decide import ConclusionRefused
from runs.pages import attesting, reconciling, words
from runs.tools import WritingTool
from runs.views.again import conflicting, errors_of, typed_again
from runs.views.frame import (
    Context,
    console_page,
    kept_texts,
    new_submission,
    number,
    person_of,
    submission_of,
    typed,
)
from runs.views.pages import Opened, opened, show_about
from runs.views.refusals import FormWrong, Outdated, Refusal, Tried, attempt, form_id, longer
from runs.views.results import result_of, to_run

ASKED = "ask"  #: what the record of a question to another system is called
CHOICES = ("happened", "not_happened", "still_unknown")


@console_page
@guarded(On.RUN, acts=(Right.RECONCILE_EFFECTS,))
@require_http_methods(["GET", "HEAD", "POST"])
def reconcile(request: HttpRequest, run_id: str, effect: int) -> HttpResponse:
    """GET shows what is known; POST records a conclusion from the newest answer."""
    page = opened(person_of(request), run_id)
    found = effect_of(page, effect)
    if request.method != "POST":
        return reconcile_page(
            request, page, found, {"result": _result(request, page, found), "values": kept_texts(request)}
        )
    return attempt(
        request,
        _tried(request, page, found, "conclude"),
        lambda: _conclude(request, page, found),
        lambda error, status: _again(request, run_id, effect, error, status),
    )


def effect_of(page: Opened, number: int) -> s.Effect:
    """The effect of the address; 404 where the run has none of that number."""
    found = page.state.effects.get(number)
    if found is None:
        raise Http404
    return found


def tool_of(page: Opened, effect: s.Effect) -> WritingTool | None:
    """The tool that can ask; None where this installation does not have the agent's version."""
    agent = agents.registered().get((page.run.agent.name, page.run.agent_version))
    return agent.writing(effect.tool) if agent else None


def reconcile_page(
    request: HttpRequest, page: Opened, effect: s.Effect, more: Context, *, status: int = 200
) -> HttpResponse:
    """The page as it is now; `more` is what a sent form or its result adds."""
    can_ask = tool_of(page, effect) is not None
    context = reconciling.context(page.run, page.log, page.state, effect, page.reader, can_ask=can_ask)
    context |= attesting.context(page.state, effect, page.reader)
    if "ask" in context:
        context["ask"]["submission"] = new_submission()
    context |= {"submission": new_submission(), "attest_submission": new_submission(), **more}
    return show_about(request, page, "runs/reconcile.html", context, status=status)


def _result(request: HttpRequest, page: Opened, effect: s.Effect) -> Context | None:
    if "unknown" in request.GET and effect.status is s.EffectStatus.UNKNOWN:
        facts = {"effect": f"E-{effect.number}"}
        detail = _("%(effect)s is still unknown. Nothing was sent.") % facts
        return {"text": _("Nothing was recorded."), "detail": detail}
    found = result_of(request, page.run.pk, person_of(request))
    if found and found.get("action") == "ask" and _unanswered(effect, found["seq"]):
        found["text"] = _("There was no answer. That it was asked is kept in the log.")
    return found


def _unanswered(effect: s.Effect, seq: int | None) -> bool:
    """Whether the question that was recorded up to that event got no answer."""
    asks = [ask for ask in effect.asks if seq is None or ask.seq <= seq]
    return bool(asks) and asks[-1].failure is not None


def _tried(request: HttpRequest, page: Opened, effect: s.Effect, action: str) -> Tried:
    return Tried(
        run=page.run,
        action=action,
        subject=f"{page.run.pk} E-{effect.number}",
        seen=f"event {request.POST.get('evidence_seq', '')}",
        reason=request.POST.get("note", ""),
    )


def _conclude(request: HttpRequest, page: Opened, effect: s.Effect) -> HttpResponse:
    run_for(person_of(request), page.run.pk, Right.RECONCILE_EFFECTS)
    submission = submission_of(request)
    choice = request.POST.get("conclusion", "")
    if submission is None or choice not in CHOICES:
        raise FormWrong([{"field": "conclusion", "message": _("Choose what became of the effect.")}])
    if too_long := longer(typed(request, "note"), "note"):
        raise FormWrong(too_long)
    if actions.repeated(submission, person_of(request), "conclude"):
        return to_run(page.run.pk, submission)
    asked = _evidence(request, effect)
    if choice == "still_unknown":
        return HttpResponseRedirect(
            f"{reverse('effect-reconcile', args=[page.run.pk, effect.number])}?unknown"
        )
    if asked is None:
        raise ConclusionRefused("not_asked")
    actions.conclude_effect(
        person=person_of(request), run_id=page.run.pk, effect=effect.number, happened=choice == "happened",
        asked=asked, note=typed(request, "note"), submission=submission,
    )  # fmt: skip
    return to_run(page.run.pk, submission)


def _evidence(request: HttpRequest, effect: s.Effect) -> int | None:
    """The answer that the form cites, where it is the newest and about this very intent. Raises Outdated."""
    saw = (number(request.POST.get("intent_seq")), number(request.POST.get("evidence_seq")))
    last = reconciling.latest(effect)
    now = (effect.intent_seq, last.seq if last else None)
    if saw != now:
        raise Outdated(saw=answer_name(saw[1]), now=answer_name(now[1]))
    if effect.status is not s.EffectStatus.UNKNOWN:
        name = f"E-{effect.number}"
        unknown = _("%(effect)s, unknown outcome") % {"effect": name}
        raise Outdated(saw=unknown, now=reconciling.settled_sentence(effect))
    return saw[1]


def answer_name(seq: int | None) -> str:
    """An answer by its event, inside a sentence."""
    return _("the answer in event %(seq)d") % {"seq": seq} if seq else _("no answer yet")


def _again(request: HttpRequest, run_id: str, number_: int, error: Refusal, status: int) -> HttpResponse:
    """The page as it is now, with what was typed."""
    page = opened(person_of(request), run_id)
    effect = effect_of(page, number_)
    values = typed_again(request, "note", "conclusion")
    if status != 409:
        errors = errors_of(error, lambda code: _condition(code, effect))
        return reconcile_page(request, page, effect, {"values": values, "errors": errors}, status=status)
    text = _("Your conclusion about E-%(number)d was not recorded and nothing was sent.") % {
        "number": number_
    }
    blank = {**values, "conclusion": ""}
    kept = conflicting(request, page, error, blank, text=text, field="field-note")
    return reconcile_page(request, page, effect, kept, status=409)


def _condition(condition: str, effect: s.Effect) -> tuple[str, str]:
    """The field and the sentence of a condition under which a conclusion fails."""
    fails, needed = words.CONDITIONS[condition]
    facts = {"why": fails, "needed": str(needed) % {"settled": words.clock(effect.settled_at)}}
    return "conclusion", _("This cannot be recorded: %(why)s %(needed)s") % facts


@console_page
@guarded(On.RUN, acts=(Right.OPERATE_RUNS,))
@require_POST
def ask(request: HttpRequest, run_id: str, effect: int) -> HttpResponse:
    """Ask the other system what became of the effect and store its answer. Sends nothing, concludes nothing."""
    page = opened(person_of(request), run_id)
    found = effect_of(page, effect)
    return attempt(
        request,
        _tried(request, page, found, "ask"),
        lambda: _ask(request, page, found),
        lambda error, status: _again(request, run_id, effect, error, status),
    )


def _ask(request: HttpRequest, page: Opened, effect: s.Effect) -> HttpResponse:
    person = person_of(request)
    run_for(person, page.run.pk, Right.OPERATE_RUNS)
    submission = form_id(request)
    back = f"{reverse('effect-reconcile', args=[page.run.pk, effect.number])}?done={submission}"
    if actions.repeated(submission, person, ASKED):
        return HttpResponseRedirect(back)
    tool = tool_of(page, effect)
    if effect.status is not s.EffectStatus.UNKNOWN or tool is None:
        unknown = _("%(effect)s, unknown outcome") % {"effect": f"E-{effect.number}"}
        raise Outdated(saw=unknown, now=reconciling.settled_sentence(effect))
    ask_system(person, page, effect, tool, submission)
    return HttpResponseRedirect(back)


def ask_system(
    person: User, page: Opened, effect: s.Effect, tool: WritingTool, submission: UUID
) -> str | None:
    """Ask now what became of the effect, and store the answer as evidence. Why there was none; None: there was one.

    Raises what actions.record_answer does.
    """
    # The outside is asked about what was sent, not about what this person is shown of it.
    whole = (page.reader.whole or page.state).effects[effect.number]
    answer, evidence, _found = recovery.ask(whole, tool)
    evidence, kept = artifacts.evidence_of(page.run.tenant_id, effect, evidence)
    actions.record_answer(
        person=person, run_id=page.run.pk, effect=effect.number, answer=answer, evidence=evidence, kept=kept,
        submission=submission,
    )  # fmt: skip
    return answer.failure
