"""All addresses. Each application keeps its own; an application without pages yet has none."""

from __future__ import annotations

from importlib.util import find_spec

from django.conf import settings
from django.urls import URLPattern, URLResolver, include, path

from console import (
    agents,
    audit,
    constraints,
    health,
    health_page,
    inbox,
    live,
    moves,
    permissions,
    policies,
    together,
)

handler400 = "console.errors.bad_request"
handler403 = "console.errors.forbidden"
handler404 = "console.errors.not_found"
handler500 = "console.errors.failed"


def _pages(*modules: str) -> list[URLResolver]:
    return [path("", include(module)) for module in modules if find_spec(module)]


def _agents() -> list[str]:
    """The address modules of the configured agents' packages: pages of their own, such as one that starts runs."""
    packages = {agent.split(":")[0].rpartition(".")[0] for agent in settings.HANDOFF_AGENTS}
    return [f"{package}.urls" for package in sorted(packages - {""})]


urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("", inbox.home, name="home"),
    path("inbox/", inbox.inbox, name="inbox"),
    path("inbox/together/", together.together, name="inbox-together"),
    path("inbox/notices/", live.inbox_notices, name="inbox-notices"),
    path("runs/", inbox.all_runs, name="runs"),
    path("agents/", agents.agents, name="agents"),
    path("agents/<str:name>/", agents.agents, name="agents"),
    path("agents/<str:name>/<str:version>/", agents.agent, name="agent"),
    path("agents/<str:name>/<str:version>/move/<str:to>/", moves.move, name="agent-move"),
    path("permissions/", permissions.permissions, name="permissions"),
    path("permissions/check/", permissions.check, name="permission-check"),
    path("policies/", policies.policies, name="policies"),
    path("policies/<str:name>/", policies.policy, name="policy"),
    path("policies/<str:name>/new/", policies.new, name="policy-new"),
    path("policies/<str:name>/<int:version>/", policies.version, name="policy-version"),
    path("constraints/", constraints.constraints, name="constraints"),
    path("constraints/<slug:ref>/", constraints.constraint, name="constraint"),
    path("audit/", audit.audit, name="audit"),
    path("health/", health_page.health, name="health"),
    path("audit/export.<str:kind>", audit.export, name="audit-export"),
    *_pages("console.signing.urls", "console.people.urls", "approvals.urls", "runs.urls", *_agents()),
]
