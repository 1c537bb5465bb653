"""Structured logs: one JSON object per line on standard error; the supervisor keeps a file per process.

No arguments and no secrets: a line carries what a call passes by name, never a request's body, a task's
arguments or the values that a traceback or a database error quotes.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any

import structlog
from structlog.typing import EventDict, WrappedLogger

LONGEST_MESSAGE = 200


def frames_only(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    """Replace an exception by its class, the first line of its message and its frames.

    In the lines after the first, PostgreSQL quotes the values of the row.
    """
    error = _exception(event.pop("exc_info", None))
    if error is not None:
        first = str(error).partition("\n")[0][:LONGEST_MESSAGE]
        said = "" if _foreign(event) else f": {first}"
        event["error"] = f"{type(error).__qualname__}{said}"
        event["frames"] = [
            f"{f.filename}:{f.lineno} {f.name}" for f in traceback.extract_tb(error.__traceback__)
        ]
    return event


def _foreign(event: EventDict) -> bool:
    """Whether the code of a tool or of a planner failed: what it raises may quote what it was given."""
    record = event.get("_record")
    return any(hasattr(record, name) for name in ("tool", "planner"))


def _exception(exc_info: object) -> BaseException | None:
    if isinstance(exc_info, BaseException):
        return exc_info
    found = exc_info if isinstance(exc_info, tuple) else sys.exc_info() if exc_info else (None, None, None)
    return found[1] if isinstance(found[1], BaseException) else None


def first_line_only(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    """Keep the first line of others' messages: after it, Celery quotes a whole task."""
    event["event"] = str(event.get("event", "")).partition("\n")[0]
    return event


def _processors() -> list[Any]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        frames_only,
    ]


def configure(*, process: str) -> dict[str, Any]:
    """Set structlog up and return Django's LOGGING for that role; both write the same kind of line."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_processors(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    json_lines = {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": [*_processors(), first_line_only],
        "processors": [
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.JSONRenderer(sort_keys=True, ensure_ascii=False),
        ],
    }
    # A command's own messages are for a person in a terminal; its log lines below a warning would bury them.
    level = "WARNING" if process == "command" else "INFO"
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": json_lines},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.server": {"handlers": [], "propagate": True},
            # uvicorn's own access lines carry query strings, so they stay off.
            "uvicorn.access": {"level": "WARNING"},
            # Two lines for every sweep, and results of tasks in them.
            "celery.app.trace": {"level": "WARNING"},
            "celery.beat": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
            "httpx": {"level": "WARNING"},
        },
    }
