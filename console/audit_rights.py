"""Granted and withdrawn rights as entries of the audit log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import RightChange, User
from accounts.rights import Right
from runs.machine import events as e
from runs.models import Agent

Row = dict[str, Any]


def changes(person: User, *, named: str = "") -> QuerySet[RightChange]:
    """What was granted and withdrawn in this person's organisations; `named`: by or to people of that name."""
    wanted = Q(tenant__in=person.tenants())
    if named:
        by = Q(actor__display_name=named) | Q(actor__username=named)
        wanted &= by | Q(person__display_name=named) | Q(person__username=named)
    found = RightChange.objects.filter(wanted).select_related("actor", "person", "group")
    return found.order_by("-at", "-pk")


def as_rows(person: User) -> Callable[[RightChange], Row]:
    """Words for such entries. The agents' names are read once for all of them."""
    kind = ContentType.objects.get_for_model(Agent).pk
    agents = {str(agent.pk): agent for agent in Agent.objects.filter(tenant__in=person.tenants())}

    def row(change: RightChange) -> Row:
        agent = agents.get(change.object_pk) if change.object_type_id == kind else None
        return _row(change, agent)

    return row


def _row(change: RightChange, agent: Agent | None) -> Row:
    by_person = e.ActorKind.PERSON.value, change.actor.shown_name if change.actor else ""
    kind, actor = by_person if change.actor else (e.ActorKind.SYSTEM.value, _("a command"))
    return {
        "at": change.at,
        "actor": actor,
        "kind": kind,
        "did": _sentence(change),
        "subject": agent.title if agent else _("something that is gone"),
        "url": reverse("agents", args=[agent.name]) if agent else "",
        "result": "recorded",
    }


def _sentence(change: RightChange) -> str:
    words = {right.value: str(right.label) for right in Right}
    facts = {"right": words.get(change.codename, change.codename), "holder": _holder(change)}
    if change.granted:
        return _("granted “%(right)s” to %(holder)s") % facts
    return _("withdrew “%(right)s” from %(holder)s") % facts


def _holder(change: RightChange) -> str:
    if change.person:
        return change.person.shown_name
    if change.group:
        return _("the group %(name)s") % {"name": change.group.name}
    return _("a group that is gone")
