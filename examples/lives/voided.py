"""Lives of approvals that end before they are used: each by another cause, which the pages name from what to what."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from django.db import transaction

from accounts.rights import Right, grant_right, withdraw_right
from approvals.models import OPEN_STATES, Decision, Request, RequestState
from runs import actions, agents, grants
from runs.affected import impact
from runs.clock import database_now

if TYPE_CHECKING:
    from accounts.models import User
    from runs.models import Run

DECIDED = (RequestState.CONSUMED, RequestState.REJECTED)


def ended(run: Run) -> bool:
    """Whether an approval of the run, or a request for one, ended unused, and what follows has begun."""
    requests = Request.objects.filter(subject__startswith=f"{run.pk}:")
    over = requests.exclude(state__in=(*OPEN_STATES, *DECIDED))
    if over.filter(state=RequestState.EXPIRED).exists():
        return True  # a person asks again
    return over.exists() and requests.filter(state=RequestState.PENDING).exists()


#: What the tenant then holds for the agent: a careful payment takes somebody else than before.
STRICTER = """{
  "rules": [
    {
      "name": "a careful payment",
      "when": "has(arguments.mood) && arguments.mood == 'careful'",
      "not_by": ["principal", "creator", "goal_reviser", "plan_author"],
      "stands_for": "15m"
    }
  ]
}"""


def release_stricter(run: Run, by: User) -> None:
    """Another policy counts for the run's agent from now on."""
    reason = "Whoever asks for changes does not approve them."
    kept = actions.add_policy(person=by, agent=run.agent, text=STRICTER, reason=reason, submission=uuid4())
    seen = impact(run.agent, kept.number).digest
    actions.release_policy(
        person=by, agent=run.agent, number=kept.number, seen=seen, reason=reason, submission=uuid4()
    )


def decided(run: Run) -> bool:
    """Whether anybody decided about a plan of the run."""
    return Decision.objects.filter(request__subject__startswith=f"{run.pk}:").exists()


def end_grant(run: Run, by: User) -> None:
    """What the run acts on is over."""
    if run.grant is None:
        raise ValueError(f"{run.pk} acts on no grant")
    why, seen = "The budget year is over.", grants.impact_of(run.grant).digest
    actions.end_grant(person=by, grant=run.grant.pk, why=why, impact=seen, submission=uuid4())


def lend_anew(run: Run, by: User) -> None:
    """So that the run can go on, once people agree again."""
    scopes = grants.scopes_of(agents.registered()[(run.agent.name, run.agent_version)])
    actions.lend_anew(
        person=by,
        run_id=run.pk,
        scopes=scopes,
        note="It is paid from the new year's budget.",
        submission=uuid4(),
    )


def lend(run: Run, to: User) -> None:
    """For this run alone."""
    grant_right(to=to, right=Right.APPROVE_PLANS, obj=run, actor=None, now=database_now())


def take_away(run: Run, person: User) -> None:
    """What was lent for this run."""
    with transaction.atomic():
        withdraw_right(to=person, right=Right.APPROVE_PLANS, obj=run, actor=None, now=database_now())
