"""Policies that a tenant holds: their versions, and which one is in force for an agent.

The latest release counts. A version that this code cannot read any more is no policy to go by: then a person must
approve, as for any policy that fails.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.models import TenantGroup, User
from approvals.documents import DocumentPolicy, DocumentRefused, policy_of
from approvals.models import PolicyRelease, PolicyVersion
from approvals.policy import Policy, Requirement, Step

#: The name of a held version, by its agent and number; PostgreSQL makes the same.
NAME = "{agent}/held/{number}"
_IN_FORCE = """
SELECT r.number, v.text FROM (
    SELECT number FROM approvals_policyrelease WHERE tenant_id = %s AND agent = %s ORDER BY id DESC LIMIT 1
) r JOIN approvals_policyversion v ON v.tenant_id = %s AND v.agent = %s AND v.number = r.number
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A held version that this code cannot read: whatever it says, a person must approve."""

    version: str
    why: str

    def evaluate(self, steps: Sequence[Step]) -> Requirement:
        raise DocumentRefused(self.why)


def in_force[Own: Policy | None](
    *, tenant_id: UUID, agent: str, own: Own
) -> Own | DocumentPolicy | Unreadable:
    """The policy that counts for this agent in this tenant now: the one released last, else the agent's own.

    Read it after the fence where something is decided by it.
    """
    with connection.cursor() as cursor:
        cursor.execute(_IN_FORCE, [tenant_id, agent, tenant_id, agent])
        row = cursor.fetchone()
    return own if row is None else read(agent=agent, number=row[0], text=row[1])


def read(*, agent: str, number: int, text: str) -> DocumentPolicy | Unreadable:
    """A stored version as a policy."""
    version = NAME.format(agent=agent, number=number)
    try:
        return policy_of(text, version=version)
    except DocumentRefused as error:
        return Unreadable(version=version, why=str(error))


def add_version(
    *, tenant_id: UUID, agent: str, text: str, author: User, reason: str, now: datetime
) -> PolicyVersion:
    """Keep another version, which is not in force yet. Raises DocumentRefused where the text is no policy, or names a
    group that the tenant has not: nobody could ever approve by it.

    In the caller's transaction, which holds the tenant's fence exclusively: numbers are given one after the other.
    """
    if unknown := _unknown_groups(policy_of(text, version=""), tenant_id):
        raise DocumentRefused(*unknown)
    last = versions(tenant_id=tenant_id, agent=agent).first()
    return PolicyVersion.objects.create(
        tenant_id=tenant_id, agent=agent, number=last.number + 1 if last else 1, text=text,
        digest=f"sha256:{hashlib.sha256(text.encode()).hexdigest()}", author=author, reason=reason, at=now,
    )  # fmt: skip


def _unknown_groups(policy: DocumentPolicy, tenant_id: UUID) -> list[str]:
    """What is said of each group that a rule names and that the tenant has not; titles differ by more than case."""
    titles = list(
        TenantGroup.objects.filter(tenant=tenant_id).order_by("title").values_list("title", flat=True)
    )
    known = {title.lower() for title in titles}
    shown = ", ".join(titles) or _("none")
    text = _("“%(name)s”, groups: there is no group “%(title)s” here. There are: %(known)s.")
    return [
        text % {"name": rule.name, "title": title, "known": shown}
        for rule in policy.document.rules
        for title in rule.groups
        if title.lower() not in known
    ]


def release(
    *, tenant_id: UUID, agent: str, number: int | None, by: User, reason: str, now: datetime
) -> PolicyRelease:
    """Make a version the policy in force; None: the agent's own again. From the commit on nothing rests on another.

    In the caller's transaction, which holds the tenant's fence exclusively; a trigger takes it too.
    """
    return PolicyRelease.objects.create(
        tenant_id=tenant_id, agent=agent, number=number, by=by, reason=reason, at=now
    )


def versions(*, tenant_id: UUID, agent: str) -> QuerySet[PolicyVersion]:
    """All versions that the tenant holds for the agent, the newest first."""
    return (
        PolicyVersion.objects.filter(tenant_id=tenant_id, agent=agent)
        .order_by("-number")
        .select_related("author")
    )


def releases(*, tenant_id: UUID, agent: str) -> QuerySet[PolicyRelease]:
    """Every release for the agent, the latest first."""
    return PolicyRelease.objects.filter(tenant_id=tenant_id, agent=agent).order_by("-pk").select_related("by")
