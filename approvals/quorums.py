"""Groups and tenants of those who approve, read afresh: whom a request's rules leave, and which quorums they meet."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from approvals.models import Request
from approvals.policy import Party, Quorum

Stored = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """How many of those who approve are in a quorum's groups now."""

    quorum: Quorum
    given: int

    @property
    def enough(self) -> bool:
        return self.given >= self.quorum.needed


def stored(quorums: Iterable[Quorum]) -> list[Stored]:
    """Quorums as a request keeps them."""
    return [{"needed": quorum.needed, "groups": list(quorum.groups)} for quorum in quorums]


def quorums_of(kept: Iterable[Stored]) -> tuple[Quorum, ...]:
    """The quorums that a request keeps."""
    return tuple(Quorum(needed=one["needed"], groups=tuple(one["groups"])) for one in kept)


def met(quorums: Sequence[Quorum], *, tenant_id: UUID, people: Collection[UUID]) -> tuple[Met, ...]:
    """Each quorum with how many of the people are in its groups, now."""
    return tuple(
        Met(quorum=quorum, given=len(in_groups(quorum.groups, tenant_id=tenant_id, people=people)))
        for quorum in quorums
    )


def unmet(request: Request, people: Collection[UUID]) -> tuple[Met, ...]:
    """The quorums of the request that these people, having approved, do not meet now."""
    quorums = quorums_of(request.quorums)
    return tuple(m for m in met(quorums, tenant_id=request.tenant_id, people=people) if not m.enough)


def in_groups(titles: Sequence[str], *, tenant_id: UUID, people: Collection[UUID]) -> frozenset[UUID]:
    """Those of the people who are, now, in any of the tenant's groups of these titles."""
    return _asked(
        "SELECT unnest(handoff_in_groups(%s, %s, %s::jsonb))", tenant_id, people, json.dumps(list(titles))
    )


def barred(not_by: Collection[str], *, tenant_id: UUID, people: Collection[UUID]) -> frozenset[UUID]:
    """Those of the people whom a party that is looked up at each use keeps from deciding, now."""
    if Party.OTHER_TENANT not in not_by:
        return frozenset()
    alone = _asked("SELECT unnest(handoff_of_this_tenant_alone(%s, %s))", tenant_id, people)
    return frozenset(people) - alone


def barred_from(request_id: UUID, people: Collection[UUID]) -> frozenset[UUID]:
    """As `barred`, by the rules of the request of this id."""
    request = Request.objects.only("tenant_id", "not_by").get(pk=request_id)
    return barred(request.not_by, tenant_id=request.tenant_id, people=people)


def _asked(query: str, tenant_id: UUID, people: Collection[UUID], *more: str) -> frozenset[UUID]:
    if not people:
        return frozenset()
    with connection.cursor() as cursor:
        cursor.execute(query, [tenant_id, list(people), *more])
        return frozenset(row[0] for row in cursor.fetchall())
