"""Which configured agents an organisation uses: each is a place for rights from the moment it is added."""

from __future__ import annotations

from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts.fence import fence_shared
from accounts.models import PeopleAction, Tenant, User
from accounts.organisations import may_organise
from accounts.people_log import PeopleRefusedError, WrongValueError, keep_change, require_manager
from runs import agents
from runs.models import Agent

LONGEST_TITLE = 200


class AgentNotConfiguredError(PeopleRefusedError):
    """No agent of that name is installed: HANDOFF_AGENTS has to name it first. Nothing was changed."""

    field, code = "agent", "not_configured"

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name)

    @property
    def sentence(self) -> str:
        here = sorted({name for name, _version in agents.registered()})
        facts = {"name": self.name or "–", "here": ", ".join(here) or "–"}
        return _("No agent “%(name)s” is installed here. HANDOFF_AGENTS names: %(here)s.") % facts


class AgentStandsError(PeopleRefusedError):
    """The organisation uses the agent already. Nothing was changed; `agent` is the row that stands."""

    code = "stands"

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        super().__init__(agent.name)

    @property
    def sentence(self) -> str:
        facts = {"name": self.agent.name, "title": self.agent.title, "organisation": self.agent.tenant.name}
        return _("%(organisation)s uses the agent “%(name)s” already, as “%(title)s”.") % facts


def usable(tenant: Tenant) -> list[tuple[str, str]]:
    """The configured agents that the organisation does not use yet: name and title in the code, by name."""
    used = set(Agent.objects.filter(tenant=tenant).values_list("name", flat=True))
    names = sorted({name for name, _version in agents.registered()} - used)
    return [(name, code.title) for name in names if (code := agents.newest(name))]


def add_agent(*, tenant: Tenant, name: str, title: str, actor: User | None, now: datetime) -> Agent:
    """Let an organisation use a configured agent; without a title it gets the one in its code.

    Who manages the organisation's people may, since rights on it are theirs to give, and who manages organisations;
    None is a command, which may. Raises AgentStandsError, AgentNotConfiguredError, WrongValueError, NotManagerError.
    """
    with transaction.atomic():
        fence_shared(tenant.pk)
        _require(actor, tenant)
        code = agents.newest(name)
        if code is None:
            raise AgentNotConfiguredError(name)
        agent = _made(tenant, name, _title(title) or code.title)
        keep_change(
            PeopleAction.AGENT_ADDED, actor=actor, now=now, tenant=tenant, name=name, became=agent.title
        )
    return agent


def title_agent(*, agent: Agent, title: str, actor: User | None, now: datetime) -> bool:
    """Give an agent that an organisation uses another title; False: it has it. Raises as `add_agent`."""
    with transaction.atomic():
        fence_shared(agent.tenant_id)
        _require(actor, agent.tenant)
        row = Agent.objects.select_for_update().get(pk=agent.pk)
        was, row.title = row.title, _title(title) or row.title
        if was == row.title:
            return False
        row.save(update_fields=["title"])
        keep_change(
            PeopleAction.AGENT_TITLED, actor=actor, now=now, tenant=agent.tenant, name=row.name, was=was,
            became=row.title,
        )  # fmt: skip
    return True


def _require(actor: User | None, tenant: Tenant) -> None:
    if not (actor and may_organise(actor)):
        require_manager(actor, tenant)


def _title(title: str) -> str:
    if "\x00" in title or len(title) > LONGEST_TITLE:
        message = _("Enter a title of at most %(limit)d characters, or none.") % {"limit": LONGEST_TITLE}
        raise WrongValueError("title", message)
    return title.strip()


def _made(tenant: Tenant, name: str, title: str) -> Agent:
    """Two at once: the unique constraint lets one of them."""
    try:
        with transaction.atomic():
            return Agent.objects.create(tenant=tenant, name=name, title=title)
    except IntegrityError as error:
        stands = Agent.objects.select_related("tenant").get(tenant=tenant, name=name)
        raise AgentStandsError(stands) from error
