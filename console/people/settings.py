"""One's own settings: how pages are shown to oneself, password, second factor, sessions."""

from __future__ import annotations

from typing import Any

from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.recovery_codes.internal.flows import generate_recovery_codes
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.totp.internal.auth import SECRET_SESSION_KEY, TOTP, clear_totp_secret, get_totp_secret
from django.contrib.auth import update_session_auth_hash
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.address import client_address
from accounts.guards import On, guarded
from accounts.models import OpenSession, PeopleAction, Tenant, User
from accounts.passwords import change_password
from accounts.people_log import PeopleRefusedError, WrongValueError, keep_change
from accounts.reauthentication import ReauthenticationNeeded, require_recent
from accounts.second_factors import has_factor, remove_factors
from accounts.sessions import close_session, close_sessions, open_session, sessions_of
from console.people import preferences
from console.people.frame import page
from console.saved_views import to_change
from runs.clock import database_now
from runs.views.frame import console_page, person_of, query_value, signed_in_at, typed

LONGEST_CODE = 64


@console_page
@guarded(On.PERSON)
@require_http_methods(["GET", "HEAD", "POST"])
def settings_page(request: HttpRequest) -> HttpResponse:
    """GET shows what one can set for oneself; POST changes how one is called and pages are shown."""
    if request.method != "POST":
        return _settings(request)
    try:
        preferences.save(request)
    except PeopleRefusedError as error:
        return _settings(request, error)
    response = HttpResponseRedirect(f"{reverse('settings')}?saved=names")
    kept = User.objects.get(pk=person_of(request).pk)
    preferences.remember(response, language=kept.language, theme=kept.theme)
    return response


SAVED = {
    "names": lambda: {"text": _("Your settings were saved.")},
    "password": lambda: {"text": _("Your password was changed. Your other sessions have ended.")},
    "session": lambda: {"text": _("The session has ended.")},
    "views": lambda: {"text": _("Your saved views are as they stand below.")},
    "factor-off": lambda: {"text": _("Your second factor was removed.")},
}


def _settings(request: HttpRequest, error: PeopleRefusedError | None = None) -> HttpResponse:
    person, now = person_of(request), database_now()
    sent = request.method == "POST"
    saved = SAVED.get(query_value(request, "saved"))
    context = {
        "result": saved() if saved and not sent else None,
        "person": {"name": person.shown_name, "username": person.username, "email": person.email},
        **preferences.shown(request),
        "views": to_change(person),
        "views_url": reverse("settings-views"),
        "factor": has_factor(person),
        "asked_by": _asked_by(person),
        "sessions": [_session(row, request.session.session_key) for row in sessions_of(person, now)],
        "urls": {
            "password": reverse("settings-password"), "factor": reverse("settings-factor"),
            "end": reverse("settings-session"), "codes": reverse("settings-factor-codes"),
        },
    }  # fmt: skip
    return page(request, "console/settings.html", context, error)


def _asked_by(person: User) -> list[str]:
    """The organisations that ask this person for a second factor."""
    asked = Tenant.objects.filter(second_factor=True, pk__in=person.tenants().values("pk"))
    return list(asked.order_by("name").values_list("name", flat=True))


def _session(row: OpenSession, mine: str | None) -> dict[str, Any]:
    return {
        "key": row.pk[:12],
        "at": row.began_at,
        "from": row.ip or "–",
        "agent": row.agent,
        "mine": row.pk == mine,
    }


@console_page
@guarded(On.PERSON)
@require_POST
def end_session(request: HttpRequest) -> HttpResponse:
    """End one of one's own other sessions, named by the beginning of its key, or all of them."""
    person, asked = person_of(request), request.POST.get("session", "")
    if asked == "others":
        close_sessions(person, but=request.session.session_key)
    for row in sessions_of(person, database_now()):
        if asked and row.pk[:12] == asked and row.pk != request.session.session_key:
            close_session(row.pk)
            keep_change(PeopleAction.SESSION_ENDED, actor=person, now=database_now(), person=person)
    return HttpResponseRedirect(f"{reverse('settings')}?saved=session")


@console_page
@guarded(On.PERSON)
@require_http_methods(["GET", "HEAD", "POST"])
def password_page(request: HttpRequest) -> HttpResponse:
    """Change one's own password, with the present one."""
    if request.method != "POST":
        return page(request, "console/password.html", {"settings_url": reverse("settings")})
    try:
        _change_password(request)
    except PeopleRefusedError as error:
        return page(request, "console/password.html", {"settings_url": reverse("settings")}, error)
    return HttpResponseRedirect(f"{reverse('settings')}?saved=password")


def _change_password(request: HttpRequest) -> None:
    """The session gets a new key, since the old one may be in other hands."""
    person, new = person_of(request), request.POST.get("password", "")
    if person.has_usable_password() and not person.check_password(request.POST.get("present", "")):
        raise WrongValueError("present", _("This is not your present password."))
    if new != request.POST.get("again", ""):
        raise WrongValueError("again", _("The two new passwords differ."))
    old = request.session.session_key
    change_password(person=person, password=new, now=database_now(), session_key=old)
    update_session_auth_hash(request, person)
    if old:
        close_session(old)
    key = request.session.session_key
    if key:
        agent = request.META.get("HTTP_USER_AGENT", "")
        open_session(
            session_key=key, person=person, now=database_now(), ip=client_address(request), agent=agent
        )


@console_page
@guarded(On.PERSON)
@require_http_methods(["GET", "HEAD", "POST"])
def factor_page(request: HttpRequest) -> HttpResponse:
    """Set up a second factor with an authenticator app, or remove it."""
    if (back := _too_old(request)) is not None:
        return back
    if request.method == "POST" and request.POST.get("do") == "remove":
        return _remove(request)
    if has_factor(person_of(request)):
        return page(request, "console/factor.html", {"has": True, "asked_by": _asked_by(person_of(request)),
                                                     "settings_url": reverse("settings")})  # fmt: skip
    return _set_up(request)


def _too_old(request: HttpRequest) -> HttpResponse | None:
    """The way to sign in again, where that was long ago: whoever finds an open screen gets no lasting way in."""
    try:
        require_recent(signed_in_at=signed_in_at(request), now=database_now())
    except ReauthenticationNeeded:
        return HttpResponseRedirect(f"{reverse('sign-in-again')}?next={request.path}")
    return None


def _set_up(request: HttpRequest) -> HttpResponse:
    person, errors = person_of(request), None
    if request.method == "POST" and request.session.get(SECRET_SESSION_KEY):
        form = ActivateTOTPForm(user=person, data={"code": typed(request, "code")[:LONGEST_CODE]})
        if form.is_valid():
            _activate(request, person, form.secret)
            return HttpResponseRedirect(reverse("settings-factor-codes"))
        errors = WrongValueError("code", _("This code does not fit. Enter the newest one of your app."))
    secret = get_totp_secret(regenerate=errors is None)
    context = {
        "has": False,
        "secret": " ".join(secret[i : i + 4] for i in range(0, len(secret), 4)),
        "link": None,
        "otpauth": get_adapter().build_totp_url(person, secret),
        "picture_url": reverse("settings-factor-picture"),
        "asked_by": _asked_by(person),
        "settings_url": reverse("settings"),
    }
    return page(request, "console/factor.html", context, errors)


def _activate(request: HttpRequest, person: User, secret: str) -> None:
    with transaction.atomic():
        TOTP.activate(person, secret)
        keep_change(PeopleAction.FACTOR_ADDED, actor=person, now=database_now(), person=person)
        generate_recovery_codes(request)
    clear_totp_secret(request)


def _remove(request: HttpRequest) -> HttpResponse:
    person = person_of(request)
    with transaction.atomic():
        if remove_factors(person):
            keep_change(PeopleAction.FACTOR_REMOVED, actor=person, now=database_now(), person=person)
    return HttpResponseRedirect(f"{reverse('settings')}?saved=factor-off")


@console_page
@guarded(On.PERSON)
@require_GET
def factor_picture(request: HttpRequest) -> HttpResponse:
    """The secret under way as a picture for an authenticator app: an answer of its own, as no page may inline it."""
    secret = request.session.get(SECRET_SESSION_KEY)
    if not secret:
        return HttpResponse(status=404)
    adapter = get_adapter()
    svg = adapter.build_totp_svg(adapter.build_totp_url(person_of(request), secret))
    return HttpResponse(svg, content_type="image/svg+xml")


@console_page
@guarded(On.PERSON)
@require_http_methods(["GET", "HEAD", "POST"])
def codes_page(request: HttpRequest) -> HttpResponse:
    """One's recovery codes, shown once; POST makes new ones, after which the old work no more."""
    if (back := _too_old(request)) is not None:
        return back
    person = person_of(request)
    kept = Authenticator.objects.filter(user=person, type=Authenticator.Type.RECOVERY_CODES).first()
    if kept is None:
        return HttpResponseRedirect(reverse("settings-factor"))
    if request.method == "POST":
        with transaction.atomic():
            generate_recovery_codes(request)
            keep_change(PeopleAction.CODES_MADE, actor=person, now=database_now(), person=person)
        return HttpResponseRedirect(reverse("settings-factor-codes"))
    codes = RecoveryCodes(kept)
    shown = [] if codes.did_view else codes.get_unused_codes()
    if request.method == "GET":
        codes.mark_as_viewed()
    context = {"codes": shown, "left": len(codes.get_unused_codes()), "settings_url": reverse("settings")}
    return page(request, "console/codes.html", context)
