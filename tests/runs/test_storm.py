"""Lives made by chance: faults, people and deaths in any order. Whatever happened, each effect happened once.

A storm is a number, so that one that breaks something can be had again: `storm(number)`.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from accounts.models import User
from accounts.rights import Right, grant_right, withdraw_right
from approvals.models import Request, Verdict
from approvals.outcomes import ApprovalError
from runs import actions, agents, engine, recovery
from runs.clock import database_now
from runs.ledger import load
from runs.machine.decide import ConclusionRefused
from runs.machine.safety import Action, next_safe_action
from runs.machine.state import Effect, EffectStatus, RunState, State
from runs.machine.transitions import Decision, Refused
from runs.models import CLOSED, Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House, assert_replays
from tests.runs.invariants import assert_nothing_waits_for_nothing

#: The tools that a storm's first effect is made with, by what can be known of them.
KINDS = ("pay", "pay", "pay_by_key", "pay_blind", "pay_once")


class Died(BaseException):
    """The worker is gone: nothing in this process may catch it."""


class Storm:
    """One run (and its successors) in bad weather."""

    def __init__(self, number: int, house: House, world: World, clock: Clock) -> None:
        self.dice, self.order = random.Random(number), f"order-{number}"
        self.house, self.world, self.clock = house, world, clock
        tool, amount = KINDS[number % len(KINDS)], self.dice.choice(["50.00", "250.00"])
        plans = self._plans(tool, amount)
        more: dict[str, Any] = {"plans": plans} if number % 3 == 1 else {}
        self.run = house.start(self.order, amount, tool=tool, **more)
        for person in (house.operator, house.second):
            grant_right(
                to=person, right=Right.ATTEST_EFFECTS, obj=house.agent, actor=None, now=database_now()
            )
        self.did: list[str] = []

    def _plans(self, tool: str, amount: str) -> list[list[dict[str, Any]]]:
        """The same effects with waits between them, and one by a run that is started for it."""
        pay, tell, give = (
            {"tool": x, "order": self.order, "amount": amount} for x in (tool, "tell", "give_dear")
        )
        part = {"plans": [[give, {"timer": 1}]]}
        return [[pay, {"timer": 1}, {"signal": "go"}, {"children": {"part": part}}, tell, {"signal": "end"}]]

    @property
    def state(self) -> RunState:
        return load(self.run.pk)

    def open_runs(self) -> list[Run]:
        """The run, its successor, and those that they started, as far as they go on."""
        return list(
            Run.objects.filter(lineage=self.run.lineage).exclude(state__in=CLOSED).order_by("created_at")
        )

    def blow(self, moves: int) -> None:
        for _ in range(moves):
            self.run = self.dice.choice(self.open_runs() or [self.run])
            move = self.dice.choice(self._moves())
            self.did.append(move.__name__)
            try:
                move()
            except (Refused, ConclusionRefused, ApprovalError):
                self.did[-1] += " (refused)"
            assert_replays(self.run)
            assert_nothing_waits_for_nothing()

    def _moves(self) -> list[Callable[[], None]]:
        workers = [self.work] * 5 + [self.wait] * 3 + [self.die_before, self.die_after, self.die_after]
        faults = [self.lose, self.refuse, self.silence, self.outage, self.change_order, self.unreadable]
        people = [self.approve] * 3 + [self.reject, self.cancel, self.withdraw, self.renew]
        return [
            *workers,
            *faults,
            *people,
            *[self.decide] * 3,
            *[self.answer] * 2,
            self.ask_and_conclude,
            self.fair,
            self.fair,
            self.restart,
        ]

    def work(self) -> None:
        engine.advance(self.run.pk)

    def wait(self) -> None:
        self.clock.move(timedelta(seconds=self.dice.choice([0.3, 1, 2.5, 4, 9])))

    def _die(self, when: str) -> None:
        def hook(now: str) -> None:
            if now == when:
                self.world.hook = None
                raise Died

        self.world.hook = hook
        try:
            self.work()
        except Died:
            # A process that is gone gives nothing back: the lease it had is still there.
            Run.objects.filter(pk=self.run.pk).update(lease_until=database_now() + timedelta(seconds=2))
        finally:
            self.world.hook = None

    def die_before(self) -> None:
        self._die("before")

    def die_after(self) -> None:
        self._die("after")

    def lose(self) -> None:
        self.world.answers = ["lost"]

    def refuse(self) -> None:
        self.world.answers = ["refused"]

    def silence(self) -> None:
        self.world.answers = ["silent"]

    def outage(self) -> None:
        self.world.outage = "503"

    def unreadable(self) -> None:
        self.world.unreadable = "503"

    def fair(self) -> None:
        self.world.outage = self.world.unreadable = ""

    def change_order(self) -> None:
        self.world.versions[self.order] = f"v{self.dice.randrange(1000)}"

    def approve(self) -> None:
        self._verdict(Verdict.APPROVE)

    def reject(self) -> None:
        self._verdict(self.dice.choice([Verdict.REJECT, Verdict.ASK]))

    def _verdict(self, verdict: Verdict) -> None:
        if Request.objects.filter(subject__startswith=self.run.pk).exists():
            self.house.decide(self.run, self._approver(), verdict)

    def _approver(self) -> User:
        return self.dice.choice([self.house.approver, self.house.second])

    def withdraw(self) -> None:
        person, now = self._approver(), database_now()
        if not withdraw_right(
            to=person, right=Right.APPROVE_PLANS, obj=self.house.agent, actor=None, now=now
        ):
            grant_right(to=person, right=Right.APPROVE_PLANS, obj=self.house.agent, actor=None, now=now)

    def renew(self) -> None:
        actions.renew_request(
            person=self.house.operator, run_id=self.run.pk, request=uuid4(), submission=uuid4()
        )

    def cancel(self) -> None:
        if self.dice.random() < 0.3:
            self.house.cancel(self.run, undo=self.dice.random() < 0.5)

    def answer(self) -> None:
        if wait := self.state.wait:
            self.house.answer(self.run, wait.signal or "early")

    def decide(self) -> None:
        action = next_safe_action(self.state)
        if open_to := [
            d for d in action.decisions if d in (Decision.RESUME, Decision.RETRY, Decision.REPLAN)
        ]:
            self.house.choose(self.run, self.dice.choice(open_to))

    def restart(self) -> None:
        if self.dice.random() < 0.4:
            done = actions.restart_run(
                person=self.house.operator, run_id=self.run.pk, note="anew", submission=uuid4()
            )
            self.run = Run.objects.get(pk=done.run)

    def ask_and_conclude(self) -> None:
        """An operator asks, and records what was said."""
        for effect in self.state.open_effects:
            if not effect.terms.queryable:
                self.attest(effect)
                continue
            tool = agents.registered()[("payer", "1")].writing(effect.tool)
            said, evidence, _ = recovery.ask(effect, tool)
            actions.record_answer(
                person=self.house.operator, run_id=self.run.pk, effect=effect.number, answer=said,
                evidence=evidence, submission=uuid4(),
            )  # fmt: skip
            ask = self.state.effects[effect.number].asks[-1]
            actions.conclude_effect(
                person=self.house.operator, run_id=self.run.pk, effect=effect.number,
                happened=bool(ask.matches), asked=ask.seq, note="as it says", submission=uuid4(),
            )  # fmt: skip

    def attest(self, effect: Effect) -> None:
        """Nobody can be asked: two people find out for themselves, and say what is true."""
        happened = self.world.times(effect.operation_id) > 0
        for person in (self.house.operator, self.house.second):
            if self.state.effects[effect.number].status is EffectStatus.UNKNOWN:
                actions.attest_effect(
                    person=person, run_id=self.run.pk, effect=effect.number, happened=happened,
                    reference="slip 7" if happened else "", how="I rang them", submission=uuid4(),
                    signed_in_at=database_now(),
                )  # fmt: skip

    def calm(self) -> None:
        """The weather is fair and everybody does what the page says; the runs come to their ends."""
        self.fair()
        self.world.answers = []
        for person in (self.house.approver, self.house.second):
            grant_right(
                to=person, right=Right.APPROVE_PLANS, obj=self.house.agent, actor=None, now=database_now()
            )
        end = time.monotonic() + 40
        while time.monotonic() < end:
            for run in self.open_runs():
                self.run = run
                self.work()
                self._as_the_page_says()
            actions.tell_untold(100)
            if not self.open_runs():
                return
            if all(run.state != State.APPROVED for run in self.open_runs()):
                self.clock.move(timedelta(seconds=1))
        raise AssertionError(f"no end: {[(run.state, run.reasons) for run in self.open_runs()]}")

    def _as_the_page_says(self) -> None:
        try:
            match self.state.state:
                case State.WAITING_APPROVAL:
                    if next_safe_action(self.state).action is Action.RENEW:
                        self.renew()
                    self.approve()
                case State.WAITING:
                    self.answer()
                case State.NEEDS_HUMAN:
                    self.ask_and_conclude()
                    self.decide()
                    if next_safe_action(self.state).action is Action.DECIDE:
                        self._stop()
        except (Refused, ConclusionRefused, ApprovalError):
            return

    def _stop(self) -> None:
        """Nothing else goes on: it ends, and where it could not be undone it ends as it is."""
        if self.state.undoing:
            actions.end_run(person=self.house.operator, run_id=self.run.pk, note="", submission=uuid4())
        else:
            self.house.cancel(self.run)

    def once(self) -> None:
        """Each operation was really done at most once, whatever round it took; and a success did all of it."""
        done = Counter(operation.split("#")[0].split("~")[0] for operation, _, _ in self.world.executed)
        for what in ("pay", "tell"):
            times = done[f"{what}:{self.order}"]
            assert times <= 1, f"{what} was done {times} times"
            if self.succeeded():
                assert times == 1
        given = done[f"give_dear:{self.order}"] - done[f"take_back_dear:{self.order}"]
        assert given in (0, 1), f"given and not taken back {given} times"

    def succeeded(self) -> bool:
        """Whether the run, or the successor that it has, did all that it was to do."""
        return Run.objects.filter(lineage=self.run.lineage, parent=None, state=State.SUCCEEDED).exists()


def storm(number: int, house: House, world: World, clock: Clock, *, moves: int = 25) -> None:
    """One storm and the calm after it. What it did stands in the failure."""
    blown = Storm(number, house, world, clock)
    try:
        blown.blow(moves)
        blown.once()
        blown.calm()
        blown.once()
        assert_replays(blown.run)
    except Exception as error:
        error.add_note(f"storm {number}: {blown.did}")
        raise


@pytest.mark.parametrize("first", range(0, 15, 5))
def test_whatever_happens_each_effect_happens_once_and_each_run_ends(
    house: House, world: World, clock: Clock, first: int
) -> None:
    for number in range(first, first + 5):
        world.reset()
        storm(number, house, world, clock)
        assert_nothing_waits_for_nothing()
