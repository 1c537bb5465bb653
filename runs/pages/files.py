"""The artifacts of a run, as rows and as names under which they can be saved."""

from __future__ import annotations

from typing import Any, Final

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.rights import Right
from runs.limits import LARGEST_FILE, LONGEST_NAME
from runs.machine import state as s
from runs.machine.canonical import plain
from runs.machine.hidden import Hidden
from runs.models import Run
from runs.pages import words
from runs.pages.run_page import Reader, heading
from runs.pages.stopping import may

Context = dict[str, Any]
KINDS: Final[dict[str, str | Promise]] = {
    "file": gettext_lazy("file that a person attached"),
    "evidence": gettext_lazy("evidence from another system"),
    "result": gettext_lazy("result that the agent kept"),
}


def context(run: Run, state: s.RunState, reader: Reader) -> Context:
    """All of runs/artifacts.html but what a sent form adds."""
    limit = _("At most %(size)s. It is kept as it is, and nobody here opens it.")
    return {
        "run": heading(run, state),
        "artifacts": [_row(run, x) for x in reversed(tuple(state.artifacts.values()))],
        "limit_text": limit % {"size": words.file_size(LARGEST_FILE)},
        **may("may_attach", Right.OPERATE_RUNS, reader),
        "errors": [],
    }


def _row(run: Run, kept: s.Artifact) -> Context:
    events = reverse("run-events", args=[run.pk])
    return {
        "id": f"A-{kept.number}",
        "name": kept.name,
        "kind": str(KINDS.get(kept.kind, kept.kind)),
        "about": kept.about,
        "media_type": kept.media_type,
        "size": words.file_size(kept.size),
        "hash": kept.hash,
        "at": kept.at,
        "url": reverse("run-artifact", args=[run.pk, kept.number]),
        "event_url": f"{events}?from={kept.seq}#event-{kept.seq}",
    }


def holds_hidden(hidden: Hidden, kept: s.Artifact, data: bytes) -> bool:
    """Whether a file has hidden values in it: what a tool answered that names any is taken to, whatever came."""
    number = kept.about.removeprefix("E-")
    tool = hidden.tool_of(int(number)) if number.isdecimal() else kept.about.partition(" ")[0]
    if kept.kind == "evidence" and tool in hidden.tools():
        return True
    return hidden.holds(data.decode("utf-8", "replace"))


def safe_name(name: str) -> str:
    """A file's name that no shell, header or reader mistakes for something else; empty where nothing is left."""
    shown = "".join(c if c.isprintable() and c not in '/\\:*?"<>|' else "_" for c in plain(name))
    return shown.strip(" .")[-LONGEST_NAME:]
