"""The forms about what a run owes: to write it down, to state that it is done, to hand it on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from accounts.rights import Right
from runs.machine import decide
from runs.machine import state as s
from runs.machine.events import ObligationOpened
from runs.machine.transitions import allows
from runs.models import Run
from runs.pages import owed as rows
from runs.pages import words
from runs.pages.run_page import Reader, heading
from runs.pages.stopping import may

Context = dict[str, Any]

#: Why what was sent about an obligation cannot be recorded: (the field, what is missing).
CONDITIONS: Final[dict[str, tuple[str, words.Words]]] = {
    "how_missing": ("how", gettext_lazy("Enter how it was established that this is done.")),
    "reference_missing": ("reference", gettext_lazy("Enter the reference of a proof that this is done.")),
    "owner_may_not": (
        "owner",
        gettext_lazy("This person may do nothing about it here. Choose one of those who are listed."),
    ),
    "same_owner": ("owner", gettext_lazy("This person keeps it already. Choose somebody else.")),
    "due_over": ("due", gettext_lazy("This time is over. Enter one to come, or leave the field empty.")),
}


def why(condition: str) -> tuple[str, str]:
    """The field that a condition is about, and what it asks for."""
    field, text = CONDITIONS[condition]
    return field, str(text)


def add(run: Run, state: s.RunState, reader: Reader, people: Sequence[User]) -> Context:
    """All of runs/obligation_add.html but what a sent form adds. `people` can own it."""
    return {
        "run": heading(run, state),
        "over": ""
        if allows(state.state, ObligationOpened)
        else _("The run is over: nothing can be added to what it owes."),
        "owners": _options(people),
        "steps": [{"value": x.name, "label": x.title or x.name} for x in state.remaining if x.wait is None],
        **may("may_add", Right.OPERATE_RUNS, reader),
        "values": {"owner": str(reader.person.pk)},
        "errors": [],
    }


def attest(run: Run, state: s.RunState, owed: s.Obligation, reader: Reader) -> Context:
    """All of runs/obligation_attest.html but what a sent form adds."""
    return {**_about(run, state, owed, reader), **may("may_attest", Right.ATTEST_EFFECTS, reader)}


def hand_on(
    run: Run, state: s.RunState, owed: s.Obligation, reader: Reader, people: Sequence[User]
) -> Context:
    """All of runs/obligation_hand_on.html but what a sent form adds. `people` can own it."""
    others = [p for p in people if owed.owner is None or str(p.pk) != owed.owner.id]
    return {
        **_about(run, state, owed, reader),
        "owners": _options(others),
        **may("may_hand_on", Right.OPERATE_RUNS, reader),
    }


def _about(run: Run, state: s.RunState, owed: s.Obligation, reader: Reader) -> Context:
    return {
        "run": heading(run, state),
        "obligation": rows.row(state, owed, reader.now, reader.mine),
        "over": "" if decide.owed(state, owed.number) else _settled(state, owed),
        "values": {},
        "errors": [],
    }


def _settled(state: s.RunState, owed: s.Obligation) -> str:
    facts = {"id": f"B-{owed.number}", "note": rows.note(state, owed)}
    return _("%(id)s is not owed here any more: %(note)s.") % facts


def _options(people: Sequence[User]) -> list[dict[str, str]]:
    return [{"value": str(p.pk), "label": p.shown_name} for p in people]
