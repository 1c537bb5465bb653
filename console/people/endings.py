"""The page that asks before something of a person ends: what hangs on it, and why it ends."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from accounts import people
from accounts.guards import On, guarded
from accounts.identities import forget_identities, is_linked
from accounts.models import Membership, User
from accounts.people_log import PeopleRefusedError, WrongValueError
from accounts.rights import Right
from accounts.second_factors import has_factor
from console.people import consequences
from console.people.frame import NoOrganisationError, Said, once, page, refusing, shut_out, tenant_of
from console.people.people import member_of, shared
from runs.clock import database_now
from runs.views.frame import console_page, kept_texts, person_of, signed_in_at, typed
from runs.views.refusals import longer


class ConsequencesChangedError(PeopleRefusedError):
    """What hangs on it is not what the page showed. Look at it again."""

    code = "stale"

    @property
    def sentence(self) -> str:
        return _(
            "What hangs on it has changed since you opened this page. Nothing was done: look at it again."
        )


@dataclass(frozen=True, kw_only=True)
class By:
    """Who ends it, why, and when they last proved who they are."""

    actor: User
    reason: str
    signed_in_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Ending:
    """Something of a person that a manager can end."""

    title: Promise
    button: Promise
    done: Promise
    #: Whether it changes the account, and so takes who manages the person's people everywhere.
    account: bool
    stands: Callable[[Membership], bool]
    consequences: Callable[[Membership], list[str]]
    end: Callable[[Membership, By], bool]


def _end_membership(membership: Membership, by: By) -> bool:
    return people.end_membership(
        person=membership.user, tenant=membership.tenant, reason=by.reason, actor=by.actor, now=database_now()
    )


def _deactivate(membership: Membership, by: By) -> bool:
    return people.deactivate(person=membership.user, reason=by.reason, actor=by.actor, now=database_now())


def _take_factor(membership: Membership, by: By) -> bool:
    return people.take_factor(
        person=membership.user,
        reason=by.reason,
        actor=by.actor,
        now=database_now(),
        signed_in_at=by.signed_in_at,
    )


def _forget(membership: Membership, by: By) -> bool:
    return forget_identities(person=membership.user, reason=by.reason, actor=by.actor, now=database_now())


ENDINGS: Final = {
    "membership": Ending(
        title=gettext_lazy("End the membership of %(name)s"),
        button=gettext_lazy("End the membership"),
        done=gettext_lazy("%(name)s does not belong to the organisation any more."),
        account=False,
        stands=lambda membership: membership.active,
        consequences=lambda membership: consequences.of_membership(membership.user, membership.tenant),
        end=_end_membership,
    ),
    "account": Ending(
        title=gettext_lazy("Deactivate %(name)s"),
        button=gettext_lazy("Deactivate: no more sign-in anywhere"),
        done=gettext_lazy("%(name)s cannot sign in any more."),
        account=True,
        stands=lambda membership: membership.user.is_active,
        consequences=lambda membership: consequences.of_account(membership.user),
        end=_deactivate,
    ),
    "second-factor": Ending(
        title=gettext_lazy("Remove the second factor of %(name)s"),
        button=gettext_lazy("Remove the second factor"),
        done=gettext_lazy("The second factor of %(name)s was removed."),
        account=True,
        stands=lambda membership: has_factor(membership.user),
        consequences=lambda membership: consequences.of_factor(membership.user),
        end=_take_factor,
    ),
    "identity": Ending(
        title=gettext_lazy("Forget how other services know %(name)s"),
        button=gettext_lazy("Forget it"),
        done=gettext_lazy("No other service is linked to %(name)s any more."),
        account=True,
        stands=lambda membership: is_linked(membership.user),
        consequences=lambda membership: consequences.of_identities(membership.user),
        end=_forget,
    ),
}


@console_page
@guarded(On.TENANT, acts=(Right.MANAGE_PEOPLE,), reads=Right.MANAGE_PEOPLE)
@require_http_methods(["GET", "HEAD", "POST"])
def person_end(request: HttpRequest, person_id: UUID, what: str) -> HttpResponse:
    """GET shows what hangs on it; POST ends it, with a reason, if that is still what hangs on it."""
    try:
        tenant = tenant_of(request)
    except NoOrganisationError as error:
        return shut_out(request, error)
    ending, membership = ENDINGS.get(what), member_of(tenant, person_id)
    if ending is None or membership is None:
        raise Http404
    if request.method != "POST":
        return _page(request, membership, ending)
    return refusing(
        request,
        lambda: _end(request, membership, ending),
        lambda error: _page(request, membership, ending, error),
        subject=f"person {membership.user.username}",
        action=f"end {what}",
        tenant=tenant,
    )


def _url(membership: Membership) -> str:
    return f"{reverse('person', args=[membership.user_id])}?organisation={membership.tenant.slug}"


def _page(
    request: HttpRequest, membership: Membership, ending: Ending, error: PeopleRefusedError | None = None
) -> HttpResponse:
    person, lines = membership.user, ending.consequences(membership)
    name = {"name": person.shown_name}
    context = {
        **shared(request, membership.tenant),
        "person": {"name": person.shown_name, "username": person.username, "url": _url(membership)},
        "title": str(ending.title) % name,
        "button": ending.button,
        "stands": ending.stands(membership),
        "barred": ending.account and not people.manages_wholly(person_of(request), person),
        "lines": lines,
        "seen": _digest(lines),
        "changed": error.sentence if isinstance(error, ConsequencesChangedError) else "",
        "values": {"reason": request.POST.get("reason", kept_texts(request).get("reason", ""))},
    }
    return page(request, "console/person_end.html", context, error)


def _digest(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _end(request: HttpRequest, membership: Membership, ending: Ending) -> HttpResponse:
    def do() -> Said:
        reason = typed(request, "reason")
        if wrong := longer(reason, "reason"):
            raise WrongValueError("reason", wrong[0]["message"])
        # The list informs; what must hold is held by the action, under the fence.
        if request.POST.get("seen") != _digest(ending.consequences(membership)) and ending.stands(membership):
            raise ConsequencesChangedError
        by = By(actor=person_of(request), reason=reason, signed_in_at=signed_in_at(request))
        if not ending.end(membership, by):
            return {"text": _("It was so already. Nothing was done.")}
        return {"text": str(ending.done) % {"name": membership.user.shown_name}}

    return once(request, membership.tenant, do, _url(membership))
