"""The addresses of signing in. allauth looks some of them up by names of its own."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import path

from accounts.guards import open_to_all
from console.signing import oidc
from console.signing.links import password_link
from console.signing.views import SignIn, second_factor, sign_in_again

urlpatterns = [
    path("login/", open_to_all(SignIn.as_view()), name="login"),
    path("login/", open_to_all(SignIn.as_view()), name="account_login"),
    path("login/code/", second_factor, name="mfa_authenticate"),
    path("login/again/", sign_in_again, name="sign-in-again"),
    path("login/with/<slug:provider_id>/", oidc.begin, name="openid_connect_login"),
    path("login/with/<slug:provider_id>/back/", oidc.callback, name="openid_connect_callback"),
    path("password/<str:token>/", password_link, name="password-link"),
    path("logout/", open_to_all(LogoutView.as_view(next_page="login")), name="logout"),
]
