"""What allauth is told about this product: nobody signs up, no mail is sent, secrets are kept encrypted."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from cryptography.fernet import Fernet, MultiFernet
from django.conf import settings
from django.http import HttpRequest
from django.utils.encoding import force_bytes

from accounts.address import client_address


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """People are made by those who manage them. Whether a sign-in is recent enough is asked by our own pages."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def is_reauthentication_required(self, *, app: str, **kwargs: Any) -> bool:
        return False

    def get_client_ip(self, request: HttpRequest) -> str:
        return client_address(request) or ""

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """Pages say what happened where it happened."""

    def send_notification_mail(self, *args: Any, **kwargs: Any) -> None:
        """What changed at an account is in the audit log."""

    def send_mail(self, *args: Any, **kwargs: Any) -> None:
        """This product has no mail."""


class FactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Secrets of second factors are encrypted with the installation's secret key, of which a dump holds no copy."""

    def encrypt(self, text: str) -> str:
        return _cipher().encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return _cipher().decrypt(encrypted_text.encode()).decode()

    def send_notification_mail(self, *args: Any, **kwargs: Any) -> None:
        """What changed at an account is in the audit log."""


class IdentityAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Another service only ever lets in people who are here already (accounts.oidc)."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: object) -> bool:
        return False

    def is_auto_signup_allowed(self, request: HttpRequest, sociallogin: object) -> bool:
        return False

    def list_apps(
        self, request: HttpRequest, provider: str | None = None, client_id: str | None = None
    ) -> Any:
        """Those of the settings only: no row of a table adds one."""
        from allauth.socialaccount.adapter import _build_apps_from_settings

        found = _build_apps_from_settings(provider=provider, client_id=client_id)
        return [app for apps in found.values() for app in apps]


def _cipher() -> MultiFernet:
    """The present key first; former ones still read what they wrote."""
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return MultiFernet([Fernet(_derived(key)) for key in keys])


def _derived(key: str | bytes) -> bytes:
    return base64.urlsafe_b64encode(hashlib.sha256(b"second factors:" + force_bytes(key)).digest())
