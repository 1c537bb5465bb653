"""What the sources of the audit log have in common: who sees a row, and what it says of where it came from."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from django.urls import reverse

from accounts.models import User
from accounts.rights import Right, tenants_with
from runs.machine import events as e

Row = dict[str, Any]


def visible(person: User, *, by: str, named: str = "") -> Q:
    """The rows that this person may see: their own, and all of organisations whose whole log they may see.

    `by` is the field of who did it. `named`: only what people of that name did.
    """
    wanted = Q(**{by: person}, tenant__in=person.tenants())
    wanted |= Q(tenant__in=tenants_with(person, Right.SEE_AUDIT))
    if named:
        wanted &= Q(**{f"{by}__display_name": named}) | Q(**{f"{by}__username": named})
    return wanted


def of_run(person: User, run: str) -> Row:
    """What entries have in common that tell what a person did about a run, and which no event of it tells."""
    return {
        "actor": person.shown_name,
        "kind": e.ActorKind.PERSON.value,
        "subject": run,
        "url": reverse("run", args=[run]),
        "result": "recorded",
        "seen": "",
        "reason": "",
        "details": [],
    }


def origin(came: Row) -> Row:
    """Where it came from, as entries say it; blank where a row keeps nothing of it."""
    return {name: came.get(name, "") for name in ("via", "ip", "request_id")}
