"""The pages on which people sign in: name and password, the second factor, and both again."""

from __future__ import annotations

from typing import Any

from allauth.account.internal.decorators import login_stage_required
from allauth.account.internal.flows.login import perform_password_login
from allauth.account.models import Login
from allauth.mfa.base.forms import AuthenticateForm
from allauth.mfa.stages import AuthenticateStage
from django.contrib.auth import authenticate, views
from django.contrib.auth.decorators import login_required
from django.contrib.auth.signals import user_login_failed
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.forms import SignInForm
from accounts.guards import On, guarded, open_to_all
from accounts.models import SignInOutcome, User
from accounts.second_factors import has_factor
from console.signing import oidc
from console.signing.kept import CODE, keep
from console.signing.proof import drop_proof, proved_by
from console.signing.throttled import throttled
from console.signing.way_back import way_back
from runs.clock import database_now
from runs.views.frame import mark_signed_in, person_of, shell, typed

LONGEST_CODE = 64
LONGEST_METHOD = 100


class SignIn(views.LoginView):
    """Name and password. Whoever has a second factor is asked for it next; only then does a session begin."""

    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        services = oidc.links(way_back(self.request))
        was_set = self.request.GET.get("password") == "set"
        return {**super().get_context_data(**more), "services": services, "password_set": was_set}

    def form_valid(self, form: Any) -> HttpResponse:
        person = form.get_user()
        login = Login(user=person, redirect_url=self.get_success_url())
        answer: HttpResponse = perform_password_login(self.request, {"username": person.username}, login)
        return answer

    def form_invalid(self, form: Any) -> HttpResponse:
        return throttled(self.request, typed(self.request, "username")) or super().form_invalid(form)


@open_to_all
@login_stage_required(stage=AuthenticateStage.key, redirect_urlname="account_login")  # type: ignore[untyped-decorator]
@require_http_methods(["GET", "HEAD", "POST"])
def second_factor(request: HttpRequest) -> HttpResponse:
    """The code of an authenticator app, or a recovery code, of someone whose password was right."""
    stage = request._login_stage  # type: ignore[attr-defined]
    person: User = stage.login.user
    request.sign_in_method = CODE  # type: ignore[attr-defined]
    if waiting := throttled(request, person.username):
        return waiting
    errors: list[dict[str, str]] = []
    if request.method == "POST":
        if _code_is_right(request, person):
            answer: HttpResponse = stage.exit()
            return answer
        errors = [_wrong_code()]
        if waiting := throttled(request, person.username):
            return waiting
    context = {"now": database_now(), "errors": errors}
    return render(request, "registration/code.html", context, status=422 if errors else 200)


def _wrong_code() -> dict[str, str]:
    return {"field": "code", "message": _("This code is wrong or was used before. Enter the newest one.")}


def _code_is_right(request: HttpRequest, person: User) -> bool:
    """Whether a code is the person's, which then is used up. A wrong one counts as a refused sign-in."""
    form = AuthenticateForm(user=person, data={"code": typed(request, "code")[:LONGEST_CODE]})
    if form.is_valid():
        form.save()
        return True
    user_login_failed.send(sender=__name__, credentials={"username": person.username}, request=request)
    return False


@never_cache
@login_required
@guarded(On.PERSON)
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_again(request: HttpRequest) -> HttpResponse:
    """Prove once more who one is, by one's own means, and go back to where that was asked for."""
    person = person_of(request)
    if waiting := throttled(request, person.username):
        return waiting
    service = proved_by(request, database_now())
    errors: list[dict[str, str]] = []
    if request.method == "POST":
        errors = _again_errors(request, person, service)
        if not errors:
            return _proved(request, person, service)
        if waiting := throttled(request, person.username):
            return waiting
    context = {
        **shell(request),
        "next": way_back(request),
        "about_oneself": way_back(request).startswith(reverse("settings")),
        "about_others": way_back(request).startswith(reverse("people")),
        "service": service,
        "asks_password": person.has_usable_password() and not service,
        "asks_code": has_factor(person),
        "services": [] if service else oidc.links_again(person, way_back(request)),
        "errors": errors,
    }
    return render(request, "registration/again.html", context, status=422 if errors else 200)


def _proved(request: HttpRequest, person: User, service: str) -> HttpResponse:
    drop_proof(request)
    mark_signed_in(request, database_now())
    means = [service or "password", *(["code"] if has_factor(person) else [])]
    keep(request, person, SignInOutcome.SIGNED_IN_AGAIN, ", ".join(means)[:LONGEST_METHOD])
    return HttpResponseRedirect(way_back(request))


def _again_errors(request: HttpRequest, person: User, service: str) -> list[dict[str, str]]:
    """What is wrong with the proof. Where no service gave it, it is the password; the code is used up only after it."""
    password = request.POST.get("password", "").replace("\x00", "")
    if not service and authenticate(request, username=person.username, password=password) != person:
        return [{"field": "password", "message": _("This password is wrong. Nothing was recorded.")}]
    if has_factor(person) and not _code_is_right(request, person):
        return [_wrong_code()]
    return []
