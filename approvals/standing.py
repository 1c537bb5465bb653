"""Whether an approval still stands: are those who gave it active, permitted, distinct and enough, now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from accounts.models import User
from accounts.rights import Denial, Right, holders_at, why_not_each
from approvals.binding import Change
from approvals.checks import place_of
from approvals.models import Request, RequestState
from approvals.policy import Party
from approvals.quorums import Met, barred, unmet


@dataclass(frozen=True, slots=True, kw_only=True)
class Lapsed:
    """An approval that counts no more. `why` is a code: what the person lost, and the right that it takes."""

    person: User
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What of an approval is left. Read under the fence it holds until the transaction ends."""

    request: Request
    state: RequestState
    needed: int
    holding: tuple[User, ...]  #: those who approved and still may
    lost: tuple[Denial, ...]  #: those who approved and may not any more, with why
    expired: bool
    barred: tuple[
        User, ...
    ] = ()  #: those who approved and belong to another tenant too, which the policy excludes
    unmet: tuple[
        Met, ...
    ] = ()  #: the groups of which too few are left among those who approved and still may

    @property
    def enough(self) -> bool:
        """Whether those who still may are as many as are needed, and from the groups that are asked for."""
        return len(self.holding) >= self.needed and not self.unmet

    @property
    def stands(self) -> bool:
        """Whether it may be acted on: valid or in use, within its time, and by enough people."""
        return self.state in (RequestState.VALID, RequestState.CONSUMED) and self.enough and not self.expired

    @property
    def lapsed(self) -> tuple[Lapsed, ...]:
        """Those who approved and whose approval counts no more, with why."""
        lost = [Lapsed(person=d.person, why=f"{d.kind.value}:{d.right.value}") for d in self.lost]
        barred = f"{Party.OTHER_TENANT}:{self.request.codename}"
        return (*lost, *(Lapsed(person=person, why=barred) for person in self.barred))

    def changes(self) -> tuple[Change, ...]:
        """The losses as a cause to void the request with: who, and which right they had and lost why."""
        lost = [
            Change(what="approver", before=loss.right.value, after=loss.kind.value, who=str(loss.person.pk))
            for loss in self.lost
        ]
        barred = [
            Change(what="approver", before=None, after=Party.OTHER_TENANT.value, who=str(person.pk))
            for person in self.barred
        ]
        unmet = [
            Change(
                what=f"groups.{', '.join(m.quorum.groups)}", before=str(m.quorum.needed), after=str(m.given)
            )
            for m in self.unmet
        ]
        return (*lost, *barred, *unmet)


# Asked at each revalidation: Django takes longer to write it than PostgreSQL to answer.
_REQUEST = """
SELECT q.*, ARRAY(SELECT d.person_id FROM approvals_decision d
    WHERE d.request_id = q.id AND d.verdict = 'approve' AND d.needed ORDER BY d.at) AS approvers
FROM approvals_request q WHERE q.id = %s
"""


def standing(*, request_id: UUID | str, now: datetime) -> Standing:
    """How the approval of this request stands, the request and rights read afresh. Raises IndexError: there is none."""
    request = Request.objects.raw(_REQUEST, [request_id])[0]
    approvers: list[UUID] = vars(request)["approvers"]
    denials = dict(why_not_each(approvers, Right(request.codename), place_of(request)))
    may = [person for person, denial in denials.items() if denial is None]
    out = barred(request.not_by, tenant_id=request.tenant_id, people=[person.pk for person in may])
    holding = tuple(person for person in may if person.pk not in out)
    return Standing(
        request=request,
        state=RequestState(request.state),
        needed=request.needed,
        holding=holding,
        lost=tuple(denial for denial in denials.values() if denial is not None),
        expired=now >= request.expires_at,
        barred=tuple(person for person in may if person.pk in out),
        unmet=unmet(request, [person.pk for person in holding]),
    )


def who_may_decide(request: Request) -> list[User]:
    """Everyone who may decide this request now, by name; fewer than `needed` means that it cannot be
    approved.
    """
    allowed = holders_at(Right(request.codename), place_of(request))
    out = barred(request.not_by, tenant_id=request.tenant_id, people=[person.pk for person in allowed])
    return [person for person in allowed if str(person.pk) not in request.excluded and person.pk not in out]


def can_be_granted(request: Request) -> bool:
    """Whether as many people as are needed may decide this request now, from the groups that are asked for."""
    people = who_may_decide(request)
    return len(people) >= request.needed and not unmet(request, [person.pk for person in people])
