"""state + facts -> report of checks, in the order in which the first failure decides.

All checks are made and all are reported. What follows from a failure is decided in `decide.revalidated`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal

import msgspec

from runs.machine import state as s
from runs.machine.canonical import digest
from runs.machine.constraints import NOT_ASKED, Became, SourceNow, said
from runs.machine.events import Check, Term
from runs.machine.projection import PROJECTED
from runs.machine.references import same
from runs.machine.transitions import ROWS

ORDER = (
    "log", "history", "effects", "schema", "code", "cancel", "deadline", "approval", "constraints", "goal", "plan",
    "approvers", "rounds", "authority", "budget", "policy", "resources", "observations", "assumptions",
)  # fmt: skip
#: The part of a run's code whose change ends a plan and not the run: it has a check of its own.
POLICY = "policy"
#: Before how many are left, where what approvers lost is a place in a group.
GROUP = "group:"


class Fresh(msgspec.Struct, frozen=True, kw_only=True):
    """What reading an observation's source now gave: value and version, or why it could not be read."""

    value: str = ""
    version: str = ""
    failure: str = ""


class Person(msgspec.Struct, frozen=True, kw_only=True):
    """A person whose standing counts: `lost` names what is missing, empty where all is well."""

    id: str
    name: str
    lost: str = ""


class Unmet(msgspec.Struct, frozen=True, kw_only=True):
    """A quorum that those who approved do not meet any more."""

    groups: str
    needed: int
    given: int


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """What a grant still gives: its scopes, and what is left of its budget (None: no limit)."""

    scopes: tuple[str, ...]
    left: Decimal | None = None


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Answers from outside the machine. `fresh` is keyed by (tool, canonical arguments)."""

    log_problem: str = ""
    rows_differ: str = ""  #: what of the rows beside the log is not what its events amount to
    history: tuple[str, str] = ("", "")  #: the database's, under the run's latest lease (empty: none) and now
    schema_version: int = 1
    code: str = ""  #: the agent version that would run it; empty where no worker here has it
    parts: Mapping[str, str] = {}  #: what that version is made of: part -> version or digest
    constraints_now: Mapping[int, SourceNow] = {}  #: by constraint number; one that is missing was not asked
    stated: tuple[Term, ...] = ()  #: what the sources state by now and the run has not accepted
    approvers: tuple[Person, ...] = ()
    others_may_approve: bool = True
    unmet: tuple[Unmet, ...] = ()  #: the groups of which too few are left among those who approved
    principal: Person
    policy_version: str = ""
    granted: Granted | None = None  #: of the grant that the run acts on; None: none was recorded
    fresh: Mapping[tuple[str, str], Fresh] = {}


def report(state: s.RunState, facts: Facts, now: datetime) -> tuple[Check, ...]:
    """Every check, passed or not, in the deciding order."""
    made = {check: [] for check in ORDER}  # type: dict[str, list[Check]]
    for check in _all(state, facts, now):
        made[check.name].append(check)
    return tuple(check for name in ORDER for check in made[name])


#: What its failure leads to is done at each send: what is sent for the first time is asked about before.
TOLD = frozenset({"history"})
#: In direction `undo` these are reported and decide nothing: compensation exists for just those cases.
REPORTED_IN_UNDO = frozenset({"cancel", "deadline", "constraints", "goal", "observations", "assumptions"})


def failed(checks: tuple[Check, ...], *, undoing: bool = False) -> tuple[Check, ...]:
    """Those that did not pass and decide, the deciding one first."""
    told = TOLD | REPORTED_IN_UNDO if undoing else TOLD
    return tuple(check for check in checks if not check.passed and check.name not in told)


def _all(state: s.RunState, facts: Facts, now: datetime) -> Iterator[Check]:
    yield Check(name="log", passed=not facts.log_problem, now=facts.log_problem)
    yield _rows(state, facts)
    yield _history(state, facts)
    yield from _effects(state)
    yield Check(name="schema", passed=facts.schema_version == 1, was="1", now=str(facts.schema_version))
    yield from _code(state.identity, facts)
    yield Check(name="cancel", passed=not state.cancel_requested)
    yield from _deadlines(state, now)
    yield from _constraints(state, facts)
    if state.plan:
        yield from _plan(state, state.plan, facts)
    yield from _people(state, facts)
    yield from _outside(state, facts, now)


def _rows(state: s.RunState, facts: Facts) -> Check:
    """The rows beside the log. What another version made of it is not compared: it is made anew first."""
    if state.projected != PROJECTED:
        return Check(name="log", passed=True, subject=ROWS, was=state.projected, now=PROJECTED)
    return Check(name="log", passed=not facts.rows_differ, subject=ROWS, now=facts.rows_differ)


def _history(state: s.RunState, facts: Facts) -> Check:
    """The database is the one that the run was last held on, and was so for all of its life that is here."""
    was, now = facts.history
    same = was in ("", now)
    return Check(name="history", passed=same and not state.history_lost, was=was, now=now)


def _effects(state: s.RunState) -> Iterator[Check]:
    if not state.open_effects:
        yield Check(name="effects", passed=True)
    for effect in state.open_effects:
        yield Check(name="effects", passed=False, subject=f"E-{effect.number}", now=effect.status.value)


def _code(identity: s.Identity, facts: Facts) -> Iterator[Check]:
    """The agent's version, then each part that was recorded against what the worker has."""
    version = identity.agent_version
    yield Check(
        name="code", passed=facts.code == version, subject=identity.agent, was=version, now=facts.code
    )
    if not identity.code:
        yield Check(name="code", passed=True, subject="parts", now="not recorded")
    yield from changed_parts(identity, facts.parts if facts.code else identity.code)


def changed_parts(identity: s.Identity, parts: Mapping[str, str]) -> Iterator[Check]:
    """Each recorded part against `parts`; one that was never recorded binds nothing, and the policy not the run."""
    for part, was in identity.code.items():
        if part != POLICY:
            now = parts.get(part, "")
            yield Check(name="code", passed=was == now, subject=part, was=was, now=now)


def _deadlines(state: s.RunState, now: datetime) -> Iterator[Check]:
    if deadline := state.identity.deadline:
        yield Check(name="deadline", passed=now <= deadline, was=deadline.isoformat(), now=now.isoformat())
    request = state.request
    # An approval is for what is still to be sent: where no step is left, its end ends nothing.
    if request and not state.remaining:
        return
    if request and request.status is s.RequestStatus.VALID:
        until = request.expires_at
        yield Check(name="approval", passed=now < until, was=until.isoformat(), now=now.isoformat())
    if request and state.approval_over:
        ended = request.closed_at or now
        yield Check(name="approval", passed=False, was=request.status.value, now=ended.isoformat())


def _constraints(state: s.RunState, facts: Facts) -> Iterator[Check]:
    for constraint in state.constraints:
        yield _constraint(constraint, facts.constraints_now.get(constraint.number, NOT_ASKED))
    for term in facts.stated:
        yield Check(name="constraints", passed=True, subject=term.name, now=said(term), became=STATED)


#: What became of a constraint of a source that the run never accepted: it is told, and binds nothing.
STATED = "stated"


def _constraint(constraint: s.Constraint, source: SourceNow) -> Check:
    """What was accepted, against its source; what the run was told counts also where the source states it again."""
    text, told = said(constraint.term), constraint.amended
    became = source.became
    if constraint.withdrawn:
        became = Became.WITHDRAWN
    elif told and became is Became.STANDS:
        became = Became.AMENDED
    now = {
        Became.STANDS: text,
        Became.WITHDRAWN: Became.WITHDRAWN.value,
        Became.AMENDED: said(source.term) if source.term else said(told.term) if told else "",
        Became.UNREACHABLE: source.why,
    }[became]
    return Check(
        name="constraints", passed=became is Became.STANDS, subject=f"C-{constraint.number}", was=text, now=now,
        unread=became is Became.UNREACHABLE,
        became=became.value if became in (Became.WITHDRAWN, Became.AMENDED) else "",
    )  # fmt: skip


def _plan(state: s.RunState, plan: s.PlanVersion, facts: Facts) -> Iterator[Check]:
    goal = state.goal.version
    yield Check(
        name="goal", passed=plan.plan.goal_version == goal, was=str(plan.plan.goal_version), now=str(goal)
    )
    again = digest("plan", plan.document)
    approved = state.request.digest if state.request and not plan.by_policy else plan.digest
    same = again == plan.digest == approved
    yield Check(name="plan", passed=same, subject=f"v{plan.version}", was=approved, now=again)
    policy = plan.plan.policy_version
    yield Check(name="policy", passed=facts.policy_version == policy, was=policy, now=facts.policy_version)


def _people(state: s.RunState, facts: Facts) -> Iterator[Check]:
    if state.remaining:
        yield from _approvers(state, facts)
    yield from _authority(state, facts)
    yield from _budget(state, facts)


def _approvers(state: s.RunState, facts: Facts) -> Iterator[Check]:
    for person in facts.approvers:
        yield Check(name="approvers", passed=not person.lost, subject=person.name, now=person.lost)
    request = state.request
    if request and request.status is s.RequestStatus.VALID:
        enough = sum(not person.lost for person in facts.approvers) >= request.needed
        yield Check(name="approvers", passed=enough, subject="quorum", was=str(request.needed))
        yield from _rounds(state)
    for quorum in facts.unmet:
        now = f"{GROUP}{quorum.given}"
        yield Check(name="approvers", passed=False, subject=quorum.groups, was=str(quorum.needed), now=now)


def _rounds(state: s.RunState) -> Iterator[Check]:
    """People approved each step in the round that was to come then; done again it is another intent."""
    for step in state.uncovered:
        was, now = state.approved_round(step), state.round_of(step)
        yield Check(name="rounds", passed=False, subject=step.name, was=str(was), now=str(now))
    if not state.uncovered:
        yield Check(name="rounds", passed=True)


#: The subject of the check that a person approved since authority was lent anew.
REENTRY = "reentry"


def _authority(state: s.RunState, facts: Facts) -> Iterator[Check]:
    """The grant holds, is for what the rest of the plan uses, and is the one under which the plan was approved."""
    who, grant = facts.principal, state.grant
    yield Check(name="authority", passed=not who.lost, subject=who.name, was=grant, now=who.lost or grant)
    if facts.granted:
        lent = facts.granted.scopes
        for used in dict.fromkeys(_used(step) for step in state.remaining):
            if used and not set(used) & set(lent):
                yield Check(
                    name="authority", passed=False, subject=used[0], was=", ".join(lent), now="out_of_scope"
                )
    # Where nothing is left to do there is nothing that a person could approve.
    if len(state.lendings) > 1 and state.remaining:
        before = state.lendings[-2].lent.grant
        yield Check(name="authority", passed=not state.reenters, subject=REENTRY, was=before, now=grant)


def _used(step: s.PlanStep) -> tuple[str, ...]:
    """The scopes of which a step needs one; none for one that only waits."""
    if step.wait is None:
        return step.tool, step.system
    return ("runs",) if step.wait.children else ()


def _budget(state: s.RunState, facts: Facts) -> Iterator[Check]:
    """What is left covers the rest of the plan: of the run's own budget, and of the grant's."""
    if facts.granted and facts.granted.left is not None:
        was = str(facts.granted.left)
        rest = facts.granted.left - sum(map(state.cost, state.remaining), Decimal())
        yield Check(name="budget", passed=rest >= 0, subject="grant", was=was, now=str(rest))
    left = state.left(state.remaining)
    if left is not None:
        yield Check(name="budget", passed=left >= 0, was=state.identity.budget or "", now=str(left))


def _outside(state: s.RunState, facts: Facts, now: datetime) -> Iterator[Check]:
    """Resource versions and observations of what the remaining steps rest on, and assumptions on them."""
    for rest in needed_rests(state):
        fresh = facts.fresh.get((rest.tool, rest.arguments), Fresh(failure="not read"))
        bound = state.produced.get(rest.resource, rest.version)
        if fresh.failure:
            yield Check(
                name="observations",
                passed=False,
                subject=rest.resource,
                was=bound,
                now=fresh.failure,
                unread=True,
            )
        else:
            yield Check(
                name="resources",
                passed=fresh.version == bound,
                subject=rest.resource,
                was=bound,
                now=fresh.version,
            )
            yield _observation(state, rest, fresh)
    yield from _assumptions(state, facts)


def _observation(state: s.RunState, rest: s.PlanRest, fresh: Fresh) -> Check:
    """As it was read, or as this run's own last receipt made it."""
    known = state.observations.get((rest.tool, rest.arguments))
    was = known.value if known else ""
    return Check(
        name="observations", passed=_as_known(state, rest, fresh), subject=rest.resource, was=was, now=fresh.value
    )  # fmt: skip


def _as_known(state: s.RunState, rest: s.PlanRest, fresh: Fresh) -> bool:
    known = state.observations.get((rest.tool, rest.arguments))
    own = rest.resource in state.produced and state.produced[rest.resource] == fresh.version
    return own or same(known.value if known else "", fresh.value)


def _assumptions(state: s.RunState, facts: Facts) -> Iterator[Check]:
    """Broken by every part of its basis that is otherwise now: another version or value, a constraint that is gone."""
    gone = {check.subject for check in _constraints(state, facts) if check.became}
    for assumption in state.plan.plan.assumptions if state.plan and state.remaining else ():
        broken = [r.resource for r in assumption.rests_on if _otherwise(state, r, facts)]
        broken += [x for x in map("C-{}".format, assumption.constraints) if x in gone]
        yield Check(name="assumptions", passed=not broken, subject=assumption.text, now=", ".join(broken))


def _otherwise(state: s.RunState, rest: s.PlanRest, facts: Facts) -> bool:
    """Whether it was read now and is not as the assumption takes it to be."""
    fresh = facts.fresh.get((rest.tool, rest.arguments))
    if fresh is None or fresh.failure:
        return False
    bound = state.produced.get(rest.resource, rest.version)
    return fresh.version != bound or not _as_known(state, rest, fresh)


def needed_rests(state: s.RunState) -> tuple[s.PlanRest, ...]:
    """The working set: what the remaining steps rest on, and what the plan takes for true, each once."""
    if not state.remaining or state.plan is None:
        return ()
    rests = {(r.tool, r.arguments): r for step in state.remaining for r in step.rests_on}
    for assumption in state.plan.plan.assumptions:
        rests |= {(r.tool, r.arguments): r for r in assumption.rests_on}
    return tuple(rests.values())


def out_of_date(state: s.RunState, now: datetime) -> tuple[s.PlanRest, ...]:
    """What the next step rests on and may not be taken for true any more, so that all checks are made again first.

    What the latest revalidation read just now is good for the step after it, however short its half-life is.
    """
    if not state.remaining or (state.revalidation and state.revalidation.seq == state.seq):
        return ()
    known = ((r, state.observations.get((r.tool, r.arguments))) for r in state.remaining[0].rests_on)
    return tuple(rest for rest, seen in known if seen is None or not seen.current(now))
