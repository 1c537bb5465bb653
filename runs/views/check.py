"""Check now: every check of a revalidation, made and kept at a person's word. It moves nothing."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from accounts.guards import On, guarded
from accounts.rights import Right
from runs import actions, agents, facts
from runs.access import run_for
from runs.views.again import refused_bare
from runs.views.frame import console_page, person_of
from runs.views.pages import Opened, opened
from runs.views.refusals import Tried, attempt, form_id
from runs.views.results import to_run


@console_page
@guarded(On.RUN, acts=(Right.OPERATE_RUNS,))
@require_POST
def check(request: HttpRequest, run_id: str) -> HttpResponse:
    """Read what the plan rests on from its sources, make all checks, keep the report; lead back to the run."""
    page = opened(person_of(request), run_id)
    seen = f"version {page.state.seq}"
    return attempt(
        request,
        Tried(run=page.run, action="check", subject=run_id, seen=seen),
        lambda: _check(request, page),
        lambda error, status: refused_bare(request, run_id, error, status),
    )


def _check(request: HttpRequest, page: Opened) -> HttpResponse:
    person, run = person_of(request), page.run
    run_for(person, run.pk, Right.OPERATE_RUNS)
    submission = form_id(request)
    if not actions.repeated(submission, person, "check"):
        agent = agents.registered().get((run.agent.name, run.agent_version))
        facts.ask_sources(agent)
        reads = facts.read_needed(page.reader.whole or page.state, agent, page.reader.now) if agent else {}
        fresh = {key: read.fresh for key, read in reads.items()}
        actions.check_now(person=person, run_id=run.pk, reads=fresh, submission=submission)
    return to_run(run.pk, submission)
