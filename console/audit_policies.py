"""Policies that organisations hold for their agents as entries of the audit log: added versions, and releases."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import OuterRef, QuerySet, Subquery
from django.utils.translation import gettext as _

from accounts.models import User
from approvals.models import PolicyRelease, PolicyVersion
from console.audit_frame import Row, origin, visible
from console.constraints import named_place
from console.policies import address
from runs.actions.policies import ADD, RELEASE
from runs.machine import events as e
from runs.models import Agent, Submission

type Agents = dict[tuple[UUID, str], Agent]
#: Of what a form did: which action on which agent, who, when, and with which version.
type Forms = dict[tuple[str, UUID, datetime, int | None], Submission]


def versions(person: User, *, named: str = "") -> QuerySet[PolicyVersion]:
    """Added versions, the newest first."""
    found = PolicyVersion.objects.filter(visible(person, by="author", named=named))
    return found.select_related("author").order_by("-at", "-pk")


def releases(person: User, *, named: str = "") -> QuerySet[PolicyRelease]:
    """What was put in force, the latest first."""
    found = PolicyRelease.objects.filter(visible(person, by="by", named=named))
    return found.select_related("by").order_by("-at", "-pk")


def version_rows(some: list[PolicyVersion]) -> list[Row]:
    """Words for added versions."""
    agents, forms = _agents(some), _forms(ADD, [(row.author_id, row.at) for row in some])
    return [_added(row, agents[row.tenant_id, row.agent], forms) for row in some]


def release_rows(some: list[PolicyRelease]) -> list[Row]:
    """Words for releases, each with what was in force before it."""
    agents, forms = _agents(some), _forms(RELEASE, [(row.by_id, row.at) for row in some])
    before = _before(some)
    return [_released(row, agents[row.tenant_id, row.agent], forms, before[row.pk]) for row in some]


def _before(some: list[PolicyRelease]) -> dict[int, int | None]:
    """Which version was in force before each release."""
    earlier = PolicyRelease.objects.filter(
        tenant=OuterRef("tenant"), agent=OuterRef("agent"), pk__lt=OuterRef("pk")
    )
    number = Subquery(earlier.order_by("-pk").values("number")[:1])
    rows = PolicyRelease.objects.filter(pk__in=[row.pk for row in some]).annotate(before=number)
    return dict(rows.values_list("pk", "before"))


def _agents(some: Sequence[PolicyVersion | PolicyRelease]) -> Agents:
    named = {row.agent for row in some}, {row.tenant_id for row in some}
    rows = Agent.objects.filter(name__in=named[0], tenant__in=named[1]).select_related("tenant")
    return {(agent.tenant_id, agent.name): agent for agent in rows}


def _forms(action: str, made: list[tuple[UUID, datetime]]) -> Forms:
    """A form was sent at the very moment of what it did: both are the beginning of their transaction."""
    people, times = {who for who, _at in made}, {at for _who, at in made}
    sent = Submission.objects.filter(person__in=people, at__in=times, action__startswith=f"{action} ")
    return {(form.action, form.person_id, form.at, form.result["number"]): form for form in sent}


def _added(row: PolicyVersion, agent: Agent, forms: Forms) -> Row:
    form = forms.get((f"{ADD} {agent.pk}", row.author_id, row.at, row.number))
    return {
        "at": row.at,
        "actor": row.author.shown_name,
        "did": _("added version %(number)d of the policy, which counts once it is released")
        % {"number": row.number},
        "reason": row.reason,
        "details": [(_("Policy"), row.name), (_("Digest"), row.digest)],
        **_shared(agent, row.number, form),
    }


def _released(row: PolicyRelease, agent: Agent, forms: Forms, before: int | None) -> Row:
    form = forms.get((f"{RELEASE} {agent.pk}", row.by_id, row.at, row.number))
    return {
        "at": row.at,
        "actor": row.by.shown_name,
        "did": _("released %(policy)s: it is in force") % {"policy": _policy(row.number)},
        "reason": row.reason,
        "details": [(_("In force before"), _policy(before)), (_("In force afterwards"), _policy(row.number))],
        **_shared(agent, row.number or 0, form),
    }


def _policy(number: int | None) -> str:
    if number is None:
        return _("the agent’s own policy")
    return _("version %(number)d of the policy") % {"number": number}


def _shared(agent: Agent, number: int, form: Submission | None) -> Row:
    return {
        "kind": e.ActorKind.PERSON.value,
        "subject": named_place(agent),
        "url": address("policy-version", agent, number),
        "result": "recorded",
        **origin(form.origin if form else {}),
    }
