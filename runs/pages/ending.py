"""The end of a run in words: who asked for it, what it waits for, and who keeps what is still owed after it."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.machine import events as e
from runs.machine import state as s
from runs.machine.decide import gone_on
from runs.pages import owed, words


def open_names(state: s.RunState) -> str:
    """The effects in flight or unknown by number, for use inside a sentence."""
    return words.joined([f"E-{effect.number}" for effect in state.open_effects])


def waits(state: s.RunState) -> str:
    """What a cancel waits for; empty where it waits for nothing."""
    names = open_names(state)
    return _("It waits until %(effects)s is settled.") % {"effects": names} if names else ""


def would_wait(state: s.RunState) -> str:
    """What asking for the end would not do now; empty where nothing is open or it was asked for already."""
    names = open_names(state)
    if not names or state.cancel_requested:
        return ""
    return _("Ending the run now does not settle %(effects)s: it would wait for it.") % {"effects": names}


def owes(state: s.RunState) -> bool:
    """Whether the run is over with something promised that nobody but a person keeps."""
    return state.state in s.TERMINAL and any(not gone_on(state, o) for o in state.open_obligations)


def kept_by(state: s.RunState) -> str:
    """Who keeps what is owed, and where it stands until it is done."""
    owners = dict.fromkeys(owed.owner(state, o) for o in state.open_obligations)
    facts = {"names": words.joined(list(owners))}
    return _("Owner: %(names)s. It stays listed here and in the inbox until it is done.") % facts


def asked(log: Iterable[e.Recorded], state: s.RunState) -> str:
    """Who asked for the end of a run that has not ended, when, and what it waits for; else empty."""
    found = next((r for r in log if isinstance(r.event, e.CancelRequested)), None)
    if found is None or not isinstance(found.event, e.CancelRequested) or state.state in s.TERMINAL:
        return ""
    facts = {"name": found.actor.name, "at": words.moment(found.at), "note": found.event.note}
    said = (
        _("%(name)s asked for the end of this run at %(at)s: “%(note)s”.") % facts
        if found.event.note
        else _("%(name)s asked for the end of this run at %(at)s.") % facts
    )
    if found.event.undo:
        said = _("%(said)s What it did and can be undone is undone first.") % {"said": said}
    return " ".join(filter(None, (said, waits(state) or _on_the_way(state))))


def _on_the_way(state: s.RunState) -> str:
    """What stands between the run and its end, where nothing is in flight or unknown."""
    if state.open_children:
        runs = [x.run for x in state.open_children]
        text = ngettext(
            "It waits until %(runs)s has ended.", "It waits until %(runs)s have ended.", len(runs)
        )
        return text % {"runs": words.joined(runs)}
    match state.state:
        case s.State.WAITING_APPROVAL if state.undoing:
            return _("The plan for that waits for approval.")
        case s.State.NEEDS_HUMAN:
            return _("A person has to decide first.") if state.undoing else _("A worker ends it now.")
        case _ if state.undo_requested:
            return _("A worker does that now.")
        case _:
            return _("A worker ends it now.")
