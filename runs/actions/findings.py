"""What people find about evidence that contradicts the record of a settled effect."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from accounts.fence import fence_shared
from accounts.models import User
from accounts.reauthentication import require_recent
from accounts.rights import Right
from runs import access
from runs.actions.frame import Done, by_person, person_actor
from runs.actions.writing import write
from runs.clock import database_now
from runs.ledger import load, log
from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.models import CLOSED, Run
from runs.outbox import wake_on_commit
from runs.queries import stands_elsewhere


def right_to_find(finding: s.Finding) -> Right:
    """Leaving the record as it is takes less than changing it by a statement."""
    return Right.RECONCILE_EFFECTS if finding is s.Finding.AS_RECORDED else Right.ATTEST_EFFECTS


def settle_contradiction(
    *,
    person: User,
    run_id: str,
    effect: int,
    evidence: int,
    finding: s.Finding,
    reference: str,
    how: str,
    submission: UUID,
    signed_in_at: datetime | None = None,
) -> Done:
    """Find what is true where the late evidence in event `evidence` contradicts the record; on closed runs too.

    Raises decide.ConclusionRefused with the condition that fails, Refused where it was settled meanwhile. Where the
    record would change and the effect cannot be undone, nothing changes before a second person finds the same, and each
    must have signed in lately: else ReauthenticationNeeded.
    """

    def events_of(state: s.RunState, now: datetime) -> Sequence[e.Event]:
        new = decide.found(
            state, effect, evidence=evidence, finding=finding, reference=reference, how=how, person=str(person.pk),
            now=now, again_in=_again_in(state, effect), owes=_owes(state, effect, reference),
        )  # fmt: skip
        if finding is not s.Finding.AS_RECORDED and not state.effects[effect].terms.reversible:
            require_recent(signed_in_at=signed_in_at, now=now)
        return new

    try:
        with transaction.atomic():
            if finding is s.Finding.NOT_HAPPENED:
                _lock_lineage(person, run_id)
            done = by_person(
                person=person, run_id=run_id, right=right_to_find(finding), action="settle", submission=submission,
                events_of=events_of,
            )  # fmt: skip
            if finding is s.Finding.NOT_HAPPENED and not done.repeated:
                _tell_relatives(person, run_id, effect)
    except IntegrityError as error:
        # Another run of the lineage took the operation in this moment: then both stand.
        raise decide.ConclusionRefused("stands_again") from error
    return done


def _lock_lineage(person: User, run_id: str) -> None:
    """All runs that the finding may reach, after the fence and in one order, so that no two people wait for each other.

    Raises access.RunNotFound.
    """
    run = access.run_for(person, run_id)
    fence_shared(run.tenant_id)
    lineage = Run.objects.filter(tenant_id=run.tenant_id, lineage=run.lineage).exclude(state__in=CLOSED)
    list(Run.objects.select_for_update(of=("self",)).filter(Q(pk=run_id) | Q(pk__in=lineage)).order_by("pk"))


def _owes(state: s.RunState, number: int, reference: str) -> str:
    """The obligation to undo what happened a second time."""
    effect = state.effects[number]
    came = effect.contradicted
    facts = {"title": effect.title, "reference": reference or (came.reference if came else "")}
    return _("Undo what happened twice: %(title)s, reference %(reference)s") % facts


def _again_in(state: s.RunState, number: int) -> str:
    effect = state.effects.get(number)
    return stands_elsewhere(state.identity, effect) if effect else ""


def _tell_relatives(person: User, run_id: str, number: int) -> None:
    """Open runs of the lineage that took the effect for done stop for a person, and can do it themselves."""
    state = load(run_id)
    effect = state.effects[number]
    if effect.status is not s.EffectStatus.NOT_EXECUTED:
        return
    others = Run.objects.filter(tenant_id=state.identity.tenant, lineage=state.identity.lineage)
    for other in others.exclude(pk=run_id).exclude(state__in=CLOSED).order_by("pk"):
        row = Run.objects.select_related("agent").get(pk=other.pk)
        events = decide.inherited_lost(load(row.pk), run_id, effect, _answered_from(row.pk, run_id, number))
        if events:
            write(load(row.pk), events, run=row, actor=person_actor(person), now=database_now())
            wake_on_commit(run_id=row.pk, agent=row.agent.name, version=row.agent_version)


def _answered_from(run_id: str, source: str, number: int) -> tuple[str, ...]:
    """The steps of a run that were answered from another run's effect."""
    answers = (r.event for r in log(run_id) if isinstance(r.event, e.StepAnswered))
    return tuple(dict.fromkeys(x.step for x in answers if (x.run, x.effect) == (source, number)))
