"""state + event -> state, and its fold.

`evolve` is pure: it works on a draft that nobody else sees. `reduce` folds a whole log into one draft. What
an event does to the run's state is the table's; what it does to the parts is one small function per event
type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from operator import attrgetter
from typing import Any, Final

import msgspec
from msgspec.structs import astuple, replace

from runs.machine import assumptions, constraining, evolving, obligations, observing, settling, taking_in
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.back_off import back_off
from runs.machine.transitions import BY_DIRECTION, Move, target
from runs.machine.waits import Child, Signal, Wait

#: Grows when the same log comes to amount to another state.
REDUCER_VERSION: Final = 1
_document = msgspec.json.Decoder(s.PlanDocument)
_FIELDS = s.RunState.__struct_fields__
_parts = attrgetter(*_FIELDS)


class Draft:
    """A state under construction: the fields of RunState, its mappings copied and open to change."""

    seq: int
    at: datetime
    state: s.State
    identity: s.Identity
    goals: tuple[s.Goal, ...]
    constraints: tuple[s.Constraint, ...]
    direction: s.Direction
    before: s.State | None
    since: datetime | None
    reasons: tuple[e.Reason, ...]
    observations: dict[tuple[str, str], s.Observation]
    obligations: tuple[s.Obligation, ...]
    plans: tuple[s.PlanVersion, ...]
    requests: tuple[s.Request, ...]
    effects: dict[int, s.Effect]
    done: dict[str, int]
    rounds: dict[str, int]
    keys: dict[str, str]
    produced: dict[str, str]
    artifacts: dict[int, s.Artifact]
    advice: tuple[str, ...]
    inherited: tuple[e.Inherited, ...]
    successor: str
    history_lost: bool
    revalidation: s.Revalidation | None
    returned_seq: int
    cancel_requested: bool
    undo_requested: bool
    cancelled_by: e.Actor | None
    hands_to: e.Actor | None
    undone: tuple[e.Inherited, ...]
    waits: dict[str, Wait]
    signals: tuple[Signal, ...]
    children: dict[str, Child]
    retry_at: datetime | None
    failures: int
    replans: int
    reads: int
    blocked: s.Blocked | None
    taken_in: s.TakenIn | None
    lendings: tuple[s.Lending, ...]
    checked: s.Revalidation | None
    projected: str
    constrained_seq: int

    def __init__(self, state: s.RunState | None) -> None:
        self.started = state is not None
        if state is not None:
            # All fields at once: this is done for every event that is written.
            values = zip(_FIELDS, astuple(state), strict=True)
            self.__dict__.update({n: dict(v) if type(v) is dict else v for n, v in values})

    def freeze(self) -> s.RunState:
        """The state as of the last event taken."""
        return s.RunState(**dict(zip(_FIELDS, _parts(self), strict=True)))

    def take(self, recorded: e.Recorded) -> None:
        """Reduce one event. Raises Refused for a pair that the table lacks."""
        event = recorded.event
        kind = type(event)
        move = target(self.state if self.started else None, kind)
        if not self.started:
            self._begin()
        self.seq, self.at = recorded.seq, recorded.at
        HANDLERS[kind](self, event, recorded)
        if move is not Move.SAME:
            self._move(move, recorded)

    def _begin(self) -> None:
        """Fresh containers, never the shared defaults of the class."""
        self.observations, self.effects, self.done, self.produced = {}, {}, {}, {}
        self.rounds, self.keys, self.artifacts, self.waits, self.children = {}, {}, {}, {}, {}
        self.signals, self.undone, self.undo_requested = (), (), False
        self.reasons, self.obligations, self.plans, self.requests, self.advice = (), (), (), (), ()
        self.direction, self.before, self.since, self.revalidation = s.Direction.FORWARD, None, None, None
        self.returned_seq = self.failures = self.replans = self.reads = self.constrained_seq = 0
        self.cancel_requested, self.cancelled_by, self.hands_to, self.retry_at = False, None, None, None
        self.inherited, self.successor, self.history_lost, self.blocked = (), "", False, None
        self.taken_in = None
        self.lendings, self.checked, self.projected = (), None, ""

    def _move(self, move: s.State | Move, recorded: e.Recorded) -> None:
        new = self._new_state(move)
        if not self.started:
            self.state, self.since = new, recorded.at
            self.started = True
        elif new is not self.state:
            self._leave(new, recorded.seq)
            self.state, self.since = new, recorded.at
            if new in s.TERMINAL:
                settling.name_contradiction(self)

    def _new_state(self, move: s.State | Move) -> s.State:
        if isinstance(move, s.State):
            return move
        if move is Move.RESTORES:
            return self.state
        if move in BY_DIRECTION:
            return BY_DIRECTION[move][self.direction]
        if move is Move.SETTLES and not self._settled():
            return self.state
        if move is Move.REBOUND:
            return self._rebound()
        if self.before is None:
            raise ValueError(f"{self.state} has no state to return to")
        return self.before

    def _rebound(self) -> s.State:
        """Back to where it was, or to planning where its plan ended with the move; stopped while a reason is left."""
        ended = bool(self.plans) and self.plans[-1].voided_seq == self.seq
        back = BY_DIRECTION[Move.REPLANS][self.direction] if ended else self.before or self.state
        if not self.reasons:
            return back
        self.before = back
        return self.state

    def _leave(self, new: s.State, seq: int) -> None:
        """Remember where to return to when the run is stopped; forget it when it goes on."""
        stops = (s.State.UNKNOWN, s.State.NEEDS_HUMAN)
        if self.state is s.State.WAITING and new not in stops:
            self.returned_seq = seq  # time has passed: all checks are made again
        if new in stops:
            self.before = self.state if self.state not in stops else self.before
        elif self.state in stops:
            self.before, self.reasons, self.returned_seq = None, (), seq

    def _settled(self) -> bool:
        """Nothing in flight or unknown any more, and no other reason to stay."""
        if any(x.status in s.OPEN_EFFECT for x in self.effects.values()):
            return False
        self.reasons = tuple(r for r in self.reasons if r.code not in ("effect_unknown", "effect_conflict"))
        settling.name_contradiction(self)
        return not self.reasons


Handler = Callable[[Draft, Any, e.Recorded], None]
HANDLERS: dict[type[e.Event], Handler] = {}


def _on(event_type: type[e.Event]) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        HANDLERS[event_type] = handler
        return handler

    return register


def evolve(state: s.RunState | None, recorded: e.Recorded) -> s.RunState:
    """The state after one more event. Raises transitions.Refused for a pair that the table lacks."""
    draft = Draft(state)
    draft.take(recorded)
    return draft.freeze()


def reduce(log: Iterable[e.Recorded]) -> s.RunState:
    """The state that a log amounts to. The log starts with RunStarted; raises Refused where it cannot be so."""
    draft = Draft(None)
    for recorded in log:
        draft.take(recorded)
    return draft.freeze()


HANDLERS[e.RunTakenIn] = taking_in.taken_in
HANDLERS[e.EvidenceKept] = settling.kept
HANDLERS[e.ContradictionStated] = settling.stated
HANDLERS[e.InheritedLost] = settling.inherited_lost
HANDLERS.update({**evolving.HANDLERS, **obligations.HANDLERS, **observing.HANDLERS})


@_on(e.RunStarted)
def _started(draft: Draft, event: e.RunStarted, recorded: e.Recorded) -> None:
    draft.identity = s.Identity(
        run=event.run, tenant=event.tenant, agent=event.agent, agent_version=event.agent_version,
        input=e.text_of(event.input), creator=event.creator, principal=event.principal, lineage=event.lineage,
        start_key=event.start_key, started_at=recorded.at, starter=recorded.actor, deadline=event.deadline,
        budget=event.budget, predecessor=event.predecessor, parent=event.parent, parent_step=event.parent_step,
        depth=event.depth, code=event.code, sensitive=event.sensitive, exempt=event.exempt,
    )  # fmt: skip
    draft.signals = evolving.signals_kept(event, recorded)
    draft.goals = (evolving.first_goal(event, recorded),)
    if event.lent:
        draft.lendings = (s.Lending(lent=event.lent, seq=recorded.seq, at=recorded.at),)
    draft.constraints = tuple(
        s.Constraint(
            number=n, term=term, seq=recorded.seq, at=recorded.at, confirmed=event.confirmed.get(str(n))
        )
        for n, term in enumerate(event.constraints, 1)
    )

    draft.history_lost, draft.projected = event.history_lost, event.projected
    draft.inherited = tuple(replace(x, seq=recorded.seq) for x in event.inherited)
    draft.rounds, draft.keys = dict(event.rounds), dict(event.keys)
    draft.obligations = obligations.taken_over(event, recorded)


@_on(e.ObservationRecorded)
def _observed(draft: Draft, event: e.ObservationRecorded, recorded: e.Recorded) -> None:
    key = (event.tool, e.text_of(event.arguments))
    known = draft.observations.get(key)
    draft.observations[key] = s.Observation(
        number=known.number if known else len(draft.observations) + 1, tool=event.tool, arguments=key[1],
        value=e.text_of(event.value), resource=event.resource, version=event.version,
        observed_at=event.observed_at, half_life=event.half_life, seq=recorded.seq, sensitive=event.sensitive,
    )  # fmt: skip
    draft.retry_at, draft.failures = None, 0
    draft.reads += 1


@_on(e.AttemptFailed)
def _failed(draft: Draft, event: e.AttemptFailed, recorded: e.Recorded) -> None:
    draft.retry_at = event.retry_at
    if not event.held_by:
        draft.failures += 1
        return
    since = draft.blocked.since if draft.blocked else recorded.at
    draft.blocked = s.Blocked(
        by=event.held_by, since=since, times=draft.blocked.times + 1 if draft.blocked else 1
    )


@_on(e.ProposalRefused)
def _proposal_refused(draft: Draft, event: e.ProposalRefused, recorded: e.Recorded) -> None:
    draft.failures += 1


@_on(e.PlanProposed)
def _proposed(draft: Draft, event: e.PlanProposed, recorded: e.Recorded) -> None:
    document = e.text_of(event.document)
    draft.plans += (
        s.PlanVersion(
            version=event.version, document=document, plan=_document.decode(document), digest=event.digest,
            claim=event.claim, takes=event.takes, seq=recorded.seq, at=recorded.at,
        ),
    )  # fmt: skip
    draft.done, draft.retry_at, draft.failures, draft.reads, draft.blocked = {}, None, 0, 0, None


@_on(e.PlanApprovedByPolicy)
def _by_policy(draft: Draft, event: e.PlanApprovedByPolicy, recorded: e.Recorded) -> None:
    draft.plans = (*draft.plans[:-1], replace(draft.plans[-1], by_policy=True))


@_on(e.ApprovalRequested)
def _requested(draft: Draft, event: e.ApprovalRequested, recorded: e.Recorded) -> None:
    draft.requests += (
        s.Request(
            id=event.request, version=event.version, digest=event.digest, conditions=e.text_of(event.conditions),
            conditions_digest=event.conditions_digest, needed=event.needed, right=event.right,
            policy_version=event.policy_version, expires_at=event.expires_at, status=s.RequestStatus.PENDING,
            seq=recorded.seq, at=recorded.at, excluded=event.excluded, quorums=event.quorums,
            not_by=event.not_by, announce_at=event.announce_at,
        ),
    )  # fmt: skip
    if draft.plans and draft.plans[-1].by_policy:
        # What the policy let pass needs people after all: authority was lent anew.
        draft.plans = (*draft.plans[:-1], replace(draft.plans[-1], by_policy=False))


def _decided(
    draft: Draft, event: Any, recorded: e.Recorded, verdict: str, status: s.RequestStatus | None
) -> None:
    decision = s.Decision(
        person=event.person, name=recorded.actor.name, verdict=verdict, reason=event.reason,
        submission=event.submission, seq=recorded.seq, at=recorded.at,
        overrides=getattr(event, "overrides", ()),
    )  # fmt: skip
    request = draft.requests[-1]
    _set_request(draft, recorded, status, decisions=(*request.decisions, decision))


def _set_request(draft: Draft, recorded: e.Recorded, status: s.RequestStatus | None, **parts: Any) -> None:
    """Change the latest request; a status that ends it is stamped with when."""
    if status is not None:
        parts["status"] = status
    if status is not None and status not in s.OPEN_REQUEST:
        parts |= {"closed_seq": recorded.seq, "closed_at": recorded.at}
    draft.requests = (*draft.requests[:-1], replace(draft.requests[-1], **parts))


@_on(e.ApprovalGiven)
def _given(draft: Draft, event: e.ApprovalGiven, recorded: e.Recorded) -> None:
    _decided(draft, event, recorded, "approve", None)


@_on(e.PlanApproved)
def _approved(draft: Draft, event: e.PlanApproved, recorded: e.Recorded) -> None:
    _set_request(draft, recorded, s.RequestStatus.VALID)


@_on(e.PlanRejected)
def _rejected(draft: Draft, event: e.PlanRejected, recorded: e.Recorded) -> None:
    _decided(draft, event, recorded, "reject", s.RequestStatus.REJECTED)
    draft.reasons = (
        *draft.reasons,
        e.Reason(code="plan_rejected", subject=f"v{event.version}", evidence=event.reason),
    )


@_on(e.ChangesAsked)
def _changes(draft: Draft, event: e.ChangesAsked, recorded: e.Recorded) -> None:
    _decided(draft, event, recorded, "ask", s.RequestStatus.CHANGES_ASKED)
    draft.advice += (event.reason,)
    _void_plan(draft, recorded, (e.Cause(what="changes_asked", subject=f"v{event.version}", was="", now=""),))


@_on(e.ApprovalTakenBack)
def _taken_back(draft: Draft, event: e.ApprovalTakenBack, recorded: e.Recorded) -> None:
    _decided(draft, event, recorded, "take_back", s.RequestStatus.TAKEN_BACK)


@_on(e.ApprovalVoided)
def _voided(draft: Draft, event: e.ApprovalVoided, recorded: e.Recorded) -> None:
    _set_request(draft, recorded, s.RequestStatus.VOIDED, causes=event.causes)


def _void_request(draft: Draft, recorded: e.Recorded, causes: tuple[e.Cause, ...]) -> None:
    if draft.requests and draft.requests[-1].status in s.OPEN_REQUEST:
        _set_request(draft, recorded, s.RequestStatus.VOIDED, causes=causes)


@_on(e.ExpiryAnnounced)
def _expiry_announced(draft: Draft, event: e.ExpiryAnnounced, recorded: e.Recorded) -> None:
    _set_request(draft, recorded, None, announced_seq=recorded.seq)


@_on(e.ApprovalExpired)
def _expired(draft: Draft, event: e.ApprovalExpired, recorded: e.Recorded) -> None:
    _set_request(draft, recorded, s.RequestStatus.EXPIRED)


@_on(e.PlanVoided)
def _plan_voided(draft: Draft, event: e.PlanVoided, recorded: e.Recorded) -> None:
    _void_plan(draft, recorded, event.causes)
    if not evolving.of_contract(event.causes):
        draft.replans += 1


def _void_plan(draft: Draft, recorded: e.Recorded, causes: tuple[e.Cause, ...]) -> None:
    """The plan version ends, and with it the request or approval that rests on it. What ended it first stays its cause
    where that was another goal or constraint.
    """
    _void_request(draft, recorded, causes)
    if draft.plans and not evolving.of_contract(draft.plans[-1].voided):
        draft.plans = (*draft.plans[:-1], replace(draft.plans[-1], voided=causes, voided_seq=recorded.seq))


@_on(e.RevalidationPassed)
@_on(e.RevalidationRefused)
def _revalidated(draft: Draft, event: Any, recorded: e.Recorded) -> None:
    passed = isinstance(event, e.RevalidationPassed)
    draft.revalidation = s.Revalidation(seq=recorded.seq, at=recorded.at, passed=passed, checks=event.checks)
    draft.retry_at, draft.failures = None, 0
    if passed:
        draft.replans = 0
    else:
        assumptions.found_broken(draft, event.checks, recorded)


@_on(e.ProjectionRebuilt)
def _rebuilt(draft: Draft, event: e.ProjectionRebuilt, recorded: e.Recorded) -> None:
    draft.projected = event.now


@_on(e.HistoryChanged)
def _history_changed(draft: Draft, event: e.HistoryChanged, recorded: e.Recorded) -> None:
    draft.history_lost = True


@_on(e.EffectIntended)
def _intended(draft: Draft, event: e.EffectIntended, recorded: e.Recorded) -> None:
    step = _step_named(draft.plans[-1].plan.steps, event.step, len(draft.done))
    send = s.Send(seq=recorded.seq, at=recorded.at, sender=event.sender)
    draft.blocked = None
    draft.effects[event.effect] = s.Effect(
        number=event.effect, step=event.step, tool=event.tool, system=event.system, account=event.account,
        operation_id=event.operation_id, key=event.key, round=event.round, arguments=e.text_of(event.arguments),
        arguments_digest=event.arguments_digest, plan_version=event.plan_version,
        title=event.title or (step.title if step else event.step),
        cost=event.cost if event.bound or step is None else step.cost, bound=event.bound,
        undoes=step.undoes if step else None,
        terms=event.terms, status=s.EffectStatus.IN_FLIGHT,
        intent_seq=recorded.seq, intent_at=recorded.at, sends=(send,), grant=event.grant,
    )  # fmt: skip


def _step_named(steps: tuple[s.PlanStep, ...], name: str, likely: int) -> s.PlanStep | None:
    """The step of this name, looked for first where it stands if the steps are done in their order."""
    if likely < len(steps) and steps[likely].name == name:
        return steps[likely]
    return next((x for x in steps if x.name == name), None)


def _set_effect(draft: Draft, number: int, **parts: Any) -> s.Effect:
    effect = replace(draft.effects[number], **parts)
    draft.effects[number] = effect
    return effect


@_on(e.EffectSent)
def _sent(draft: Draft, event: e.EffectSent, recorded: e.Recorded) -> None:
    send = s.Send(seq=recorded.seq, at=recorded.at, sender=event.sender)
    draft.blocked = None
    _set_effect(
        draft, event.effect, status=s.EffectStatus.IN_FLIGHT, receipt=None, unknown_since=None, next_ask_at=None,
        dispatched_seq=None, sends=(*draft.effects[event.effect].sends, send), grant=event.grant,
    )  # fmt: skip


@_on(e.EffectDispatched)
def _dispatched(draft: Draft, event: e.EffectDispatched, recorded: e.Recorded) -> None:
    _set_effect(draft, event.effect, dispatched_seq=recorded.seq)


@_on(e.EffectUnsent)
def _unsent(draft: Draft, event: e.EffectUnsent, recorded: e.Recorded) -> None:
    receipt = s.Receipt(
        seq=recorded.seq, at=recorded.at, executed=False, reference="", source="mark", detail="", failed=None
    )
    _settle(draft, event.effect, receipt, recorded)


@_on(e.EffectAnswered)
def _answered(draft: Draft, event: e.EffectAnswered, recorded: e.Recorded) -> None:
    _step_done(draft, event.step, event.effect, recorded.seq)


@_on(e.StepAnswered)
def _step_answered(draft: Draft, event: e.StepAnswered, recorded: e.Recorded) -> None:
    _step_done(draft, event.step, 0, recorded.seq)


@_on(e.EffectAttested)
def _attested(draft: Draft, event: e.EffectAttested, recorded: e.Recorded) -> None:
    said = s.Attestation(
        person=event.person, name=recorded.actor.name, happened=event.happened, reference=event.reference,
        how=event.how, seq=recorded.seq, at=recorded.at,
    )  # fmt: skip
    _set_effect(draft, event.effect, attestations=(*draft.effects[event.effect].attestations, said))


@_on(e.AttestationAccepted)
def _accepted(draft: Draft, event: e.AttestationAccepted, recorded: e.Recorded) -> None:
    receipt = s.Receipt(
        seq=recorded.seq, at=recorded.at, executed=event.happened, reference=event.reference,
        source="attestation", detail="", failed=None, by_person=True,
    )  # fmt: skip
    _settle(draft, event.effect, receipt, recorded)


@_on(e.ContradictionSettled)
def _contradiction_settled(draft: Draft, event: e.ContradictionSettled, recorded: e.Recorded) -> None:
    settling.settled(draft, event, recorded)
    effect = draft.effects[event.effect]
    if event.finding == s.Finding.HAPPENED:
        if step := settling.step_of(draft, effect):
            _step_done(draft, step, effect.number, recorded.seq)
        _open_promises(draft, effect, recorded)
        evolving.undone(draft, draft.effects[event.effect])


@_on(e.RunRestarted)
def _restarted(draft: Draft, event: e.RunRestarted, recorded: e.Recorded) -> None:
    draft.successor = event.successor
    _void_request(draft, recorded, (e.Cause(what="restarted", subject="", was="", now=event.successor),))


@_on(e.OutcomeUnknown)
def _unknown(draft: Draft, event: e.OutcomeUnknown, recorded: e.Recorded) -> None:
    effect = draft.effects[event.effect]
    first = recorded.at if effect.terms.queryable else recorded.at + back_off(len(effect.sends) - 1)
    _set_effect(
        draft, event.effect, status=s.EffectStatus.UNKNOWN, unknown_since=effect.unknown_since or recorded.at,
        unknown_detail=event.detail, next_ask_at=first,
    )  # fmt: skip


@_on(e.EffectQueried)
def _queried(draft: Draft, event: e.EffectQueried, recorded: e.Recorded) -> None:
    ask = s.Ask(
        seq=recorded.seq, at=recorded.at, by=recorded.actor, failure=event.failure, matches=event.matches,
        account=event.account, boot=event.boot, uptime=event.uptime,
    )  # fmt: skip
    asks = draft.effects[event.effect].asks
    _set_effect(draft, event.effect, asks=(*asks, ask), next_ask_at=event.next_at)


@_on(e.ReceiptStored)
def _receipt(draft: Draft, event: e.ReceiptStored, recorded: e.Recorded) -> None:
    receipt = s.Receipt(
        seq=recorded.seq, at=recorded.at, executed=event.executed, reference=event.reference,
        source=event.source, detail=event.detail, failed=event.failed,
    )  # fmt: skip
    draft.produced.update(event.versions)
    _settle(draft, event.effect, receipt, recorded)
    obligations.promised(draft, event.effect, event.promises, recorded)


@_on(e.EffectReconciled)
def _reconciled(draft: Draft, event: e.EffectReconciled, recorded: e.Recorded) -> None:
    receipt = s.Receipt(
        seq=recorded.seq, at=recorded.at, executed=event.happened, reference=event.reference,
        source="query", detail=event.note, failed=None, by_person=recorded.actor.kind is e.ActorKind.PERSON,
    )  # fmt: skip
    _settle(draft, event.effect, receipt, recorded)
    obligations.promised(draft, event.effect, event.promises, recorded)


def _settle(draft: Draft, number: int, receipt: s.Receipt, recorded: e.Recorded) -> None:
    """The effect is certain: confirmed, or definitely not executed."""
    status = s.EffectStatus.CONFIRMED if receipt.executed else s.EffectStatus.NOT_EXECUTED
    effect = _set_effect(draft, number, status=status, receipt=receipt, next_ask_at=None, conflict="")
    if receipt.executed:
        _step_done(draft, effect.step, number, recorded.seq)
        _open_promises(draft, effect, recorded)
        evolving.undone(draft, effect)


def _step_done(draft: Draft, step: str, effect: int, seq: int) -> None:
    """The step is done; what it discharges is discharged."""
    draft.done[step], draft.blocked = effect, None
    if draft.obligations:
        draft.obligations = tuple(
            replace(o, discharged_seq=seq) if o.open and o.by == step else o for o in draft.obligations
        )


def _open_promises(draft: Draft, effect: s.Effect, recorded: e.Recorded) -> None:
    """What the plan promised after this step opens, unless it is owed already."""
    latest = draft.plans[-1]  # nearly always the one; a search costs as much as all the rest of a receipt
    if latest.version != effect.plan_version:
        latest = next(p for p in reversed(draft.plans) if p.version == effect.plan_version)
    plan = latest.plan
    if not plan.promises:
        return
    owed = {(o.text, o.by) for o in draft.obligations if o.open}
    for promise in plan.promises:
        if promise.after == effect.step and (promise.text, promise.by) not in owed:
            draft.obligations += (_opened(len(draft.obligations) + 1, promise, recorded),)


def _opened(number: int, promise: s.PlanPromise, recorded: e.Recorded) -> s.Obligation:
    return s.Obligation(
        number=number, text=promise.text, by=promise.by, opened_seq=recorded.seq, opened_at=recorded.at,
        due_at=recorded.at + promise.due if promise.due else None,
    )  # fmt: skip


@_on(e.ArtifactKept)
def _artifact(draft: Draft, event: e.ArtifactKept, recorded: e.Recorded) -> None:
    number = len(draft.artifacts) + 1
    draft.artifacts[number] = s.Artifact(
        number=number, hash=event.artifact, name=event.name, kind=event.kind, media_type=event.media_type,
        size=event.size, about=event.about, seq=recorded.seq, at=recorded.at,
    )  # fmt: skip
    if event.kind == "result":
        draft.reads += 1


@_on(e.HumanNeeded)
def _human(draft: Draft, event: e.HumanNeeded, recorded: e.Recorded) -> None:
    known = {r.code for r in draft.reasons}
    draft.reasons += tuple(r for r in event.reasons if r.code not in known)
    draft.retry_at, draft.failures, draft.reads, draft.blocked = None, 0, 0, None


@_on(e.RunResumed)
def _resumed(draft: Draft, event: e.RunResumed, recorded: e.Recorded) -> None:
    for step in draft.plans[-1].plan.steps if event.raised else ():
        if step.name in event.raised:
            operation = f"{step.system} {step.operation_id}"
            draft.rounds[operation] = draft.rounds.get(operation, 0) + 1
    evolving.wait_prolonged(draft, recorded)
    if any(reason.code == "history_lost" for reason in draft.reasons):
        draft.history_lost = False  # a person looked outside and answers for it


@_on(e.VersionMoved)
def _version_moved(draft: Draft, event: e.VersionMoved, recorded: e.Recorded) -> None:
    """Other code has the run now; a reason that was about the code alone is over."""
    draft.identity = replace(draft.identity, agent_version=event.now, code=event.code)
    draft.reasons = tuple(r for r in draft.reasons if r.code != "version_unavailable")
    draft.retry_at, draft.failures, draft.replans = None, 0, 0
    if event.voids:
        _void_plan(draft, recorded, event.voids)


@_on(e.GoalRevised)
def _goal_revised(draft: Draft, event: e.GoalRevised, recorded: e.Recorded) -> None:
    _end_with(draft, recorded, evolving.goal_revised(draft, event, recorded))


def _constrained(change: Callable[[Draft, Any, e.Recorded], tuple[e.Cause, ...]]) -> Handler:
    """A handler that changes the constraints, and ends what was made under those before."""

    def handler(draft: Draft, event: Any, recorded: e.Recorded) -> None:
        if causes := change(draft, event, recorded):
            _end_with(draft, recorded, causes)

    return handler


HANDLERS[e.ConstraintAccepted] = _constrained(constraining.accepted)
HANDLERS[e.ConstraintConfirmed] = constraining.confirmed
HANDLERS[e.ConstraintWithdrawn] = _constrained(constraining.withdrawn)
HANDLERS[e.ConstraintAmended] = _constrained(constraining.amended)
HANDLERS[e.AmendmentAccepted] = _constrained(constraining.amendment_accepted)


def _end_with(draft: Draft, recorded: e.Recorded, causes: tuple[e.Cause, ...]) -> None:
    """The approval ends at once; the plan too, unless it is being carried out: then at the safe point."""
    _void_request(draft, recorded, causes)
    if evolving.may_replan(draft):
        _void_plan(draft, recorded, causes)


@_on(e.ReplanOrdered)
def _replan(draft: Draft, event: e.ReplanOrdered, recorded: e.Recorded) -> None:
    if event.note:
        draft.advice += (event.note,)
    draft.replans = 0
    _void_plan(draft, recorded, (e.Cause(what="replan_ordered", subject="", was="", now=""),))


@_on(e.CancelRequested)
def _cancel(draft: Draft, event: e.CancelRequested, recorded: e.Recorded) -> None:
    draft.cancel_requested = True
    draft.undo_requested = event.undo
    draft.cancelled_by, draft.hands_to = recorded.actor, event.owner


@_on(e.CancelBegan)
def _cancel_began(draft: Draft, event: e.CancelBegan, recorded: e.Recorded) -> None:
    draft.direction, draft.retry_at, draft.failures, draft.replans = s.Direction.UNDO, None, 0, 0
    _void_request(draft, recorded, (e.Cause(what="cancelled", subject="", was="", now=""),))


@_on(e.PlanCarriedOut)
def _carried_out(draft: Draft, event: e.PlanCarriedOut, recorded: e.Recorded) -> None:
    evolving.carried_out(draft, event, recorded)
    _consume(draft, recorded)


@_on(e.RunSucceeded)
def _succeeded(draft: Draft, event: e.RunSucceeded, recorded: e.Recorded) -> None:
    _consume(draft, recorded)


def _consume(draft: Draft, recorded: e.Recorded) -> None:
    """An approval is used up by the run of its steps; one whose time ended on the way has expired."""
    request = draft.requests[-1] if draft.requests else None
    if request and request.status is s.RequestStatus.VALID:
        in_time = recorded.at < request.expires_at
        _set_request(draft, recorded, s.RequestStatus.CONSUMED if in_time else s.RequestStatus.EXPIRED)


@_on(e.RunCancelled)
def _cancelled(draft: Draft, event: e.RunCancelled, recorded: e.Recorded) -> None:
    if draft.plans and all(step.name in draft.done for step in draft.plans[-1].plan.steps):
        _consume(draft, recorded)
    _void_request(draft, recorded, (e.Cause(what="cancelled", subject="", was="", now=""),))
    obligations.handed_over(draft, event)
