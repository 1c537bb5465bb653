"""`manage.py first_person`: the first person of an installation, who can then make everybody else on the pages."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.urls import reverse

from accounts.models import Tenant, User
from accounts.organisations import make_organiser, make_tenant
from accounts.passwords import make_link
from accounts.people import add_member, make_person
from accounts.people_log import PeopleRefusedError
from accounts.rights import Right, grant_right
from runs.clock import database_now


class Command(BaseCommand):
    help = (
        "Make a person who manages organisations, and the people of one of them, and print a link to set a password. "
        "With a name that is there already: let that person manage them, as where nobody is left who does."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("organisation", help="its short name; it is made where there is none")
        parser.add_argument("--address", default="", help="the console's address, for the link: https://…")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with transaction.atomic():
                token = _made(options["username"], options["organisation"])
        except PeopleRefusedError as error:
            raise CommandError(error.sentence) from error
        self.stdout.write(options["address"].rstrip("/") + reverse("password-link", args=[token]))


def _made(username: str, slug: str) -> str:
    now = database_now()
    tenant = Tenant.objects.filter(slug=slug).first()
    tenant = tenant or make_tenant(slug=slug, name=slug, actor=None, now=now)
    person = User.objects.filter(username=username).first()
    person = person or make_person(
        tenant=tenant, username=username, display_name="", email="", actor=None, now=now
    )
    add_member(person=person, tenant=tenant, actor=None, now=now)
    grant_right(to=person, right=Right.MANAGE_PEOPLE, obj=tenant, actor=None, now=now)
    make_organiser(person=person, actor=None, now=now)
    return make_link(person=person, actor=None, now=now)
