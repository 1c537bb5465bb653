"""The sign-in form."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.forms import AuthenticationForm


class SignInForm(AuthenticationForm):
    """Django's own, with one answer for every name and password that nobody has."""

    def clean(self) -> dict[str, Any]:
        """Raise the ordinary error also for what no field takes, as a NUL: only that error is shown."""
        if self.errors:
            raise self.get_invalid_login_error()
        return super().clean()
