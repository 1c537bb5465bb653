"""Which person an identity of another service is: by a link, or the first time by a verified e-mail address.

Nobody is made here, and an address that several people have, or that the service has not verified, names nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.db import transaction

from accounts.models import PeopleAction, User
from accounts.people import require_wholly
from accounts.people_log import keep_change, require_reason
from accounts.sessions import close_sessions


def person_of_identity(*, service: str, claims: Mapping[str, Any], now: datetime) -> User | None:
    """The active person whom the claims of a checked token name; None: nobody here."""
    subject = str(claims["sub"])
    linked = SocialAccount.objects.select_related("user").filter(provider=service, uid=subject).first()
    if linked:
        person: User = linked.user
        return person if person.is_active else None
    found = _by_address(claims)
    # Once an identity is linked, another one with the same address is somebody else.
    if found is None or SocialAccount.objects.filter(provider=service, user=found).exists():
        return None
    with transaction.atomic():
        SocialAccount.objects.create(provider=service, uid=subject, user=found)
        keep_change(PeopleAction.LINKED, actor=None, now=now, person=found, service=service)
    return found


def _by_address(claims: Mapping[str, Any]) -> User | None:
    address = claims.get("email")
    if not isinstance(address, str) or not address or claims.get("email_verified") is not True:
        return None
    found = list(User.objects.filter(email__iexact=address.replace("\x00", ""), is_active=True)[:2])
    return found[0] if len(found) == 1 else None


def is_linked(person: User) -> bool:
    """Whether the person can sign in with another service."""
    return bool(SocialAccount.objects.filter(user=person).exists())


def services_of(person: User) -> list[str]:
    """The services that have an identity of the person, by the ids under which settings know them."""
    found = SocialAccount.objects.filter(user=person).order_by("provider")
    return list(found.values_list("provider", flat=True))


def forget_identities(*, person: User, reason: str, actor: User | None, now: datetime) -> bool:
    """End the links to all identities of other services, and the person's sessions; False: there were none.

    The next sign-in with their verified e-mail address makes a new link. Raises NotWhollyYoursError, WrongValueError.
    """
    require_reason(reason)
    with transaction.atomic():
        require_wholly(actor, person)
        services = services_of(person)
        if not SocialAccount.objects.filter(user=person).delete()[0]:
            return False
        close_sessions(person)
        keep_change(
            PeopleAction.UNLINKED,
            actor=actor,
            now=now,
            person=person,
            reason=reason,
            service=", ".join(services),
        )
    return True
