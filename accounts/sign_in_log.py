"""The log of sign-ins and refused ones."""

from __future__ import annotations

from datetime import datetime

from accounts.models import SignIn, SignInOutcome, User


def keep_sign_in(
    *,
    person: User | None,
    outcome: SignInOutcome,
    method: str,
    at: datetime,
    ip: str | None,
    request_id: str,
) -> None:
    """Keep that somebody signed in, or tried to. `person` None: the name is nobody's, and is not kept."""
    SignIn.objects.create(
        person=person, outcome=outcome, method=method[:100], at=at, ip=ip, request_id=request_id[:64]
    )
