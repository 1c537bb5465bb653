"""Signing in with another service, by OpenID Connect: allauth fetches, this checks what came and whom it names.

The code flow with PKCE, state and nonce. The token's signature, issuer, audience and nonce are checked although it
comes straight from the service.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import jwt
import requests
import structlog
from allauth.account.internal.flows.login import perform_login
from allauth.account.models import Login
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.internal import jwtkit, statekit
from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.utils import generate_code_challenge
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from accounts.guards import open_to_all
from accounts.identities import is_linked, person_of_identity
from accounts.models import SignInOutcome, User
from accounts.second_factors import has_factor
from console.middleware import request_id
from console.signing.kept import keep
from console.signing.proof import keep_proof
from console.signing.way_back import way_back
from runs.clock import database_now
from runs.views.frame import mark_signed_in, person_of

log = structlog.get_logger(__name__)

ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"})
CLOCKS_DIFFER = 60  # seconds


class NotTrusted(Exception):
    """What the service sent is not what was asked for, or not from it. The message is for the log."""


def services() -> list[SocialApp]:
    """The services that this installation knows, from its settings."""
    found: list[SocialApp] = get_adapter().list_apps(None, provider="openid_connect")
    return found


def links(way_back: str, *, again: bool = False) -> list[dict[str, str]]:
    """Where to sign in with each service. Links, since no form of ours may lead to another site."""
    asked = urlencode({"next": way_back, **({"again": "1"} if again else {})})
    return [
        {"name": app.name, "url": f"{reverse('openid_connect_login', args=[app.provider_id])}?{asked}"}
        for app in services()
    ]


def links_again(person: User, way_back: str) -> list[dict[str, str]]:
    """As `links`, for somebody whom a service knows."""
    return links(way_back, again=True) if is_linked(person) else []


@open_to_all
@never_cache
@require_GET
def begin(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Lead to the service."""
    adapter, app = _service(request, provider_id)
    asked = generate_code_challenge()
    again = "again" in request.GET and request.user.is_authenticated
    state = {
        "nonce": secrets.token_urlsafe(16),
        "verifier": asked.pop("code_verifier"),
        "next": way_back(request),
        "again": again,
        "began": datetime.now(UTC).timestamp(),
    }
    more = {**asked, "nonce": state["nonce"], **({"prompt": "login", "max_age": "0"} if again else {})}
    try:
        client = adapter.get_client(request, app)
        client.state = statekit.stash_state(request, provider_id=provider_id, state=state)
        return HttpResponseRedirect(
            client.get_redirect_url(adapter.authorize_url, ["openid", "email", "profile"], more)
        )
    except (OAuth2Error, requests.RequestException, ValueError, KeyError) as error:
        return _failed(request, error)


def _service(request: HttpRequest, provider_id: str) -> tuple[OpenIDConnectOAuth2Adapter, SocialApp]:
    app = next((app for app in services() if app.provider_id == provider_id), None)
    if app is None:
        raise Http404
    return OpenIDConnectOAuth2Adapter(request, provider_id), app


@open_to_all
@never_cache
@require_GET
def callback(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Back from the service: let in whom it names, if they are here; then their second factor is asked for."""
    adapter, app = _service(request, provider_id)
    state = statekit.unstash_state(request, provider_id=provider_id, state_id=request.GET.get("state", ""))
    try:
        claims = _claims(request, adapter, app, state)
    except (
        NotTrusted,
        OAuth2Error,
        requests.RequestException,
        jwt.PyJWTError,
        ValueError,
        KeyError,
    ) as error:
        return _failed(request, error)
    assert state is not None
    person = person_of_identity(service=provider_id, claims=claims, now=database_now())
    request.sign_in_method = app.name  # type: ignore[attr-defined]
    if person is None:
        keep(request, None, SignInOutcome.UNKNOWN, app.name)
        return _nobody(request, app.name)
    if state["again"]:
        return _again(request, person, claims, state, app.name)
    answer: HttpResponse = perform_login(request, Login(user=person, redirect_url=state["next"]))
    return answer


def _claims(
    request: HttpRequest, adapter: OpenIDConnectOAuth2Adapter, app: SocialApp, state: dict[str, Any] | None
) -> Mapping[str, Any]:
    """The claims of the service's token. Raises NotTrusted and what allauth and PyJWT raise."""
    if state is None:
        raise NotTrusted("the state belongs to no sign-in that began here, or was used")
    if "code" not in request.GET:
        raise NotTrusted("the service gave no code")
    client = adapter.get_client(request, app)
    answer = client.get_access_token(request.GET["code"], pkce_code_verifier=state["verifier"])
    return checked(adapter, app, str(answer.get("id_token", "")), nonce=state["nonce"])


def checked(
    adapter: OpenIDConnectOAuth2Adapter, app: SocialApp, token: str, *, nonce: str
) -> Mapping[str, Any]:
    """The claims of a token that this service signed, for us, for this sign-in."""
    known, told = app.settings["server_url"], adapter.openid_config["issuer"]
    if told != known:
        raise NotTrusted(f"the service calls itself {told} and is known as {known}")
    if jwt.get_unverified_header(token).get("alg") not in ALGORITHMS:
        raise NotTrusted("the token's algorithm is none that proves who signed it")
    claims: Mapping[str, Any] = jwtkit.verify_and_decode(
        credential=token, keys_url=adapter.openid_config["jwks_uri"], issuer=known, audience=app.client_id,
        lookup_kid=jwtkit.lookup_kid_jwk,
    )  # fmt: skip
    if not secrets.compare_digest(str(claims.get("nonce", "")), nonce):
        raise NotTrusted("the token is of another sign-in: its nonce differs")
    if claims.get("azp", app.client_id) != app.client_id or not claims.get("sub"):
        raise NotTrusted("the token is for another client, or names nobody")
    return claims


def _again(
    request: HttpRequest, person: User, claims: Mapping[str, Any], state: Mapping[str, Any], name: str
) -> HttpResponse:
    """The same person proved anew who they are: the service must say that they just did. Then their code is asked for,
    where they have a second factor, as after a password.
    """
    at = claims.get("auth_time")
    just_now = isinstance(at, int | float) and at >= state["began"] - CLOCKS_DIFFER
    if not request.user.is_authenticated or person != person_of(request) or not just_now:
        return _failed(request, NotTrusted("it is another person, or an old sign-in"))
    if has_factor(person):
        keep_proof(request, service=name, now=database_now())
        return HttpResponseRedirect(f"{reverse('sign-in-again')}?{urlencode({'next': state['next']})}")
    mark_signed_in(request, database_now())
    keep(request, person, SignInOutcome.SIGNED_IN_AGAIN, name)
    return HttpResponseRedirect(state["next"])


def _failed(request: HttpRequest, error: Exception) -> HttpResponse:
    """What went wrong is in the log under the incident id; whoever tries something out learns nothing from the page."""
    log.warning("oidc_refused", why=f"{type(error).__name__}: {error}"[:500])
    detail = _(
        "The other service did not say who you are in a way that can be trusted. You are not signed in."
    )
    return _page(request, detail, status=400)


def _nobody(request: HttpRequest, name: str) -> HttpResponse:
    detail = _(
        "%(service)s knows you, but nobody here is linked to that identity. Ask those who manage people to make you "
        "a person here, with the e-mail address that %(service)s has verified."
    ) % {"service": name}
    return _page(request, detail, status=403)


def _page(request: HttpRequest, detail: str, *, status: int) -> HttpResponse:
    context = {"now": database_now(), "detail": detail, "incident_id": request_id(request)}
    return render(request, "registration/service_failed.html", context, status=status)
