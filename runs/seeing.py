"""The border: what a person is shown of a run, who may not see its sensitive values.

Every page, file and search takes a run's log, state and rows from here. Beside that, `console_page` looks through each
answer once more for the hidden texts of the runs that were opened for it, so that a page that forgot shows none.
Commands of the machine's operator and checkpoints are not on this side: they hold the values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial

from django.utils.html import escape
from django.utils.translation import gettext as _
from msgspec.structs import replace

from accounts.models import User
from accounts.rights import Right, why_not
from runs import artifacts
from runs.access import permits
from runs.ledger import LogUnreadable, log
from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.canonical import round_suffix
from runs.machine.evolve import reduce
from runs.machine.hidden import NAMES_SOME, Hidden
from runs.models import Event, Run

#: Shorter texts, and words, are not looked for in whole answers, where they could be part of anything.
SWEPT = 8
#: Sequence number, type, version and stored body of an event, and what of the body is shown.
type Body = Callable[[int, str, int, str | None], str | None]
_opened: ContextVar[list[Hidden] | None] = ContextVar("handoff_hidden", default=None)


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A run as one person may see it; `hidden` None: all of it. `whole` is the state with its values, for no page."""

    log: tuple[e.Recorded, ...]
    state: s.RunState
    whole: s.RunState
    hidden: Hidden | None


def mark(number: int = 0) -> str:
    """What stands for a value that is hidden. The same number in a run: the same value."""
    facts = {"number": number, "right": Right.SEE_VALUES.label}
    if not number:
        return _("hidden: takes the right “%(right)s”") % facts
    return _("hidden (%(number)d): takes the right “%(right)s”") % facts


def sees_values(person: User, run: Run) -> bool:
    """Whether the person may see the sensitive values of the run, now."""
    return why_not(person, Right.SEE_VALUES, run) is None


def hidden_in(run: Run, recorded: Iterable[e.Recorded]) -> Hidden | None:
    """What the log hides from whoever may not see its values; None where that is nothing."""

    def fetch(hash_: str) -> str | None:
        try:
            return artifacts.get(run.tenant_id, hash_).decode()
        except (artifacts.ArtifactUnreadable, UnicodeDecodeError):
            return None

    found = Hidden.of(recorded, mark=mark, fetch=fetch)
    if found is not None and (opened := _opened.get()) is not None:
        opened.append(found)
    return found


def hidden_from(person: User, run: Run) -> Hidden | None:
    """What of the run is hidden from this person; nothing of a log that cannot be read, which `bodies` hides whole."""
    if sees_values(person, run):
        return None
    try:
        return hidden_in(run, tuple(log(run.pk)))
    except LogUnreadable:
        return None


def texts(person: User, run: Run) -> Callable[[str], str]:
    """What people wrote beside the run's log, as this person may see it; nothing of it where `bodies` shows nothing."""
    if sees_values(person, run):
        return str
    try:
        hidden = hidden_in(run, tuple(log(run.pk)))
    except LogUnreadable:
        return (lambda _text: mark()) if _names_some(run) else str
    return hidden.text if hidden else str


def _names_some(run: Run) -> bool:
    return Event.objects.filter(run_id=run.pk, body__contains=NAMES_SOME).exists()


def bodies(person: User, run: Run) -> Body:
    """Stored bodies as this person may see them. Where a log that names sensitive values cannot be read, none of it."""
    if sees_values(person, run):
        return _as_stored
    try:
        recorded = tuple(log(run.pk))
    except LogUnreadable:
        return (
            (lambda _seq, _type, _version, _body: json.dumps(mark(), ensure_ascii=False))
            if _names_some(run)
            else _as_stored
        )
    hidden = hidden_in(run, recorded)
    return partial(_marked, hidden) if hidden else _as_stored


def _as_stored(_seq: int, _type: str, _version: int, body: str | None) -> str | None:
    return body


def _marked(hidden: Hidden, seq: int, type_: str, version: int, body: str | None) -> str | None:
    return None if body is None else hidden.body(e.decode(seq=seq, type_=type_, version=version, body=body))


def shown(run: Run, recorded: tuple[e.Recorded, ...], *, sees: bool) -> Shown:
    """The log and the state that it amounts to, with marks for what is hidden unless the person `sees` values."""
    state = reduce(recorded)
    hidden = None if sees else hidden_in(run, recorded)
    if hidden is None:
        return Shown(log=recorded, state=state, whole=state, hidden=None)
    marked = tuple(map(hidden.event, recorded))
    return Shown(log=marked, state=_as_digested(reduce(marked), state), whole=state, hidden=hidden)


def _as_digested(marked: s.RunState, true: s.RunState) -> s.RunState:
    """The marked state with what digests and keys are made of as it is, since these are shown.

    No page shows the text of a plan's document itself.
    """
    plans = tuple(
        replace(plan, document=known.document) for plan, known in zip(marked.plans, true.plans, strict=True)
    )
    return replace(marked, plans=plans, keys={**marked.keys, **_keys(true)})


def _keys(state: s.RunState) -> dict[str, str]:
    """The key of each planned operation whose arguments are hidden, by the real ones; a mark where plans differ."""
    found: dict[str, str] = {}
    for plan in state.plans:
        for step in (x for x in plan.plan.steps if x.wait is None and not x.late):
            operation = f"{step.system} {round_suffix(step.operation_id, state.round_of(step))}"
            key = decide.key_of(state, step)
            found[operation] = key if found.get(operation, key) == key else mark()
    return found


def not_seen(person: User, run_ids: Iterable[str]) -> set[str]:
    """Those of the runs whose sensitive values this person may not see."""
    asked = set(run_ids)
    seen = Run.objects.filter(permits(person, Right.SEE_VALUES), pk__in=asked)
    return asked - set(seen.values_list("pk", flat=True)) if asked else asked


def hidden_rows(run_ids: Iterable[str]) -> dict[str, Hidden]:
    """What is to be hidden in rows about these runs, which a person may not see whole; only runs that hide anything."""
    closed = set(run_ids)
    if not closed:
        return {}
    named = Event.objects.filter(run_id__in=closed, body__contains=NAMES_SOME)
    runs = Run.objects.filter(pk__in=named.values_list("run_id", flat=True).distinct())
    return {run.pk: found for run in runs if (found := _readable(run))}


def _readable(run: Run) -> Hidden | None:
    try:
        return hidden_in(run, tuple(log(run.pk)))
    except LogUnreadable:
        return None


@contextmanager
def sweeping() -> Iterator[Callable[[str], str]]:
    """While an answer is made: gives what takes the hidden texts of all runs opened meanwhile out of its text."""
    opened: list[Hidden] = []
    token = _opened.set(opened)
    try:
        yield lambda text: _swept(text, opened)
    finally:
        _opened.reset(token)


def _swept(text: str, opened: Sequence[Hidden]) -> str:
    for hidden in opened:
        ways = {way for x in hidden.texts() if _telling(x) for way in (x, escape(x))}
        if ways:
            pattern = "|".join(re.escape(way) for way in sorted(ways, key=len, reverse=True))
            text = re.sub(pattern, mark(), text)
    return text


def _telling(text: str) -> bool:
    """Whether the text is no part of something else by chance."""
    return len(text) >= SWEPT and not text.isalpha() and not (text.isdecimal() and len(text) < SWEPT + 2)
