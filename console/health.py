"""Two answers for machines: is this process alive, and is the whole able to work."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import structlog
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.guards import open_to_all
from console.celery import app
from console.durations import durations
from runs.clock import database_now
from runs.outbox import broker_errors
from runs.queries import readiness

log = structlog.get_logger(__name__)

# Sweeps that may be missed before the installation is called not ready.
MISSED_SWEEPS = 10


@open_to_all
@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """200 as soon as this process answers. Asks nothing of the database."""
    return HttpResponse("ok\n", content_type="text/plain; charset=utf-8")


@open_to_all
@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """200 where database, migrations, broker and sweep are well, else 503; the body says which is not."""
    parts = {name: _tried(check) for name, check in CHECKS.items()}
    ready = all(part["ok"] for part in parts.values())
    return JsonResponse({"ready": ready, "parts": parts}, status=200 if ready else 503)


def _tried(check: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return {"ok": True, **check()}
    except _failures() as error:
        log.warning("not_ready", part=check.__name__, exc_info=error)
        return {"ok": False, "why": type(error).__name__}


def _failures() -> tuple[type[BaseException], ...]:
    return (DatabaseError, OSError, *broker_errors())


def database() -> dict[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute("select 1")
    return {}


def migrations() -> dict[str, Any]:
    executor = MigrationExecutor(connection)
    waiting = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    return {"ok": waiting == 0, "waiting": waiting}


def broker() -> dict[str, Any]:
    """What answers there, by its own name."""
    with app.connection_for_write() as link:
        link.ensure_connection(max_retries=0, timeout=2)
        return {"server": _name(link)}


def _name(link: Any) -> str:
    match link.transport.driver_type:
        case "amqp":
            return str(link.connection.server_properties["product"])
        case "redis":
            # Redis itself does not give a name.
            return str(link.default_channel.client.info("server").get("server_name", "redis")).capitalize()
        case other:
            return str(other)


def sweep() -> dict[str, Any]:
    """The age of the last sweep and the versions that live workers serve."""
    found = readiness()
    last: datetime | None = found["last_sweep_at"]
    age = (database_now() - last).total_seconds() if last else None
    limit = durations().sweep.total_seconds() * MISSED_SWEEPS
    return {"ok": age is not None and age <= limit, "age_seconds": age, "served": found["served"]}


CHECKS: dict[str, Callable[[], dict[str, Any]]] = {
    "database": database,
    "migrations": migrations,
    "broker": broker,
    "sweep": sweep,
}
