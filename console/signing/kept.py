"""What is kept of each sign-in: the session's row, when it was, and the log. Connected once, by `console.apps`."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest

from accounts.address import client_address
from accounts.models import SignInOutcome, User
from accounts.sessions import close_session, open_session
from accounts.sign_in_log import keep_sign_in
from console.middleware import request_id
from runs.clock import database_now
from runs.views.frame import mark_signed_in

PASSWORD, CODE = "password", "code"


def keep(request: HttpRequest, person: User | None, outcome: SignInOutcome, method: str) -> None:
    """A line of the log, with where the request came from."""
    keep_sign_in(
        person=person, outcome=outcome, method=method, at=database_now(), ip=client_address(request),
        request_id=request_id(request),
    )  # fmt: skip


def method_of(request: HttpRequest) -> str:
    """By what the person signs in, as the pages under way said it."""
    found: str = getattr(request, "sign_in_method", PASSWORD)
    return found


@receiver(user_logged_in, dispatch_uid="console.signing.kept")
def _signed_in(sender: object, request: HttpRequest, user: User, **_more: Any) -> None:
    if not request.session.session_key:
        request.session.save()
    key = request.session.session_key
    assert key is not None
    now = database_now()
    agent = request.META.get("HTTP_USER_AGENT", "")
    open_session(session_key=key, person=user, now=now, ip=client_address(request), agent=agent)
    mark_signed_in(request, now)
    keep(request, user, SignInOutcome.SIGNED_IN, method_of(request))


@receiver(user_logged_out, dispatch_uid="console.signing.kept")
def _signed_out(sender: object, request: HttpRequest, user: User | None, **_more: Any) -> None:
    if user is None:
        return
    if request.session.session_key:
        close_session(request.session.session_key)
    keep(request, user, SignInOutcome.SIGNED_OUT, "")


@receiver(user_login_failed, dispatch_uid="console.signing.kept")
def _refused(
    sender: object, credentials: dict[str, Any], request: HttpRequest | None = None, **_more: Any
) -> None:
    if request is None:
        return
    # What nobody has is not looked at twice: it may be a password typed into the wrong field.
    person = User.objects.filter(username=credentials.get("username") or "").first()
    waits = getattr(request, "axes_locked_out", False)
    keep(request, person, SignInOutcome.THROTTLED if waits else SignInOutcome.WRONG, method_of(request))
