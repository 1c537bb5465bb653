"""One class per event: what happened to a run, past tense, with everything that reducing it needs.

An event's body is stored as the text that `encode` made, digested once and never rewritten. The registry
names each type and its version; a log with a type or version that this build lacks is refused with its seq.
JSON values that come from outside (arguments, evidence) are kept as `Raw`: the very bytes.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Raw

from runs.machine.upcast import NoWay, upcast


class ActorKind(StrEnum):
    """Who moved the run. Only a person counts as a person."""

    PERSON = "person"
    WORKER = "worker"
    AGENT = "agent"
    POLICY = "policy"
    SYSTEM = "system"


class Actor(msgspec.Struct, frozen=True):
    """Author of an event: a kind, a stable id, and the name as it was then."""

    kind: ActorKind
    id: str
    name: str


class Event(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Base of all events. VERSION grows when the meaning of the fields changes."""


class Term(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A constraint as its source stated it."""

    text: str
    source_kind: str
    source_ref: str
    source_version: str
    name: str = ""  #: short, where it has one
    predicate: str = ""  #: CEL over one step of a plan: what must be true of each; empty: plain words only


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """A constraint that a proposal does not keep: by its number, and the first step that breaks it.

    `why`: its predicate has no value there, which counts as not kept.
    """

    constraint: int
    text: str
    name: str = ""
    step: str = ""
    why: str = ""


class Confirmed(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A person's word that a constraint which the agent inferred is one. Its source stays what it is."""

    by: Actor
    at: datetime
    note: str = ""


class Sender(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The process that sends, so that it can later be known to be dead. `uptime` is the host's, at the send."""

    host: str
    boot: str
    pid: int
    started: str
    uptime: timedelta


class Terms(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the tool declared when the intent was made: the rules of an unknown outcome."""

    reversible: bool
    queryable: bool
    retention: timedelta | None
    dispatch_window: timedelta
    timeout: timedelta
    settle: timedelta
    patience: timedelta
    guarded: bool = False  #: every call carries a deadline or precondition that the other side enforces
    repeatable: bool = False  #: other lineages may do the same operation: its id is no conflict there

    @property
    def settles_after(self) -> timedelta:
        """For how long after a send a "not found" is no evidence."""
        return self.dispatch_window + self.timeout + self.settle

    @property
    def blind(self) -> bool:
        """Neither to be asked about nor safe to send again: only the mark before the call tells anything."""
        return not self.queryable and self.retention is None and not self.guarded


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a revalidation report. `was` and `now` are the two values that were compared, as text."""

    name: str
    passed: bool
    subject: str = ""
    was: str = ""
    now: str = ""
    unread: bool = False  #: it failed because its source could not be read; `now` says why
    became: str = ""  #: of a constraint that failed: `withdrawn` or `amended`


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request or an approval is void: what changed, from what to what."""

    what: str
    subject: str
    was: str
    now: str


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run needs a human: a code of `transitions.REASONS`, what it is about, and the evidence in words."""

    code: str
    subject: str = ""
    evidence: str = ""


class MatchFound(msgspec.Struct, frozen=True, kw_only=True):
    """One record that the outside has under an operation id."""

    reference: str
    operation_id: str
    key: str | None
    account: str
    final: bool
    reversed: bool
    arguments: Raw


class Owed(msgspec.Struct, frozen=True, kw_only=True):
    """An obligation that a successor takes over. `by` is the step whose receipt discharges it; empty: none does."""

    text: str
    by: str
    due_at: datetime | None
    to: str = ""
    source: str = "plan"  #: as in `state.Source`
    owner: Actor | None = None
    overdue: bool = False  #: that its time was over is recorded already


class Promised(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the other side takes for promised with an effect that it confirmed: to whom, and how long from then on."""

    text: str
    to: str = ""
    due: timedelta | None = None


class Inherited(msgspec.Struct, frozen=True, kw_only=True):
    """A standing effect of the lineage: done in an earlier run, never to be done again for the same arguments."""

    run: str
    effect: int
    step: str
    tool: str
    system: str
    operation_id: str
    arguments: Raw
    arguments_digest: str
    reference: str
    title: str
    round: int = 0
    seq: int = 0  #: the event by which the run that holds it now took it over
    sensitive: tuple[str, ...] = ()  #: as of the plan step


class Bound(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An argument that the plan had left open, with the value that came for it before the send."""

    path: str
    value: Raw
    source: str  #: the event that gave it, as `run:seq`


class SignalKept(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that a successor takes over from the run before it."""

    id: str
    name: str
    payload: Raw
    by: Actor
    at: datetime


class GoalTaken(msgspec.Struct, frozen=True, kw_only=True):
    """The revision, in an earlier run of the lineage, that a successor's goal is: who wrote it, when and why."""

    run: str
    version: int
    author: Actor
    at: datetime
    reason: str


class Lent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a principal lent at that time, and the id of the grant that says what of it holds now. No credential.

    `scopes` are names of writing tools or systems, and `runs` for starting runs. `bound`: to a session of theirs.
    """

    grant: str
    principal: str
    name: str
    scopes: tuple[str, ...]
    expires_at: datetime
    budget: str | None = None
    bound: bool = False


class RunStarted(Event, frozen=True, kw_only=True):
    """A person or a program started the run."""

    run: str
    tenant: str
    agent: str
    agent_version: str
    goal: str
    input: Raw
    creator: str
    principal: str
    lineage: str
    start_key: str
    constraints: tuple[Term, ...]
    deadline: datetime | None = None
    budget: str | None = None  #: how much its effects may cost in all, as a decimal; None: no limit
    predecessor: str = ""
    obligations: tuple[Owed, ...] = ()
    inherited: tuple[Inherited, ...] = ()
    rounds: dict[str, int] = {}
    #: operation -> the key under which an earlier run of the lineage sent it and was told that it did not happen. A
    #: sender that was stopped may still come through under that key, so a later send goes out under the same.
    keys: dict[str, str] = {}
    #: The code that it is bound to: part (such as tool:pay, policy, prompt) -> version or digest. A log from before
    #: this was recorded has none.
    code: dict[str, str] = {}
    parent: str = ""  #: the run that started this one for its step `parent_step`, and waits for it
    parent_step: str = ""
    depth: int = 0  #: how many runs stand above it
    signals: tuple[SignalKept, ...] = ()
    lent: Lent | None = None  #: None: of a log from before grants were recorded
    history_lost: bool = False  #: the run that it comes from may have done more than is recorded
    #: A successor's goal that was written while an earlier run pursued it.
    goal_taken: GoalTaken | None = None
    sensitive: tuple[str, ...] = ()  #: paths in `input`, as its agent named them
    projected: str = "1.1"  #: as of ProjectionRebuilt
    #: What a person withdrew for an earlier run of the lineage alone: the same constraint is not accepted again, though
    #: it stands. As `constraints.identity` names them.
    exempt: tuple[str, ...] = ()
    #: Constraint number, as text -> who confirmed it in an earlier run, of those that an agent inferred.
    confirmed: dict[str, Confirmed] = {}


class RunTakenIn(Event, frozen=True, kw_only=True):
    """A person took the run in from its checkpoint: what happened up to event `seq` is not in this log.

    `checkpoint` is the canonical text that `digest` is of, `head` the hash of the last event before it. The tenant is
    the one here, the principal the person who lends the run authority from now on.
    """

    run: str
    tenant: str
    principal: str
    seq: int
    head: str
    digest: str
    checkpoint: Raw
    lent: Lent | None = None
    projected: str = "1.1"  #: as of ProjectionRebuilt, in the database that it was taken in to


class AuthorityLent(Event, frozen=True, kw_only=True):
    """Somebody lent anew to a run whose grant `was` does not carry it any more: it needs a person's approval again.

    `budget` is what the run may cost in all from here on, where it has a budget of its own.
    """

    lent: Lent
    was: str
    note: str
    budget: str | None = None


class ObservationRecorded(Event, frozen=True, kw_only=True):
    """A reading tool read an external fact. `observed_at` is when the reading began."""

    tool: str
    arguments: Raw
    value: Raw
    resource: str
    version: str
    observed_at: datetime
    half_life: timedelta
    sensitive: tuple[str, ...] = ()  #: paths in `arguments` and `value`, as the tool named them


class ObservationReread(Event, frozen=True, kw_only=True):
    """A person had an external fact read once more. It moves nothing: what the plan rests on stays as it was read.

    Where it is as it was, it counts as read now. Where it is not, that stands beside the observation, and the run finds
    it by itself before it goes on.
    """

    tool: str
    arguments: Raw
    value: Raw
    resource: str
    version: str
    observed_at: datetime
    half_life: timedelta
    sensitive: tuple[str, ...] = ()


class AttemptFailed(Event, frozen=True, kw_only=True):
    """Something that has no effect outside did not work and is tried again at `retry_at`."""

    what: str
    detail: str
    retry_at: datetime
    held_by: str = ""  #: the effect of another run of the lineage that has to be settled first


class ProposalRefused(Event, frozen=True, kw_only=True):
    """The planner proposed something that `validate` does not allow. Nothing moved."""

    problems: tuple[str, ...]
    broken: tuple[Broken, ...] = ()  #: the constraints that it does not keep


class PlanProposed(Event, frozen=True, kw_only=True):
    """A plan version. `document` is the canonical text that its digest is of and that will be executed."""

    version: int
    document: Raw
    digest: str
    claim: str
    takes: tuple[int, ...] = ()  #: the proposed constraints that the planner says it keeps to


class Quorum(msgspec.Struct, frozen=True, kw_only=True):
    """At least so many of those who approve are in one of these groups, when it counts."""

    needed: int
    groups: tuple[str, ...]


class Unpassed(msgspec.Struct, frozen=True, kw_only=True):
    """A check of the policy that the plan does not pass: hard, or soft, which an approver overrides knowingly."""

    name: str
    kind: str
    sentence: str


class ApprovalRequested(Event, frozen=True, kw_only=True):
    """The plan version waits for people. `conditions` is the canonical text of all that an approval is bound
    to.
    """

    request: str
    version: int
    digest: str
    conditions: Raw
    conditions_digest: str
    needed: int
    right: str
    policy_version: str
    expires_at: datetime
    excluded: dict[str, str] = {}
    quorums: tuple[Quorum, ...] = ()
    not_by: tuple[str, ...] = ()  #: parties that are looked up whenever it counts, since no list can be kept
    announce_at: datetime | None = None  #: when its end is announced
    unpassed: tuple[
        Unpassed, ...
    ] = ()  #: what counts where a decision is taken without the policy's code at hand


class PlanApprovedByPolicy(Event, frozen=True, kw_only=True):
    """The policy asks for nobody's approval of this plan version."""

    version: int
    digest: str
    policy_version: str


class ApprovalGiven(Event, frozen=True, kw_only=True):
    """One person's agreement; the quorum may not be reached yet. `overrides` are failing checks that they know of."""

    request: str
    version: int
    digest: str
    person: str
    submission: str
    reason: str
    overrides: tuple[str, ...] = ()


class PlanApproved(Event, frozen=True, kw_only=True):
    """The quorum is reached: the approval stands under its conditions."""

    request: str
    version: int
    digest: str


class PlanRejected(Event, frozen=True, kw_only=True):
    """A person rejected the plan version."""

    request: str
    version: int
    digest: str
    person: str
    submission: str
    reason: str


class ChangesAsked(Event, frozen=True, kw_only=True):
    """A person asked for another plan version; `reason` reaches the planner."""

    request: str
    version: int
    digest: str
    person: str
    submission: str
    reason: str


class ApprovalTakenBack(Event, frozen=True, kw_only=True):
    """A person took their own approval back: the request is over, and nothing more is sent on it."""

    request: str
    version: int
    digest: str
    person: str
    submission: str
    reason: str


class ApprovalVoided(Event, frozen=True, kw_only=True):
    """Something that the request or approval was bound to changed."""

    request: str
    version: int
    causes: tuple[Cause, ...]


class ExpiryAnnounced(Event, frozen=True, kw_only=True):
    """The time for which the request or the approval stands is nearly over; said once."""

    request: str
    version: int
    expires_at: datetime


class ApprovalExpired(Event, frozen=True, kw_only=True):
    """The time for which the request or the approval stands is over."""

    request: str
    version: int


class PlanVoided(Event, frozen=True, kw_only=True):
    """The plan version is not valid any more; the planner makes another."""

    version: int
    causes: tuple[Cause, ...]


class RevalidationPassed(Event, frozen=True, kw_only=True):
    """All checks passed; the run may go on."""

    checks: tuple[Check, ...]


class RevalidationRefused(Event, frozen=True, kw_only=True):
    """At least one check failed; what follows from it stands in the next events."""

    checks: tuple[Check, ...]


class ChecksMade(Event, frozen=True, kw_only=True):
    """A person had all checks made. The report is kept; nothing follows from it."""

    checks: tuple[Check, ...]


class ProjectionRebuilt(Event, frozen=True, kw_only=True):
    """The rows beside the log were made by another version of the reducer; they were made anew from the events."""

    was: str  #: versions of the reducer and of the rows, as `projection.PROJECTED`
    now: str


class HistoryChanged(Event, frozen=True, kw_only=True):
    """The database is not the one, or not on the timeline, that the run was last held on: events may be lost.

    From here on nothing is sent for the first time before the outside said that it was not done.
    """

    was: str
    now: str


class EffectIntended(Event, frozen=True, kw_only=True):
    """The intent of an effect and its first send. The tool may be called once this is committed."""

    effect: int
    step: str
    tool: str
    system: str
    account: str
    operation_id: str
    key: str
    round: int
    arguments: Raw
    arguments_digest: str
    plan_version: int
    terms: Terms
    sender: Sender
    bound: tuple[Bound, ...] = ()  #: of the arguments, those that the plan had left open
    title: str = ""  #: where some were: what the effect is with all of them, and what it costs
    cost: str | None = None
    grant: str = ""  #: what its cost is reserved on


class EffectSent(Event, frozen=True, kw_only=True):
    """A later send of the same intent, under the same key."""

    effect: int
    sender: Sender
    grant: str = ""


class EffectDispatched(Event, frozen=True, kw_only=True):
    """The mark of a blind tool: from here on the call may have begun. Without it nothing was sent."""

    effect: int


class EffectUnsent(Event, frozen=True, kw_only=True):
    """The holder is gone and left no mark: this send of a blind tool never began."""

    effect: int


class EffectAnswered(Event, frozen=True, kw_only=True):
    """A step whose effect stands already: answered from that receipt, nothing was sent."""

    step: str
    effect: int
    plan_version: int


class StepAnswered(Event, frozen=True, kw_only=True):
    """A step whose effect stands in an earlier run of the lineage: answered from that receipt, nothing was sent."""

    step: str
    run: str
    effect: int
    reference: str
    plan_version: int


class OutcomeUnknown(Event, frozen=True, kw_only=True):
    """The effect may have happened. `detail` says how that came to be known."""

    effect: int
    detail: str
    # Not `Raw | None`: msgspec would then read back nothing but null.
    evidence: Raw = Raw(b"null")


class ReceiptStored(Event, frozen=True, kw_only=True):
    """What the other side answered, and so what is certain: executed, or definitely not.

    `source` is `call`, or `query` with the seq of the answer; `failed` is the postcondition that does not
    hold.
    """

    effect: int
    executed: bool
    reference: str
    evidence: Raw
    source: str
    detail: str = ""
    failed: str | None = None
    asked: int | None = None
    versions: dict[str, str] = {}
    promises: tuple[Promised, ...] = ()  #: as the tool reads them from the evidence


class EffectQueried(Event, frozen=True, kw_only=True):
    """The outside was asked what became of an effect. Nothing was sent. `failure` is set where it gave no
    answer.
    """

    effect: int
    failure: str | None
    matches: tuple[MatchFound, ...]
    account: str
    evidence: Raw
    boot: str
    uptime: timedelta
    next_at: datetime | None = None


class EffectReconciled(Event, frozen=True, kw_only=True):
    """A conclusion about an unknown effect from evidence that the outside gave at `asked`."""

    effect: int
    happened: bool
    asked: int
    reference: str
    note: str
    promises: tuple[Promised, ...] = ()


class EffectAttested(Event, frozen=True, kw_only=True):
    """A person's statement about an unknown effect, against or without the outside's answer. Never a receipt.

    `reference` names the external proof where it happened; `how` says how it was established.
    """

    effect: int
    happened: bool
    reference: str
    how: str
    person: str


class AttestationAccepted(Event, frozen=True, kw_only=True):
    """Enough people attested the same: the effect is settled by their statement, and shown as such for ever."""

    effect: int
    happened: bool
    reference: str


class EvidenceKept(Event, frozen=True, kw_only=True):
    """Evidence that came where it cannot move anything any more; kept, and shown where it contradicts the
    record.
    """

    effect: int
    executed: bool | None
    reference: str
    evidence: Raw
    source: str
    contradicts: bool
    raises: bool = False  #: it stands against the record until a person settles it


class ContradictionStated(Event, frozen=True, kw_only=True):
    """A person's finding about evidence that contradicts the record of a settled effect. Never a receipt.

    `evidence` is the seq of the EvidenceKept, `finding` a state.Finding, `how` how it was established.
    """

    effect: int
    evidence: int
    finding: str
    reference: str
    how: str
    person: str


class ContradictionSettled(Event, frozen=True, kw_only=True):
    """Enough people found the same. The record and the late evidence both stay; `settles` are the seqs of all late
    evidence about the effect that nothing is left to say about.
    """

    effect: int
    evidence: int
    finding: str
    reference: str
    settles: tuple[int, ...]
    owes: str = ""  #: what has to be undone by hand or by a later step, where it happened twice


class InheritedLost(Event, frozen=True, kw_only=True):
    """People found that an effect of another run of the lineage did not happen: nothing here rests on it any more.

    `steps` had been answered from it. Doing the operation here is a round after that one.
    """

    run: str
    effect: int
    operation: str
    round: int
    steps: tuple[str, ...]


class ArtifactKept(Event, frozen=True, kw_only=True):
    """Bytes that stand in the storage under `artifact`, their hash, belong to the run: a file, evidence or a result.

    They were stored before this event was written. `about` names what they belong to: an effect, an observation.
    """

    artifact: str
    name: str
    kind: str
    media_type: str
    size: int
    about: str = ""


class HumanNeeded(Event, frozen=True, kw_only=True):
    """The run cannot safely go on by itself."""

    reasons: tuple[Reason, ...]


class RunResumed(Event, frozen=True, kw_only=True):
    """A person decided that the run goes on from where it was. Rounds of the named steps are raised."""

    decision: str
    note: str
    raised: tuple[str, ...] = ()


class VersionMoved(Event, frozen=True, kw_only=True):
    """A person decided that another version of the agent goes on with the run. `code` is the new record.

    `voids` is what changed of the tools and the policy that the plan rests on: where it is not empty, that plan and
    its approval end here.
    """

    was: str
    now: str
    code: dict[str, str]
    note: str
    voids: tuple[Cause, ...] = ()


class GoalRevised(Event, frozen=True, kw_only=True):
    """A person gave the run another goal; `version` counts from the original, 1, which stays as it was.

    The request or approval for the goal before ends here, and so does its plan, unless something is in flight, unknown
    or going on in a child: then the plan ends once that is settled.
    """

    version: int
    text: str
    reason: str


class ConstraintAccepted(Event, frozen=True, kw_only=True):
    """The run accepted another constraint after it had started. The plan before ends, as with a revised goal."""

    number: int
    term: Term
    reason: str = ""
    observed: int = 0  #: the observation that the agent inferred it from, where that is its source


class ConstraintConfirmed(Event, frozen=True, kw_only=True):
    """A person confirmed a constraint that the agent had inferred. It binds as before; nothing else changes."""

    number: int
    note: str = ""


class ConstraintWithdrawn(Event, frozen=True, kw_only=True):
    """The constraint does not hold any more: at its source, or for this run alone. The run has no valid continuation.

    `by`: who withdrew it, where that is known. What was made under it ends as with a revised goal.
    """

    number: int
    why: str
    by: Actor | None = None
    here: bool = False  #: for this run alone; at its source it stands


class ConstraintAmended(Event, frozen=True, kw_only=True):
    """The source states the constraint otherwise: `term`. The run stops until a person accepts that, or ends it."""

    number: int
    term: Term
    why: str = ""
    by: Actor | None = None


class AmendmentAccepted(Event, frozen=True, kw_only=True):
    """A person accepted for the run what the source states now: `term` takes the place of the one before."""

    number: int
    term: Term
    reason: str


class ReplanOrdered(Event, frozen=True, kw_only=True):
    """A person decided that the planner makes another plan; `note` reaches it."""

    note: str


class CancelRequested(Event, frozen=True, kw_only=True):
    """The run shall end at the next safe point; with `undo` what it did and can be undone is undone first.

    `owner` is the person who is to keep what the run then still owes.
    """

    note: str
    undo: bool = False
    owner: Actor | None = None


class CancelBegan(Event, frozen=True, kw_only=True):
    """Nothing is in flight or unknown: the run is ending."""


class RunCancelled(Event, frozen=True, kw_only=True):
    """The run ended before its goal. Open obligations are handed to a person: each to `owner`, unless it has one."""

    obligations: tuple[int, ...]
    owner: Actor | None = None


class ObligationOpened(Event, frozen=True, kw_only=True):
    """A person wrote down what the run owes: to whom, until when, and who keeps it.

    `by` is the step whose receipt discharges it; empty: only an attestation does.
    """

    text: str
    to: str
    owner: Actor
    due_at: datetime | None = None
    by: str = ""


class ObligationAttested(Event, frozen=True, kw_only=True):
    """A person's statement that what was promised is done: how that was established, by which proof. No receipt."""

    obligation: int
    how: str
    reference: str
    person: str


class ObligationHandedOn(Event, frozen=True, kw_only=True):
    """Another person keeps the obligation from here on."""

    obligation: int
    owner: Actor
    note: str = ""


class ObligationOverdue(Event, frozen=True, kw_only=True):
    """The time by which the obligation had to be done is over, and it is open. Said once."""

    obligation: int
    due_at: datetime


class EffectCompensated(Event, frozen=True, kw_only=True):
    """Another run undid an effect of this one, which had ended: it stands no more.

    `stands`: people found that it was not undone after all, so it stands again.
    """

    effect: int
    by_run: str
    by_effect: int
    stands: bool = False


class PlanCarriedOut(Event, frozen=True, kw_only=True):
    """Every step of a plan that was not the last one is done; the planner makes the next."""

    version: int


class WaitBegan(Event, frozen=True, kw_only=True):
    """The run waits for a timer, a signal or its children. Nothing is held meanwhile."""

    step: str
    kind: str
    digest: str
    signal: str = ""
    length: timedelta | None = None
    until: datetime | None = None


class WaitEnded(Event, frozen=True, kw_only=True):
    """What a step waited for came; `signal` is the id of the answer."""

    step: str
    signal: str = ""


class SignalReceived(Event, frozen=True, kw_only=True):
    """An answer came from outside. It is kept until a step waits for it."""

    id: str
    name: str
    payload: Raw


class ChildStarted(Event, frozen=True, kw_only=True):
    """A step started a child run, in the transaction that holds this event."""

    run: str
    step: str
    name: str
    agent: str
    agent_version: str
    goal: str
    input: Raw
    budget: str | None = None


class ChildReplaced(Event, frozen=True, kw_only=True):
    """A child was restarted: its successor is waited for."""

    run: str
    successor: str


class ChildEnded(Event, frozen=True, kw_only=True):
    """A child is over: in what state, what it spent, and what it did that stands."""

    run: str
    ended: str
    spent: str
    standing: tuple[Inherited, ...] = ()
    rounds: dict[str, int] = {}
    keys: dict[str, str] = {}


class RunRestarted(Event, frozen=True, kw_only=True):
    """This run has no valid continuation; `successor` goes on with its goal, and with what stands."""

    successor: str
    note: str


class RunSucceeded(Event, frozen=True, kw_only=True):
    """Every step done, every postcondition true, no obligation open, nothing in flight or unknown."""


ALL: tuple[type[Event], ...] = (
    RunStarted,
    RunTakenIn,
    AuthorityLent,
    ObservationRecorded,
    AttemptFailed,
    ProposalRefused,
    PlanProposed,
    ApprovalRequested,
    PlanApprovedByPolicy,
    ApprovalGiven,
    PlanApproved,
    PlanRejected,
    ChangesAsked,
    ApprovalTakenBack,
    ApprovalVoided,
    ExpiryAnnounced,
    ApprovalExpired,
    PlanVoided,
    RevalidationPassed,
    RevalidationRefused,
    ChecksMade,
    ProjectionRebuilt,
    HistoryChanged,
    EffectIntended,
    EffectSent,
    EffectDispatched,
    EffectUnsent,
    EffectAnswered,
    StepAnswered,
    OutcomeUnknown,
    ReceiptStored,
    EffectQueried,
    EffectReconciled,
    EffectAttested,
    AttestationAccepted,
    EvidenceKept,
    ContradictionStated,
    ContradictionSettled,
    InheritedLost,
    ArtifactKept,
    HumanNeeded,
    RunResumed,
    VersionMoved,
    GoalRevised,
    ConstraintAccepted,
    ConstraintConfirmed,
    ConstraintWithdrawn,
    ConstraintAmended,
    AmendmentAccepted,
    ReplanOrdered,
    PlanCarriedOut,
    WaitBegan,
    WaitEnded,
    SignalReceived,
    ChildStarted,
    ChildReplaced,
    ChildEnded,
    CancelRequested,
    CancelBegan,
    EffectCompensated,
    RunCancelled,
    RunRestarted,
    RunSucceeded,
    ObligationOpened,
    ObligationAttested,
    ObligationHandedOn,
    ObligationOverdue,
    ObservationReread,
)
#: Each type's version, as it is written now.
VERSIONS: dict[type[Event], int] = dict.fromkeys(ALL, 1)
TYPES: dict[str, type[Event]] = {cls.__name__: cls for cls in VERSIONS}


class Recorded(msgspec.Struct, frozen=True, gc=False):
    """An event with its place in the log: what `evolve` reduces. `at` never goes back within a run."""

    seq: int
    at: datetime
    actor: Actor
    event: Event


class UnknownEvent(Exception):
    """This build cannot read the event at `seq`: the run is refused, reading its pages still works."""

    def __init__(self, seq: int, type_: str, version: int, why: str = "") -> None:
        self.seq, self.type, self.version = seq, type_, version
        why = why or "which this build does not know"
        super().__init__(f"event {seq} is {type_} version {version}, {why}")


_encoder = msgspec.json.Encoder(decimal_format="string")
_decoders = {name: msgspec.json.Decoder(cls) for name, cls in TYPES.items()}


def encode(event: Event) -> str:
    """The text of the body that is stored and digested."""
    return _encoder.encode(event).decode()


def decode(*, seq: int, type_: str, version: int, body: str) -> Event:
    """The event of a stored body. Raises UnknownEvent; msgspec.ValidationError where the body is damaged."""
    cls = TYPES.get(type_)
    if cls is None or not 1 <= version <= VERSIONS[cls]:
        raise UnknownEvent(seq, type_, version)
    if version < VERSIONS[cls]:
        try:
            body = upcast(body, type_=type_, version=version, to=VERSIONS[cls])
        except NoWay as error:
            raise UnknownEvent(seq, type_, version, error.why) from error
    return _decoders[type_].decode(body)


def raw(text: str) -> Raw:
    """Canonical text as a value inside an event."""
    return Raw(text.encode())


def text_of(value: Raw) -> str:
    """The very text that was stored."""
    return str(value, "utf-8")


def value_of(value: Raw) -> Any:
    """The JSON value, for reading only: digests are never made from it."""
    return msgspec.json.decode(value)
