"""One value of a plan on a page of its own, whole."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from accounts.guards import On, guarded
from runs import actions
from runs.pages import long_values, plans
from runs.views.frame import console_page, person_of
from runs.views.pages import opened, show_about


@console_page
@guarded(On.RUN)
@require_safe
def value(request: HttpRequest, run_id: str, version: int, value: int) -> HttpResponse:
    """The value; that this person was shown it is kept, since an approver has to have seen what is over-long."""
    page = opened(person_of(request), run_id)
    plan = plans.version_of(page.state, version)
    found = long_values.found(plan, value) if plan else None
    if plan is None or found is None:
        raise Http404
    if (
        request.method == "GET" and page.reader.hidden is None
    ):  # a mark in its place is no value that was seen
        actions.record_opened(
            person=page.reader.person, tenant_id=page.run.tenant_id, digest=plan.digest, number=found.number,
            now=page.reader.now,
        )  # fmt: skip
    context = long_values.page(page.run, page.state, plan, found)
    return show_about(request, page, "runs/value.html", context)
