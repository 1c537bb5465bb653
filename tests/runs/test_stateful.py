"""Lives made by hypothesis: runs, workers that die, people, clocks and faults in any order, on PostgreSQL and on the
pure machine beside it.

After each step both say the same, and nothing waits for nothing. At the end of each life the weather is fair and
people do what the pages say: every run ends, and what was done outside is what the logs say.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import uuid4

import pytest
from django.db import connection
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pytest_django import Settings

from accounts.rights import Right, grant_right, withdraw_right
from approvals.models import Verdict
from runs import actions, agents, recovery
from runs.clock import database_now
from runs.machine.safety import Action, next_safe_action
from runs.machine.state import TERMINAL, EffectStatus, RunState, State
from runs.machine.transitions import Decision
from runs.models import Effect, Run
from tests.fixtures.clock import Clock
from tests.outside import World
from tests.people import House
from tests.runs.desk import Desk
from tests.runs.invariants import assert_nothing_waits_for_nothing
from tests.runs.shadow import Shadow, problems
from tests.runs.test_policies import ALWAYS, hold
from tests.runs.workers import Workers, working

#: How many lives: the same few each time, or as many new ones as `make matrix` says. With STATEFUL_SHRINK a life that
#: fails is made shorter, which takes its time.
EXAMPLES: Final = int(os.environ.get("STATEFUL_EXAMPLES", "6"))
STEPS: Final = 30
PHASES: Final = (Phase.generate, *([Phase.shrink] if "STATEFUL_SHRINK" in os.environ else []))
TOOLS: Final = ("pay", "give", "give", "give_dear", "tell", "pay_once", "pay_by_key", "pay_blind")
FATES: Final = ("", "", "", "lost", "refused", "silent", "late")
SIGNALS: Final = ("go", "stop")
SECONDS: Final = (0.3, 1.0, 2.6, 6.0, 60.0, 600.0)
#: A call that comes late is executed within its timeout and the tool's time to settle.
LATE: Final = 1.5


def effects(tools: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "tool": st.sampled_from(tools),
            "order": st.sampled_from("abcd"),
            "amount": st.sampled_from(["10.00", "250.00"]),
        }
    )


WAITS = st.one_of(
    st.fixed_dictionaries({"timer": st.sampled_from([0, 2, 60])}),
    st.fixed_dictionaries({"signal": st.sampled_from(SIGNALS)}),
    st.fixed_dictionaries({"signal": st.sampled_from(SIGNALS), "within": st.sampled_from([3, 60])}),
)


def plans(steps: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    one = st.lists(steps, min_size=1, max_size=4).map(_named)
    return st.builds(
        lambda plans, more: {"plans": plans, "more": more},
        st.lists(one, min_size=1, max_size=2),
        st.booleans(),
    )


def _named(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without two equal steps, which no planner may propose; each wait with a name of its own."""
    known: dict[str, dict[str, Any]] = {}
    for number, step in enumerate(steps):
        name = f"{step['tool']}:{step['order']}" if "tool" in step else f"wait:{number}"
        known.setdefault(name, step if "tool" in step else {**step, "name": name})
    return list(known.values())


CHILD = plans(st.one_of(effects(TOOLS), effects(TOOLS), WAITS))
CHILDREN = st.builds(
    lambda runs: {"children": runs, "budget": "300.00"},
    st.dictionaries(st.sampled_from(["x", "y"]), CHILD, min_size=1, max_size=2),
)
INPUT = plans(st.one_of(effects(TOOLS), effects(TOOLS), WAITS, CHILDREN, CHILDREN))
WHICH = st.integers(0, 5)


class Lives(RuleBasedStateMachine):
    """One life: some runs of one house, from their start to their end."""

    house: House
    world: World
    workers: Workers
    number: Iterator[int]

    def __init__(self) -> None:
        super().__init__()
        self.prefix = f"life{next(self.number)}-"
        self.shadow = Shadow()
        self.desk = Desk(self.house, self.world, self.shadow)
        self.lineages: list[str] = []
        self.excused: set[str] = set()
        self.late: list[tuple[float, Callable[[], None]]] = []
        self.untold = self.swept = False
        self.stepped = self.furthest = timedelta()
        self.sees = [self.house.approver, self.house.second]
        self.world.reset()
        self.workers.appended = self.shadow.appended
        self.workers.clock.move(-self.workers.clock.offset)
        self._rights()
        self.desk.release(None)

    def _rights(self) -> None:
        now = database_now()
        for person in self.sees:
            grant_right(to=person, right=Right.APPROVE_PLANS, obj=self.house.agent, actor=None, now=now)
        grant_right(to=self.house.operator, right=Right.START_RUNS, obj=self.house.agent, actor=None, now=now)

    # What is there

    def rows(self) -> list[Run]:
        return list(Run.objects.filter(lineage__in=self.lineages).order_by("created_at", "id"))

    def pick(self, which: int, *, ended: bool = False) -> str | None:
        """One of the runs, those that have not ended before all others."""
        rows = sorted(self.rows(), key=lambda row: row.state in TERMINAL)
        if not ended:
            rows = [row for row in rows if row.state not in TERMINAL] or rows
        return rows[which % len(rows)].pk if rows else None

    # What can happen

    @initialize(given=INPUT, budget=st.sampled_from([None, None, "700.00"]))
    def begins(self, given: dict[str, Any], budget: str | None) -> None:
        self._start(given, budget, None)

    @precondition(lambda self: len(self.lineages) < 3)
    @rule(given=INPUT, budget=st.sampled_from([None, "700.00"]), deadline=st.sampled_from([None, 100.0]))
    def start(self, given: dict[str, Any], budget: str | None, deadline: float | None) -> None:
        self._start(given, budget, deadline)

    def _start(self, given: dict[str, Any], budget: str | None, deadline: float | None) -> None:
        run = actions.start_run(
            agent=self.house.agent, version="1", goal="Do as written", input=self._own(given),
            start_key=str(uuid4()), creator=self.house.operator, principal=self.house.operator,
            budget=Decimal(budget) if budget else None,
            deadline=database_now() + timedelta(seconds=deadline) if deadline else None,
        )  # fmt: skip
        self.lineages.append(run.pk)

    def _own(self, value: Any) -> Any:
        """The orders of one life are not those of another."""
        match value:
            case dict():
                return {k: self.prefix + v if k == "order" else self._own(v) for k, v in value.items()}
            case list():
                return [self._own(item) for item in value]
        return value

    def _work(self, run: str | None, fate: str = "", **more: Any) -> None:
        if run is None:
            return
        self.world.answers = [fate] if fate else []
        try:
            self.workers.advance(run, **more)
        finally:
            self.world.answers, self.world.hook = [], None
            now = self.workers.time.passed
            self.late += [(now, call) for call in self.world.on_the_way]
            self.world.on_the_way = []

    @rule(which=WHICH, fate=st.sampled_from(FATES))
    def work(self, which: int, fate: str) -> None:
        self._work(self.pick(which), fate)

    @rule(fate=st.sampled_from(FATES))
    def work_all_on(self, fate: str) -> None:
        """And time passes, so that waits end."""
        self.work_all(fate)
        self._passes(timedelta(seconds=2.6))

    @rule(fate=st.sampled_from(FATES))
    def work_all(self, fate: str) -> None:
        for row in self.rows():
            self._work(row.pk, fate)

    @rule(which=WHICH, fate=st.sampled_from(FATES), points=st.integers(0, 14), passes=st.booleans())
    def die(self, which: int, fate: str, points: int, passes: bool) -> None:
        self._work(self.pick(which), fate, dies_in=points)
        self.untold = True
        if passes:
            self._passes(timedelta(seconds=2.6))

    @rule(
        which=WHICH,
        when=st.sampled_from(["before", "after"]),
        seconds=st.sampled_from([2.6, 6.0, 60.0]),
        person=st.sampled_from(["", "knows", "errs"]),
    )
    def taken_over(self, which: int, when: str, seconds: float, person: str) -> None:
        """A worker is stopped at its call; another one takes the run, then the first goes on. Meanwhile a person says
        what became of the effect, and may err.
        """
        run = self.pick(which)
        if run is None:
            return

        def hook(now: str) -> None:
            if now != when:
                return
            self.world.hook = None
            operation = self.world.calls[-1]
            if person == "errs":
                self.world.outage, self.desk.errs = "503", True
            for _ in range(3):
                self._passes(timedelta(seconds=seconds))
                self.workers.advance(run)
            self.desk.follow(run)
            if person:
                self.desk.reconcile(run)
            self.desk.errs = False
            said = any(
                x.operation_id == operation and x.receipt and x.receipt.by_person
                for x in self.shadow.states[run].effects.values()
            )
            if said and (when == "before" or person == "errs"):
                self.excused.add(done_by(operation))

        self.world.hook = hook
        self._work(run)

    @rule(seconds=st.sampled_from(SECONDS))
    def time_passes(self, seconds: float) -> None:
        self._passes(timedelta(seconds=seconds))

    def _passes(self, length: timedelta) -> None:
        end = self.workers.time.passed + length.total_seconds()
        due = [call for sent, call in self.late if sent + LATE <= end]
        self.late = [(sent, call) for sent, call in self.late if sent + LATE > end]
        for arrive in due:
            arrive()
        self.workers.passes(length)

    @rule(minutes=st.sampled_from([-10, 10]))
    def clock_steps(self, minutes: int) -> None:
        self.stepped += timedelta(minutes=minutes)
        self.furthest = max(self.furthest, self.stepped)
        self.workers.steps(timedelta(minutes=minutes))

    @rule(which=WHICH, verdict=st.sampled_from([*Verdict, Verdict.APPROVE, Verdict.APPROVE]))
    def decide_plan(self, which: int, verdict: Verdict) -> None:
        if run := self.pick(which):
            self.desk.verdict(run, self.house.approver, verdict)

    @rule(which=WHICH)
    def take_back(self, which: int) -> None:
        if run := self.pick(which, ended=which == 5):
            self.desk.take_back(run, self.house.approver)

    @rule(which=WHICH)
    def revise(self, which: int) -> None:
        if run := self.pick(which, ended=which == 5):
            self.desk.revise(run)

    @rule(which=WHICH)
    def end_grant(self, which: int) -> None:
        if run := self.pick(which):
            self.desk.end_grant(run)

    @rule(number=st.sampled_from([None, 1]))
    def release(self, number: int | None) -> None:
        self.desk.release(number)

    @rule(which=WHICH)
    def renew(self, which: int) -> None:
        if run := self.pick(which):
            self.desk.renew(run)

    @rule(which=WHICH, undo=st.booleans())
    def cancel(self, which: int, undo: bool) -> None:
        if run := self.pick(which, ended=which == 5):
            self.desk.cancel(run, undo=undo)

    @rule(which=WHICH, name=st.sampled_from(SIGNALS))
    def signal(self, which: int, name: str) -> None:
        if run := self.pick(which, ended=which == 5):
            self.desk.signal(run, name)

    @rule(which=WHICH, nth=st.integers(0, 3))
    def as_offered(self, which: int, nth: int) -> None:
        stopped = [row.pk for row in self.rows() if row.state == State.NEEDS_HUMAN]
        if not stopped:
            return
        run = stopped[which % len(stopped)]
        offered = [d for d in self.desk.decisions(run) if d in CHOICES]
        if offered:
            self.desk.choose(run, offered[nth % len(offered)])

    @rule(which=WHICH, decision=st.sampled_from([*Decision]))
    def whatever(self, which: int, decision: Decision) -> None:
        """A decision that may not be offered now."""
        if (run := self.pick(which, ended=which == 5)) and decision in CHOICES:
            self.desk.choose(run, decision)

    @rule(which=WHICH)
    def reconcile(self, which: int) -> None:
        if not self.late and (run := self.pick(which)):
            self.desk.reconcile(run)

    @rule(which=WHICH)
    def settle(self, which: int) -> None:
        if run := self.pick(which, ended=True):
            self.desk.settle(run)

    @rule(which=WHICH, version=st.sampled_from("12"))
    def move(self, which: int, version: str) -> None:
        if run := self.pick(which):
            self.desk.move(run, version)

    @rule(which=WHICH, seldom=st.integers(0, 5))
    def unserved(self, which: int, seldom: int) -> None:
        if seldom == 5 and (run := self.pick(which)):
            version = Run.objects.get(pk=run).agent_version
            actions.stop_unserved(run_id=run, version=version)

    @rule()
    def sweep(self) -> None:
        recovery.announce("w")
        recovery.sweep()
        recovery.sweep()
        self.untold, self.swept = False, True

    @rule(taken=st.booleans(), who=st.integers(0, 2))
    def rights(self, taken: bool, who: int) -> None:
        right = Right.APPROVE_PLANS if who < 2 else Right.START_RUNS
        person = [*self.sees, self.house.operator][who]
        change = withdraw_right if taken else grant_right
        change(to=person, right=right, obj=self.house.agent, actor=None, now=database_now())

    @rule(what=st.sampled_from(["outage", "unreadable"]), on=st.booleans())
    def weather(self, what: str, on: bool) -> None:
        setattr(self.world, what, "503" if on else "")

    # What is true after each

    @invariant()
    def both_say_the_same(self) -> None:
        if not self.shadow.follow(self.rows()) and not self.swept:
            return
        self.swept = False
        assert_nothing_waits_for_nothing()
        wrong = list(problems(self.shadow.states, told=not self.untold))
        assert not wrong, wrong
        self._once()

    def _once(self) -> None:
        """Of each operation at most one stands outside, whatever rounds and undoings it took."""
        for operation, times in self._standing().items():
            assert operation in self.excused or times in (0, 1), f"{operation} stands {times} times"

    def _standing(self) -> Counter[str]:
        stands: Counter[str] = Counter()
        for done, _, _ in self.world.executed:
            stands[done_by(done)] += -1 if done.startswith("take_back") else 1
        return stands

    # How it ends

    def teardown(self) -> None:
        if sys.exc_info()[0] is None:
            self._calm()
            self._outside_is_as_the_logs_say()

    def _calm(self) -> None:
        """The weather is fair and people do what the pages say, in the end they stop what does not end."""
        self.world.outage = self.world.unreadable = ""
        self._rights()
        if self.stepped < timedelta():
            self.workers.steps(
                -self.stepped
            )  # what waits for the clock to catch up need not be waited for here
        for turn in range(40):
            self._passes(timedelta(seconds=3 if turn % 3 else 61))
            self.sweep()
            self.both_say_the_same()
            for run in [run for run, state in self.shadow.states.items() if not self._at_rest(state)]:
                self._as_the_page_says(run, turn)
            if all(self._at_rest(run) for run in self.shadow.states.values()):
                break
        self.sweep()
        self.both_say_the_same()
        left = [
            (run, x.state.value, [r.code for r in x.reasons], next_safe_action(x).action.value)
            for run, x in self.shadow.states.items()
            if not self._at_rest(x)
        ]
        assert not left, f"no end: {left}"

    def _at_rest(self, state: RunState) -> bool:
        return next_safe_action(state).action is Action.NONE

    def _as_the_page_says(self, run: str, turn: int) -> None:
        self._work(run)
        self.both_say_the_same()
        state = self.shadow.states[run]
        match next_safe_action(state).action:
            case Action.REVIEW:
                self.desk.verdict(run, self.house.approver, Verdict.APPROVE)
                self._work(run)  # before it expires
            case Action.RENEW:
                self.desk.renew(run)
            case Action.RECONCILE:
                self.desk.reconcile(run)
            case Action.FIND:
                self.desk.settle(run)
            case Action.WAIT if turn < 6:
                if state.wait and state.wait.signal:
                    self.desk.signal(run, state.wait.signal)
            case Action.DECIDE:
                self._decide(run, turn)
        self.both_say_the_same()
        state = self.shadow.states[run]
        if turn >= 6 and state.state not in TERMINAL and not state.cancel_requested:
            self.desk.cancel(run, undo=turn % 2 == 0)
        self.both_say_the_same()

    def _decide(self, run: str, turn: int) -> None:
        offered = self.desk.decisions(run)
        assert offered, f"{run} waits for a person, and there is nothing to decide"
        wanted = [d for d in CHOICES if d in offered and (turn < 3 or d is not Decision.RESTART)]
        if turn > 12 and Decision.END in offered:
            wanted = [Decision.END]
        if wanted:
            self.desk.choose(run, wanted[turn % len(wanted)])
        elif Decision.CANCEL in offered:
            self.desk.cancel(run, undo=False)

    def _outside_is_as_the_logs_say(self) -> None:
        rows = Effect.objects.filter(lineage__in=self.lineages)
        known = {(x.operation_id, x.key): x for x in rows}
        for operation, key, _ in self.world.executed:
            assert (operation, key) in known, f"{operation} was done, and no log knows of it"
        confirmed: Counter[str] = Counter()
        for x in rows:
            if x.status == EffectStatus.CONFIRMED and not x.undoes_run:
                confirmed[base(x.operation_id)] += 1
        stands = self._standing()
        for operation in {*confirmed, *stands} - self.excused:
            assert confirmed[operation] == stands[operation], (
                f"{operation} stands {stands[operation]} times outside, {confirmed[operation]} in the logs"
            )


CHOICES: Final = (
    Decision.LEND, Decision.RETRY, Decision.RESUME, Decision.REPLAN, Decision.RESTART, Decision.END,
)  # fmt: skip


def base(operation: str) -> str:
    """An operation without its rounds."""
    return operation.split("#")[0].split("~")[0]


def done_by(operation: str) -> str:
    """The operation, or the one that it undoes."""
    return base(operation).replace("take_back", "give")


@pytest.fixture
def lives(house: House, world: World, clock: Clock, settings: Settings) -> Iterator[type[Lives]]:
    """The machine, with a house of its own; each life in it has orders of its own."""
    settings.HANDOFF_AGENTS = ["tests.outside:PAYER", "tests.heirs:SAME"]
    agents.registered.cache_clear()
    for person in (house.operator, house.second):
        grant_right(to=person, right=Right.ATTEST_EFFECTS, obj=house.agent, actor=None, now=database_now())
    grant_right(
        to=house.second, right=Right.RECONCILE_EFFECTS, obj=house.agent, actor=None, now=database_now()
    )
    hold(house, ALWAYS, release=False)
    with working(clock) as workers:
        yield type("Bound", (Lives,), {
            "house": house, "world": world, "workers": workers, "number": itertools.count(),
        })  # fmt: skip
        clock.move(-clock.offset)


def test_any_life_is_the_same_to_the_database_and_to_the_pure_machine(lives: type[Lives]) -> None:
    run_state_machine_as_test(
        lives,
        settings=settings(
            max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, database=None, phases=PHASES,
            derandomize="STATEFUL_EXAMPLES" not in os.environ, suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip
    assert connection.connection is not None
