"""An approval stands for the plan, the arguments and the round that were seen, and for nothing else."""

from __future__ import annotations

import json

from msgspec.structs import replace

from approvals.models import Request
from runs.actions import person_actor, write
from runs.binding import changed
from runs.clock import database_now
from runs.engine import terms_of
from runs.host import sender
from runs.ledger import load
from runs.machine import events as e
from runs.machine.canonical import canonical
from runs.machine.decide import key_of, next_send
from runs.machine.revalidate import Facts, Person, report
from runs.machine.state import RequestStatus, State
from runs.machine.transitions import Decision
from tests.outside import PAYER, World
from tests.people import House, advance
from tests.runs.scripted import Script, pay, plan

CAUSE = e.Cause(what="rounds", subject="pay:2000", was="0", now="1")


def test_an_approval_does_not_cover_a_retry_in_a_new_round(house: House, world: World) -> None:
    """The retry has another key: people are asked anew, about that round, before anything is sent."""
    world.answers = ["refused"]
    run = house.approved()
    advance(run)
    house.choose(run, Decision.RETRY)

    state = advance(run)

    assert state.state is State.WAITING_APPROVAL
    assert world.calls == ["pay:2000"]
    voided, asked = state.requests
    assert (voided.status, voided.causes) == (RequestStatus.VOIDED, (CAUSE,))
    assert e.value_of(e.raw(asked.conditions))["rounds"] == {"pay:2000": 1}
    assert voided.conditions_digest != asked.conditions_digest

    shown = key_of(state, state.remaining[0])
    house.decide(run, house.approver)
    state = advance(run)
    assert state.state is State.SUCCEEDED
    assert world.calls == ["pay:2000", "pay:2000#1", "tell:2000"]
    assert shown == state.effects[2].key != state.effects[1].key


def test_a_send_in_a_round_that_nobody_approved_is_not_made(house: House, world: World) -> None:
    """Also where all checks had passed just before the round was raised: the decision to send yields nothing."""
    world.answers = ["refused"]
    run = house.approved()
    advance(run)
    state = house.choose(run, Decision.RETRY)
    assert state.state is State.EXECUTING
    tool = PAYER.writing("pay")
    sent = next_send(state, terms=terms_of(tool), account=tool.account, sender=sender(), now=database_now())
    assert sent == ()


def test_a_request_for_a_round_that_is_over_ends_and_people_are_asked_about_the_one_to_come(
    house: House,
) -> None:
    """People found that what an earlier run did had not happened, while the plan of this one waited."""
    run = house.waiting()
    lost = e.InheritedLost(run="run_0", effect=1, operation="bank pay:2000", round=0, steps=())
    write(load(run.pk), [lost], run=run, actor=person_actor(house.operator), now=database_now())
    assert {c.what for c in changed(load(run.pk), Request.objects.get(), PAYER)} == {"rounds.pay:2000"}

    state = advance(run)

    assert state.state is State.WAITING_APPROVAL
    assert [(r.status, r.causes) for r in state.requests] == [
        (RequestStatus.VOIDED, (CAUSE,)),
        (RequestStatus.PENDING, ()),
    ]
    house.decide(run, house.approver)
    assert advance(run).effects[1].operation_id == "pay:2000#1"


def test_a_call_that_only_wrote_its_keys_in_another_order_is_the_same_plan(
    house: House, script: Script
) -> None:
    """Same arguments, another order of their keys and another way to say it: one digest."""
    turned = pay()
    turned = type(turned)(
        name=turned.name, tool=turned.tool, arguments=dict(reversed(list(turned.arguments.items())))
    )
    script.needed = 1
    script.proposals = [plan(pay(), claim="one"), plan(turned, claim="two")]
    first, second = house.start(), house.start()
    documents = []
    for run in (first, second):
        advance(run)
        made = load(run.pk).plan
        assert made is not None
        documents.append(made.document.replace(run.pk, "run"))
    assert documents[0] == documents[1]


def test_an_approval_of_one_run_covers_no_other_run_with_the_same_plan(house: House, script: Script) -> None:
    script.needed = 1
    first, second = house.start(), house.start()
    advance(first)
    advance(second)
    house.decide(first, house.approver)
    assert advance(first).state is State.SUCCEEDED
    assert advance(second).state is State.WAITING_APPROVAL


def test_each_value_that_a_request_is_bound_to_is_compared_and_named(house: House) -> None:
    """Whatever differs from what is true now is told by its name, from what to what."""
    run = house.waiting()
    state, request = load(run.pk), Request.objects.get()
    assert changed(state, request, PAYER) == ()
    bound = json.loads(request.conditions)
    for name, value in bound.items():
        request.conditions = canonical(bound | {name: _other(value)})
        found = {change.what.split(".")[0] for change in changed(state, request, PAYER)}
        assert found == {name, "conditions_digest"}


def _other(value: object) -> object:
    match value:
        case dict():
            return {**value, "more": "1"}
        case list():
            return [*value, "1"]
        case int():
            return value + 1
        case _:
            return f"{value}1"


def test_one_byte_anywhere_in_the_plan_is_another_plan(house: House) -> None:
    """The digest that people decided on is of the very text that executes: no byte of it can change unseen."""
    run = house.waiting()
    state, request = load(run.pk), Request.objects.get()
    kept = state.plans[-1]
    for place in range(0, len(kept.document), 97):
        turned = chr(ord(kept.document[place]) ^ 1)
        text = kept.document[:place] + turned + kept.document[place + 1 :]
        other = replace(state, plans=(replace(kept, document=text),))
        assert next(c.what for c in changed(other, request, PAYER)) == "digest"
        assert not next(c for c in report(other, _FACTS, state.at) if c.name == "plan").passed


_FACTS = Facts(principal=Person(id="p", name="P"))
