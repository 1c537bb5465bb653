"""Who may do what: the rights of an organisation's groups and people, and why one person can or cannot do one thing."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib.contenttypes.models import ContentType
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from accounts.guards import On, guarded
from accounts.held import all_held
from accounts.models import Tenant, TenantGroup, User
from accounts.reauthentication import ReauthenticationNeeded, require_recent
from accounts.rights import Right
from runs.access import RunNotFound, run_for
from runs.clock import database_now
from runs.ledger import LogUnreadable, load
from runs.models import Agent, Run
from runs.pages import words
from runs.pages.why_cannot import about, answer, answer_at
from runs.views.frame import Context, console_page, person_of, query_value, shell, show, signed_in_at, uuid_of

#: Rules between people, and what no right outweighs.
RULES: Final[tuple[Promise, ...]] = (
    gettext_lazy(
        "Where the policy says so, the person on whose behalf a run acts does not approve its plans."
    ),
    gettext_lazy("Where the policy says so, who started a run does not approve its plans."),
    gettext_lazy("Where the policy says so, whoever had a part in plan, goal or limits does not approve."),
    gettext_lazy("Where the policy says so, members of another organisation do not approve."),
    gettext_lazy(
        "An effect that cannot be undone is attested by two people; so is a finding that changes its record."
    ),
    gettext_lazy("What cannot be undone is decided by those who signed in lately."),
    gettext_lazy("Workers, agents and commands never count as people."),
    gettext_lazy(
        "Rights are read anew at each decision and before each effect: one that was taken away is gone."
    ),
)


@console_page
@guarded(On.PERSON)
@require_safe
def permissions(request: HttpRequest) -> HttpResponse:
    """Which groups and people of one's organisations hold which right, and where."""
    tenants = list(person_of(request).tenants())
    context: Context = {"tenants": [_tenant(tenant) for tenant in tenants], "rules": RULES}
    return show(request, "console/permissions.html", {**shell(request), **context})


def _tenant(tenant: Tenant) -> Context:
    people = {person.pk: person.shown_name for person in _members([tenant])}
    places = _Places(tenant)
    by_group: dict[Right, list[str]] = defaultdict(list)
    alone: dict[Right, list[str]] = defaultdict(list)
    for right, kind, key, person, title in all_held(tenant.pk):
        if (place := places.name(kind, key)) is None or (person is not None and person not in people):
            continue
        who = title if person is None else people[person]
        (by_group if person is None else alone)[right].append(
            _("%(who)s: %(place)s") % {"who": who, "place": place}
        )
    rows = [{"label": r.label, "groups": by_group[r], "people": alone[r]} for r in Right]
    groups = TenantGroup.objects.filter(tenant=tenant).select_related("group").order_by("title")
    return {"name": tenant.name, "rows": rows, "groups": [_group(group, people) for group in groups]}


def _group(group: TenantGroup, people: dict[Any, str]) -> Context:
    members = group.group.user_set.values_list("pk", flat=True)
    return {"title": group.title, "people": sorted(people[pk] for pk in members if pk in people)}


class _Places:
    """The objects of a tenant on which rights are held, by their names. A key of another tenant has none."""

    def __init__(self, tenant: Tenant) -> None:
        kinds = ContentType.objects.get_for_models(Run, Agent, Tenant)
        self.tenant = tenant
        self.kinds = {kind.pk: model for model, kind in kinds.items()}
        self.agents = {str(agent.pk): agent.title for agent in Agent.objects.filter(tenant=tenant)}

    def name(self, kind: int, key: str) -> str | None:
        """What the place is called; None where it is not of this tenant."""
        model = self.kinds.get(kind)
        if model is Tenant:
            return (
                _("all of %(tenant)s") % {"tenant": self.tenant.name} if key == str(self.tenant.pk) else None
            )
        if model is Agent:
            return self.agents.get(key)
        mine = model is Run and Run.objects.filter(pk=key, tenant=self.tenant).exists()
        return _("one run") if mine else None


@console_page
@guarded(On.PERSON)
@require_safe
def check(request: HttpRequest) -> HttpResponse:
    """Whether a person can do a thing with a run, an agent or an organisation, and which rule says so. Reads only."""
    asker = person_of(request)
    tenants = list(asker.tenants())
    people = _members(tenants)
    asked = uuid_of(query_value(request, "person"))
    person = (people.filter(pk=asked).first() if asked else None) or asker
    action, run_id, on = (query_value(request, name) for name in ("action", "run", "on"))
    places = _things(tenants)
    context: Context = {
        "people": [{"value": str(p.pk), "label": p.shown_name, "chosen": p == person} for p in people],
        "actions": [{"value": r.value, "label": r.label, "chosen": r.value == action} for r in Right],
        "places": [{"value": key, "label": _named(x), "chosen": key == on} for key, x in places.items()],
        "run_id": run_id,
        **(_asked(request, person, action, run_id or places.get(on)) if action and (run_id or on) else {}),
    }
    return show(request, "console/why_cannot.html", {**shell(request), **context})


def _members(tenants: list[Tenant]) -> QuerySet[User]:
    found = User.objects.filter(memberships__tenant__in=tenants).distinct()
    return found.order_by("display_name", "username")


def _things(tenants: list[Tenant]) -> dict[str, Agent | Tenant]:
    """The organisations of the person who asks, each with its agents, by the form's value."""
    agents = Agent.objects.filter(tenant__in=tenants).select_related("tenant").order_by("title")
    found: dict[str, Agent | Tenant] = {}
    for tenant in sorted(tenants, key=lambda x: x.name):
        found[f"tenant-{tenant.pk}"] = tenant
        found |= {f"agent-{agent.pk}": agent for agent in agents if agent.tenant_id == tenant.pk}
    return found


def _named(thing: Run | Agent | Tenant) -> str:
    match thing:
        case Run():
            return thing.pk
        case Agent():
            facts = {"agent": thing.title, "tenant": thing.tenant.name}
            return _("the agent %(agent)s of %(tenant)s") % facts
        case _:
            return _("all of %(tenant)s") % {"tenant": thing.name}


def _asked(request: HttpRequest, person: User, action: str, on: str | Agent | Tenant | None) -> Context:
    """The answer, or why there is none. Whoever asks learns of nothing that they may not see."""
    asker = person_of(request)
    if action not in Right:
        return {"unknown": _("There is no such action. Choose one of the list.")}
    if on is None:
        return {"unknown": _("There is no such agent or organisation. Choose one of the list.")}
    right = Right(action)
    try:
        thing = about(right, run_for(asker, on) if isinstance(on, str) else on)
        found = (
            answer(person, right, thing, load(thing.pk))
            if isinstance(thing, Run)
            else answer_at(person, right, thing)
        )
    except RunNotFound:
        return {"unknown": _("You see no run with this id. Whether there is one is not told.")}
    except LogUnreadable as error:
        return {
            "unknown": _("The log of this run cannot be read by this version: %(why)s")
            % {"why": words.ended(str(error))}
        }
    facts = {"person": person.shown_name, "action": words.inside(str(right.label)), "thing": _named(thing)}
    yes = _("Yes: %(person)s can do this now with %(thing)s: %(action)s.")
    no = _("No: %(person)s cannot do this now with %(thing)s: %(action)s.")
    again = _again(request) if found.recent and person == asker else {}
    return {"verdict": (yes if found.yes else no) % facts, "rule": found.rule, "more": found.more, **again}


def _again(request: HttpRequest) -> Context:
    """Where the asker's own sign-in is too old for it: that, and where to renew it."""
    try:
        require_recent(signed_in_at=signed_in_at(request), now=database_now())
    except ReauthenticationNeeded as error:
        query = urlencode({"next": request.get_full_path()})
        return {"again": error.sentence, "again_url": f"{reverse('sign-in-again')}?{query}"}
    return {}
