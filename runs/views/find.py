"""Finding which is true, as a person: the record of a settled effect, or evidence against it that came later."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.guards import On, guarded
from accounts.rights import Right
from runs import actions
from runs.access import run_for
from runs.machine import state as s
from runs.pages import attesting, finding, reconciling
from runs.queries import stands_elsewhere
from runs.views.again import conflicting, errors_of, phrase_errors, typed_again
from runs.views.attest import how_errors, reference_too_long
from runs.views.frame import (
    Context,
    console_page,
    kept_texts,
    new_submission,
    number,
    person_of,
    signed_in_at,
    typed,
)
from runs.views.pages import Opened, opened, show_about
from runs.views.reconcile import effect_of
from runs.views.refusals import Errors, FormWrong, Outdated, Refusal, Tried, attempt, form_id
from runs.views.results import to_run

FIELDS = ("finding", "reference", "how", "phrase")


@console_page
@guarded(On.RUN, acts=(Right.RECONCILE_EFFECTS, Right.ATTEST_EFFECTS))
@require_http_methods(["GET", "HEAD", "POST"])
def find(request: HttpRequest, run_id: str, effect: int) -> HttpResponse:
    """GET shows what is recorded and what came later; POST records what a person found."""
    page = opened(person_of(request), run_id)
    found = effect_of(page, effect)
    if request.method != "POST":
        return _page(request, page, found, {"values": kept_texts(request)})
    tried = Tried(
        run=page.run,
        action="settle",
        subject=f"{run_id} E-{effect}",
        seen=f"event {request.POST.get('evidence_seq', '')}",
        reason=request.POST.get("how", ""),
    )
    return attempt(
        request,
        tried,
        lambda: _find(request, page, found),
        lambda error, status: _again(request, run_id, effect, error, status),
    )


def _page(
    request: HttpRequest, page: Opened, effect: s.Effect, more: Context, *, status: int = 200
) -> HttpResponse:
    again_in = stands_elsewhere(page.state.identity, effect)
    context = finding.context(page.run, page.log, page.state, effect, page.reader, again_in=again_in)
    context |= {"submission": new_submission(), **more}
    return show_about(request, page, "runs/finding.html", context, status=status)


def _find(request: HttpRequest, page: Opened, effect: s.Effect) -> HttpResponse:
    person = person_of(request)
    choice = request.POST.get("finding", "")
    chosen = s.Finding(choice) if choice in tuple(s.Finding) else None
    run_for(person, page.run.pk, actions.right_to_find(chosen or s.Finding.AS_RECORDED))
    submission = form_id(request)
    if actions.repeated(submission, person, "settle"):
        return to_run(page.run.pk, submission)
    evidence = _same_subject(request, page, effect)
    if chosen is None:
        raise FormWrong([{"field": "finding", "message": _("Choose what you found.")}])
    if errors := _errors(request, attesting.phrase(page.state, effect)):
        raise FormWrong(errors)
    actions.settle_contradiction(
        person=person, run_id=page.run.pk, effect=effect.number, evidence=evidence, finding=chosen,
        reference=typed(request, "reference"), how=typed(request, "how"), submission=submission,
        signed_in_at=signed_in_at(request),
    )  # fmt: skip
    return to_run(page.run.pk, submission)


def _same_subject(request: HttpRequest, page: Opened, effect: s.Effect) -> int:
    """The evidence that the form is about. Raises Outdated where that or the record is another one by now."""
    now = finding.subject(effect)
    saw = {name: number(request.POST.get(name)) for name in now}
    evidence = now["evidence_seq"]
    if evidence is None or not finding.open_to(page.state, effect):
        contradicted = _("%(effect)s, contradicted by evidence") % {"effect": f"E-{effect.number}"}
        raise Outdated(saw=contradicted, now=reconciling.settled_sentence(effect))
    if saw != now:
        raise Outdated(saw=_name(saw), now=_name(now))
    return evidence


def _name(seqs: dict[str, int | None]) -> str:
    """Both sides by their events, inside a sentence."""
    facts = {name: seq or 0 for name, seq in seqs.items()}
    return _("the record in event %(record_seq)d and the evidence in event %(evidence_seq)d") % facts


def _errors(request: HttpRequest, phrase: str) -> Errors:
    reference = reference_too_long(typed(request, "reference"))
    return [*reference, *how_errors(typed(request, "how")), *phrase_errors(request, phrase)]


def _again(request: HttpRequest, run_id: str, number_: int, error: Refusal, status: int) -> HttpResponse:
    """The page as it is now, with what was typed. After a conflict nothing is selected."""
    page = opened(person_of(request), run_id)
    effect = effect_of(page, number_)
    values = typed_again(request, *FIELDS)
    if status != 409:
        more = {"values": values, "errors": errors_of(error, lambda code: finding.why(code, effect))}
        return _page(request, page, effect, more, status=status)
    text = _("Your finding about E-%(number)d was not recorded and nothing was sent.") % {"number": number_}
    blank = {**values, "finding": "", "phrase": ""}
    kept = conflicting(request, page, error, blank, text=text, field="field-how")
    return _page(request, page, effect, kept, status=409)
