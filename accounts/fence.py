"""The fence: what makes a right, a constraint or a policy unusable from the commit that withdrew it.

A send or a decision takes its tenant's lock shared, *then* reads. A withdrawal takes it exclusively, so it
waits for those under way, and those that come later wait for its commit and see it. Lock and reads are
separate statements, since one statement has one snapshot, taken before it waited.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db import connection


class FenceRefusedError(RuntimeError):
    """The fence only holds inside a READ COMMITTED transaction: open one with `atomic()` before taking it."""


def fence_shared(tenant_id: UUID) -> None:
    """Until the transaction ends, let nothing be withdrawn in this tenant. Read what you rest on after it."""
    _take("pg_advisory_xact_lock_shared", tenant_id)


def fence_exclusive(tenant_id: UUID) -> None:
    """Wait for the tenant's sends and decisions under way; hold back new ones until the transaction ends."""
    _take("pg_advisory_xact_lock", tenant_id)


def _take(lock: str, tenant_id: UUID) -> None:
    if not connection.in_atomic_block:
        raise FenceRefusedError(FenceRefusedError.__doc__)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT current_setting('transaction_isolation'), {lock}(handoff_fence_key(%s))", [tenant_id]
        )
        isolation = cursor.fetchone()[0]
    # With one snapshot for the whole transaction the reads after the lock would see what was true before it.
    if isolation != "read committed":
        raise FenceRefusedError(FenceRefusedError.__doc__)


def fence_tenants(tenant_ids: Iterable[UUID]) -> None:
    """`fence_exclusive` of several tenants, in the one order in which nobody blocks another."""
    if not connection.in_atomic_block:
        raise FenceRefusedError(FenceRefusedError.__doc__)
    with connection.cursor() as cursor:
        cursor.execute("SELECT handoff_fence_tenants(%s::uuid[])", [list(tenant_ids)])
