"""The four people of the demo, what each may do, and their passwords."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from accounts.groups import group_titled, join_group, make_group
from accounts.models import Membership, Tenant, User
from accounts.permissions import ON_AGENT
from accounts.rights import Right, grant_right
from runs.clock import database_now
from runs.models import Agent

TENANT = "demo"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPerson:
    """Someone who signs in to the demo."""

    username: str
    name: str
    role: str
    rights: tuple[Right, ...]


OPERATOR = DemoPerson(
    username="olga",
    name="Olga Sommer",
    role="operator",
    rights=(
        Right.VIEW_RUNS, Right.START_RUNS, Right.OPERATE_RUNS, Right.RECONCILE_EFFECTS, Right.CANCEL_RUNS,
        Right.ATTEST_EFFECTS, Right.RESTART_RUNS, Right.REREDUCE_RUNS, Right.SEE_VALUES, Right.REVISE_GOALS,
        Right.REVOKE_CONSTRAINTS, Right.SEE_AUDIT,
    ),
)  # fmt: skip
APPROVER = DemoPerson(
    username="anton",
    name="Anton Weiss",
    role="approver",
    rights=(Right.VIEW_RUNS, Right.APPROVE_PLANS, Right.ATTEST_EFFECTS, Right.SEE_VALUES),
)
SECOND = DemoPerson(
    username="mei",
    name="林梅 Mei Lin",
    role="approver",
    rights=(Right.VIEW_RUNS, Right.APPROVE_PLANS, Right.SEE_VALUES, Right.REVISE_GOALS),
)
VIEWER = DemoPerson(username="viktor", name="Viktor Blum", role="viewer", rights=(Right.VIEW_RUNS,))
PEOPLE = (OPERATOR, APPROVER, SECOND, VIEWER)
GROUPS = {
    "Operators": (OPERATOR,),
    "Approvers": (APPROVER, SECOND),
    "Finance": (SECOND,),
    "Viewers": (VIEWER,),
    "Policy managers": (OPERATOR,),
    "People managers": (OPERATOR,),
}
GROUP_RIGHTS = {"Policy managers": Right.MANAGE_POLICIES, "People managers": Right.MANAGE_PEOPLE}


def make_house(passwords: Mapping[str, str]) -> tuple[Agent, dict[str, User]]:
    """The demo's tenant, agent and people. What is there already stays as it is, rights included."""
    tenant, _ = Tenant.objects.get_or_create(slug=TENANT, defaults={"name": "Demo"})
    agent, _ = Agent.objects.get_or_create(
        tenant=tenant, name="refunds", defaults={"title": "Supplier refunds"}
    )
    people = {who.username: _person(who, agent, passwords[who.username]) for who in PEOPLE}
    for title, members in GROUPS.items():
        _group(title, [people[who.username] for who in members], tenant)
    return agent, people


def _group(title: str, members: list[User], tenant: Tenant) -> None:
    """Make the group once. What the story takes away by name, people hold themselves, so groups give only the rest."""
    if group_titled(tenant.pk, title):
        return
    group, now = make_group(tenant=tenant, title=title), database_now()
    for member in members:
        join_group(group=group, person=member, actor=None, now=now)
    if right := GROUP_RIGHTS.get(title):
        grant_right(to=group.group, right=right, obj=tenant, actor=None, now=now)


def _person(who: DemoPerson, agent: Agent, password: str) -> User:
    """Make the person once. Whoever took a right from them later does not find it given back."""
    person = User.objects.filter(username=who.username).first()
    if person is None:
        person = User.objects.create_user(username=who.username, display_name=who.name, password=password)
        Membership.objects.create(user=person, tenant_id=agent.tenant_id)
        for right in who.rights:
            on = agent if right in ON_AGENT else agent.tenant
            grant_right(to=person, right=right, obj=on, actor=None, now=database_now())
    elif not person.check_password(password):
        person.set_password(password)
        person.save(update_fields=["password"])
    return person


def passwords_in(file: Path) -> dict[str, str]:
    """The passwords kept in the file, by username; a person who has none there gets one, and it is kept."""
    kept = _read(file)
    passwords = {who.username: kept.get(who.username) or secrets.token_urlsafe(12) for who in PEOPLE}
    if passwords != kept:
        _write(file, passwords)
    return passwords


def _read(file: Path) -> dict[str, str]:
    if not file.exists():
        return {}
    words = [line.split() for line in file.read_text().splitlines()]
    return {found[0]: found[1] for found in words if len(found) >= 2}


def _write(file: Path, passwords: Mapping[str, str]) -> None:
    """For the owner only from the first moment, and whole or not at all."""
    lines = [f"{who.username:<8} {passwords[who.username]}  {who.role}\n" for who in PEOPLE]
    new = file.with_suffix(".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.writelines(lines)
    new.replace(file)
