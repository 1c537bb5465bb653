"""The handoff as one value: what a person has to know who takes a run over and can ask nobody. Pure.

Page, print, Markdown and JSON say the same; the JSON is this value, and its schema is made from these types.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import Final

from msgspec import Raw

from runs.machine import assumptions
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.decide.sends import key_of
from runs.machine.safety import next_safe_action
from runs.machine.waits import Part

FORMAT: Final = "handoff/1"


class Revision(Part, frozen=True, kw_only=True):
    """A version of the goal."""

    version: int
    text: str
    by: str
    at: datetime
    reason: str


class Asked(Part, frozen=True, kw_only=True):
    """What was asked, and what the run is committed to now."""

    original: str
    committed: str
    revisions: tuple[Revision, ...]
    input: Raw
    creator: str
    principal: str
    deadline: datetime | None
    budget: str | None
    spent: str


class Did(Part, frozen=True, kw_only=True):
    """An effect of which it is certain that it happened. `settled_by` is how: call, query, attestation, finding."""

    id: str
    run: str
    title: str
    system: str
    operation_id: str
    reference: str
    key: str = ""
    at: datetime | None = None
    settled_by: str = ""
    reversible: bool = False
    undone_by: str = ""


class MayHave(Part, frozen=True, kw_only=True):
    """An effect of which nobody knows yet whether it happened, or whose record is contradicted."""

    id: str
    title: str
    system: str
    operation_id: str
    key: str
    arguments: Raw
    status: str
    since: datetime
    believable_from: datetime
    asked: int
    reversible: bool
    contradicted_by: str = ""


class Limit(Part, frozen=True, kw_only=True):
    """A constraint, and who said so. `became` is what its source says now, where that is something else.

    Code refuses plans that do not keep `predicate`; where there is none, people alone check it.
    """

    id: str
    text: str
    source_kind: str
    source_ref: str
    source_version: str
    accepted_seq: int
    accepted_at: datetime
    became: str
    name: str = ""
    predicate: str = ""
    checked_by_code: bool = False
    confirmed: bool = True  #: False: the agent inferred it, and no person confirmed that
    confirmed_by: str = ""


class Next(Part, frozen=True, kw_only=True):
    """The one next safe action. `you_may` is whether the reader holds the right; null: nobody is known to read."""

    action: str
    rule: str
    right: str | None
    you_may: bool | None
    effect: str
    plan: int | None
    reason: str
    until: datetime | None
    waits_for: str
    decisions: tuple[str, ...]
    not_safe: tuple[str, ...]


class Never(Part, frozen=True, kw_only=True):
    """A confirmed effect that must not be sent again. `why`: no_key, or key_ends at `until`, after which a second
    send is a second effect; lineage: it was done in another run.
    """

    id: str
    run: str
    title: str
    operation_id: str
    key: str
    why: str
    until: datetime | None = None


class Planned(Part, frozen=True, kw_only=True):
    """A step that is not done: an effect under the key it will carry (none while arguments are open), or a wait."""

    step: str
    title: str
    operation_id: str
    key: str
    reversible: bool
    waits: bool


class Owed(Part, frozen=True, kw_only=True):
    """Something promised. Its owner is a person, else the step that discharges it, or those who operate the run."""

    id: str
    text: str
    owner: str
    due_at: datetime | None
    opened_at: datetime
    open: bool
    overdue: bool
    discharged_seq: int | None
    to: str = ""
    opened_by: str = ""  #: plan, tool, person or finding
    proof: str = ""  #: where a person stated that it is done


class Seen(Part, frozen=True, kw_only=True):
    """What was read, and until when that may be taken for true."""

    id: str
    tool: str
    resource: str
    version: str
    value: Raw
    at: datetime
    expires_at: datetime
    fresh: bool


class Basis(Part, frozen=True, kw_only=True):
    """One observation that an assumption rests on; or a constraint, whose text stands as `resource`."""

    observation: str
    resource: str
    version: str
    fresh: bool
    constraint: str = ""


class Assumed(Part, frozen=True, kw_only=True):
    """Something that the plan takes for true. `standing` is holds, out_of_date or broken: `by` what, and since event
    `seq`. Only what holds may be relied on.
    """

    text: str
    rests_on: tuple[Basis, ...]
    fresh: bool
    standing: str = ""
    by: str = ""
    seq: int | None = None


class Wanted(Part, frozen=True, kw_only=True):
    """What the run asks of people: approval of a plan version, or an answer by name."""

    what: str
    id: str
    plan: int | None
    digest: str
    needed: int
    given: int
    until: datetime | None


class Decided(Part, frozen=True, kw_only=True):
    """What a person decided, and why; `seq` is the event, where the state knows it."""

    seq: int | None
    at: datetime
    by: str
    what: str
    subject: str
    reason: str


class Stop(Part, frozen=True, kw_only=True):
    """Why the run needs a person."""

    code: str
    subject: str
    evidence: str


class Handoff(Part, frozen=True, kw_only=True):
    """The whole. Seqs are those of the run's events."""

    format: str
    run: str
    agent: str
    agent_version: str
    tenant: str
    seq: int
    at: datetime
    state: str
    since: datetime | None
    direction: str
    reasons: tuple[Stop, ...]
    asked: Asked
    happened: tuple[Did, ...]
    may_have_happened: tuple[MayHave, ...]
    not_allowed: tuple[Limit, ...]
    next: Next
    never_send_again: tuple[Never, ...]
    planned: tuple[Planned, ...]
    obligations: tuple[Owed, ...]
    assumptions: tuple[Assumed, ...]
    observations: tuple[Seen, ...]
    requests: tuple[Wanted, ...]
    decisions: tuple[Decided, ...]
    taken_in_from: str = ""  #: the digest of the checkpoint that it began with here


def document(state: s.RunState, now: datetime, *, rights: Collection[str] | None = None) -> Handoff:
    """The handoff of a run. `rights` are those that its reader holds on it; None where nobody is known to read."""
    identity, over = state.identity, state.state in s.TERMINAL
    return Handoff(
        format=FORMAT, run=identity.run, agent=identity.agent, agent_version=identity.agent_version,
        tenant=identity.tenant, seq=state.seq, at=now, state=state.state.value, since=state.since,
        direction=state.direction.value,
        reasons=tuple(Stop(code=x.code, subject=x.subject, evidence=x.evidence) for x in state.reasons),
        asked=_asked(state), happened=tuple(_happened(state)), may_have_happened=tuple(_in_doubt(state)),
        not_allowed=tuple(_limits(state)), next=_next(state, rights), never_send_again=tuple(_never(state)),
        planned=() if over else tuple(_planned(state)),
        obligations=tuple(_owed(x, state, now) for x in state.obligations),
        assumptions=() if over else tuple(_assumed(state, now)),
        observations=tuple(_seen(x, now) for x in state.observations.values()), requests=tuple(_wanted(state)),
        decisions=tuple(sorted(_decided(state), key=lambda x: x.at)),
        taken_in_from=state.taken_in.digest if state.taken_in else "",
    )  # fmt: skip


def _asked(state: s.RunState) -> Asked:
    identity = state.identity
    return Asked(
        original=state.goals[0].text, committed=state.goal.text, input=e.raw(identity.input),
        revisions=tuple(
            Revision(version=x.version, text=x.text, by=x.author.name, at=x.at, reason=x.reason) for x in state.goals
        ),
        creator=identity.creator, principal=identity.principal, deadline=identity.deadline, budget=identity.budget,
        spent=str(state.spent),
    )  # fmt: skip


def _happened(state: s.RunState) -> Iterator[Did]:
    run = state.identity.run
    for x in state.effects.values():
        if x.receipt and x.receipt.executed:
            by = x.compensated_by
            yield Did(
                id=f"E-{x.number}", run=run, title=x.title, system=x.system, operation_id=x.operation_id, key=x.key,
                reference=x.receipt.reference, at=x.receipt.at, settled_by=x.receipt.source,
                reversible=x.terms.reversible, undone_by=f"{by.run} E-{by.effect}" if by else "",
            )  # fmt: skip
    for y in state.inherited:
        yield Did(
            id=f"E-{y.effect}", run=y.run, title=y.title, system=y.system, operation_id=y.operation_id,
            reference=y.reference,
        )  # fmt: skip


def _in_doubt(state: s.RunState) -> Iterator[MayHave]:
    for x in (*state.open_effects, *state.contradicted):
        yield MayHave(
            id=f"E-{x.number}", title=x.title, system=x.system, operation_id=x.operation_id, key=x.key,
            arguments=e.raw(x.arguments), status=x.status.value, since=x.unknown_since or x.last_send.at,
            believable_from=x.settled_at, asked=len(x.asks), reversible=x.terms.reversible,
            contradicted_by=x.contradicted.reference or f"event {x.contradicted.seq}" if x.contradicted else "",
        )  # fmt: skip


def _limits(state: s.RunState) -> Iterator[Limit]:
    became = {r.subject: r.evidence or r.code for r in state.reasons if r.code.startswith("constraint_")}
    for x in state.constraints:
        term = x.term
        yield Limit(
            id=f"C-{x.number}", text=term.text, source_kind=term.source_kind, source_ref=term.source_ref,
            source_version=term.source_version, accepted_seq=x.seq, accepted_at=x.at,
            became=became.get(f"C-{x.number}", ""), name=term.name, predicate=term.predicate,
            checked_by_code=bool(term.predicate), confirmed=not x.unconfirmed,
            confirmed_by=x.confirmed.by.name if x.confirmed else "",
        )  # fmt: skip


def _next(state: s.RunState, rights: Collection[str] | None) -> Next:
    action = next_safe_action(state)
    may = None if rights is None else action.right is not None and action.right in rights
    return Next(
        action=action.action.value, rule=action.rule, right=action.right, you_may=may,
        effect=f"E-{action.effect}" if action.effect else "", plan=action.plan, reason=action.reason or "",
        until=action.until, waits_for=action.waits_for, decisions=tuple(x.value for x in action.decisions),
        not_safe=action.not_safe,
    )  # fmt: skip


def _never(state: s.RunState) -> Iterator[Never]:
    """No key is honoured for ever: an effect that stands is answered from its receipt, and never called again."""
    for x in state.effects.values():
        if x.status in (s.EffectStatus.CONFIRMED, s.EffectStatus.COMPENSATED):
            ends = honoured_until(x)
            yield Never(
                id=f"E-{x.number}", run=state.identity.run, title=x.title, operation_id=x.operation_id, key=x.key,
                why="key_ends" if ends else "no_key", until=ends,
            )  # fmt: skip
    for y in state.inherited:
        yield Never(
            id=f"E-{y.effect}", run=y.run, title=y.title, operation_id=y.operation_id, key="", why="lineage"
        )


def honoured_until(effect: s.Effect) -> datetime | None:
    """Until when the other system takes a second send under the key for the first; None where it knows no keys."""
    retention: timedelta | None = effect.terms.retention
    return effect.sends[0].at + retention if retention else None


def _planned(state: s.RunState) -> Iterator[Planned]:
    for x in state.remaining:
        if x.wait is not None or not state.stands(x):
            yield Planned(
                step=x.name, title=x.title, operation_id=x.operation_id, reversible=x.reversible,
                key="" if x.wait else key_of(state, x), waits=x.wait is not None,
            )  # fmt: skip


def _owed(x: s.Obligation, state: s.RunState, now: datetime) -> Owed:
    people = x.handed_over or state.state in s.TERMINAL or not x.by
    kept_by = x.owner.name if x.owner else "operators" if people else f"step {x.by}"
    return Owed(
        id=f"B-{x.number}", text=x.text, owner=kept_by, due_at=x.due_at, opened_at=x.opened_at, open=x.open,
        overdue=x.overdue(now), discharged_seq=x.discharged_seq, to=x.to, opened_by=x.source,
        proof=x.attested.reference if x.attested else "",
    )  # fmt: skip


def _seen(x: s.Observation, now: datetime) -> Seen:
    return Seen(
        id=f"O-{x.number}", tool=x.tool, resource=x.resource, version=x.version, value=e.raw(x.value),
        at=x.observed_at, expires_at=x.expires_at, fresh=x.expires_at > now,
    )  # fmt: skip


def _assumed(state: s.RunState, now: datetime) -> Iterator[Assumed]:
    for x in assumptions.assumed(state, state.plan, now) if state.plan else ():
        yield Assumed(
            text=x.text, rests_on=tuple(_basis(y) for y in x.basis), by=x.by, seq=x.seq, standing=x.standing.value,
            fresh=x.standing is assumptions.Standing.HOLDS,
        )  # fmt: skip


def _basis(found: assumptions.Basis) -> Basis:
    limit = found.id.startswith("C-")
    return Basis(
        observation="" if limit else found.id, resource=found.name, version=found.version, fresh=found.fresh,
        constraint=found.id if limit else "",
    )  # fmt: skip


def _wanted(state: s.RunState) -> Iterator[Wanted]:
    request, wait = state.request, state.wait
    if request and request.status is s.RequestStatus.PENDING:
        given = sum(x.verdict == "approve" for x in request.decisions)
        yield Wanted(
            what="approval", id=request.id, plan=request.version, digest=request.digest, needed=request.needed,
            given=given, until=request.expires_at,
        )  # fmt: skip
    if wait and wait.signal and state.state not in s.TERMINAL:
        yield Wanted(what="answer", id=wait.signal, plan=None, digest="", needed=1, given=0, until=wait.until)


def _decided(state: s.RunState) -> Iterator[Decided]:
    starter = state.identity.starter
    yield Decided(seq=1, at=state.identity.started_at, by=starter.name, what="start", subject="", reason="")
    for x in state.goals[1:]:
        yield Decided(
            seq=0, at=x.at, by=x.author.name, what="revise", subject=f"v{x.version}", reason=x.reason
        )
    for request in state.requests:
        for d in request.decisions:
            yield Decided(
                seq=d.seq, at=d.at, by=d.name, what=d.verdict, subject=f"v{request.version}", reason=d.reason
            )
    for effect in state.effects.values():
        yield from _stated(effect)
    for owed in state.obligations:
        if said := owed.attested:
            yield Decided(
                seq=owed.discharged_seq, at=said.at, by=said.name, what="attest_obligation", subject=f"B-{owed.number}",
                reason=said.how,
            )  # fmt: skip


def _stated(effect: s.Effect) -> Iterator[Decided]:
    name = f"E-{effect.number}"
    for x in effect.attestations:
        what = "attest_happened" if x.happened else "attest_not_happened"
        yield Decided(seq=x.seq, at=x.at, by=x.name, what=what, subject=name, reason=x.how)
    for y in effect.findings:
        yield Decided(seq=y.seq, at=y.at, by=y.name, what=f"find_{y.finding}", subject=name, reason=y.how)
