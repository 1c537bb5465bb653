"""Who works on a run, as its pages say it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import User
from runs.actions import ASSIGNING
from runs.machine.decide import ConclusionRefused
from runs.models import Run, Working
from runs.pages.run_page import Reader
from runs.working import Workers

Context = dict[str, Any]


def on_run(found: Workers, run: Run, person: User, reader: Reader | None) -> Context:
    """The `working` of parts/working.html. `reader` is None where nobody can say who may do what."""
    claim = found.claim
    return {
        "working": {
            "claim": {**who(claim), "mine": claim.person_id == person.pk} if claim else None,
            "assigned": _assigned(found.assignment, reader),
            "claim_url": reverse("run-claim", args=[run.pk]),
            "assign_url": reverse("run-assign", args=[run.pk]) if reader is None or _may(reader) else "",
        }
    }


def who(row: Working) -> Context:
    """The person, and when they last did something about the run."""
    return {"name": row.person.shown_name, "at": row.active_at}


def another(claim: Working) -> Context:
    """The `claimed` of parts/claimed.html."""
    return {"claimed": {**who(claim), "notes_url": reverse("run-notes", args=[claim.run_id])}}


def _assigned(row: Working | None, reader: Reader | None) -> Context | None:
    if row is None:
        return None
    able = reader is None or any(row.person in reader.holders[right] for right in ASSIGNING)
    return {"name": row.person.shown_name, "by": row.by.shown_name, "at": row.at, "able": able}


def _may(reader: Reader) -> bool:
    return not reader.mine.isdisjoint(ASSIGNING)


NOBODY = "nobody"


def choices(people: Sequence[User]) -> list[dict[str, str]]:
    """To whom a run can be assigned, as options of a select; nobody is one of them."""
    found = [{"value": str(person.pk), "label": person.shown_name} for person in people]
    return [*found, {"value": NOBODY, "label": _("Nobody")}]


def cannot(error: ConclusionRefused) -> str:
    """Why a run is not assigned like that."""
    assert error.condition == "assignee_may_not"
    return _("This person may neither operate nor approve here. Choose one of those who are listed.")
