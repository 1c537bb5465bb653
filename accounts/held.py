"""Where rights are held: by whom, through which group, on which object."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from accounts.models import User
from accounts.permissions import Right, giving
from accounts.rights import Place, Tenanted

_HELD = """
SELECT p.codename, o.type_id, o.object_pk, h.title
  FROM handoff_places(%(tenant)s, %(type)s, %(object)s) o
  JOIN auth_permission p ON p.content_type_id = o.type_id AND p.codename = ANY (%(rights)s)
  JOIN LATERAL (
        SELECT '' AS title FROM guardian_userobjectpermission d
         WHERE d.user_id = %(person)s AND d.permission_id = p.id AND d.object_pk = o.object_pk
        UNION ALL
        SELECT t.title FROM guardian_groupobjectpermission b
          JOIN accounts_user_groups g ON g.group_id = b.group_id AND g.user_id = %(person)s
          LEFT JOIN accounts_tenantgroup t ON t.group_id = b.group_id AND t.tenant_id = %(tenant)s
         WHERE b.permission_id = p.id AND b.object_pk = o.object_pk) AS h(title) ON true
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """One right as it is held: on which place, and by which group (empty: by the person alone)."""

    right: Right
    object_type_id: int
    object_pk: str
    group: str


def held_by(person: User, rights: Iterable[Right], obj: Tenanted) -> list[Holding]:
    """How this person holds these rights, or others that give them, on the object or what it belongs to.

    Says nothing of whether the person is active and a member.
    """
    place = Place.of(obj)
    enough = sorted({x.value for right in rights for x in giving(right)})
    asked: dict[str, Any] = {
        "tenant": place.tenant_id, "type": place.object_type_id, "object": place.object_pk, "rights": enough,
        "person": person.pk,
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(_HELD, asked)
        rows = cursor.fetchall()
    return [
        Holding(right=Right(code), object_type_id=kind, object_pk=pk, group=title or "")
        for code, kind, pk, title in rows
    ]


_ALL = """
SELECT p.codename, p.content_type_id, x.object_pk, x.person, x.title
  FROM (SELECT d.permission_id, d.object_pk, u.id AS person, '' AS title
          FROM guardian_userobjectpermission d JOIN accounts_user u ON u.id = d.user_id AND u.is_active
          JOIN accounts_membership m ON m.user_id = u.id AND m.tenant_id = %(tenant)s AND m.active
        UNION ALL
        SELECT b.permission_id, b.object_pk, NULL, t.title
          FROM guardian_groupobjectpermission b
          JOIN accounts_tenantgroup t ON t.group_id = b.group_id AND t.tenant_id = %(tenant)s) x
  JOIN auth_permission p ON p.id = x.permission_id
 WHERE p.codename = ANY (%(rights)s)
 ORDER BY p.codename, p.content_type_id, x.object_pk, x.title
"""


def all_held(tenant_id: UUID) -> list[tuple[Right, int, str, UUID | None, str]]:
    """All that groups and members of the tenant hold, wherever: right, kind and key of the object, person, group."""
    with connection.cursor() as cursor:
        cursor.execute(_ALL, {"tenant": tenant_id, "rights": [right.value for right in Right]})
        rows = cursor.fetchall()
    return [(Right(code), kind, pk, person, title) for code, kind, pk, person, title in rows]
