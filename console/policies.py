"""Policies of agents: which counts, its versions and who released them, another version, trying one, releasing one."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_safe

from accounts.guards import On, guarded
from accounts.models import User
from accounts.rights import Right, holders, why_not
from approvals import held
from approvals.documents import DocumentPolicy, DocumentRefused
from approvals.models import LEAST_REASON, PolicyVersion
from approvals.policy import Policy
from console import policy_pages as pages
from runs import actions, affected, tryout
from runs.access import agents_for, visible_runs
from runs.machine.transitions import Refused
from runs.models import Agent
from runs.pages.who import who_can, why_address_at
from runs.views.frame import (
    Context,
    console_page,
    new_submission,
    person_of,
    query_value,
    shell,
    show,
    submission_of,
    typed,
)
from runs.views.refusals import Errors, damaged, keep_refused, longer

SHOWN = 50
MANAGES = (Right.MANAGE_POLICIES,)


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A version of an agent's policy as its page shows it; number 0 is the agent's own."""

    agent: Agent
    number: int
    policy: Policy | None
    version: PolicyVersion | None

    @property
    def url(self) -> str:
        return address("policy-version", self.agent, self.number)

    @property
    def text(self) -> str:
        """The document as it was typed; empty for an agent's own that is code."""
        if self.version:
            return self.version.text
        return self.policy.text if isinstance(self.policy, DocumentPolicy) else ""


@console_page
@guarded(On.PERSON)
@require_safe
def policies(request: HttpRequest) -> HttpResponse:
    """The agents whose policies this person may read, each with the policy that counts."""
    rows = [_row(agent) for agent in _readable(person_of(request))]
    return show(request, "console/policies.html", {**shell(request), "agents": rows})


@console_page
@guarded(On.AGENT)
@require_safe
def policy(request: HttpRequest, name: str) -> HttpResponse:
    """What counts for one agent, in sentences; every version, and every release."""
    agent = _agent(request, name)
    versions, releases = pages.history(agent)
    for version in versions:
        version["url"] = address("policy-version", agent, version["number"])
    context = {
        **_row(agent),
        "lines": pages.lines(pages.in_force(agent)),
        "versions": versions,
        "releases": releases,
        "own_url": address("policy-version", agent, 0),
        "new_url": address("policy-new", agent),
        "list_url": reverse("policies"),
        **_may(request, agent),
    }
    return show(request, "console/policy.html", {**shell(request), **context})


@console_page
@guarded(On.AGENT, acts=MANAGES)
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest, name: str) -> HttpResponse:
    """GET begins another version with the text of the one that counts; POST keeps it, and releases nothing."""
    agent = _agent(request, name)
    if request.method != "POST":
        return _form(request, agent, {})
    text, reason, submission = request.POST.get("text", ""), typed(request, "reason"), submission_of(request)
    errors = _wrong(reason)
    if submission is None:
        errors = damaged()
    if submission is None or errors:
        return _refused(request, agent, errors)
    try:
        kept = actions.add_policy(
            person=person_of(request), agent=agent, text=text, reason=reason, submission=submission
        )
    except DocumentRefused as error:
        return _refused(request, agent, [{"field": "text", "message": problem} for problem in error.problems])
    except actions.PolicyNotManaged as error:
        return _forbidden(request, agent, error, "add_policy", reason)
    except Refused as error:
        return _refused(request, agent, [{"field": "", "message": str(error)}], status=400)
    return HttpResponseRedirect(address("policy-version", agent, kept.number or 0, added=1))


@console_page
@guarded(On.AGENT, acts=MANAGES)
@require_http_methods(["GET", "HEAD", "POST"])
def version(request: HttpRequest, name: str, version: int) -> HttpResponse:
    """GET shows one version, what a release of it would end and what it would have asked; POST releases it."""
    shown = _shown(_agent(request, name), version)
    if request.method != "POST":
        return _version_page(request, shown, {})
    reason, submission = typed(request, "reason"), submission_of(request)
    errors = _wrong(reason)
    if submission is None:
        errors = damaged()
    if submission is None or errors:
        return _not_released(request, shown, {"errors": errors}, "form", 422)
    try:
        actions.release_policy(
            person=person_of(request), agent=shown.agent, number=version or None, reason=reason,
            seen=request.POST.get("seen", ""), submission=submission,
        )  # fmt: skip
    except actions.PolicyNotManaged as error:
        return _forbidden(request, shown.agent, error, "release_policy", reason)
    except actions.PolicyOutdated:
        return _not_released(request, shown, {"conflict": _conflict(shown)}, "stale", 409)
    except Refused as error:
        errors = [{"field": "", "message": str(error)}]
        return _not_released(request, shown, {"errors": errors}, "submission_reused", 400)
    return HttpResponseRedirect(address("policy-version", shown.agent, version, released=1))


def address(route: str, agent: Agent, *more: int, **query: object) -> str:
    """The address of a page about an agent's policy. It names the organisation, since a person may be in several."""
    url = reverse(route, args=[agent.name, *more])
    return f"{url}?{urlencode({'of': agent.tenant.slug, **query})}"


def _readable(person: User) -> list[Agent]:
    """The agents whose runs the person may see or whose policies they manage."""
    sees, manages = agents_for(person, Right.VIEW_RUNS), agents_for(person, Right.MANAGE_POLICIES)
    found = Agent.objects.filter(Q(pk__in=sees.values("pk")) | Q(pk__in=manages.values("pk")))
    return list(found.select_related("tenant").order_by("name", "tenant__name"))


def _agent(request: HttpRequest, name: str) -> Agent:
    """The agent of the address, for a person who may read its policies. Raises Http404."""
    mine = [agent for agent in _readable(person_of(request)) if agent.name == name]
    wanted = query_value(request, "of")
    found = next((agent for agent in mine if wanted in ("", agent.tenant.slug)), None)
    if found is None:
        raise Http404
    return found


def _row(agent: Agent) -> Context:
    counts = pages.in_force(agent)
    releases = held.releases(tenant_id=agent.tenant_id, agent=agent.name)
    return {
        "name": agent.name,
        "title": agent.title,
        "organisation": agent.tenant.name,
        "url": address("policy", agent),
        "counts": counts.version if counts else "",
        "held": bool((latest := releases.first()) and latest.number),
        "since": latest.at if latest else None,
        "rules": len(pages.lines(counts)),
    }


def _shown(agent: Agent, number: int) -> Shown:
    if number == 0:
        return Shown(agent=agent, number=0, policy=pages.own_policy(agent.name), version=None)
    kept = held.versions(tenant_id=agent.tenant_id, agent=agent.name).filter(number=number).first()
    if kept is None:
        raise Http404
    read = held.read(agent=agent.name, number=number, text=kept.text)
    return Shown(agent=agent, number=number, policy=read, version=kept)


def _form(request: HttpRequest, agent: Agent, more: Context, *, status: int = 200) -> HttpResponse:
    counts = pages.in_force(agent)
    context = {
        **_row(agent),
        "values": {"text": pages.exported(counts), "reason": ""},
        "errors": [],
        "names": pages.names(),
        "parties": [{"name": party.value, "text": text} for party, text in pages.PARTIES.items()],
        "loses_code": pages.loses_code(counts),
        "submission": new_submission(),
        "list_url": reverse("policies"),
        **_may(request, agent),
    }
    return show(request, "console/policy_new.html", {**shell(request), **context, **more}, status=status)


def _refused(request: HttpRequest, agent: Agent, errors: Errors, *, status: int = 422) -> HttpResponse:
    """The form as it was typed. Nothing was kept but the attempt."""
    if denial := why_not(person_of(request), Right.MANAGE_POLICIES, agent):
        return _forbidden(request, agent, actions.PolicyNotManaged(denial), "add_policy", "")
    _keep(request, agent, "add_policy", "form", errors[0]["message"], typed(request, "reason"))
    values = {"text": request.POST.get("text", ""), "reason": request.POST.get("reason", "")}
    return _form(request, agent, {"values": values, "errors": errors}, status=status)


def _wrong(reason: str) -> Errors:
    if len(reason) < LEAST_REASON:
        message = _("Enter a reason of at least 10 characters. It stands in the history of the policy.")
        return [{"field": "reason", "message": message}]
    return longer(reason, "reason")


def _version_page(request: HttpRequest, shown: Shown, more: Context, *, status: int = 200) -> HttpResponse:
    agent, person = shown.agent, person_of(request)
    counts = pages.in_force(agent)
    before = pages.exported(counts)
    context: Context = {
        **_row(agent),
        "number": shown.number,
        "version": shown.version,
        "current": bool(counts and shown.policy and counts.version == shown.policy.version),
        "lines": pages.lines(shown.policy),
        "text": shown.text,
        "difference": pages.difference(before, shown.text) if shown.text else [],
        "policy_url": address("policy", agent),
        "list_url": reverse("policies"),
        "action": shown.url,
        "values": {},
        "errors": [],
        "submission": new_submission(),
        **_step(request, shown),
        **_impact(shown, person),
        **_tried(shown, person),
        **_may(request, agent),
        **_done(request),
    }
    return show(request, "console/policy_version.html", {**shell(request), **context, **more}, status=status)


def _tried(shown: Shown, person: User) -> Context:
    """The version on past plans; of those whose outcome differs, the ones that the person may see."""
    if shown.policy is None:
        return {"tried": None}
    runs = visible_runs(person).filter(agent=shown.agent).order_by("-created_at")
    titles = {run.pk: run for run in runs[: 2 * tryout.MOST]}
    found = pages.tried(shown.agent, shown.policy, titles)
    found["differs"] = [
        {**row, "url": reverse("plan", args=[row["run"], row["version"]])} for row in found["differs"][:SHOWN]
    ]
    return {"tried": found}


def _impact(shown: Shown, person: User) -> Context:
    """What a release would end now: counted for all, listed as far as the person may see it."""
    found = affected.impact(shown.agent, shown.number or None)
    runs = visible_runs(person).in_bulk([rest.run for rest in found.rests[: 4 * SHOWN]])
    listed = [_rest(rest, runs[rest.run].goal) for rest in found.rests if rest.run in runs][:SHOWN]
    return {
        "seen": found.digest,
        "ends": _ends(found),
        "rests": listed,
        "more": len(found.rests) - len(listed),
    }


def _rest(rest: affected.Rest, title: str) -> Context:
    said = {
        "pending": _("waits for approval"), "valid": _("is approved"), "by_policy": _("was approved by the policy"),
    }  # fmt: skip
    url = reverse("plan", args=[rest.run, rest.version])
    return {"run": rest.run, "version": rest.version, "title": title, "url": url, "state": said[rest.state]}


def _ends(found: affected.Impact) -> str:
    if not found.rests:
        return _("Nothing rests on another version now.")
    pending, valid = found.count("pending"), found.count("valid") + found.count("by_policy")
    facts = {"pending": pending, "valid": valid}
    return " ".join(
        [
            ngettext("%(pending)d open request ends.", "%(pending)d open requests end.", pending) % facts,
            ngettext("%(valid)d approved plan ends.", "%(valid)d approved plans end.", valid) % facts,
            _("Their runs are planned and asked anew. What was sent already is not touched."),
        ]
    )


def _step(request: HttpRequest, shown: Shown) -> Context:
    """The test box: a step as JSON, and what the version says of it."""
    text = request.GET.get("step", "")
    if not text.strip() or shown.policy is None:
        return {"step": {"text": pages.example(shown.agent)}}
    if len(text) > pages.LONGEST_STEP:
        return {
            "step": {
                "text": text,
                "wrong": _("Use at most %(most)d characters.") % {"most": pages.LONGEST_STEP},
            }
        }
    try:
        step = pages.step_of(text, shown.agent.name)
    except pages.StepWrong as error:
        return {"step": {"text": text, "wrong": str(error)}}
    return {"step": {"text": text, "said": pages.step_tried(shown.policy, step)}}


def _may(request: HttpRequest, agent: Agent) -> Context:
    denial = why_not(person_of(request), Right.MANAGE_POLICIES, agent)
    if denial is None:
        return {"may_manage": True}
    return {
        "may_manage": False,
        "why_not": denial.sentence,
        "who_can": who_can(holders(Right.MANAGE_POLICIES, agent)),
    }


def _done(request: HttpRequest) -> Context:
    if "released" in request.GET:
        return {"result": {"text": _("It is in force now. What rested on another version is asked anew.")}}
    if "added" in request.GET:
        return {"result": {"text": _("The version is kept. It is not in force before it is released.")}}
    return {}


def _not_released(
    request: HttpRequest, shown: Shown, more: Context, refusal: str, status: int
) -> HttpResponse:
    """The page again with what was typed. Nothing was released; the attempt is kept."""
    if denial := why_not(person_of(request), Right.MANAGE_POLICIES, shown.agent):
        return _forbidden(request, shown.agent, actions.PolicyNotManaged(denial), "release_policy", "")
    _keep(request, shown.agent, "release_policy", refusal, f"v{shown.number}", typed(request, "reason"))
    more = {**more, "values": {"reason": request.POST.get("reason", "")}}
    return _version_page(request, shown, more, status=status)


def _conflict(shown: Shown) -> Context:
    return {
        "title": _("Not released. What it would end changed while you were reading."),
        "text": _("Nothing was changed. What a release would end now is shown below."),
        "events": [],
        "compared": [],
        "url": shown.url,
        "field": "field-reason",
    }


def _forbidden(
    request: HttpRequest, agent: Agent, error: actions.PolicyNotManaged, action: str, reason: str
) -> HttpResponse:
    """403, kept as an attempt."""
    _keep(request, agent, action, "not_allowed", str(error), reason)
    context = {
        "incident_id": getattr(request, "request_id", ""),
        "detail": _("You cannot change the policy of this agent. Nothing was changed."),
        "rule": error.denial.sentence,
        "who_can": who_can(holders(Right.MANAGE_POLICIES, agent)),
        "why_url": why_address_at(Right.MANAGE_POLICIES, agent),
        "back_url": address("policy", agent),
        "back_label": _("Back to the policy"),
    }
    return show(request, "errors/403.html", {**shell(request), **context}, status=403)


def _keep(request: HttpRequest, agent: Agent, action: str, refusal: str, why: str, reason: str) -> None:
    keep_refused(
        request, tenant_id=agent.tenant_id, action=action, subject=f"policy of {agent.name}", refusal=refusal,
        detail={"why": why}, seen=request.POST.get("seen", ""), reason=reason,
    )  # fmt: skip
