"""The run before this one: how it ended, and what people wrote against its plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.urls import reverse

from runs.machine import events as e
from runs.pages import requests, words

Context = dict[str, Any]
VERDICTS: dict[type[e.Event], str] = {e.PlanRejected: "reject", e.ChangesAsked: "ask"}


def before(run_id: str, log: Sequence[e.Recorded]) -> Context:
    """The `predecessor` of runs/run.html, from the log of the predecessor; an empty log where it cannot be read."""
    found: Context = {
        "run": run_id,
        "url": reverse("run", args=[run_id]),
        "objections": list(_objections(log)),
    }
    for recorded in log:
        if isinstance(recorded.event, e.RunRestarted):
            found |= {
                "by": recorded.actor.name,
                "at": words.moment(recorded.at),
                "note": recorded.event.note,
            }
    return found


def _objections(log: Sequence[e.Recorded]) -> Iterator[Context]:
    """What people wrote when they rejected a plan or asked for changes, oldest first."""
    for recorded in log:
        event = recorded.event
        if isinstance(event, e.PlanRejected | e.ChangesAsked):
            yield {
                "name": recorded.actor.name,
                "verdict": requests.verdict(VERDICTS[type(event)]),
                "version": event.version,
                "at": recorded.at,
                "reason": event.reason,
            }
