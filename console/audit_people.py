"""What was done with people, groups and organisations, and sign-ins, as entries of the audit log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import Membership, PeopleAction, PeopleChange, SignIn, SignInOutcome, Tenant, User
from accounts.rights import Right, tenants_with
from runs.machine import events as e

Row = dict[str, Any]
#: What forms about people and groups say that they do, as refused attempts keep it.
TRIED: Final[dict[str, Promise]] = {
    "people": gettext_lazy("Change people"),
    "add": gettext_lazy("Let a person belong again"),
    "activate": gettext_lazy("Let a person sign in again"),
    "link": gettext_lazy("Make a link to set a password"),
    "email": gettext_lazy("Change an e-mail address"),
    "give": gettext_lazy("Give a right"),
    "take": gettext_lazy("Withdraw a right"),
    "join": gettext_lazy("Put a person into a group"),
    "leave": gettext_lazy("Take a person out of a group"),
    "rename": gettext_lazy("Rename a group"),
    "delete": gettext_lazy("Delete a group"),
    "save view": gettext_lazy("Save a view for an organisation"),
    "change view": gettext_lazy("Change a view of an organisation"),
    "make": gettext_lazy("Make an organisation"),
    "use": gettext_lazy("Let an organisation use an agent"),
    "let": gettext_lazy("Let a person manage organisations"),
    "end organiser": gettext_lazy("End that a person manages organisations"),
    "end membership": gettext_lazy("End a membership"),
    "end account": gettext_lazy("Deactivate a person"),
    "end second-factor": gettext_lazy("Remove a second factor"),
    "end identity": gettext_lazy("Forget an identity of another service"),
}
REFUSED: Final[dict[str, Promise]] = {
    "last_manager": gettext_lazy("nobody would be left who may manage people"),
    "taken": gettext_lazy("the name was taken"),
    "too_many": gettext_lazy("as many views were kept as can be"),
    "wrong_value": gettext_lazy("a value could not be kept"),
    "not_wholly_yours": gettext_lazy("the person belongs to an organisation whose people they do not manage"),
    "not_configured": gettext_lazy("no such agent is installed"),
    "stands": gettext_lazy("the organisation uses the agent already"),
    "group_in_use": gettext_lazy("the group had members or rights"),
    "not_member": gettext_lazy("only people of the organisation can be in its groups"),
}
_REFUSED = (SignInOutcome.WRONG, SignInOutcome.THROTTLED, SignInOutcome.UNKNOWN)


def _overseen(person: User) -> QuerySet[Tenant]:
    """The organisations all of whose log this person may see, or whose people they manage."""
    both = Q(pk__in=tenants_with(person, Right.SEE_AUDIT).values("pk"))
    return Tenant.objects.filter(both | Q(pk__in=tenants_with(person, Right.MANAGE_PEOPLE).values("pk")))


def _theirs(person: User) -> QuerySet[Membership, Any]:
    return Membership.objects.filter(tenant__in=_overseen(person)).values_list("user_id", flat=True)


def changes(person: User, *, named: str = "") -> QuerySet[PeopleChange]:
    """What was done with people of organisations that one oversees, and with oneself."""
    wanted = Q(tenant__in=_overseen(person)) | Q(actor=person) | Q(person=person)
    wanted |= Q(tenant=None, person__in=_theirs(person))
    found = PeopleChange.objects.filter(wanted).select_related("actor", "person")
    if named:
        by = Q(actor__display_name=named) | Q(actor__username=named)
        found = found.filter(by | Q(person__display_name=named) | Q(person__username=named))
    return found.order_by("-at", "-pk")


def sign_ins(person: User, *, named: str = "", result: str = "") -> QuerySet[SignIn]:
    """One's own sign-ins and refused ones, and those of people of organisations that one oversees."""
    found = SignIn.objects.filter(Q(person=person) | Q(person__in=_theirs(person))).select_related("person")
    if named:
        found = found.filter(Q(person__display_name=named) | Q(person__username=named))
    if result:
        found = (
            found.filter(outcome__in=_REFUSED) if result == "refused" else found.exclude(outcome__in=_REFUSED)
        )
    return found.order_by("-at", "-pk")


def change_row(change: PeopleChange) -> Row:
    """Words for what was done."""
    words = dict(PeopleAction.choices)
    name = change.detail.get("group") or change.detail.get("name") or ""
    about = change.person.shown_name if change.person else ""
    return {
        "at": change.at,
        "actor": change.actor.shown_name if change.actor else _("a command"),
        "kind": (e.ActorKind.PERSON if change.actor else e.ActorKind.SYSTEM).value,
        "did": words.get(change.action, change.action),
        "subject": ", ".join(part for part in (about, str(name)) if part),
        "url": reverse("person", args=[change.person_id]) if change.person_id else "",
        "result": "recorded",
        "reason": change.detail.get("reason", ""),
        "details": list(_details(change)),
    }


def _details(change: PeopleChange) -> Iterator[tuple[str, str]]:
    names = {"was": _("Before"), "became": _("Afterwards"), "service": _("Service")}
    for key, name in names.items():
        if key in change.detail:
            yield name, str(change.detail[key]) or "–"


def sign_in_row(entry: SignIn) -> Row:
    """Words for a sign-in."""
    words = dict(SignInOutcome.choices)
    return {
        "at": entry.at,
        "actor": entry.person.shown_name if entry.person else _("nobody signed in"),
        "kind": e.ActorKind.PERSON.value,
        "did": words.get(entry.outcome, entry.outcome),
        "subject": entry.ip or "",
        "url": "",
        "result": "refused" if entry.outcome in _REFUSED else "recorded",
        "why": words.get(entry.outcome, "") if entry.outcome in _REFUSED else "",
        "request_id": entry.request_id,
    }
