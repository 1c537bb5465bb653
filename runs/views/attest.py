"""Stating, as a person, what became of an effect whose outcome is unknown."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from accounts.guards import On, guarded
from accounts.rights import Right
from runs import actions
from runs.access import run_for
from runs.machine import state as s
from runs.pages import attesting, reconciling
from runs.views.again import conflicting, errors_of, phrase_errors, typed_again
from runs.views.frame import console_page, number, person_of, signed_in_at, typed
from runs.views.pages import Opened, opened
from runs.views.reconcile import answer_name, effect_of, reconcile_page
from runs.views.refusals import Errors, FormWrong, Outdated, Refusal, Tried, attempt, form_id, longer
from runs.views.results import to_run

CHOICES = ("happened", "not_happened")
FIELDS = ("stated", "reference", "how", "phrase")
LEAST_HOW = 10  # characters
LONGEST_REFERENCE = 200  # characters


@console_page
@guarded(On.RUN, acts=(Right.ATTEST_EFFECTS,))
@require_POST
def attest(request: HttpRequest, run_id: str, effect: int) -> HttpResponse:
    """Record what a person states about the effect. It settles nothing before enough people state the same."""
    page = opened(person_of(request), run_id)
    found = effect_of(page, effect)
    tried = Tried(
        run=page.run,
        action="attest",
        subject=f"{run_id} E-{effect}",
        seen=f"event {request.POST.get('send_seq', '')}",
        reason=request.POST.get("how", ""),
    )
    return attempt(
        request,
        tried,
        lambda: _attest(request, page, found),
        lambda error, status: _again(request, run_id, effect, error, status),
        page=reverse("effect-reconcile", args=[run_id, effect]),
    )


def _attest(request: HttpRequest, page: Opened, effect: s.Effect) -> HttpResponse:
    person = person_of(request)
    run_for(person, page.run.pk, attesting.RIGHT)
    submission = form_id(request)
    if actions.repeated(submission, person, "attest"):
        return to_run(page.run.pk, submission)
    _same_subject(request, page, effect)
    if errors := _errors(request, attesting.phrase(page.state, effect)):
        raise FormWrong(errors)
    # A send that begins from here on takes nothing from "it happened", and moves the moment before which
    # "it did not" is refused.
    actions.attest_effect(
        person=person, run_id=page.run.pk, effect=effect.number, happened=request.POST["stated"] == "happened",
        reference=typed(request, "reference"), how=typed(request, "how"), submission=submission,
        signed_in_at=signed_in_at(request),
    )  # fmt: skip
    return to_run(page.run.pk, submission)


def _same_subject(request: HttpRequest, page: Opened, effect: s.Effect) -> None:
    """Raises Outdated where the form is about another send, or was made before an answer that came since."""
    if not attesting.open_to(page.state, effect):
        unknown = _("%(effect)s, unknown outcome") % {"effect": f"E-{effect.number}"}
        raise Outdated(saw=unknown, now=reconciling.settled_sentence(effect))
    for name, now in attesting.subject(effect).items():
        saw = number(request.POST.get(name))
        if saw != now:
            named = answer_name if name == "answer_seq" else _send_name
            raise Outdated(saw=named(saw), now=named(now))


def _send_name(seq: int | None) -> str:
    return _("the send in event %(seq)d") % {"seq": seq} if seq else _("no send")


def _errors(request: HttpRequest, phrase: str) -> Errors:
    """Everything that is missing or wrong in the form."""
    choice = request.POST.get("stated", "")
    if choice not in CHOICES:
        return [{"field": "stated", "message": _("Choose what you state.")}]
    reference = _reference_errors(choice, typed(request, "reference"))
    return [*reference, *how_errors(typed(request, "how")), *phrase_errors(request, phrase)]


def _reference_errors(choice: str, reference: str) -> Errors:
    if choice == "happened" and not reference:
        return [{"field": "reference", "message": str(attesting.CONDITIONS["reference_missing"][1])}]
    if choice == "not_happened" and reference:
        message = _(
            "A reference is of something that happened: empty this field, and say it in the text below."
        )
        return [{"field": "reference", "message": message}]
    return reference_too_long(reference)


def reference_too_long(reference: str) -> Errors:
    """The error of a reference that is none."""
    if len(reference) <= LONGEST_REFERENCE:
        return []
    facts = {"limit": LONGEST_REFERENCE, "length": len(reference)}
    message = _("Use at most %(limit)d characters; these are %(length)d.") % facts
    return [{"field": "reference", "message": message}]


def how_errors(how: str) -> Errors:
    """The error of a text that does not say how something was established."""
    if len(how) >= LEAST_HOW:
        return longer(how, "how")
    message = _("Enter how this was established, in at least %(least)d characters.") % {"least": LEAST_HOW}
    return [{"field": "how", "message": message}]


def _again(request: HttpRequest, run_id: str, number_: int, error: Refusal, status: int) -> HttpResponse:
    """The page as it is now, with what was typed. After a conflict nothing is selected."""
    page = opened(person_of(request), run_id)
    effect = effect_of(page, number_)
    values = typed_again(request, *FIELDS)
    if status != 409:
        more = {"values": values, "errors": errors_of(error, lambda code: attesting.why(code, effect))}
        return reconcile_page(request, page, effect, more, status=status)
    text = _("Your statement about E-%(number)d was not recorded and nothing was sent.") % {"number": number_}
    blank = {**values, "stated": "", "phrase": ""}
    kept = conflicting(request, page, error, blank, text=text, field="field-how")
    return reconcile_page(request, page, effect, kept, status=409)
