"""The checkpoint: all of a state, and what may still come; taking it in changes only what must."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from runs.machine import checkpoint, checkpointing, decide
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.canonical import canonical, parse
from runs.machine.checkpoint import GROUPS, CheckpointRefused, fields_of
from runs.machine.evolve import evolve, reduce
from runs.machine.projection import PROJECTED
from runs.machine.safety import Action, next_safe_action
from tests.machine.lives import LIVES, OPERATOR, SENDER, TERMS, unknown

cuts = st.sampled_from(sorted(LIVES)).flatmap(
    lambda name: st.integers(1, len(LIVES[name]().log)).map(lambda seq: (name, seq))
)
HEAD = "ab" * 32


def written(state: s.RunState) -> str:
    return checkpoint.text_of(
        checkpointing.document(state, head=HEAD, schema=1, evidence={}, started={"run_C": "d"})
    )


def taken_in(state: s.RunState) -> s.RunState:
    text = written(state)
    event = e.RunTakenIn(
        projected=PROJECTED,
        run=state.identity.run, tenant="t2", principal="p2", seq=state.seq, head=HEAD,
        digest=checkpoint.digest_of(text), checkpoint=e.raw(text),
    )  # fmt: skip
    return evolve(None, e.Recorded(state.seq + 1, state.at, OPERATOR, event))


def cut_at(name: s.State, seq: int) -> s.RunState:
    return reduce(LIVES[name]().log[:seq])


def test_every_part_of_the_state_stands_in_one_group() -> None:
    names = [name for group in GROUPS for name in fields_of(group)]
    assert sorted(names) == sorted(s.RunState.__struct_fields__)


@given(cuts)
def test_the_state_is_made_again_from_the_document_alone(cut: tuple[s.State, int]) -> None:
    state = cut_at(*cut)
    text = written(state)
    again = checkpoint.restored(checkpoint.read(text))
    assert again == state
    assert list(again.effects) == list(state.effects) and list(again.waits) == list(state.waits)
    assert canonical(parse(text)) == text


@given(cuts)
def test_a_checkpoint_of_what_was_taken_in_differs_only_where_it_must(cut: tuple[s.State, int]) -> None:
    state = cut_at(*cut)
    before, after = parse(written(state)), parse(written(taken_in(state)))
    over = state.state in s.TERMINAL
    moved = {
        "seq", "identity.identity.tenant", "identity.identity.principal", "governance.authority.principal",
        "position.seq", "position.taken_in", "position.projected",
    }  # fmt: skip
    if not over:
        moved |= {"position.history_lost", "position.returned_seq", "position.retry_at"}
    if state.open_effects:
        moved |= {"position.state", "position.before", "position.since", "actions.effects", "actions.open"}
    if state.request and state.request.status in s.OPEN_REQUEST:
        moved |= {"governance.requests", "governance.authority.approval_status"}
    assert differing(before, after) <= moved


def differing(a: Any, b: Any, path: str = "") -> set[str]:
    """Where two documents differ, at most three names deep."""
    if a == b:
        return set()
    if not (isinstance(a, dict) and isinstance(b, dict)) or path.count(".") == 2 or path in DEEP:
        return {path}
    names = a.keys() | b.keys()
    return set().union(*(differing(a.get(n), b.get(n), f"{path}.{n}".lstrip(".")) for n in names))


DEEP = {"actions.effects", "position.taken_in"}


@given(cuts)
def test_what_may_still_come_is_named_with_the_key_it_will_carry(cut: tuple[s.State, int]) -> None:
    name, seq = cut
    state = cut_at(name, seq)
    coming = {x.key: x.operation_id for x in checkpoint.read(written(state)).actions.may_send}
    later = [r.event for r in LIVES[name]().log[seq:] if isinstance(r.event, e.EffectIntended)]
    sent = {x.key: x.operation_id for x in later if state.plan and x.plan_version == state.plan.version}
    assert sent.items() <= coming.items()


@given(cuts)
def test_nothing_is_sent_or_approved_before_it_was_asked_about(cut: tuple[s.State, int]) -> None:
    before = cut_at(*cut)
    state = taken_in(before)
    if before.state in s.TERMINAL:
        assert state.state is before.state
        return
    assert state.history_lost
    assert not any(x.status is s.EffectStatus.IN_FLIGHT for x in state.effects.values())
    assert not any(x.status in s.OPEN_REQUEST for x in state.requests)
    if state.open_effects:
        assert state.state in (s.State.UNKNOWN, s.State.NEEDS_HUMAN)
        assert next_safe_action(state).action in (Action.ASK, Action.RESEND, Action.RECONCILE)
        assert "send_again" in next_safe_action(state).not_safe


@pytest.mark.parametrize("format_", ["handoff-checkpoint/2", "something else", 7])
def test_another_format_is_refused_by_name(format_: object) -> None:
    text = written(cut_at(sorted(LIVES)[0], 1))
    other = canonical({**parse(text), "format": format_})
    with pytest.raises(CheckpointRefused, match="handoff-checkpoint/1"):
        checkpoint.read(other)


def test_a_part_that_is_missing_is_named() -> None:
    text = written(cut_at(sorted(LIVES)[0], 1))
    whole = parse(text)
    del whole["governance"]["constraints"]
    with pytest.raises(CheckpointRefused, match="constraints"):
        checkpoint.read(canonical(whole))


@pytest.mark.parametrize("queryable", [True, False])
def test_what_did_not_happen_until_then_is_asked_about_before_it_is_sent_again(queryable: bool) -> None:
    """The run may have sent it again after its checkpoint was written."""
    life = unknown()
    life.take(e.EffectReconciled(effect=life.effect.number, happened=False, asked=1, reference="", note=""))
    terms = replace(TERMS, queryable=queryable)
    effects = {n: replace(x, terms=terms) for n, x in life.state.effects.items()}
    state = taken_in(replace(life.state, effects=effects))
    for lost, expected in ((False, [e.EffectSent]), (True, [e.EffectSent, e.OutcomeUnknown])):
        sent = decide.next_send(
            replace(state, history_lost=lost), terms=terms, account="acct", sender=SENDER, now=life.at
        )
        assert [type(x) for x in sent] == (expected if queryable or not lost else [e.HumanNeeded])
