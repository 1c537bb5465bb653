"""People at work on runs: each action is tried on the pure machine too, and what they say of the outside is true."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from uuid import uuid4

from accounts.models import User
from approvals.models import Request, Verdict
from approvals.outcomes import ApprovalError
from runs import actions, affected, agents, recovery
from runs.actions import MoveRefused
from runs.clock import database_now
from runs.grants import impact_of, scopes_of
from runs.machine import decide
from runs.machine.decide import ConclusionRefused, goal_impact
from runs.machine.decide.findings import findings
from runs.machine.safety import decisions_of
from runs.machine.state import Effect, EffectStatus, Finding, RunState
from runs.machine.transitions import Decision, Refused
from runs.models import Grant, Run
from runs.queries import stands_elsewhere
from tests.outside import World
from tests.people import House
from tests.runs.shadow import Shadow


@dataclass
class Desk:
    """What the people of the house do with the runs of one life."""

    house: House
    world: World
    shadow: Shadow
    errs: bool = False  #: what is stated of the outside is not true

    def state(self, run: str) -> RunState:
        return self.shadow.states[run]

    def verdict(self, run: str, person: User, verdict: Verdict) -> None:
        """Decide on the latest plan version that ever asked for it."""
        request = Request.objects.filter(subject__startswith=f"{run}:").order_by("opened_at").last()
        if request is None:
            return
        try:
            actions.decide_plan(
                person=person, run_id=run, version=int(request.subject.split(":")[1]), verdict=verdict,
                reason="as was agreed", digest=request.digest, conditions_digest=request.conditions_digest,
                submission=uuid4(), signed_in_at=database_now(),
            )  # fmt: skip
        except (ApprovalError, actions.NothingToChange):
            return

    def take_back(self, run: str, person: User) -> None:
        """Take back what this person approved last."""
        request = Request.objects.filter(subject__startswith=f"{run}:").order_by("opened_at").last()
        if request is None:
            return
        try:
            actions.take_back_approval(
                person=person, run_id=run, version=int(request.subject.split(":")[1]), reason="the supplier moved",
                submission=uuid4(),
            )  # fmt: skip
        except (ApprovalError, Refused):
            return

    def renew(self, run: str) -> None:
        try:
            actions.renew_request(person=self.house.operator, run_id=run, request=uuid4(), submission=uuid4())
        except Refused:
            return

    def cancel(self, run: str, *, undo: bool) -> bool:
        return self.shadow.tried(
            run,
            lambda state: decide.cancel(state, note="", undo=undo),
            lambda: actions.cancel_run(
                person=self.house.operator, run_id=run, note="", undo=undo, submission=uuid4()
            ),
        )

    def revise(self, run: str) -> bool:
        """Give the run another goal, under which its planner plans as before."""
        text, version = f"Do as written, {uuid4()}", self.state(run).goal.version
        return self.shadow.tried(
            run,
            lambda state: decide.revised(state, text=text, reason="as was said", expected=version),
            lambda: actions.revise_goal(
                person=self.house.operator, run_id=run, text=text, reason="as was said", expected=version,
                impact=goal_impact(self.state(run)).digest, submission=uuid4(),
            ),
        )  # fmt: skip

    def end_grant(self, run: str) -> None:
        """End what was lent to the run, and to all others on that grant."""
        grant = Grant.objects.filter(runs=run).get()
        try:
            actions.end_grant(
                person=self.house.operator, grant=grant.pk, why="not needed", impact=impact_of(grant).digest,
                submission=uuid4(),
            )  # fmt: skip
        except actions.GrantOver:
            return

    def lend(self, run: str) -> bool:
        """Lend to a run that stopped for want of it: all that it can use."""
        row = Run.objects.select_related("agent").get(pk=run)
        scopes = scopes_of(agents.registered()[(row.agent.name, row.agent_version)])
        try:
            actions.lend_anew(
                person=self.house.operator, run_id=run, scopes=scopes, note="lent again", budget=Decimal(5000),
                submission=uuid4(),
            )  # fmt: skip
        except Refused:
            return False
        return True

    def release(self, number: int | None) -> None:
        """Let the agent's own policy count, or the one that was written for it."""
        actions.release_policy(
            person=self.house.viewer, agent=self.house.agent, number=number, reason="as agreed",
            seen=affected.impact(self.house.agent, number).digest, submission=uuid4(),
        )  # fmt: skip

    def signal(self, run: str, name: str) -> bool:
        return self.shadow.tried(
            run,
            lambda state: decide.signalled(state, id="x", name=name, payload="1"),
            lambda: actions.signal_run(
                person=self.house.operator, run_id=run, name=name, payload="1", submission=uuid4()
            ),
        )

    def choose(self, run: str, decision: Decision) -> bool:
        """Resume, retry, replan, end or restart."""
        match decision:
            case Decision.RESTART:
                return self.restart(run)
            case Decision.END:
                return self.end(run)
            case Decision.LEND:
                return self.lend(run)
        return self.shadow.tried(
            run,
            lambda state: decide.decided(state, decision, note="go on"),
            lambda: actions.decide_run(
                person=self.house.operator, run_id=run, decision=decision, note="go on", submission=uuid4()
            ),
        )

    def end(self, run: str) -> bool:
        return self.shadow.tried(
            run,
            lambda state: decide.decided(state, Decision.END, note=""),
            lambda: actions.end_run(person=self.house.operator, run_id=run, note="", submission=uuid4()),
        )

    def restart(self, run: str) -> bool:
        return self.shadow.tried(
            run,
            lambda state: decide.restarted(state, successor="x", note=""),
            lambda: actions.restart_run(person=self.house.operator, run_id=run, note="", submission=uuid4()),
        )

    def move(self, run: str, version: str) -> None:
        try:
            actions.move_run(
                person=self.house.operator, run_id=run, version=version, note="", submission=uuid4()
            )
        except (MoveRefused, Refused):
            return

    def reconcile(self, run: str) -> None:
        """Settle what is unknown, by asking where that can be, else by finding out oneself."""
        for effect in self.state(run).open_effects:
            if effect.status is not EffectStatus.UNKNOWN:
                continue
            if effect.terms.queryable and not self.world.outage:
                self._ask_and_conclude(run, effect)
            else:
                self._attest(run, effect)

    def _ask_and_conclude(self, run: str, effect: Effect) -> None:
        row = Run.objects.select_related("agent").get(pk=run)
        tool = agents.registered()[(row.agent.name, row.agent_version)].writing(effect.tool)
        said, evidence, _ = recovery.ask(effect, tool)
        if not self.shadow.tried(
            run,
            lambda state: decide.asked_by_person(state, effect.number, said, evidence=evidence),
            lambda: actions.record_answer(
                person=self.house.operator, run_id=run, effect=effect.number, answer=said, evidence=evidence,
                submission=uuid4(),
            ),
        ):  # fmt: skip
            return
        self.follow(run)
        asked = self.state(run).effects[effect.number].asks[-1]
        now = database_now()
        self.shadow.tried(
            run,
            lambda state: decide.concluded(
                state, effect.number, happened=bool(asked.matches), asked_seq=asked.seq, note="", now=now
            ),
            lambda: actions.conclude_effect(
                person=self.house.operator, run_id=run, effect=effect.number, happened=bool(asked.matches),
                asked=asked.seq, note="", submission=uuid4(),
            ),
        )  # fmt: skip
        self.follow(run)

    def _attest(self, run: str, effect: Effect) -> None:
        happened = self.happened(effect) is not self.errs
        for person in (self.house.operator, self.house.second):

            def pure(state: RunState, person: User = person) -> decide.Events:
                return decide.attested(
                    state, effect.number, happened=happened, reference="slip" if happened else "", how="rang",
                    person=str(person.pk), now=database_now(),
                )  # fmt: skip

            def do(person: User = person) -> object:
                return actions.attest_effect(
                    person=person, run_id=run, effect=effect.number, happened=happened,
                    reference="slip" if happened else "", how="rang", submission=uuid4(),
                    signed_in_at=database_now(),
                )  # fmt: skip

            self.shadow.tried(run, pure, do)
            self.follow(run)

    def happened(self, effect: Effect) -> bool:
        """Whether this very effect was executed."""
        return any((i, k) == (effect.operation_id, effect.key) for i, k, _ in self.world.executed)

    def settle(self, run: str) -> None:
        """Find which is true, where evidence contradicts a record."""
        state = self.state(run)
        for effect in state.contradicted:
            came = effect.contradicted
            if came is None:
                continue
            allowed = findings(
                state, effect, came, database_now(), again_in=stands_elsewhere(state.identity, effect)
            )
            recorded = effect.receipt is not None and effect.receipt.executed
            true = {
                (True, True): Finding.AS_RECORDED, (False, False): Finding.AS_RECORDED,
                (True, False): Finding.HAPPENED, (False, True): Finding.NOT_HAPPENED,
            }[self.happened(effect), recorded]  # fmt: skip
            if true is Finding.HAPPENED and allowed.get(true):
                true = Finding.HAPPENED_TWICE
            for person in (self.house.operator, self.house.second):
                try:
                    actions.settle_contradiction(
                        person=person, run_id=run, effect=effect.number, evidence=came.seq, finding=true,
                        reference=came.reference or "slip", how="looked", submission=uuid4(),
                        signed_in_at=database_now(),
                    )  # fmt: skip
                except (Refused, ConclusionRefused):
                    continue
            self.follow(run)

    def decisions(self, run: str) -> tuple[Decision, ...]:
        """What the page offers."""
        return decisions_of(self.state(run))

    def follow(self, run: str) -> None:
        self.shadow.follow(list(Run.objects.filter(pk=run)))
