"""Reading what a run knows once more, at a person's word. It is stored and shown, and moves nothing."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from accounts.guards import On, guarded
from accounts.rights import Right
from runs import actions, agents, facts
from runs.access import run_for
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.transitions import Refused, allows
from runs.views.again import errors_of
from runs.views.frame import console_page, number, person_of, shell, show
from runs.views.pages import Opened, opened
from runs.views.refusals import FormWrong, Outdated, Refusal, Tried, attempt, form_id
from runs.views.results import to_run


@console_page
@guarded(On.RUN, acts=(Right.OPERATE_RUNS,))
@require_POST
def read(request: HttpRequest, run_id: str) -> HttpResponse:
    """Read one observation, or all, from the systems they belong to; lead back to the run, which says what changed."""
    page = opened(person_of(request), run_id)
    tried = Tried(
        run=page.run, action="reread", subject=f"{run_id} {request.POST.get('observation', '')}"[:200],
        seen=f"version {page.state.seq}",
    )  # fmt: skip
    return attempt(
        request,
        tried,
        lambda: _read(request, page),
        lambda error, status: _refused(request, page, error, status),
    )


def _read(request: HttpRequest, page: Opened) -> HttpResponse:
    person, run = person_of(request), page.run
    run_for(person, run.pk, Right.OPERATE_RUNS)
    submission = form_id(request)
    if not actions.repeated(submission, person, "reread"):
        found = _now(page, _chosen(request, page.reader.whole or page.state))
        actions.reread_observations(person=person, run_id=run.pk, found=found, submission=submission)
    return to_run(run.pk, submission)


def _chosen(request: HttpRequest, state: s.RunState) -> list[s.Observation]:
    """The observations that are to be read. Raises FormWrong where there is none of that number, Refused when over."""
    if not allows(state.state, e.ObservationReread):
        raise Refused(state.state, e.ObservationReread.__name__)
    asked = request.POST.get("observation", "")
    found = [o for o in state.observations.values() if asked == "all" or o.number == number(asked)]
    if not found:
        raise FormWrong([{"field": "", "message": _("The run has no observation of that number.")}])
    return found


def _now(
    page: Opened, chosen: list[s.Observation]
) -> list[tuple[e.ObservationReread, e.ArtifactKept | None]]:
    """What the sources say now. Raises Outdated where one cannot be read: then nothing is stored."""
    agent = agents.registered().get((page.run.agent.name, page.run.agent_version))
    if agent is None:
        message = _("This console does not have the agent’s version, so it cannot read for it.")
        raise FormWrong([{"field": "", "message": message}])
    found = []
    for seen in chosen:
        made = facts.read_once(
            agent.reading(seen.tool), seen.arguments, page.reader.now, tenant=page.state.identity.tenant,
            half_lives=agent.half_lives,
        )  # fmt: skip
        if made.event is None:
            name = f"O-{seen.number}"
            why = page.reader.told(made.fresh.failure)
            raise Outdated(saw=name, now=_("it could not be read: %(why)s") % {"why": why})
        found.append((reread_of(made.event), made.kept))
    return found


def reread_of(made: e.ObservationRecorded) -> e.ObservationReread:
    """A reading as one that a person asked for."""
    return e.ObservationReread(
        **{name: getattr(made, name) for name in e.ObservationReread.__struct_fields__}
    )


def _refused(request: HttpRequest, page: Opened, error: Refusal, status: int) -> HttpResponse:
    """Nothing was stored: something could not be read, the run is over, or the form is no form of the page."""
    if isinstance(error, Outdated):
        facts_ = {"id": error.saw, "why": error.now}
        detail = _("%(id)s: %(why)s. Nothing was stored and nothing was moved. Try again later.") % facts_
    elif isinstance(error, Refused):
        detail = _("The run is over, so nothing is read for it any more. Nothing was stored.")
    else:
        detail = " ".join(x["message"] for x in errors_of(error))
    context = {
        "incident_id": getattr(request, "request_id", ""),
        "detail": detail,
        "back_url": reverse("run", args=[page.run.pk]),
        "back_label": _("Back to the run"),
    }
    return show(request, f"errors/{status}.html", {**shell(request), **context}, status=status)
