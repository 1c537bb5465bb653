"""The log of what is done with people, groups and organisations, and what refuses it."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from django.utils.translation import gettext as _

from accounts.models import PeopleAction, PeopleChange, Tenant, User
from accounts.rights import Denial, Right, holders, why_not

#: Shorter ones say nothing to whoever reads the log later.
LEAST_REASON: Final = 10


class PeopleRefusedError(Exception):
    """What was asked for cannot be done with people, groups or organisations; nothing was. Shown as it is."""

    #: The field of a form that it is about.
    field = ""
    code = "people"

    def __str__(self) -> str:
        return self.sentence

    @property
    def sentence(self) -> str:
        """One translated sentence for a page."""
        return _("This cannot be done.")


class LastManagerError(PeopleRefusedError):
    """Nobody would be left who may manage people there. Give somebody else that right first."""

    code = "last_manager"

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant
        super().__init__(tenant.slug)

    @property
    def sentence(self) -> str:
        return _(
            "Nobody would be left who may manage people in %(organisation)s. Let somebody else do so first."
        ) % {"organisation": self.tenant.name}


class TakenError(PeopleRefusedError):
    """Another one has that name. Choose another."""

    code = "taken"

    def __init__(self, field: str, name: str) -> None:
        self.field, self.name = field, name
        super().__init__(name)

    @property
    def sentence(self) -> str:
        return _("“%(name)s” is taken. Choose another.") % {"name": self.name}


class WrongValueError(PeopleRefusedError):
    """A field's value cannot be kept; the sentence says what it may be."""

    code = "wrong_value"

    def __init__(self, field: str, sentence: str) -> None:
        self.field, self._sentence = field, sentence
        super().__init__(sentence)

    @property
    def sentence(self) -> str:
        return self._sentence


class NotManagerError(PeopleRefusedError):
    """The actor may not manage people there. `denial` says why."""

    code = "not_allowed"

    def __init__(self, tenant: Tenant, denial: Denial) -> None:
        self.tenant, self.denial = tenant, denial
        super().__init__(denial.sentence)

    @property
    def sentence(self) -> str:
        return self.denial.sentence


class NotWhollyYoursError(PeopleRefusedError):
    """The person belongs to another organisation too, whose people the actor does not manage."""

    code = "not_wholly_yours"

    @property
    def sentence(self) -> str:
        return _(
            "This person also belongs to an organisation whose people you do not manage. You can end the membership "
            "here; the account itself is changed by those who manage people in all of them."
        )


def require_reason(reason: str) -> None:
    """Raise WrongValueError unless it says something."""
    if len(reason.strip()) < LEAST_REASON:
        message = _("Enter a reason of at least %(least)d characters. It is kept in the audit log.")
        raise WrongValueError("reason", message % {"least": LEAST_REASON})


def require_manager(actor: User | None, tenant: Tenant) -> None:
    """Raise NotManagerError unless the actor may manage people there, now. None is a command, which may."""
    if actor and (denial := why_not(actor, Right.MANAGE_PEOPLE, tenant)):
        raise NotManagerError(tenant, denial)


def managed(tenants: list[Tenant]) -> list[Tenant]:
    """Those of the tenants in which somebody may manage people now."""
    return [tenant for tenant in tenants if holders(Right.MANAGE_PEOPLE, tenant)]


def require_still_managed(tenants: list[Tenant]) -> None:
    """Raise LastManagerError where nobody is left. Ask after the change, inside its transaction and its fence."""
    for tenant in tenants:
        if not holders(Right.MANAGE_PEOPLE, tenant):
            raise LastManagerError(tenant)


def keep_change(
    action: PeopleAction,
    *,
    actor: User | None,
    now: datetime,
    tenant: Tenant | None = None,
    person: User | None = None,
    **detail: object,
) -> None:
    """A line of the log, in the transaction of what it tells."""
    PeopleChange.objects.create(
        tenant=tenant, actor=actor, person=person, action=action, detail=detail, at=now
    )
