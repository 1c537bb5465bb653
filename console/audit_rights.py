"""Granted and withdrawn rights as entries of the audit log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.db.models import Model, Q, QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import RightChange, Tenant, User
from accounts.rights import Right, tenants_with
from runs.machine import events as e
from runs.models import Agent, Run

Row = dict[str, Any]


def changes(person: User, *, named: str = "") -> QuerySet[RightChange]:
    """What was granted and withdrawn, by or to this person, and all of it in organisations whose log they may see.

    `named`: by or to people of that name.
    """
    mine = Q(actor=person) | Q(person=person)
    wanted = mine & Q(tenant__in=person.tenants()) | Q(tenant__in=tenants_with(person, Right.SEE_AUDIT))
    if named:
        by = Q(actor__display_name=named) | Q(actor__username=named)
        wanted &= by | Q(person__display_name=named) | Q(person__username=named)
    found = RightChange.objects.filter(wanted).select_related("actor", "person", "group", "tenant")
    return found.order_by("-at", "-pk")


def as_rows(person: User) -> Callable[[RightChange], Row]:
    """Words for such entries. The agents' names are read once for all of them."""
    kinds = {kind.pk: model for model, kind in ContentType.objects.get_for_models(Agent, Run, Tenant).items()}
    agents = {str(agent.pk): agent for agent in Agent.objects.filter(tenant__in=person.tenants())}

    def row(change: RightChange) -> Row:
        return _row(change, *_place(change, kinds.get(change.object_type_id), agents))

    return row


def _place(change: RightChange, kind: type[Model] | None, agents: dict[str, Agent]) -> tuple[str, str]:
    """What the right is about, and where that is shown."""
    agent = agents.get(change.object_pk) if kind is Agent else None
    if agent:
        return agent.title, reverse("agents", args=[agent.name])
    if kind is Run:
        return change.object_pk, reverse("run", args=[change.object_pk])
    return (change.tenant.name, "") if kind is Tenant else (_("something that is gone"), "")


def _row(change: RightChange, subject: str, url: str) -> Row:
    by_person = e.ActorKind.PERSON.value, change.actor.shown_name if change.actor else ""
    kind, actor = by_person if change.actor else (e.ActorKind.SYSTEM.value, _("a command"))
    return {
        "at": change.at,
        "actor": actor,
        "kind": kind,
        "did": _sentence(change),
        "subject": subject,
        "url": url,
        "result": "recorded",
        "via": "" if change.actor else "command",
        "details": [(_("Right"), change.codename)],
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
