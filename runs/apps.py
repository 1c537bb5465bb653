"""The runs app."""

from __future__ import annotations

from django.apps import AppConfig


class RunsConfig(AppConfig):
    """What a run is, how it moves, how it is recovered."""

    name = "runs"

    def ready(self) -> None:
        """Register the system checks."""
        from runs import checks, gates  # noqa: F401 - importing registers them
