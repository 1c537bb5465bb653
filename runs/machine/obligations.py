"""What is owed: how obligations open, pass to another owner and are discharged. Used by `evolve`.

Whoever opens one, a plan, a tool's receipt or a person, it is discharged by a receipt or an attestation, and by nothing
else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from runs.machine import events as e
from runs.machine import state as s

if TYPE_CHECKING:
    from collections.abc import Callable

    from runs.machine.draft import Draft

#: The reason that is over once nothing is owed any more.
REASON: Final = "obligation_open"


def taken_over(event: e.RunStarted, recorded: e.Recorded) -> tuple[s.Obligation, ...]:
    """Those that the run before left open."""
    return tuple(
        s.Obligation(
            number=n, text=x.text, by=x.by, opened_seq=recorded.seq, opened_at=recorded.at, due_at=x.due_at, to=x.to,
            source=x.source, owner=x.owner, overdue_seq=recorded.seq if x.overdue else None,
        )
        for n, x in enumerate(event.obligations, 1)
    )  # fmt: skip


def carried_on(state: s.RunState) -> tuple[e.Owed, ...]:
    """Those that a successor takes over."""
    return tuple(
        e.Owed(
            text=x.text, by=x.by, due_at=x.due_at, to=x.to, source=x.source, owner=x.owner,
            overdue=x.overdue_seq is not None,
        )
        for x in state.open_obligations
    )  # fmt: skip


def promised(draft: Draft, effect: int, promises: tuple[e.Promised, ...], recorded: e.Recorded) -> None:
    """What came with a receipt opens, unless the same is owed already."""
    owed = {(o.text, o.to) for o in draft.obligations if o.open and o.source == s.Source.TOOL}
    for promise in promises:
        if (promise.text, promise.to) not in owed:
            draft.obligations += (_of_tool(draft, effect, promise, recorded),)


def _of_tool(draft: Draft, effect: int, promise: e.Promised, recorded: e.Recorded) -> s.Obligation:
    return s.Obligation(
        number=len(draft.obligations) + 1, text=promise.text, by="", opened_seq=recorded.seq, opened_at=recorded.at,
        due_at=recorded.at + promise.due if promise.due else None, to=promise.to, source=s.Source.TOOL, effect=effect,
    )  # fmt: skip


def _opened(draft: Draft, event: e.ObligationOpened, recorded: e.Recorded) -> None:
    draft.obligations += (
        s.Obligation(
            number=len(draft.obligations) + 1, text=event.text, by=event.by, opened_seq=recorded.seq,
            opened_at=recorded.at, due_at=event.due_at, to=event.to, source=s.Source.PERSON, owner=event.owner,
        ),
    )  # fmt: skip


def _attested(draft: Draft, event: e.ObligationAttested, recorded: e.Recorded) -> None:
    """It is done. Where that was all that kept a run from its end, the run goes on."""
    said = s.Discharge(
        person=event.person,
        name=recorded.actor.name,
        how=event.how,
        reference=event.reference,
        at=recorded.at,
    )
    _change(draft, event.obligation, discharged_seq=recorded.seq, attested=said)
    if not any(o.open for o in draft.obligations):
        draft.reasons = tuple(r for r in draft.reasons if r.code != REASON)


def _handed_on(draft: Draft, event: e.ObligationHandedOn, recorded: e.Recorded) -> None:
    _change(draft, event.obligation, owner=event.owner)


def _overdue(draft: Draft, event: e.ObligationOverdue, recorded: e.Recorded) -> None:
    _change(draft, event.obligation, overdue_seq=recorded.seq)


def handed_over(draft: Draft, event: e.RunCancelled) -> None:
    """The run ended before its goal: a person keeps what it owes. Who keeps one already goes on keeping it."""
    draft.obligations = tuple(
        replace(o, handed_over=True, owner=o.owner or event.owner) if o.number in event.obligations else o
        for o in draft.obligations
    )


def _change(draft: Draft, number: int, **parts: Any) -> None:
    draft.obligations = tuple(replace(o, **parts) if o.number == number else o for o in draft.obligations)


HANDLERS: dict[type[e.Event], Callable[[Draft, Any, e.Recorded], None]] = {
    e.ObligationOpened: _opened,
    e.ObligationAttested: _attested,
    e.ObligationHandedOn: _handed_on,
    e.ObligationOverdue: _overdue,
}
