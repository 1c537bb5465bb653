"""Whether anybody is there to do what the next safe action leaves to a worker."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import Max
from django.utils.translation import gettext as _

from runs.agents import queue_name
from runs.clock import database_now
from runs.machine import state as s
from runs.machine.safety import Action, next_safe_action
from runs.models import Worker
from runs.pages import words

Shown = dict[str, Any]
BY_WORKERS = frozenset({Action.RUN, Action.ASK, Action.RESEND, Action.SETTLE, Action.FINISH_CANCEL})
_ONLY_WAITS = frozenset({Action.RUN, Action.FINISH_CANCEL})


def told(state: s.RunState) -> Shown:
    """What to say instead in the `next` of runs/run.html where no worker serves the run's version; else nothing."""
    action = next_safe_action(state).action
    if action not in BY_WORKERS:
        return {}
    queue = queue_name(state.identity.agent, state.identity.agent_version)
    seen = Worker.objects.filter(serves__contains=[queue]).aggregate(at=Max("last_seen_at"))["at"]
    if seen and seen > database_now() - settings.HANDOFF_DURATIONS.worker_silent:
        return {}
    found = {"wait": _never() if seen is None else _last_seen(words.clock(seen))}
    if action in _ONLY_WAITS:
        found["do"] = _("Have a worker started that serves this version: the run waits for one.")
    return found


def _last_seen(at: str) -> str:
    text = _("No worker serves this version now (last seen %(at)s). Nothing happens until one does.")
    return text % {"at": at}


def _never() -> str:
    return _("No worker serves this version now, and none was ever seen. Nothing happens until one does.")
