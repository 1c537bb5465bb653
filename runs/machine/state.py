"""RunState and its parts: frozen values, all that reducing a run's log yields.

Times are aware UTC. Texts of arguments, values and documents are the stored canonical text.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Final

from runs.machine.canonical import parse, round_suffix
from runs.machine.events import (
    Actor,
    ActorKind,
    Bound,
    Cause,
    Check,
    Confirmed,
    GoalTaken,
    Inherited,
    Lent,
    MatchFound,
    Quorum,
    Reason,
    Sender,
    Term,
    Terms,
    Unpassed,
)
from runs.machine.late import PlanLate
from runs.machine.waits import Child, Part, PlanWait, Signal, Wait, work_of


class State(StrEnum):
    """Where a run is. Only states that some code can reach."""

    PLANNING = "planning"
    WAITING_APPROVAL = "waiting_approval"
    APPROVED = "approved"
    EXECUTING = "executing"
    WAITING = "waiting"
    UNKNOWN = "unknown"
    NEEDS_HUMAN = "needs_human"
    CANCELLING = "cancelling"
    COMPENSATING = "compensating"
    SUCCEEDED = "succeeded"
    CANCELLED = "cancelled"
    RESTARTED = "restarted"


TERMINAL = frozenset({State.SUCCEEDED, State.CANCELLED, State.RESTARTED})
#: Where effects are sent.
SENDING = frozenset({State.EXECUTING, State.COMPENSATING})
WORKER_MOVES = frozenset({State.PLANNING, State.APPROVED, *SENDING, State.UNKNOWN, State.CANCELLING})


class Direction(StrEnum):
    """Which way the run goes: towards its goal, or undoing what it did."""

    FORWARD = "forward"
    UNDO = "undo"


class EffectStatus(StrEnum):
    """What is certain about an effect. The first three hold its operation id against every other intent."""

    IN_FLIGHT = "in_flight"
    UNKNOWN = "unknown"
    CONFIRMED = "confirmed"
    NOT_EXECUTED = "not_executed"
    COMPENSATED = "compensated"  #: it happened, and was undone


class Finding(StrEnum):
    """What a person found about evidence that contradicts the record."""

    AS_RECORDED = "as_recorded"
    HAPPENED = "happened"  #: the record says that it did not
    NOT_HAPPENED = "not_happened"  #: the record says that it did
    HAPPENED_TWICE = "happened_twice"


OPEN_EFFECT = frozenset({EffectStatus.IN_FLIGHT, EffectStatus.UNKNOWN})
HELD = OPEN_EFFECT | {EffectStatus.CONFIRMED}


class RequestStatus(StrEnum):
    """An approval request, or the approval that came of it."""

    PENDING = "pending"
    VALID = "valid"
    CONSUMED = "consumed"
    VOIDED = "voided"
    EXPIRED = "expired"
    REJECTED = "rejected"
    CHANGES_ASKED = "changes_asked"
    TAKEN_BACK = "taken_back"


OPEN_REQUEST = frozenset({RequestStatus.PENDING, RequestStatus.VALID})


class Identity(Part, frozen=True, kw_only=True):
    """What a run is. Nothing of it changes, but for its version and code by a person's logged move, and its budget
    by authority lent anew.
    """

    run: str
    tenant: str
    agent: str
    agent_version: str
    input: str
    creator: str
    principal: str
    lineage: str
    start_key: str
    started_at: datetime
    starter: Actor
    deadline: datetime | None
    budget: str | None
    predecessor: str
    code: Mapping[str, str] = {}
    parent: str = ""
    parent_step: str = ""
    depth: int = 0
    sensitive: tuple[str, ...] = ()
    exempt: tuple[str, ...] = ()


class Lending(Part, frozen=True, kw_only=True):
    """What was lent to the run, and by which event."""

    lent: Lent
    seq: int
    at: datetime


class Goal(Part, frozen=True, kw_only=True):
    """One version of the goal; version 1 is the original.

    `taken`: a successor began with a goal that was revised before. Its author, time and reason are of that revision.
    """

    version: int
    text: str
    author: Actor
    at: datetime
    reason: str
    taken: GoalTaken | None = None

    @property
    def revised(self) -> bool:
        """A person wrote it in place of another one, here or in an earlier run of the lineage."""
        return self.version > 1 or self.taken is not None


class Gone(Part, frozen=True, kw_only=True):
    """That a constraint was withdrawn: why, by whom where that is known, and whether for this run alone."""

    why: str
    by: Actor | None
    here: bool
    seq: int
    at: datetime


class Amended(Part, frozen=True, kw_only=True):
    """How the source of a constraint states it now, which the run has not accepted."""

    term: Term
    why: str
    by: Actor | None
    seq: int
    at: datetime


#: The source kind of a constraint that an agent read in a document.
INFERRED: Final = "inferred"


class Constraint(Part, frozen=True, kw_only=True):
    """An accepted constraint: shown as C-`number`. `seq` and `at` are of the acceptance of this `term`."""

    number: int
    term: Term
    seq: int
    at: datetime
    withdrawn: Gone | None = None
    amended: Amended | None = None
    before: Term | None = None  #: what an accepted amendment took the place of
    observed: int = 0  #: the observation that the agent inferred it from, in this run
    confirmed: Confirmed | None = None

    @property
    def stands(self) -> bool:
        """As far as the run was told."""
        return self.withdrawn is None and self.amended is None

    @property
    def unconfirmed(self) -> bool:
        """The agent inferred it, and no person said yet that it is so. It binds all the same."""
        return self.term.source_kind == INFERRED and self.confirmed is None

    @property
    def changed_seq(self) -> int:
        """The latest event about it."""
        return max([self.seq, *(x.seq for x in (self.withdrawn, self.amended) if x)])


class Reread(Part, frozen=True, kw_only=True):
    """What a person found when they had a fact read once more, and it was not as the run knows it."""

    value: str
    version: str
    seq: int
    at: datetime
    by: str


class Observation(Part, frozen=True, kw_only=True):
    """A cached external fact: shown as O-`number`, identified by tool and canonical arguments."""

    number: int
    tool: str
    arguments: str
    value: str
    resource: str
    version: str
    observed_at: datetime
    half_life: timedelta
    seq: int
    sensitive: tuple[str, ...] = ()
    reread: Reread | None = None

    @property
    def expires_at(self) -> datetime:
        """From here on it is out of date."""
        return self.observed_at + self.half_life

    def current(self, now: datetime) -> bool:
        """Whether it may be taken for true: not out of date, and not found to be otherwise by a later reading."""
        return self.expires_at > now and self.reread is None


class Source(StrEnum):
    """Who opened an obligation."""

    PLAN = "plan"  #: the agent, with a plan that people saw
    TOOL = "tool"  #: the other side, with a receipt
    PERSON = "person"
    FINDING = "finding"  #: people found that something happened twice, and one has to be undone


class Discharge(Part, frozen=True, kw_only=True):
    """A person's statement that an obligation is done."""

    person: str
    name: str
    how: str
    reference: str
    at: datetime


class Obligation(Part, frozen=True, kw_only=True):
    """Something promised: shown as B-`number`, discharged by a receipt of step `by` or by an attestation only.

    No `owner`: the run keeps it while it goes on; after that those who operate it.
    """

    number: int
    text: str
    by: str
    opened_seq: int
    opened_at: datetime
    due_at: datetime | None
    discharged_seq: int | None = None
    handed_over: bool = False
    to: str = ""
    source: str = Source.PLAN
    owner: Actor | None = None
    effect: int | None = None  #: of a tool's: whose receipt it came with
    attested: Discharge | None = None
    overdue_seq: int | None = None

    @property
    def open(self) -> bool:
        """Not yet done."""
        return self.discharged_seq is None

    def overdue(self, now: datetime) -> bool:
        """Open, and its time is over."""
        return self.open and self.due_at is not None and self.due_at <= now


class PlanRest(Part, frozen=True, kw_only=True):
    """An observation that a step rests on, with the version that the plan is bound to."""

    tool: str
    arguments: str
    resource: str
    version: str


class Undoes(Part, frozen=True, kw_only=True):
    """The effect that a step undoes."""

    run: str
    effect: int


class PlanStep(Part, frozen=True, kw_only=True):
    """One effect of a plan, with the arguments exactly as they will be sent; or, with `wait`, a wait and no effect."""

    name: str
    tool: str
    system: str
    operation_id: str
    arguments: str
    arguments_digest: str
    title: str
    reversible: bool
    phrase: str
    volatile: tuple[str, ...]
    cost: str | None
    rests_on: tuple[PlanRest, ...]
    undoes: Undoes | None = None
    wait: PlanWait | None = None
    late: tuple[PlanLate, ...] = ()  #: arguments that are not among `arguments` yet: bound before the send
    #: Paths in the arguments and in what is answered, as the tool named them; of a step that starts runs, `agent:path`
    #: in their input. In the document only where there are any.
    sensitive: tuple[str, ...] = ()


class PlanPromise(Part, frozen=True, kw_only=True):
    """An obligation that the plan opens and discharges."""

    text: str
    after: str
    by: str
    due: timedelta | None


class PlanAssumption(Part, frozen=True, kw_only=True):
    """Something the plan takes for true. Its basis: observations, and constraints by their number."""

    text: str
    rests_on: tuple[PlanRest, ...]
    constraints: tuple[int, ...] = ()  #: in the document only where there are any


class BrokenAssumption(Part, frozen=True, kw_only=True):
    """An assumption that did not hold any more, what of its basis is otherwise, and since which event."""

    text: str
    by: str
    seq: int


class PlanDocument(Part, frozen=True, kw_only=True):
    """The part of a plan that is digested, reviewed and executed: one text for all three.

    `more`: the planner makes another plan once this one is carried out. `undo`: made by code, to undo what stands.
    """

    run: str
    version: int
    goal_version: int
    constraints_digest: str
    policy_version: str
    steps: tuple[PlanStep, ...]
    promises: tuple[PlanPromise, ...]
    assumptions: tuple[PlanAssumption, ...]
    more: bool = False
    undo: bool = False


class PlanVersion(Part, frozen=True, kw_only=True):
    """A stored plan version and what became of it."""

    version: int
    document: str
    plan: PlanDocument
    digest: str
    claim: str
    seq: int
    at: datetime
    by_policy: bool = False
    voided: tuple[Cause, ...] = ()
    voided_seq: int | None = None
    takes: tuple[int, ...] = ()  #: numbers of proposed constraints
    broken: tuple[BrokenAssumption, ...] = ()


class Decision(Part, frozen=True, kw_only=True):
    """One person's decision on a request."""

    person: str
    name: str
    verdict: str
    reason: str
    submission: str
    seq: int
    at: datetime
    overrides: tuple[str, ...] = ()  #: checks that fail, which the person knew when approving


class Request(Part, frozen=True, kw_only=True):
    """An approval request and its decisions."""

    id: str
    version: int
    digest: str
    conditions: str
    conditions_digest: str
    needed: int
    right: str
    policy_version: str
    expires_at: datetime
    status: RequestStatus
    seq: int
    at: datetime
    excluded: Mapping[str, str] = {}
    quorums: tuple[Quorum, ...] = ()
    not_by: tuple[str, ...] = ()
    unpassed: tuple[Unpassed, ...] = ()
    decisions: tuple[Decision, ...] = ()
    causes: tuple[Cause, ...] = ()
    closed_seq: int | None = None
    closed_at: datetime | None = None
    announce_at: datetime | None = None
    announced_seq: int | None = None


class Send(Part, frozen=True, kw_only=True):
    """One attempt to call."""

    seq: int
    at: datetime
    sender: Sender


class Ask(Part, frozen=True, kw_only=True):
    """One answer of the outside to the question what became of an effect."""

    seq: int
    at: datetime
    by: Actor
    failure: str | None
    matches: tuple[MatchFound, ...]
    account: str
    boot: str
    uptime: timedelta


class Receipt(Part, frozen=True, kw_only=True):
    """What is certain, and since which event."""

    seq: int
    at: datetime
    executed: bool
    reference: str
    source: str
    detail: str
    failed: str | None
    by_person: bool = False


class Attestation(Part, frozen=True, kw_only=True):
    """One person's statement about what became of an effect."""

    person: str
    name: str
    happened: bool
    reference: str
    how: str
    seq: int
    at: datetime


class Late(Part, frozen=True, kw_only=True):
    """Evidence about an effect that came too late to move anything, and what became of it.

    `contradicts`: not both it and the record can be true. `raises`: it then keeps the run stopped, or a closed one in
    the inbox, until it is settled.
    """

    seq: int
    at: datetime
    executed: bool
    reference: str
    contradicts: bool
    raises: bool
    finding: str = ""
    settled_seq: int | None = None

    @property
    def open(self) -> bool:
        """It contradicts the record, and no person settled that yet."""
        return self.contradicts and self.settled_seq is None


class Found(Part, frozen=True, kw_only=True):
    """One person's finding about a contradiction; `evidence` is its seq."""

    person: str
    name: str
    evidence: int
    finding: str
    reference: str
    how: str
    seq: int
    at: datetime


class Effect(Part, frozen=True, kw_only=True):
    """One use of a writing tool: shown as E-`number`."""

    number: int
    step: str
    tool: str
    system: str
    account: str
    operation_id: str
    key: str
    round: int
    arguments: str
    arguments_digest: str
    plan_version: int
    title: str
    cost: str | None
    terms: Terms
    status: EffectStatus
    intent_seq: int
    intent_at: datetime
    sends: tuple[Send, ...]
    asks: tuple[Ask, ...] = ()
    receipt: Receipt | None = None
    unknown_since: datetime | None = None
    unknown_detail: str = ""
    next_ask_at: datetime | None = None
    dispatched_seq: int | None = None
    conflict: str = ""
    undoes: Undoes | None = None
    compensated_by: Undoes | None = None  #: the effect, here or in another run, that undid it
    attestations: tuple[Attestation, ...] = ()
    late: tuple[Late, ...] = ()
    findings: tuple[Found, ...] = ()
    bound: tuple[Bound, ...] = ()
    grant: str = ""

    @property
    def operation(self) -> str:
        """The operation that all its rounds have in common, as the rounds of a run name it."""
        base = self.operation_id.removesuffix(f"#{self.round}") if self.round else self.operation_id
        return f"{self.system} {base}"

    @property
    def contradicted(self) -> Late | None:
        """The oldest evidence against its record that nobody has settled."""
        return next((came for came in self.late if came.open), None)

    @property
    def last_send(self) -> Send:
        """The latest attempt to call."""
        return self.sends[-1]

    @property
    def settled_at(self) -> datetime:
        """Before this moment a "not found" is no evidence."""
        return self.last_send.at + self.terms.settles_after


class Artifact(Part, frozen=True, kw_only=True):
    """Bytes in the storage that belong to the run: shown as A-`number`, found by their hash."""

    number: int
    hash: str
    name: str
    kind: str
    media_type: str
    size: int
    about: str
    seq: int
    at: datetime


class Revalidation(Part, frozen=True, kw_only=True):
    """The latest report of checks."""

    seq: int
    at: datetime
    passed: bool
    checks: tuple[Check, ...]


class Blocked(Part, frozen=True, kw_only=True):
    """The next step's operation is open in another run of the lineage: which effect, since when, how often seen."""

    by: str
    since: datetime
    times: int


class TakenIn(Part, frozen=True, kw_only=True):
    """Where the history begins that is here: after event `seq` of a log that is not, whose head was `head`."""

    seq: int
    head: str
    digest: str  #: of the checkpoint
    at: datetime


class RunState(Part, frozen=True, kw_only=True):
    """Everything about a run as of one seq."""

    seq: int
    at: datetime
    state: State
    identity: Identity
    goals: tuple[Goal, ...]
    constraints: tuple[Constraint, ...]
    direction: Direction = Direction.FORWARD
    before: State | None = None
    since: datetime | None = None
    reasons: tuple[Reason, ...] = ()
    observations: Mapping[tuple[str, str], Observation] = {}
    obligations: tuple[Obligation, ...] = ()
    plans: tuple[PlanVersion, ...] = ()
    requests: tuple[Request, ...] = ()
    effects: Mapping[int, Effect] = {}
    done: Mapping[str, int] = {}
    rounds: Mapping[str, int] = {}
    keys: Mapping[str, str] = {}
    produced: Mapping[str, str] = {}
    artifacts: Mapping[int, Artifact] = {}
    advice: tuple[str, ...] = ()
    inherited: tuple[Inherited, ...] = ()
    successor: str = ""
    history_lost: bool = False
    revalidation: Revalidation | None = None
    returned_seq: int = 0
    cancel_requested: bool = False
    undo_requested: bool = False
    cancelled_by: Actor | None = None  #: who asked for the end of the run
    hands_to: Actor | None = None  #: who is to keep what it then owes
    undone: tuple[Inherited, ...] = ()
    waits: Mapping[str, Wait] = {}
    signals: tuple[Signal, ...] = ()
    children: Mapping[str, Child] = {}
    retry_at: datetime | None = None
    failures: int = 0
    replans: int = 0
    reads: int = 0
    blocked: Blocked | None = None
    taken_in: TakenIn | None = None
    lendings: tuple[Lending, ...] = ()
    checked: Revalidation | None = None
    projected: str = "1.1"  #: by which versions the rows beside the log were made; see projection.PROJECTED
    constrained_seq: int = 0  #: the latest event that changed the constraints after the start

    @property
    def grant(self) -> str:
        """The grant that the run acts on; empty for one from before grants were recorded."""
        return self.lendings[-1].lent.grant if self.lendings else ""

    @property
    def principal(self) -> str:
        """On whose authority it acts now: who lent to it last."""
        return self.lendings[-1].lent.principal if self.lendings else self.identity.principal

    @property
    def reenters(self) -> bool:
        """Authority was lent anew, and no person has approved a plan since."""
        last = self.lendings[-1] if len(self.lendings) > 1 else None
        agreed = (RequestStatus.VALID, RequestStatus.CONSUMED)
        return last is not None and not any(r.seq > last.seq and r.status in agreed for r in self.requests)

    @property
    def asked_under_another(self) -> bool:
        """People are being asked since before authority was lent anew."""
        asked, last = self.request, self.lendings[-1] if len(self.lendings) > 1 else None
        if asked is None or last is None or asked.status is not RequestStatus.PENDING:
            return False
        return asked.seq < last.seq

    @property
    def goal(self) -> Goal:
        """The committed goal."""
        return self.goals[-1]

    @property
    def goal_reviser(self) -> str:
        """The person who wrote the committed goal in place of another; empty where it is an original."""
        goal = self.goal
        return goal.author.id if goal.revised and goal.author.kind is ActorKind.PERSON else ""

    @property
    def outdated(self) -> bool:
        """The plan in force is for an earlier goal, or was made under other constraints: nothing more is sent on it,
        and it ends at the next safe point.
        """
        plan, at = self.plan, self.before or self.state
        if plan is None or plan.voided_seq is not None or self.undoing or at is State.PLANNING:
            return False
        return plan.plan.goal_version != self.goal.version or self.constrained_seq > plan.seq

    @property
    def plan(self) -> PlanVersion | None:
        """The latest plan version, valid or not."""
        return self.plans[-1] if self.plans else None

    @property
    def request(self) -> Request | None:
        """The latest approval request, open or not."""
        return self.requests[-1] if self.requests else None

    @property
    def approval_over(self) -> bool:
        """Steps are left, and the approval that they rest on ended while the run could not be stopped for it."""
        plan, request = self.plan, self.request
        if plan is None or plan.by_policy or request is None or request.version != plan.version:
            return False
        ended = request.status in (RequestStatus.TAKEN_BACK, RequestStatus.EXPIRED)
        ended = ended or (self.taken_in is not None and request.seq <= self.taken_in.seq)
        return ended and plan.voided_seq is None and bool(self.remaining)

    @property
    def open_effects(self) -> tuple[Effect, ...]:
        """In flight or unknown, the oldest first."""
        return tuple(e for e in self.effects.values() if e.status in OPEN_EFFECT)

    @property
    def undoing(self) -> bool:
        """Whether the run is on its way to an end before its goal."""
        return self.direction is Direction.UNDO

    @property
    def open_children(self) -> tuple[Child, ...]:
        """Runs that this one started and that have not ended."""
        return tuple(c for c in self.children.values() if c.open)

    @property
    def wait(self) -> Wait | None:
        """What the run waits for now, or will again once a stop is over."""
        step = self.remaining[0] if self.remaining else None
        known = self.waits.get(step.name) if step else None
        return known if known and known.ended_seq is None else None

    @property
    def contradicted(self) -> tuple[Effect, ...]:
        """Settled effects with evidence against their record that nobody has settled, the oldest first."""
        return tuple(e for e in self.effects.values() if e.late and e.contradicted)

    @property
    def open_obligations(self) -> tuple[Obligation, ...]:
        """Promised and not yet done."""
        return tuple(o for o in self.obligations if o.open)

    @property
    def remaining(self) -> tuple[PlanStep, ...]:
        """The steps of the latest plan that are not done, in order."""
        return tuple(x for x in self.plan.plan.steps if x.name not in self.done) if self.plan else ()

    def round_of(self, step: PlanStep) -> int:
        """The latest round of the step's operation, whatever earlier plans called the step."""
        return self.rounds.get(f"{step.system} {step.operation_id}", 0)

    def covers_round(self, step: PlanStep) -> bool:
        """Whether what people approved is the step in the round that it has now. What stands is sent by nobody."""
        request, round_ = self.request, self.round_of(step)
        if step.wait is not None or self.plan is None or self.plan.by_policy or request is None:
            return True
        if not round_ and '"rounds"' not in request.conditions:
            return True  # nearly always: nothing was ever done again
        held = self.standing(step.system, round_suffix(step.operation_id, round_))
        return held is not None or self.approved_round(step) == round_

    @property
    def uncovered(self) -> tuple[PlanStep, ...]:
        """Steps to come that are in another round than the one that people are, or were, asked about."""
        return tuple(step for step in self.remaining if not self.covers_round(step))

    def approved_round(self, step: PlanStep) -> int:
        """The round of the step that the latest request asks for."""
        bound = parse(self.request.conditions) if self.request else {}
        return int(bound.get("rounds", {}).get(step.name, 0))

    def by_operation(self, system: str, operation_id: str) -> Effect | None:
        """The latest effect of this run under an operation id, whatever became of it."""
        known = [x for x in self.effects.values() if (x.system, x.operation_id) == (system, operation_id)]
        return known[-1] if known else None

    def standing(self, system: str, operation_id: str) -> Effect | None:
        """The effect that holds an operation id against every other intent: in flight, unknown or confirmed."""
        known = self.by_operation(system, operation_id)
        return known if known and known.status in HELD else None

    def inherited_by(self, system: str, operation_id: str) -> Inherited | None:
        """The effect of an earlier run of the lineage that stands under an operation id."""
        known = (x for x in self.inherited if (x.system, x.operation_id) == (system, operation_id))
        return next(known, None)

    def stands(self, step: PlanStep) -> bool:
        """Whether the step's effect is held already, in this run or in an earlier one of the lineage."""
        held = self.standing(step.system, step.operation_id)
        return bool(held or self.inherited_by(step.system, step.operation_id))

    def waited(self, step: PlanStep) -> bool:
        """Whether a waiting step has begun."""
        known = self.waits.get(step.name)
        return step.wait is not None and known is not None and known.digest == step.arguments_digest

    def cost(self, step: PlanStep) -> Decimal:
        """What the step will cost from here on: nothing where it stands; of runs, the budgets of those not started."""
        if step.wait is not None:
            started = {(c.name, c.work) for c in self.children.values() if c.step == step.name}
            runs = ((x, (x.name, work_of(x.agent, x.goal, x.input))) for x in step.wait.children)
            return sum((Decimal(x.budget or 0) for x, work in runs if work not in started), Decimal())
        return Decimal() if step.cost is None or self.stands(step) else Decimal(step.cost)

    def expected_versions(self, step: str) -> dict[str, str]:
        """Resource -> version that a step is bound to, for tools that can pass them on."""
        steps = self.plan.plan.steps if self.plan else ()
        rests = next((x.rests_on for x in steps if x.name == step), ())
        return {r.resource: self.produced.get(r.resource, r.version) for r in rests}

    def reserves(self, step: PlanStep, earlier: Effect | None) -> str | None:
        """What a send of the step reserves on the grant: nothing where it is reserved there already, or stands."""
        if earlier is None:
            return None if self.stands(step) else step.cost
        reserved = earlier.status is EffectStatus.CONFIRMED or (
            earlier.status in OPEN_EFFECT and earlier.grant == self.grant
        )
        return None if reserved else earlier.cost

    @property
    def spent(self) -> Decimal:
        """What its effects cost: those that stand, and what is reserved for those that are open."""
        held = (x for x in self.effects.values() if x.status in HELD)
        children = (Decimal(c.budget or 0) if c.open else Decimal(c.spent) for c in self.children.values())
        return sum((Decimal(x.cost) for x in held if x.cost is not None), sum(children, Decimal()))

    def left(self, steps: tuple[PlanStep, ...]) -> Decimal | None:
        """What the budget leaves after these steps as well; below zero it does not cover them. None: no limit."""
        if self.identity.budget is None:
            return None
        return Decimal(self.identity.budget) - self.spent - sum(map(self.cost, steps), Decimal())

    @property
    def last_confirmed(self) -> Effect | None:
        """The effect that was confirmed last."""
        confirmed = [e for e in self.effects.values() if e.status is EffectStatus.CONFIRMED and e.receipt]
        return max(confirmed, key=lambda e: e.receipt.seq if e.receipt else 0, default=None)
