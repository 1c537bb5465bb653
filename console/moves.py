"""Moving the runs of one version of an agent to another that takes them over: what fits, what not, and doing it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from accounts.guards import On, guarded
from accounts.models import User
from accounts.rights import Denial, DenialKind, Right, holders
from approvals.models import LEAST_REASON
from runs import actions, compatibility, seeing
from runs.access import agents_for, visible_runs
from runs.agents import Agent, queue_name
from runs.compatibility import Obstacle
from runs.ledger import LogUnreadable, load
from runs.machine.hidden import Hidden
from runs.models import CLOSED, Run
from runs.models import Agent as Known
from runs.pages import moving, words
from runs.pages.who import who_can, why_address_at
from runs.queries import readiness
from runs.views.frame import (
    Context,
    console_page,
    new_submission,
    person_of,
    shell,
    show,
    submission_of,
    typed,
    uuid_of,
)
from runs.views.refusals import Errors, damaged, keep_refused, longer

SHOWN: Final = 20
#: How many runs one form looks at and moves: each is a transaction of its own, and somebody waits for the answer.
AT_MOST: Final = 200
Key = tuple[str, str]
Looked = Mapping[Run, tuple[Obstacle, ...]]


def offered(person: User, key: Key, *, idle: bool) -> Context:
    """What the page of a version says of its runs: the versions that take them over, and, where nobody serves it, which
    they are.
    """
    runs = _open(person, key, Right.VIEW_RUNS)
    number = runs.count()
    shown = [_row(run) for run in runs[:SHOWN]] if idle else []
    heirs = compatibility.heirs(*key) if number else []
    return {
        "runs": shown,
        "more": number - len(shown) if shown else 0,
        "heirs": [
            {"version": a.version, "url": reverse("agent-move", args=[*key, a.version])} for a in heirs
        ],
    }


def _open(person: User, key: Key, right: Right) -> QuerySet[Run]:
    """The open runs of the version on whose agent the person holds the right, the longest stopped first."""
    agents = agents_for(person, right).filter(name=key[0])
    runs = Run.objects.filter(agent__in=agents, agent_version=key[1]).exclude(state__in=CLOSED)
    return runs.select_related("agent").order_by("since", "pk")


def _row(run: Run, why: str = "") -> Context:
    return {
        "id": run.pk,
        "title": run.goal,
        "url": reverse("run", args=[run.pk]),
        "state": words.shown_state(run.state, run.reasons),
        "since": run.since,
        "why": why,
    }


@console_page
@guarded(On.AGENT, acts=(Right.OPERATE_RUNS,))
@require_http_methods(["GET", "HEAD", "POST"])
def move(request: HttpRequest, name: str, version: str, to: str) -> HttpResponse:
    """GET says which runs can be moved and why others cannot; POST moves them, each by an event of its own."""
    person, key = person_of(request), (name, version)
    heir = next((a for a in compatibility.heirs(name, version) if a.version == to), None)
    if heir is None or not agents_for(person, Right.VIEW_RUNS).filter(name=name).exists():
        raise Http404
    if request.method != "POST":
        return _page(request, key, heir, {})
    mine = agents_for(person, Right.OPERATE_RUNS).filter(name=name)
    if not mine:
        return _forbidden(request, key)
    return _post(request, key, heir, mine)


def _post(request: HttpRequest, key: Key, heir: Agent, mine: QuerySet[Known]) -> HttpResponse:
    submission, note = submission_of(request), typed(request, "note")
    errors = _wrong(note)
    if submission is None:
        errors = damaged()
    if submission is None or errors:
        _keep(request, mine, key, "form", note)
        return _page(request, key, heir, {"errors": errors, "values": {"note": note}}, status=422)
    person = person_of(request)
    actions.move_runs(
        person=person, tenant=mine.select_related("tenant")[0].tenant, runs=_seen(request, mine),
        version=heir.version, note=note, submission=submission,
    )  # fmt: skip
    return HttpResponseRedirect(f"{request.path}?done={submission}")


def _seen(request: HttpRequest, mine: QuerySet[Known]) -> list[str]:
    """The runs that the person's page said can be moved, and no others; of agents on which the person may act."""
    named = dict.fromkeys(typed(request, "runs").split()[:AT_MOST])
    known = set(Run.objects.filter(pk__in=list(named), agent__in=mine).values_list("pk", flat=True))
    return [pk for pk in named if pk in known]


def _wrong(note: str) -> Errors:
    if len(note) < LEAST_REASON:
        message = _("Enter a reason of at least 10 characters. The next operator will read it.")
        return [{"field": "note", "message": message}]
    return longer(note, "note")


def _page(request: HttpRequest, key: Key, heir: Agent, more: Context, *, status: int = 200) -> HttpResponse:
    person = person_of(request)
    may = _may(person, key)
    runs = _open(person, key, Right.OPERATE_RUNS if may["may_move"] else Right.VIEW_RUNS)
    looked = {run: _obstacles(run, heir) for run in runs[:AT_MOST]}
    hidden = seeing.hidden_rows(seeing.not_seen(person, [run.pk for run, why in looked.items() if why]))
    context = {
        "agent": key[0],
        "version": key[1],
        "to": heir.version,
        "agent_url": reverse("agent", args=key),
        "list_url": reverse("agents"),
        "served": _served(heir),
        "limit": _limit(runs.count()),
        "submission": new_submission(),
        "values": {},
        "errors": [],
        **_fits(looked, hidden),
        **may,
        **_result(request),
    }
    return show(request, "console/move.html", {**shell(request), **context, **more}, status=status)


def _obstacles(run: Run, heir: Agent) -> tuple[Obstacle, ...]:
    try:
        return compatibility.obstacles(load(run.pk), heir)
    except LogUnreadable as error:
        return (Obstacle(code="unreadable", subject=str(error.seq), now=error.why),)


def _fits(looked: Looked, hidden: Mapping[str, Hidden]) -> Context:
    """Those that fit, those that do not, and how often each thing stands in the way."""
    fits = [_row(run) for run, why in looked.items() if not why]
    unfit = [_row(run, _told(run.pk, why, hidden)) for run, why in looked.items() if why]
    counted = Counter(moving.kind(o) for why in looked.values() for o in {o.code: o for o in why}.values())
    return {
        "fits": fits[:SHOWN],
        "fit": len(fits),
        "fit_ids": " ".join(row["id"] for row in fits),
        "fits_more": len(fits[SHOWN:]),
        "unfit": unfit[:SHOWN],
        "unfit_count": len(unfit),
        "unfit_more": len(unfit[SHOWN:]),
        "reasons": [{"text": text, "number": number} for text, number in counted.most_common()],
    }


def _told(run: str, why: Sequence[Obstacle], hidden: Mapping[str, Hidden]) -> str:
    text = moving.sentences(why)
    return hidden[run].text(text) if run in hidden else text


def _served(heir: Agent) -> str:
    facts = {"version": heir.version}
    if queue_name(heir.name, heir.version) in readiness()["served"]:
        return _("A worker serves version %(version)s now.") % facts
    return _("No worker serves version %(version)s now: moved runs wait until one does.") % facts


def _limit(number: int) -> str:
    if number <= AT_MOST:
        return ""
    facts = {"number": number, "most": AT_MOST}
    return (
        _("There are %(number)d open runs. One form moves at most %(most)d; open this page again then.")
        % facts
    )


def _may(person: User, key: Key) -> Context:
    if agents_for(person, Right.OPERATE_RUNS).filter(name=key[0]).exists():
        return {"may_move": True}
    denial = Denial(kind=DenialKind.RIGHT_MISSING, person=person, right=Right.OPERATE_RUNS)
    agent = agents_for(person, Right.VIEW_RUNS).filter(name=key[0]).first()
    can = who_can(holders(Right.OPERATE_RUNS, agent)) if agent else ""
    why = why_address_at(Right.OPERATE_RUNS, agent) if agent else ""
    return {"may_move": False, "why_not": denial.sentence, "who_can": can, "why_url": why}


def _forbidden(request: HttpRequest, key: Key) -> HttpResponse:
    """403, kept as an attempt."""
    person = person_of(request)
    _keep(request, agents_for(person, Right.VIEW_RUNS).filter(name=key[0]), key, "not_allowed", "")
    may = _may(person, key)
    context = {
        "incident_id": getattr(request, "request_id", ""),
        "detail": _("You cannot move these runs. Nothing was moved."),
        "rule": may["why_not"],
        "who_can": may["who_can"],
        "why_url": may["why_url"],
    }
    return show(request, "errors/403.html", {**shell(request), **context}, status=403)


def _keep(request: HttpRequest, agents: QuerySet[Known], key: Key, refusal: str, note: str) -> None:
    tenant = agents.values_list("tenant_id", flat=True).first()
    keep_refused(
        request, tenant_id=tenant, action="move", subject=" ".join(key), refusal=refusal, reason=note
    )  # fmt: skip


def _result(request: HttpRequest) -> Context:
    """What the form of the address did."""
    person, submission = person_of(request), uuid_of(request.GET.get("done", ""))
    done = actions.moved_by(submission, person) if submission else None
    if done is None or not (done.moved or done.refused):
        return {}
    text = ngettext("%(number)d run was moved.", "%(number)d runs were moved.", len(done.moved))
    detail = ngettext(
        "%(number)d run was not, and stays as it is.", "%(number)d runs were not, and stay as they are.",
        len(done.refused),
    )  # fmt: skip
    return {
        "result": {
            "text": text % {"number": len(done.moved)},
            "detail": detail % {"number": len(done.refused)} if done.refused else "",
        },
        **_rows(person, "moved", done.moved, {}),
        **_rows(person, "refused", done.refused, done.refused),
    }


def _rows(person: User, name: str, runs: Iterable[str], why: Mapping[str, Sequence[Obstacle]]) -> Context:
    known = visible_runs(person).in_bulk(list(runs))
    hidden = seeing.hidden_rows(seeing.not_seen(person, known))
    rows = [_row(run, _told(pk, why.get(pk, ()), hidden)) for pk, run in sorted(known.items())]
    return {name: rows[:SHOWN], f"{name}_more": len(rows[SHOWN:])}
