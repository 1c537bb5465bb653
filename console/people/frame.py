"""What these pages share: whose organisations are managed, once per form, and how a refusal is answered."""

from __future__ import annotations

from collections.abc import Callable

from django.db import IntegrityError, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from accounts.models import Tenant, User
from accounts.people_log import PeopleRefusedError, WrongValueError
from accounts.reauthentication import ReauthenticationNeeded
from accounts.rights import Right, holders, tenants_with
from console.middleware import request_id
from runs.pages.who import who_can, why_address_at
from runs.views.frame import (
    Context,
    keep_texts,
    person_of,
    query_value,
    shell,
    show,
    submission_of,
    typed,
)
from runs.views.refusals import keep_refused
from runs.views.results import keep_result, kept_result

ACTION = "people"
SHOWN_ONCE = "link_shown_once"
#: What of a form waits while its person signs in again.
KEPT_FIELDS = ("email", "reason")
Said = dict[str, int | str]


class NoOrganisationError(PeopleRefusedError):
    """The person manages people nowhere."""

    code = "not_allowed"

    @property
    def sentence(self) -> str:
        return _("You do not have the right “%(right)s” in any organisation.") % {
            "right": Right.MANAGE_PEOPLE.label
        }


def managed_tenants(person: User) -> list[Tenant]:
    """The organisations whose people this person manages, by name."""
    return list(tenants_with(person, Right.MANAGE_PEOPLE).order_by("name", "slug"))


def tenant_of(request: HttpRequest) -> Tenant:
    """The managed organisation that the address or form names, else the first. Raises NoOrganisationError, Http404."""
    found = managed_tenants(person_of(request))
    if not found:
        raise NoOrganisationError
    asked = request.POST.get("organisation") or query_value(request, "organisation")
    if not asked:
        return found[0]
    for tenant in found:
        if tenant.slug == asked:
            return tenant
    raise Http404


def refusing(
    request: HttpRequest,
    act: Callable[[], HttpResponse],
    again: Callable[[PeopleRefusedError], HttpResponse],
    *,
    subject: str,
    tenant: Tenant | None = None,
    action: str = "",
) -> HttpResponse:
    """Act; a refusal is recorded and answered with 403, or by `again` with 422, or 409 where it is not as it was seen.

    Whose sign-in is too old signs in again first and comes back to the page. `action` is what was tried, where the form
    does not say so by `do`.
    """
    try:
        return act()
    except ReauthenticationNeeded as old:
        _keep(request, tenant, subject, action, "sign_in_too_old", old.sentence)
        keep_texts(request, request.path, KEPT_FIELDS)
        return HttpResponseRedirect(
            f"{reverse('sign-in-again')}?{urlencode({'next': _way_back(request, tenant)})}"
        )
    except PeopleRefusedError as error:
        _keep(request, tenant, subject, action, error.code, error.sentence)
        return forbidden(request, error, tenant) if error.code == "not_allowed" else again(error)


def shut_out(request: HttpRequest, error: PeopleRefusedError) -> HttpResponse:
    """403 for who manages nobody anywhere. What such a person sent is kept as an attempt in their own organisation."""
    if request.method == "POST":
        mine = list(person_of(request).tenants())
        asked = request.POST.get("organisation") or query_value(request, "organisation")
        tenant = next((t for t in mine if t.slug == asked), mine[0] if mine else None)
        _keep(request, tenant, request.path, "", error.code, error.sentence)
    return forbidden(request, error)


def _keep(
    request: HttpRequest, tenant: Tenant | None, subject: str, action: str, refusal: str, why: str
) -> None:
    keep_refused(
        request, tenant_id=tenant.pk if tenant else None, action=action or request.POST.get("do") or ACTION,
        subject=subject, refusal=refusal, detail={"why": why}, reason=typed(request, "reason"),
    )  # fmt: skip


def _way_back(request: HttpRequest, tenant: Tenant | None) -> str:
    return f"{request.path}?{urlencode({'organisation': tenant.slug})}" if tenant else request.path


def forbidden(request: HttpRequest, error: PeopleRefusedError, tenant: Tenant | None = None) -> HttpResponse:
    """403 with the rule and the people who can."""
    others = holders(Right.MANAGE_PEOPLE, tenant) if tenant else []
    context = {
        "incident_id": request_id(request),
        "detail": _("You cannot manage people here."),
        "rule": error.sentence,
        "who_can": who_can([p for p in others if p != person_of(request)]) if others else "",
        "why_url": why_address_at(Right.MANAGE_PEOPLE, tenant) if tenant else "",
    }
    return show(request, "errors/403.html", {**shell(request), **context}, status=403)


def once(request: HttpRequest, tenant: Tenant, do: Callable[[], Said], to: str) -> HttpResponse:
    """Do what the form asks for, once; then lead to a page that says what was done. Raises PeopleRefusedError."""
    person, submission = person_of(request), submission_of(request)
    if submission is None:
        raise WrongValueError("", _("This form is damaged. Open the page again."))
    done = HttpResponseRedirect(f"{to}{'&' if '?' in to else '?'}done={submission}")
    if kept_result(submission, person, ACTION) is not None:
        return done
    try:
        with transaction.atomic():
            keep_result(submission, person, tenant.pk, ACTION, do())
    except IntegrityError:
        # The same form was sent twice at once, and the other one did it.
        if kept_result(submission, person, ACTION) is None:
            raise
    return done


def said(request: HttpRequest) -> Said | None:
    """What this person's form of that id did; None where the address names none."""
    return kept_result(query_value(request, "done"), person_of(request), ACTION)


def errors_of(error: PeopleRefusedError | None) -> list[dict[str, str]]:
    """The form's errors."""
    return [{"field": error.field, "message": error.sentence}] if error else []


def page(
    request: HttpRequest, template: str, context: Context, error: PeopleRefusedError | None = None
) -> HttpResponse:
    """The page in its frame, with what was done last or what was refused."""
    more = {
        **shell(request), "result": said(request), "errors": errors_of(error),
        # A link that was just made: gone with this answer.
        "link": request.session.pop(SHOWN_ONCE, None), **context,
    }  # fmt: skip
    return show(request, template, more, status=status_of(error))


def status_of(error: PeopleRefusedError | None) -> int:
    """The HTTP status of a page about this refusal."""
    return 200 if error is None else 409 if error.code == "stale" else 422
