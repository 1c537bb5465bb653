"""What taking a run in from its checkpoint does: its state is made again, as what somebody else wrote about it.

The run may have gone on after the checkpoint. So what was in flight is unknown, nothing is sent for the first time
before the outside was asked, and no approval counts. Used by `evolve`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from runs.machine import checkpoint
from runs.machine import events as e
from runs.machine import state as s

if TYPE_CHECKING:
    from runs.machine.draft import Draft

DETAIL: Final = "it was in flight when the checkpoint was written"
CAUSE: Final = "taken_in"


def taken_in(draft: Draft, event: e.RunTakenIn, recorded: e.Recorded) -> None:
    """All parts of the state, from the document of the event."""
    state = checkpoint.restored(checkpoint.read(e.text_of(event.checkpoint)))
    for name in s.RunState.__struct_fields__:
        setattr(draft, name, getattr(state, name))
    draft.started = True
    draft.seq, draft.at = recorded.seq, recorded.at
    draft.taken_in = s.TakenIn(seq=event.seq, head=event.head, digest=event.digest, at=recorded.at)
    # Grants belong to the database that they were made in: here only what was lent here counts.
    draft.lendings, draft.checked = (), None
    draft.projected = event.projected
    if event.lent:
        draft.lendings = (s.Lending(lent=event.lent, seq=recorded.seq, at=recorded.at),)
    draft.identity = replace(state.identity, tenant=event.tenant, principal=event.principal)
    if state.state in s.TERMINAL:
        return
    draft.history_lost, draft.returned_seq, draft.retry_at = True, recorded.seq, None
    draft.requests = tuple(_void(x, recorded) for x in state.requests)
    _ask_first(draft, recorded)


def _void(request: s.Request, recorded: e.Recorded) -> s.Request:
    if request.status not in s.OPEN_REQUEST:
        return request
    cause = e.Cause(what=CAUSE, subject="", was="", now="")
    return replace(
        request,
        status=s.RequestStatus.VOIDED,
        causes=(cause,),
        closed_seq=recorded.seq,
        closed_at=recorded.at,
    )


def _ask_first(draft: Draft, recorded: e.Recorded) -> None:
    """What is open is asked about before anything else, whatever the run was about to do."""
    for number, effect in draft.effects.items():
        if effect.status is s.EffectStatus.IN_FLIGHT:
            draft.effects[number] = _unknown(effect, recorded)
    is_open = any(x.status in s.OPEN_EFFECT for x in draft.effects.values())
    if is_open and draft.state not in (s.State.UNKNOWN, s.State.NEEDS_HUMAN):
        draft.before, draft.state, draft.since = draft.state, s.State.UNKNOWN, recorded.at


def _unknown(effect: s.Effect, recorded: e.Recorded) -> s.Effect:
    return replace(
        effect, status=s.EffectStatus.UNKNOWN, unknown_since=recorded.at, unknown_detail=DETAIL,
        next_ask_at=recorded.at,
    )  # fmt: skip
