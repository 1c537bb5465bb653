"""The conflict panel: what was not recorded, what happened since, what the person saw and what is true now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.urls import reverse

from runs.machine import events as e
from runs.machine import state as s
from runs.pages import timeline

LISTED = 20
Pair = dict[str, str]


def conflict(
    state: s.RunState,
    log: Sequence[e.Recorded],
    *,
    text: str,
    since: int | None,
    compared: Sequence[Pair],
    field: str,
) -> dict[str, Any]:
    """The `conflict` of parts/conflict.html. `since` is the version that the form was made from."""
    newer = [r for r in log if since is not None and r.seq > since]
    return {
        "text": text,
        "since": since,
        "events": [
            {"seq": r.seq, "at": r.at, "text": f"{r.actor.name} {timeline.sentence(r.event)}"}
            for r in newer[-LISTED:]
        ],
        "compared": list(compared),
        "seq": state.seq,
        "url": reverse("run", args=[state.identity.run]),
        "field": field,
    }
