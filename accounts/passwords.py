"""Passwords: set by a link that works once, or changed by their owner."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import PasswordLink, PeopleAction, User
from accounts.people import require_wholly
from accounts.people_log import PeopleRefusedError, WrongValueError, keep_change
from accounts.reauthentication import require_recent_for_account
from accounts.sessions import close_sessions

LONGEST_PASSWORD = 1000


class LinkGoneError(PeopleRefusedError):
    """The link was used, has expired, or never was. Ask somebody who manages people for a new one."""

    code = "link_gone"

    @property
    def sentence(self) -> str:
        return _(
            "This link was used already, has expired, or is not complete. Ask those who manage people for a new one."
        )


def make_link(
    *, person: User, actor: User | None, now: datetime, signed_in_at: datetime | None = None
) -> str:
    """The token of a new link by which the person sets a password. Earlier links of theirs work no more.

    Where the account was used before, it opens what is somebody's already. Raises NotWhollyYoursError,
    ReauthenticationNeeded.
    """
    token = secrets.token_urlsafe(32)
    with transaction.atomic():
        require_wholly(actor, person)
        if person.last_login or person.has_usable_password():
            require_recent_for_account(actor=actor, signed_in_at=signed_in_at, now=now)
        PasswordLink.objects.filter(person=person, used_at=None).delete()
        ends = now + settings.HANDOFF_DURATIONS.password_link
        PasswordLink.objects.create(token_hash=_hash(token), person=person, made_at=now, expires_at=ends)
        keep_change(PeopleAction.LINK_MADE, actor=actor, now=now, person=person)
    return token


def person_of_link(token: str, now: datetime) -> User:
    """Whose password the link sets. Raises LinkGoneError."""
    found = PasswordLink.objects.select_related("person").filter(
        token_hash=_hash(token), used_at=None, expires_at__gt=now, person__is_active=True
    )
    link = found.first()
    if link is None:
        raise LinkGoneError
    return link.person


def use_link(*, token: str, password: str, now: datetime) -> User:
    """Set the password of the link's person and end their sessions. Raises LinkGoneError, WrongValueError."""
    person = person_of_link(token, now)
    _good(password, person)
    with transaction.atomic():
        if not PasswordLink.objects.filter(token_hash=_hash(token), used_at=None).update(used_at=now):
            raise LinkGoneError
        _set(person, password)
        close_sessions(person)
        keep_change(PeopleAction.LINK_USED, actor=person, now=now, person=person)
    return person


def change_password(*, person: User, password: str, now: datetime, session_key: str | None = None) -> None:
    """Change one's own password and end one's other sessions. Raises WrongValueError."""
    _good(password, person)
    with transaction.atomic():
        _set(person, password)
        close_sessions(person, but=session_key)
        keep_change(PeopleAction.PASSWORD_CHANGED, actor=person, now=now, person=person)


def _set(person: User, password: str) -> None:
    person.set_password(password)
    person.save(update_fields=["password"])


def _good(password: str, person: User) -> None:
    if len(password) > LONGEST_PASSWORD or "\x00" in password:
        message = _("Use at most %(limit)d characters.") % {"limit": LONGEST_PASSWORD}
        raise WrongValueError("password", message)
    try:
        validate_password(password, person)
    except ValidationError as error:
        raise WrongValueError("password", " ".join(error.messages)) from error


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
