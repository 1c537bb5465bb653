"""One run for each reason why a run can need a person, and some that wait or were undone: how each begins, and what
people do until it comes to rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, cast
from uuid import uuid4

from django.db import transaction

from accounts.fence import fence_exclusive
from accounts.models import Membership, User
from accounts.rights import Right
from approvals.models import Request, RequestState, Verdict
from examples.lives import keeping, limited, voided
from examples.lives.agent import LIVES, RULED, Mood
from runs import actions, agents
from runs.agents import Constraint
from runs.clock import database_now
from runs.machine import decide
from runs.machine.events import Actor, ActorKind
from runs.models import CLOSED, Agent, Claim, Run

READABLE_FOR: Final = timedelta(seconds=8)
#: One more claim than a run may have without an event.
CLAIMED: Final = 6


@dataclass(frozen=True, kw_only=True)
class People:
    """Who acts in the rehearsal: one starts and decides, one approves, one is about to leave."""

    operator: User
    approver: User
    leaving: User
    guest: User  #: may approve single runs, for a while


@dataclass(frozen=True, kw_only=True)
class Life:
    """One reason: what the run is about, how it begins, and what happens once its plan waits for approval."""

    goal: str
    input: Mapping[str, object] = field(default_factory=dict)
    begin: Callable[[Agent, People, Life, str], Run]
    waiting: Callable[[Run, People], None] | None = None
    stopped: Callable[[Run, People], None] | None = None  #: what happens once it needs a person
    #: what happens once the run is over, and the reason that it then has; a life's own name is its reason otherwise
    over: Callable[[Run, People], None] | None = None
    reason: str = ""
    state: str = ""  #: where the run comes to rest, of a life that stops for no reason
    shows: Callable[[Run], bool] | None = None  #: whether it has come so far there


def _start(agent: Agent, people: People, life: Life, reason: str, **more: Any) -> Run:
    """Start the run, once; what it stops for stands in its start key."""
    given = {"order": reason, "amount": "50.00", "mood": Mood.FINE.value, "tool": "pay"}
    given |= {"until": "", "proposes": "plan"}
    return actions.start_run(
        agent=agent, version=more.pop("version", LIVES.version), goal=life.goal, input=given | dict(life.input),
        start_key=f"life of {reason}", creator=people.operator, principal=more.pop("principal", people.operator),
        **more,
    )  # fmt: skip


@contextmanager
def _registered(agent: agents.Agent) -> Iterator[None]:
    """While it lasts this process has that agent, as an installation had before it was changed."""
    known, key = cast(dict[tuple[str, str], agents.Agent], agents.registered()), (agent.name, agent.version)
    now = known.get(key)
    known[key] = agent
    try:
        yield
    finally:
        known.pop(key) if now is None else known.update({key: now})


def _gone_version(agent: Agent, people: People, life: Life, reason: str) -> Run:
    """Begun with a version that nobody has any more; what the sweep does after the grace is done at once.

    The present version takes it over: it can be moved.
    """
    old = replace(LIVES, version=LIVES.takes_over[0], takes_over=())
    with _registered(old):
        run = _start(agent, people, life, reason, version=old.version, wake=False)
    actions.stop_unserved(run_id=run.pk, version=old.version)
    return run


def _start_scoped(agent: Agent, people: People, life: Life, reason: str) -> Run:
    """With the agent whose limits a file states, which is about to change."""
    scoped = limited.scoped(agent)
    if not Run.objects.filter(agent=scoped).exists():
        limited.state(limited.NARROW)
    return _start(scoped, people, life, reason)


def _scope_widens(run: Run, people: People) -> None:
    """It is approved, and before a worker takes it the configuration allows more than it accepted."""
    with transaction.atomic():
        fence_exclusive(run.tenant_id)
        _approve(run, people)
        limited.state(limited.WIDE)


def _confirm(run: Run, people: People) -> None:
    limited.confirm(run, people.operator)


def _limit_then_revoke(run: Run, people: People) -> None:
    """A person limits the run, and the plan made under it is approved; then the constraint is revoked."""
    if limited.held_for(run) is None:
        limited.limit(run, people.operator)
        return
    with transaction.atomic():
        fence_exclusive(run.tenant_id)
        _approve(run, people)
        limited.revoke(run, people.operator)


def _limit_then_amend(run: Run, people: People) -> None:
    """A person limits the run, and says it otherwise once a plan was made under it."""
    held = limited.held_for(run)
    if held is None:
        limited.limit(run, people.operator)
    elif held.version == 1:
        limited.amend(run, people.operator)


def _accept(run: Run, people: People) -> None:
    limited.accept(run, people.operator)


def _limit_approved(run: Run, people: People) -> None:
    """It is approved, and before anything is sent a person limits the run further: the approval is void."""
    if limited.held_for(run):
        return
    with transaction.atomic():
        _approve(run, people)
        limited.limit(run, people.operator)


def _gone_constraint(agent: Agent, people: People, life: Life, reason: str) -> Run:
    """Begun under a constraint that its source does not state any more."""
    gone = Constraint(
        text="Pay only orders that were delivered.", source_kind="configuration",
        source_ref="examples.lives.agent", source_version="1",
    )  # fmt: skip
    with _registered(replace(LIVES, constraints=(*LIVES.constraints, gone))):
        return _start(agent, people, life, reason)


def _other_constraint(agent: Agent, people: People, life: Life, reason: str) -> Run:
    """Begun under a constraint that its source states in another version now."""
    plain, cap = LIVES.constraints
    before = replace(
        cap, source_version="0", text="A payment is at most 900.00 EUR.",
        predicate="tool != 'pay' || money(arguments.amount) <= money('900.00')",
    )  # fmt: skip
    with _registered(replace(LIVES, constraints=(plain, before))):
        return _start(agent, people, life, reason)


def _late(agent: Agent, people: People, life: Life, reason: str) -> Run:
    return _start(agent, people, life, reason, deadline=database_now())


def _poor(agent: Agent, people: People, life: Life, reason: str) -> Run:
    return _start(agent, people, life, reason, budget=Decimal("1.00"))


def _left(agent: Agent, people: People, life: Life, reason: str) -> Run:
    """Begun for somebody who then leaves."""
    with transaction.atomic():
        run = _start(agent, people, life, reason, principal=people.leaving, wake=False)
        fence_exclusive(agent.tenant_id)
        Membership.objects.filter(user=people.leaving, tenant=agent.tenant).update(active=False)
    return run


def _claimed(agent: Agent, people: People, life: Life, reason: str) -> Run:
    """As workers leave it that die with the run in hand, again and again."""
    with transaction.atomic():
        run = _start(agent, people, life, reason, wake=False)
        Run.objects.filter(pk=run.pk).update(claims=CLAIMED)
    return run


def _fading(agent: Agent, people: People, life: Life, reason: str) -> Run:
    """What it rests on can be read for a short while only."""
    until = (datetime.now(UTC) + READABLE_FOR).isoformat()
    return _start(agent, people, replace(life, input={**life.input, "until": until}), reason)


def _decide(run: Run, people: People, verdict: Verdict, reason: str, by: User | None = None) -> None:
    """The approver, or somebody else, decides on the plan that waits."""
    request = Request.objects.filter(subject__startswith=f"{run.pk}:", state=RequestState.PENDING).latest(
        "opened_at"
    )
    actions.decide_plan(
        person=by or people.approver, run_id=run.pk, version=int(request.subject.partition(":")[2]), verdict=verdict,
        reason=reason, digest=request.digest, conditions_digest=request.conditions_digest, submission=uuid4(),
        signed_in_at=database_now(),
    )  # fmt: skip


def _take_back(run: Run, people: People) -> None:
    """The approver sees a mistake before a worker takes the run."""
    if voided.ended(run):
        return
    with transaction.atomic():
        _approve(run, people)
        actions.take_back_approval(
            person=people.approver, run_id=run.pk, version=run.plan_version, submission=uuid4(),
            reason="The order was paid by hand this morning.",
        )  # fmt: skip


def _guest_leaves(run: Run, people: People) -> None:
    """One who may approve this run alone does so, and may not any more before a worker takes it."""
    if voided.ended(run):
        return
    with transaction.atomic():
        voided.lend(run, people.guest)
        _decide(run, people, Verdict.APPROVE, "as agreed", by=people.guest)
        voided.take_away(run, people.guest)


def _start_ruled(agent: Agent, people: People, life: Life, reason: str) -> Run:
    """With the agent whose policy is about to change."""
    ruled = Agent.objects.get(tenant_id=agent.tenant_id, name=RULED.name)
    return _start(ruled, people, life, reason)


def _policy_changes(run: Run, people: People) -> None:
    """Another policy is released between the approval and the first send."""
    if voided.ended(run):
        return
    with transaction.atomic():
        fence_exclusive(run.tenant_id)
        _approve(run, people)
        voided.release_stricter(run, people.operator)


def _grant_ends(run: Run, people: People) -> None:
    """What the run acts on ends between the approval and the first send."""
    if voided.decided(run):
        return
    with transaction.atomic():
        fence_exclusive(run.tenant_id)
        _approve(run, people)
        voided.end_grant(run, people.operator)


def _lend_anew(run: Run, people: People) -> None:
    voided.lend_anew(run, people.operator)


def _two_approve_one_leaves(run: Run, people: People) -> None:
    """Of two who approved, one may not any more: what is left is not enough."""
    if voided.ended(run):
        return
    with transaction.atomic():
        _approve(run, people)
        voided.lend(run, people.guest)
        _decide(run, people, Verdict.APPROVE, "as agreed", by=people.guest)
        voided.take_away(run, people.guest)


def _ask(run: Run, people: People) -> None:
    """The approver wants another plan."""
    _decide(run, people, Verdict.ASK, "Pay it as any other order, without special care.")


def _approve_moved(run: Run, people: People) -> None:
    """Once the order is not as it was when the plan was made."""
    if not voided.ended(run) and datetime.now(UTC) > run.created_at + READABLE_FOR + timedelta(seconds=1):
        _approve(run, people)


def _approve(run: Run, people: People) -> None:
    _decide(run, people, Verdict.APPROVE, "as agreed")


def _reject(run: Run, people: People) -> None:
    _decide(run, people, Verdict.REJECT, "The supplier was paid by hand.")


def _approve_late(run: Run, people: People) -> None:
    """Once what the plan rests on cannot be read any more."""
    if datetime.now(UTC) > run.created_at + READABLE_FOR + timedelta(seconds=1):
        _approve(run, people)


def _approve_newer(run: Run, people: People) -> None:
    """Once the row says that a version wrote it which nobody has yet."""
    Run.objects.filter(pk=run.pk).update(schema_version=99)
    _approve(run, people)


def _approve_damaged(run: Run, people: People) -> None:
    """The row does not agree any more with the log beside it."""
    with transaction.atomic():
        _approve(run, people)
        Run.objects.filter(pk=run.pk).update(head=b"damaged")


def _approve_restored(run: Run, people: People) -> None:
    """A worker last held the run on another history of the database, as before one is put back from a copy."""
    with transaction.atomic():
        row = Run.objects.select_for_update(of=("self",)).get(pk=run.pk)
        row.lease_token += 1
        row.save(update_fields=["lease_token"])
        Claim.objects.create(
            run=row, tenant_id=row.tenant_id, token=row.lease_token, seq=row.seq, worker=_GIVEN_UP.name, answer={},
            history="another/1/0", at=database_now(),
        )  # fmt: skip
        _approve(run, people)


def _approve_and_revise(run: Run, people: People) -> None:
    """It is approved, and before anything is sent the goal is another one: the approval is void."""
    if run.goal_version > 1:
        return
    with transaction.atomic():
        _approve(run, people)
        _row, state, _now = actions.locked(people.operator, run.pk, Right.VIEW_RUNS)
        actions.revise_goal(
            person=people.operator, run_id=run.pk, text=f"{state.goal.text}, and nothing beyond 50.00 EUR",
            reason="The supplier sent a new offer.", expected=state.goal.version,
            impact=decide.goal_impact(state).digest, submission=uuid4(),
        )  # fmt: skip


def _paid_twice(run: Run, people: People) -> None:
    """The answer of a worker that was long given up comes in, and names another payment than the record does."""
    with transaction.atomic():
        row, state, now = actions.locked(people.operator, run.pk, Right.VIEW_RUNS)
        late = decide.executed(
            state, 1, reference="rehearsed-twice", evidence='{"amount":"50.00","order":"paid twice"}',
            problem=None, versions={}, late=True,
        )  # fmt: skip
        actions.write(state, late, run=row, actor=_GIVEN_UP, now=now)


def _undo(run: Run, people: People) -> None:
    """The operator ends it, and wants undone what can be."""
    if not run.cancel_requested:
        note = "The order was withdrawn."
        actions.cancel_run(person=people.operator, run_id=run.pk, note=note, undo=True, submission=uuid4())


def _planned_again(run: Run) -> bool:
    """Whether the plan that it was carried out by is not its first."""
    return run.plan_version > 1


def _end_parts(run: Run, people: People) -> None:
    """The operator ends the runs that it started."""
    for part in Run.objects.filter(parent=run, cancel_requested=False).exclude(state__in=CLOSED):
        note = "This part is not wanted any more."
        actions.cancel_run(person=people.operator, run_id=part.pk, note=note, submission=uuid4())


_GIVEN_UP: Final = Actor(ActorKind.WORKER, "rehearsal:1", "rehearsal:1")
_CAREFUL: Final = {"mood": Mood.CAREFUL.value}
LIFE: Final[dict[str, Life]] = {
    "log_damaged": Life(
        goal="A log that was damaged", input=_CAREFUL, begin=_start, waiting=_approve_damaged
    ),
    "history_lost": Life(
        goal="A cheque on a database that was put back",
        input={"tool": "post", **_CAREFUL},
        begin=_start,
        waiting=_approve_restored,
    ),
    "effect_unknown": Life(goal="A cheque that nobody can ask about", input={"tool": "post"}, begin=_start),
    "effect_conflict": Life(
        goal="A payment that is recorded with another amount",
        input={"mood": Mood.CONTRADICTS.value},
        begin=_start,
    ),
    "paid_twice": Life(
        goal="A payment that was perhaps made twice", begin=_start, over=_paid_twice, reason="effect_conflict"
    ),
    "schema_incompatible": Life(
        goal="A run that a newer version wrote", input=_CAREFUL, begin=_start, waiting=_approve_newer
    ),
    "version_unavailable": Life(goal="A run that no worker serves", begin=_gone_version),
    "deadline_passed": Life(goal="A payment that is too late", begin=_late),
    "authority_lost": Life(goal="A payment for somebody who left", begin=_left),
    "constraint_withdrawn": Life(goal="A payment under a constraint that is gone", begin=_gone_constraint),
    "constraint_amended": Life(goal="A payment under a constraint that changed", begin=_other_constraint),
    "constraint_revoked": Life(
        goal="A payment whose constraint was revoked after it was approved", input=_CAREFUL, begin=_start,
        waiting=_limit_then_revoke, reason="constraint_withdrawn",
    ),
    "amendment_accepted": Life(
        goal="A payment whose constraint says more now", input=_CAREFUL, begin=_start, waiting=_limit_then_amend,
        stopped=_accept, state="waiting_approval", shows=limited.accepted,
    ),
    "scope_widened": Life(
        goal="A payment whose scope was widened while nobody looked", input=_CAREFUL, begin=_start_scoped,
        waiting=_scope_widens, reason="constraint_amended",
    ),
    "constraint_broken": Life(
        goal="A payment beyond what code allows", input={"amount": "900.00"}, begin=_start, reason="planner_refused"
    ),
    "constraint_inferred": Life(
        goal="A payment under a limit that the agent read", input={"proposes": "limit", **_CAREFUL}, begin=_start,
        waiting=_confirm, state="waiting_approval", shows=limited.confirmed,
    ),
    "budget_exhausted": Life(goal="A payment beyond its budget", begin=_poor),
    "resource_changed": Life(
        goal="An order that never stands still", input={"mood": Mood.RESTLESS.value}, begin=_start
    ),
    "out_of_bounds": Life(
        goal="A bill that is higher than was agreed", input={"proposes": "late", **_CAREFUL}, begin=_start,
        waiting=_approve,
    ),
    "observation_stale": Life(
        goal="An order that cannot be read any more", input=_CAREFUL, begin=_fading, waiting=_approve_late
    ),
    "postcondition_failed": Life(
        goal="A payment that fell short", input={"mood": Mood.FALLS_SHORT.value}, begin=_start
    ),
    "tool_failed": Life(
        goal="A payment that the bank refuses", input={"mood": Mood.REFUSES.value}, begin=_start
    ),
    "plan_rejected": Life(goal="A payment that was rejected", input=_CAREFUL, begin=_start, waiting=_reject),
    "planner_refused": Life(
        goal="An order that the agent may not pay", input={"proposes": "nothing"}, begin=_start
    ),
    "obligation_open": Life(
        goal="A supplier who was told too early", input={"proposes": "promise"}, begin=_start
    ),
    "no_progress": Life(goal="A run that workers die of", begin=_claimed),
    "asked": Life(goal="A supplier whose name is not unique", input={"proposes": "question"}, begin=_start),
    "signal_missing": Life(
        goal="A supplier who does not answer", input={"proposes": "answer", "within": 2}, begin=_start
    ),
    "child_stopped": Life(
        goal="An order of which a part was ended", input={"proposes": "runs"}, begin=_start, waiting=_end_parts
    ),
    "compensation_failed": Life(
        goal="Something said that cannot be taken back", input={"proposes": "time", "mood": Mood.STICKS.value},
        begin=_start, waiting=_undo,
    ),
    "observation_same_value": Life(
        goal="An offer that was read again and is as it was",
        input={"proposes": "offer", "mood": Mood.KEEPS.value, "within": 4}, begin=_start, state="succeeded",
    ),
    "observation_other_value": Life(
        goal="An offer that rose while the run rested",
        input={"proposes": "offer", "mood": Mood.RISES.value, "within": 10}, begin=_fading, state="succeeded",
        shows=_planned_again,
    ),
    "broken_assumption": Life(
        goal="An offer that was taken to stand, and rose",
        input={"proposes": "assumed", "mood": Mood.RISES.value, "within": 10}, begin=_fading, state="succeeded",
        shows=_planned_again,
    ),
    "overdue_obligation": Life(
        goal="A supplier who is waited for, and an auditor who is too", input={"proposes": "answer"}, begin=_start,
        waiting=keeping.owe_briefly, state="waiting", shows=keeping.overdue,
    ),
    "obligation_attested": Life(
        goal="An order that was withdrawn, and what was owed for it", input={"proposes": "time"}, begin=_start,
        waiting=keeping.owe_and_cancel, over=keeping.keep, state="cancelled", shows=keeping.kept,
    ),
    "waiting_time": Life(
        goal="A payment that is due in a month", input={"proposes": "time"}, begin=_start, state="waiting"
    ),
    "waiting_answer": Life(
        goal="A payment that the supplier has to agree to", input={"proposes": "answer"}, begin=_start, state="waiting"
    ),
    "waiting_runs": Life(
        goal="An order in parts", input={"proposes": "runs"}, begin=_start, state="waiting"
    ),
    "voided_by_resource": Life(
        goal="An order that changed after its payment was planned", input={"mood": Mood.MOVES.value}, begin=_fading,
        waiting=_approve_moved, state="waiting_approval", shows=voided.ended,
    ),
    "voided_by_approver": Life(
        goal="A payment whose approver may not approve any more", input=_CAREFUL, begin=_start,
        waiting=_guest_leaves, state="waiting_approval", shows=voided.ended,
    ),
    "voided_by_quorum": Life(
        goal="A payment that two had to approve, and one of them left", input={"mood": Mood.PAIRED.value},
        begin=_start, waiting=_two_approve_one_leaves, state="waiting_approval", shows=voided.ended,
    ),
    "voided_by_policy": Life(
        goal="A payment that another policy came between", input=_CAREFUL, begin=_start_ruled,
        waiting=_policy_changes, state="waiting_approval", shows=voided.ended,
    ),
    "voided_by_grant": Life(
        goal="A payment whose grant was ended, and that was lent to anew", input=_CAREFUL, begin=_start,
        waiting=_grant_ends, stopped=_lend_anew, state="waiting_approval", shows=voided.ended,
    ),
    "voided_by_constraint": Life(
        goal="A payment that was limited after it was approved", input=_CAREFUL, begin=_start,
        waiting=_limit_approved, state="waiting_approval", shows=voided.ended,
    ),
    "expired": Life(
        goal="A payment that nobody decided in time", input={"mood": Mood.BRIEF.value}, begin=_start,
        state="waiting_approval", shows=voided.ended,
    ),
    "taken_back": Life(
        goal="A payment whose approval was taken back", input=_CAREFUL, begin=_start, waiting=_take_back,
        state="waiting_approval", shows=voided.ended,
    ),
    "changes_asked": Life(
        goal="A payment that was planned anew", input=_CAREFUL, begin=_start, waiting=_ask, state="succeeded"
    ),
    "goal_revised": Life(
        goal="Pay the order of a supplier", input=_CAREFUL, begin=_start, waiting=_approve_and_revise,
        state="waiting_approval", shows=voided.ended,
    ),
    "undone": Life(
        goal="An order that was withdrawn", input={"proposes": "time"}, begin=_start, waiting=_undo, state="cancelled"
    ),
}  # fmt: skip


def begin(agent: Agent, people: People) -> dict[str, Run]:
    """Start each life, once: reason -> its run. Raises KeyError where the agent is not registered."""
    return {reason: _begun(agent, people, life, reason) for reason, life in LIFE.items()}


def _begun(agent: Agent, people: People, life: Life, reason: str) -> Run:
    try:
        return life.begin(agent, people, life, reason)
    except actions.AlreadyStarted as error:
        return error.run


def follow(runs: Mapping[str, Run], people: People) -> list[str]:
    """Do what people do next, where a plan or a run waits; the lives that have not come to rest."""
    left = []
    for reason, begun in runs.items():
        run = Run.objects.get(pk=begun.pk)
        life = LIFE[reason]
        if run.state in ("waiting_approval", "waiting") and life.waiting:
            life.waiting(run, people)
        if run.state == "needs_human" and life.stopped:
            life.stopped(run, people)
        if run.state in CLOSED and life.over and not run.reasons and not (life.shows and life.shows(run)):
            life.over(run, people)
        elif not _rests(run, life, reason):
            left.append(reason)
    return left


def _rests(run: Run, life: Life, reason: str) -> bool:
    """Whether the run is where its life leads, or was taken further by somebody since."""
    if run.state in CLOSED and not life.over:
        return True
    if life.state:
        return run.state == life.state and (life.shows is None or life.shows(run))
    return (life.reason or reason) in run.reasons
