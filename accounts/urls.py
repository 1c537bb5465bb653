"""Sign-in and sign-out: Django's own views on our pages."""

from __future__ import annotations

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from accounts.forms import SignInForm

urlpatterns = [
    path(
        "login/",
        LoginView.as_view(authentication_form=SignInForm, redirect_authenticated_user=True),
        name="login",
    ),
    path("logout/", LogoutView.as_view(next_page="login"), name="logout"),
]
