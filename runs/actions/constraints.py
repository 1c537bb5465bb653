"""Constraints that are held here: another one, another text of one, its end; and what a run does about them.

From the commit of another version no run that accepted the one before may send or be decided on: the guard of a send
and `binding.changed` look at the source. `marking` tells the runs afterwards, a batch at a time.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from accounts.fence import fence_exclusive, fence_shared
from accounts.models import Tenant, User
from accounts.rights import Denial, Right, why_not
from approvals.expressions import ExpressionRefused, compiled
from approvals.models import LEAST_REASON
from runs import constrained
from runs.actions.frame import Done, by_person, first_use, person_actor
from runs.actions.goals import ImpactMoved
from runs.actions.starting import ID_LETTERS
from runs.clock import database_now
from runs.limits import LONGEST_CONSTRAINT_NAME, LONGEST_TEXT
from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.canonical import plain
from runs.models import Agent, Run, Statement, Submission
from runs.outbox import mark_on_commit
from runs.sources import held

ADD, AMEND, WITHDRAW = "add_constraint", "amend_constraint", "revoke_constraint"
WITHDRAW_HERE, ACCEPT = "revoke here", "accept amendment"


class ConstraintRefused(ValueError):
    """What was typed cannot be recorded; nothing changed. `field` is name, text, predicate or reason; `problem` a code
    (`empty`, `short`, `long`), or for a predicate what is wrong with it.
    """

    def __init__(self, field: str, problem: str) -> None:
        self.field, self.problem = field, problem
        super().__init__(f"{field}: {problem}")


class ConstraintNotManaged(Exception):
    """The person may not do this where the constraint is held. `denial` says which right is missing."""

    def __init__(self, denial: Denial) -> None:
        self.denial = denial
        super().__init__(denial.sentence)


class ConstraintMoved(Exception):
    """The constraint says something else, or its end would end something else, than the person was shown. Nothing
    changed. `impact` is what it would end now.
    """

    def __init__(self, latest: Statement, impact: constrained.Impact) -> None:
        self.latest, self.impact = latest, impact
        super().__init__(latest.ref)


@dataclass(frozen=True, kw_only=True)
class Stated:
    """Which version of which constraint a form made, and whether it had made it before."""

    ref: str
    version: int
    repeated: bool = False


def add_constraint(
    *,
    person: User,
    place: Tenant | Agent | Run,
    name: str,
    text: str,
    predicate: str,
    reason: str,
    submission: UUID,
) -> Stated:
    """Hold another constraint: for all agents of a tenant, one agent, or one run. Runs that start from now on accept
    it; one for a single run is accepted by `ConstraintAccepted`.

    Raises ConstraintRefused, ConstraintNotManaged; Refused where the form's id belongs to another action.
    """
    refuse_words(name=name, text=text, predicate=predicate, reason=reason)
    tenant_id = place.pk if isinstance(place, Tenant) else place.tenant_id

    def add(now: datetime) -> Statement:
        return hold(place, person=person, name=name, text=text, predicate=predicate, reason=reason, now=now)

    with transaction.atomic():
        fence_shared(tenant_id)
        may(person, right_to_add(place), place)
        return _once(person, tenant_id, ADD, submission, add)


def hold(
    place: Tenant | Agent | Run,
    *,
    person: User,
    name: str,
    text: str,
    predicate: str,
    reason: str,
    now: datetime,
) -> Statement:
    """The first version of another constraint, in the caller's transaction, which asked for the right."""
    return Statement.objects.create(
        tenant_id=place.pk if isinstance(place, Tenant) else place.tenant_id,
        kind={Tenant: "tenant", Agent: "policy", Run: "person"}[type(place)],
        ref=held.PREFIX + "".join(secrets.choice(ID_LETTERS) for _ in range(10)), version=1, name=plain(name),
        text=plain(text), predicate=plain(predicate), by=person, reason=plain(reason), at=now,
        agent=place if isinstance(place, Agent) else None, run=place if isinstance(place, Run) else None,
    )  # fmt: skip


def amend_constraint(
    *, person: User, latest: Statement, text: str, predicate: str, reason: str, seen: str, submission: UUID
) -> Stated:
    """State a constraint otherwise, in place of version `latest`. `seen` is the digest of `constrained.impact`.

    Every open run that accepted it stops until a person accepts the new text for it. Raises ConstraintMoved,
    ConstraintRefused, ConstraintNotManaged, Refused.
    """
    refuse_words(name=latest.name, text=text, predicate=predicate, reason=reason)
    if (text, predicate) == (latest.text, latest.predicate):
        raise ConstraintRefused("text", "same")
    return _follow(
        person, latest, AMEND, submission, seen, plain(reason), text=plain(text), predicate=plain(predicate)
    )


def withdraw_constraint(
    *, person: User, latest: Statement, reason: str, seen: str, submission: UUID, about: Run | None = None
) -> Stated:
    """End a constraint for ever, everywhere; `latest` and `seen` as for `amend_constraint`. One may be added anew.
    `about`: the run on whose page it was decided, which tells it there.

    No open run that accepted it continues: what is open is reconciled, then it is restarted or cancelled.
    """
    refuse_reason(reason)
    return _follow(person, latest, WITHDRAW, submission, seen, plain(reason), about=about, withdrawn=True)


def _follow(
    person: User,
    latest: Statement,
    action: str,
    submission: UUID,
    seen: str,
    reason: str,
    *,
    about: Run | None = None,
    **says: object,
) -> Stated:
    """The one row of another version, under the tenant's fence, where all is as the person was shown."""

    def follow(now: datetime) -> Statement:
        impact = constrained.impact(tenant_id=latest.tenant_id, ref=latest.ref)
        current = held.latest(tenant_id=latest.tenant_id).get(ref=latest.ref)
        if current.pk != latest.pk or impact.digest != seen or current.withdrawn:
            raise ConstraintMoved(current, impact)
        fixed = {n: getattr(current, n) for n in ("tenant_id", "kind", "ref", "name", "agent_id", "run_id")}
        said = {"text": current.text, "predicate": current.predicate, **says}
        mark_on_commit()
        return Statement.objects.create(
            **fixed, **said, version=current.version + 1, by=person, reason=reason, at=now
        )

    with transaction.atomic():
        fence_exclusive(latest.tenant_id)
        may(person, Right.REVOKE_CONSTRAINTS, place_of(latest))
        return _once(person, latest.tenant_id, action, submission, follow, about)


def _once(
    person: User,
    tenant_id: UUID,
    action: str,
    submission: UUID,
    act: Callable[[datetime], Statement],
    about: Run | None = None,
) -> Stated:
    if first := first_use(submission, person, action):
        return Stated(ref=first.result["ref"], version=first.result["version"], repeated=True)
    now = database_now()
    made = act(now)
    Submission.objects.create(
        id=submission, tenant_id=tenant_id, person=person, action=action, run=about or made.run, at=now,
        result={"ref": made.ref, "version": made.version},
    )  # fmt: skip
    return Stated(ref=made.ref, version=made.version)


def place_of(statement: Statement) -> Tenant | Agent | Run:
    """For what it is held: on that its rights are."""
    return statement.run or statement.agent or statement.tenant


def right_to_add(place: Tenant | Agent | Run) -> Right:
    """What adding takes: for one run that of its goal, else that of the rules for all."""
    return Right.REVISE_GOALS if isinstance(place, Run) else Right.MANAGE_POLICIES


def may(person: User, right: Right, place: Tenant | Agent | Run) -> None:
    """Raise ConstraintNotManaged where the person may not, now."""
    if denial := why_not(person, right, place):
        raise ConstraintNotManaged(denial)


def withdraw_here(
    *, person: User, run_id: str, number: int, reason: str, seen: str, submission: UUID
) -> Done:
    """Withdraw a constraint for one run alone: at its source it stands, and the run's successor does not accept it.

    `seen` is the digest of `decide.goal_impact`: the same ends with it. Raises ConstraintRefused, ImpactMoved, Refused,
    LookupError.
    """

    def events_of(state: s.RunState, now: datetime) -> Sequence[e.Event]:
        refuse_reason(reason)
        impact = decide.goal_impact(state)
        if impact.digest != seen:
            raise ImpactMoved(impact)
        return decide.withdrawn_here(state, number, why=plain(reason), by=person_actor(person))

    return by_person(
        person=person, run_id=run_id, right=Right.REVOKE_CONSTRAINTS, action=WITHDRAW_HERE, submission=submission,
        events_of=events_of,
    )  # fmt: skip


def accept_amendment(
    *, person: User, run_id: str, number: int, seen: str, reason: str, submission: UUID
) -> Done:
    """Take for the run what the source of a constraint states now; `seen` is the `term_digest` of what the person read.

    The agent makes another plan under it. Raises decide.AmendmentMoved, ConstraintRefused, Refused, LookupError.
    """

    def events_of(state: s.RunState, now: datetime) -> Sequence[e.Event]:
        refuse_reason(reason)
        return decide.amendment_accepted(state, number, seen=seen, reason=plain(reason))

    return by_person(
        person=person, run_id=run_id, right=Right.OPERATE_RUNS, action=ACCEPT, submission=submission,
        events_of=events_of,
    )  # fmt: skip


def refuse_words(*, name: str, text: str, predicate: str, reason: str) -> None:
    """Raise ConstraintRefused where the words say too little or too much, or the predicate is no expression."""
    for field, typed, most in (("name", name, LONGEST_CONSTRAINT_NAME), ("text", text, LONGEST_TEXT)):
        if not typed.strip():
            raise ConstraintRefused(field, "empty")
        if len(typed) > most:
            raise ConstraintRefused(field, "long")
    refuse_reason(reason)
    try:
        if predicate:
            compiled(predicate)
    except ExpressionRefused as error:
        raise ConstraintRefused("predicate", str(error)) from error


def refuse_reason(reason: str) -> None:
    """Raise ConstraintRefused where it says too little, or more than the next person reads."""
    if len(reason.strip()) < LEAST_REASON:
        raise ConstraintRefused("reason", "short")
    if len(reason) > LONGEST_TEXT:
        raise ConstraintRefused("reason", "long")
