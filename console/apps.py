"""The application of the project's own pages and checks."""

from __future__ import annotations

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    """Registers the system checks of the whole installation, and what is kept of sign-ins."""

    name = "console"

    def ready(self) -> None:
        from console import checks  # noqa: F401 - importing registers them
        from console.signing import kept  # noqa: F401 - importing connects it
