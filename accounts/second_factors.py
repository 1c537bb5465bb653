"""Second factors: who has one, who must, and what a manager can take away."""

from __future__ import annotations

from uuid import UUID

from allauth.mfa.models import Authenticator

from accounts.models import Membership, Tenant, User


def has_factor(person: User) -> bool:
    """Whether signing in as this person asks for a code."""
    return bool(with_factor([person.pk]))


def with_factor(people: list[UUID]) -> set[UUID]:
    """Which of these have a second factor, in one query."""
    found = Authenticator.objects.filter(user_id__in=people, type=Authenticator.Type.TOTP)
    return set(found.values_list("user_id", flat=True))


def lacks_factor(person: User) -> bool:
    """Whether an organisation of this person asks for a second factor that they have not set up yet."""
    asked = Tenant.objects.filter(
        second_factor=True,
        pk__in=Membership.objects.filter(user_id=person.pk, active=True).values("tenant_id"),
    )
    return asked.exists() and not has_factor(person)


def remove_factors(person: User) -> bool:
    """Remove a person's second factor and recovery codes; False: there were none."""
    return bool(Authenticator.objects.filter(user_id=person.pk).delete()[0])
