"""System checks of the installation: each names what is unsafe and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connections
from django.db.backends.utils import CursorWrapper
from django.utils.module_loading import import_string

OLDEST_POSTGRES = 15
GUARDIAN = "guardian.backends.ObjectPermissionBackend"


@register(Tags.security)
def object_permissions(app_configs: Sequence[AppConfig] | None, **_kwargs: Any) -> list[CheckMessage]:
    """Without guardian's backend every question for a right on one agent is answered with no."""
    if GUARDIAN in settings.AUTHENTICATION_BACKENDS:
        return []
    hint = f"Add {GUARDIAN!r} to AUTHENTICATION_BACKENDS."
    return [Error("Rights on single objects are not read.", hint=hint, id="console.E001")]


@register()
def agents(app_configs: Sequence[AppConfig] | None, **_kwargs: Any) -> list[CheckMessage]:
    """Every agent in HANDOFF_AGENTS can be imported."""
    return [fault for path in settings.HANDOFF_AGENTS for fault in _agent(path)]


def _agent(path: str) -> list[CheckMessage]:
    from runs.agents import Agent

    try:
        found = import_string(path.replace(":", "."))
    except ImportError as error:
        hint = "Name it as package.module:NAME in HANDOFF_AGENTS."
        return [Error(f"The agent {path} cannot be imported: {error}", hint=hint, id="console.E002")]
    if isinstance(found, Agent):
        return []
    hint = "HANDOFF_AGENTS names objects of the class runs.agents.Agent."
    return [Error(f"{path} is no agent.", hint=hint, id="console.E003")]


@register()
def real_broker(app_configs: Sequence[AppConfig] | None, **_kwargs: Any) -> list[CheckMessage]:
    """Tasks never run inside the process that asks for them."""
    eager = bool(getattr(settings, "CELERY_TASK_ALWAYS_EAGER", False))
    if not eager and not settings.CELERY_BROKER_URL.startswith(("memory", "filesystem", "sqla")):
        return []
    hint = "Set CELERY_BROKER_URL to RabbitMQ, Redis or Valkey, and leave CELERY_TASK_ALWAYS_EAGER off."
    return [Error("Tasks would be lost with the process.", hint=hint, id="console.E004")]


@register(Tags.database)
def database(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_kwargs: Any
) -> list[CheckMessage]:
    """The server is new enough, and its clock is not moved, which only test databases may do."""
    return [fault for alias in databases or [] for fault in _database(alias)]


def _database(alias: str) -> list[CheckMessage]:
    with connections[alias].cursor() as cursor:
        return [*version_faults(cursor), *clock_faults(cursor)]


def version_faults(cursor: CursorWrapper) -> list[CheckMessage]:
    """An error where the server is older than what the migrations need."""
    cursor.execute("select current_setting('server_version_num')::int / 10000")
    (version,) = cursor.fetchone() or (0,)
    if version >= OLDEST_POSTGRES:
        return []
    hint = f"Use PostgreSQL {OLDEST_POSTGRES} or newer."
    return [Error(f"The server is PostgreSQL {version}.", hint=hint, id="console.E005")]


def clock_faults(cursor: CursorWrapper) -> list[CheckMessage]:
    """An error where the clock is moved in a database that is not a test's."""
    cursor.execute("select current_database(), coalesce(current_setting('handoff.clock_offset', true), '')")
    name, offset = cursor.fetchone() or ("", "")
    if not offset or str(name).startswith("test_"):
        return []
    hint = f'Undo it: alter database "{name}" reset handoff.clock_offset'
    return [Error("The clock of this database is moved.", hint=hint, id="console.E006")]
