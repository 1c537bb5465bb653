"""Notes on a run, as its pages show them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.urls import reverse

from runs.models import Note, Run
from runs.pages.paging import paging

Context = dict[str, Any]
SHOWN: Final = 5  #: on the run page
PAGE: Final = 50


def newest(run: Run, told: Callable[[str], str]) -> Context:
    """The newest notes for the run page. `told` gives a text as the reader may see it."""
    found = list(_notes(run)[: SHOWN + 1])
    return {
        "notes": [row(note, told) for note in found[:SHOWN]],
        "more_notes": len(found) > SHOWN,
        "notes_url": reverse("run-notes", args=[run.pk]),
    }


def page(run: Run, told: Callable[[str], str], number: int) -> Context:
    """One page of all notes, the newest first."""
    total = Note.objects.filter(run=run).count()
    pages = max(1, -(-total // PAGE))
    number = min(number, pages)
    shown = _notes(run)[(number - 1) * PAGE : number * PAGE]
    places = paging(number, pages, lambda n: f"?page={n}")
    return {"notes": [row(note, told) for note in shown], "total": total, "paging": places}


def _notes(run: Run) -> Any:
    return Note.objects.filter(run=run).select_related("person").order_by("-at", "-pk")


def row(note: Note, told: Callable[[str], str]) -> Context:
    """One note, as parts/notes.html shows it."""
    return {"id": note.pk, "by": note.person.shown_name, "at": note.at, "text": told(note.text)}
