"""People, tenants and an object that rights are held on, made for one test."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import cast
from uuid import uuid4

import psycopg
from allauth.mfa.totp.internal import auth as totp
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection, connections

from accounts.models import Membership, Tenant, User
from accounts.rights import Right, grant_right

#: Given to everything that takes a time: nothing under test reads a clock.
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
_names = count(1)


@dataclass
class World:
    """A tenant, and one saved object of it: a membership, the only thing here that has a tenant."""

    tenant: Tenant = field(default_factory=lambda: make_tenant())
    agent: Membership = field(init=False)

    def __post_init__(self) -> None:
        declare_rights()
        self.agent = Membership.objects.create(user=make_person(), tenant=self.tenant)

    def person(self, *rights: Right, name: str = "") -> User:
        """A member with these rights."""
        person = make_person(name)
        Membership.objects.create(user=person, tenant=self.tenant)
        for right in rights:
            grant_right(to=person, right=right, obj=self.agent, actor=None, now=NOW)
        return person

    def group(self, *members: User, right: Right) -> Group:
        """A group with this right."""
        group = Group.objects.create(name=f"group {next(_names)}")
        for member in members:
            member.groups.add(group)
        grant_right(to=group, right=right, obj=self.agent, actor=None, now=NOW)
        return group


def make_tenant() -> Tenant:
    number = next(_names)
    return Tenant.objects.create(slug=f"tenant-{number}", name=f"Tenant {number}")


def make_person(name: str = "") -> User:
    return User.objects.create_user(username=f"person-{uuid4().hex[:12]}", display_name=name)


def declare_rights() -> None:
    """Make the permissions that an agent's model declares, on the model that stands in for it."""
    kind = ContentType.objects.get_for_model(Membership)
    for right in Right:
        Permission.objects.get_or_create(
            content_type=kind, codename=right.value, defaults={"name": right.value}
        )


def code(secret: str, *, steps: int = 0) -> str:
    """What an authenticator app with this secret shows, that many half minutes from now."""
    counter = int(datetime.now(UTC).timestamp()) // 30 + steps
    shown: str = totp.format_hotp_value(totp.hotp_value(secret, counter))
    return shown


def other_connection() -> closing[psycopg.Connection]:
    """A second session on the database in use, in autocommit."""
    return closing(psycopg.connect(**connection.get_connection_params(), autocommit=True))


def in_thread(work: Callable[[], object]) -> threading.Thread:
    """Start `work` in a thread with its own connection."""

    def run() -> None:
        try:
            work()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def wait_until(true: Callable[[], bool], *, within: timedelta = timedelta(seconds=10)) -> None:
    """Poll until it is true; fail the test where it does not become so in time."""
    over = threading.Event()
    deadline = datetime.now(UTC) + within
    while not true():
        assert datetime.now(UTC) < deadline, "it did not come true in time"
        over.wait(0.01)


def waiting_for_lock() -> bool:
    """Whether some session of this database waits for an advisory lock."""
    with other_connection() as session:
        row = session.execute(
            "select count(*) from pg_locks l join pg_database d on d.oid = l.database"
            " where l.locktype = 'advisory' and not l.granted and d.datname = current_database()"
        ).fetchone()
    return cast(tuple[int], row)[0] > 0
