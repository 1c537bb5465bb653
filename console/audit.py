"""The audit log: what people did, from the runs' logs, what they tried and were refused, and who got which right."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from django.db.models import CharField, F, Func, Q, QuerySet, Value
from django.http import HttpRequest, HttpResponse
from django.urls import NoReverseMatch, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from accounts.guards import On, guarded
from accounts.models import User
from approvals.models import Attempt
from console import audit_people, audit_rights
from runs.access import visible_runs
from runs.machine import events as e
from runs.models import Event
from runs.pages import timeline
from runs.views.frame import Context, console_page, number, person_of, shell, show

PAGE = 50
#: A subject begins with the run that it is about; the id of a run that a step started is longer than others.
RUN_ID = "^run_[0-9A-Z]+"
Row = dict[str, Any]
Source = tuple[QuerySet[Any], Callable[[Any], Row]]

#: What can be done: code -> (words, the event it makes, how a refused attempt is kept).
ACTIONS: dict[str, tuple[Promise, str, str]] = {
    "start": (gettext_lazy("Start runs"), e.RunStarted.__name__, "start"),
    "approve": (gettext_lazy("Approve a plan"), e.ApprovalGiven.__name__, "decide approve"),
    "reject": (gettext_lazy("Reject a plan"), e.PlanRejected.__name__, "decide reject"),
    "changes": (gettext_lazy("Ask for changes to a plan"), e.ChangesAsked.__name__, "decide ask"),
    "take_back": (gettext_lazy("Take an approval back"), e.ApprovalTakenBack.__name__, "take back"),
    "renew": (gettext_lazy("Ask for approval again"), e.ApprovalRequested.__name__, "renew"),
    "ask": (gettext_lazy("Ask what became of an effect"), e.EffectQueried.__name__, "ask"),
    "conclude": (gettext_lazy("Conclude what became of an effect"), e.EffectReconciled.__name__, "conclude"),
    "attest": (gettext_lazy("Attest what became of an effect"), e.EffectAttested.__name__, "attest"),
    "settle": (gettext_lazy("Settle evidence against the record"), e.ContradictionStated.__name__, "settle"),
    "go_on": (gettext_lazy("Let a run go on"), e.RunResumed.__name__, "resume"),
    "retry": (gettext_lazy("Try a refused step again"), e.RunResumed.__name__, "retry"),
    "lend": (gettext_lazy("Lend to a run anew"), e.AuthorityLent.__name__, "lend"),
    "move": (gettext_lazy("Move a run to another version"), e.VersionMoved.__name__, "move"),
    "goal": (gettext_lazy("Revise the goal"), e.GoalRevised.__name__, "revise goal"),
    "replan": (gettext_lazy("Ask for another plan"), e.ReplanOrdered.__name__, "replan"),
    "restart": (gettext_lazy("Restart a run"), e.RunRestarted.__name__, "restart"),
    "cancel": (gettext_lazy("Cancel a run"), e.CancelRequested.__name__, "cancel"),
    "end": (gettext_lazy("End a run as it is"), e.RunCancelled.__name__, "end"),
    "signal": (gettext_lazy("Give a run an answer"), e.SignalReceived.__name__, "signal"),
}
#: The filter's value for what is no action on a run.
RIGHTS = "rights"
PEOPLE = "people"
#: What is kept of refused attempts only: the form was sent without a choice, or takes back what it did.
_ALSO_TRIED: dict[str, Promise] = {
    "decide": gettext_lazy("Decide"),
}
REFUSALS: dict[str, Promise] = {
    "not_allowed": gettext_lazy("the right is missing"),
    "separation_of_duties": gettext_lazy("the person has a part in what is decided"),
    "stale": gettext_lazy("what the page showed had changed"),
    "conflict": gettext_lazy("it had been decided another way"),
    "expired": gettext_lazy("the time for deciding was over"),
    "not_open": gettext_lazy("there was nothing to decide any more"),
    "reason_missing": gettext_lazy("the reason was missing"),
    "submission_reused": gettext_lazy("the form had been used for something else"),
    "incompatible": gettext_lazy("that version cannot take the run over"),
    "form": gettext_lazy("the form was incomplete"),
    "sign_in_too_old": gettext_lazy("the sign-in was too old for what cannot be undone"),
    "csv": gettext_lazy("the file had errors"),
}


@dataclass(frozen=True, kw_only=True)
class Filters:
    """What the address asks for."""

    person: str
    action: str
    run: str
    result: str
    page: int

    @classmethod
    def of(cls, request: HttpRequest) -> Filters:
        """From the address; values that do not exist ask for nothing."""
        sent = {name: request.GET.get(name, "").replace("\x00", "") for name in request.GET}
        return cls(
            person=sent.get("person", ""),
            action=sent.get("action", "") if sent.get("action") in (*ACTIONS, RIGHTS, PEOPLE) else "",
            run=sent.get("run", "").strip(),
            result=sent.get("result", "") if sent.get("result") in ("recorded", "refused") else "",
            page=number(sent.get("page")) or 1,
        )

    def url(self, page: int) -> str:
        """The same question, another page."""
        values = {"person": self.person, "action": self.action, "run": self.run, "result": self.result}
        return "?" + urlencode({**{k: v for k, v in values.items() if v}, "page": page})


@console_page
@guarded(On.PERSON)
@require_safe
def audit(request: HttpRequest) -> HttpResponse:
    """Newest first: recorded actions on runs that one may see, refused attempts, and changes of rights."""
    person, filters = person_of(request), Filters.of(request)
    sources = _sources(person, filters)
    total = sum(source.count() for source, _row in sources)
    pages = max(1, -(-total // PAGE))
    page = min(filters.page, pages)
    context: Context = {
        "entries": list(_page(sources, page)),
        "filters": filters,
        "people": _people(person),
        "actions": _actions(),
        "paging": _paging(filters, page, pages),
        "scope_text": _(
            "You see what was done with runs that you may see, your own refused attempts, and who was given or "
            "lost which right in your organisation."
        ),
    }
    return show(request, "console/audit.html", {**shell(request), **context})


def _actions() -> list[Row]:
    """The actions to choose from."""
    rights = {"value": RIGHTS, "label": _("Grant or withdraw a right")}
    people = {"value": PEOPLE, "label": _("Change people, or sign in")}
    return [*({"value": code, "label": words[0]} for code, words in ACTIONS.items()), rights, people]


def _sources(person: User, filters: Filters) -> list[Source]:
    """What the page is merged from: a query, newest first, and what makes a row of one of its results."""
    if filters.action == RIGHTS:
        return [_rights(person, filters)]
    if filters.action == PEOPLE:
        return _people_sources(person, filters, sign_ins=True)
    of_runs: list[Source] = [(_done(person, filters), _did), (_tried(person, filters), _refused)]
    return [*of_runs, _rights(person, filters), *_people_sources(person, filters, sign_ins=False)]


def _people_sources(person: User, filters: Filters, *, sign_ins: bool) -> list[Source]:
    """What was done with people; sign-ins too where only that is asked for, since they would hide all else."""
    if filters.run or filters.action not in ("", PEOPLE):
        return []
    found: list[Source] = []
    if filters.result != "refused":
        found.append((audit_people.changes(person, named=filters.person), audit_people.change_row))
    if sign_ins:
        signed = audit_people.sign_ins(person, named=filters.person, result=filters.result)
        found.append((signed, audit_people.sign_in_row))
    return found


def _rights(person: User, filters: Filters) -> Source:
    """Changes of rights, which are about no run and never refused."""
    found = audit_rights.changes(person, named=filters.person)
    elsewhere = filters.run or filters.result == "refused" or filters.action not in ("", RIGHTS)
    return found.none() if elsewhere else found, audit_rights.as_rows(person)


def _done(person: User, filters: Filters) -> QuerySet[Event]:
    """People's events."""
    if filters.result == "refused":
        return Event.objects.none()
    wanted = Q(run__in=visible_runs(person), actor_kind=e.ActorKind.PERSON.value)
    if filters.person:
        wanted &= Q(actor_name=filters.person)
    if filters.run:
        wanted &= Q(run_id=filters.run)
    if filters.action:
        wanted &= Q(type=ACTIONS[filters.action][1])
    return Event.objects.filter(wanted).order_by("-at", "-seq")


def _tried(person: User, filters: Filters) -> QuerySet[Attempt]:
    """Refused attempts: on runs that one may see, and one's own."""
    if filters.result == "recorded":
        return Attempt.objects.none()
    about = Func(F("subject"), Value(RUN_ID), function="substring", output_field=CharField())
    attempts = Attempt.objects.annotate(about=about).select_related("person")
    wanted = Q(person_id=person.pk) | Q(about__in=visible_runs(person).values("pk"))
    if filters.person:
        wanted &= Q(person__display_name=filters.person) | Q(person__username=filters.person)
    if filters.run:
        wanted &= Q(about=filters.run)
    if filters.action:
        wanted &= Q(action=ACTIONS[filters.action][2])
    return attempts.filter(wanted).order_by("-at", "-pk")


def _page(sources: list[Source], page: int) -> Iterator[Row]:
    """One page of all, merged by time. Only as many of each are read as that page can need."""
    upto = page * PAGE
    rows = merge(*(map(row, source[:upto]) for source, row in sources), key=_newest)
    return islice(rows, upto - PAGE, upto)


def _newest(row: Row) -> float:
    at: datetime = row["at"]
    return -at.timestamp()


def _did(event: Event) -> Row:
    return {
        "at": event.at,
        "actor": event.actor_name,
        "kind": event.actor_kind,
        "did": _sentence(event),
        "subject": event.run_id,
        "url": f"{reverse('run-events', args=[event.run_id])}?from={event.seq}#event-{event.seq}",
        "result": "recorded",
    }


def _sentence(event: Event) -> str:
    if event.body is None:
        return event.type
    try:
        told = e.decode(seq=event.seq, type_=event.type, version=event.version, body=event.body)
    except e.UnknownEvent:
        return event.type
    return timeline.sentence(told)


def _refused(attempt: Attempt) -> Row:
    words = {kept: str(shown) for shown, _event, kept in ACTIONS.values()}
    also = {kept: str(shown) for kept, shown in _ALSO_TRIED.items()}
    # A form's choice is kept as it was sent, whatever that was, so not every one has words.
    facts = {"action": {**words, **also}.get(attempt.action, _("something that no form offers"))}
    return {
        "at": attempt.at,
        "actor": attempt.person.shown_name if attempt.person else _("nobody signed in"),
        "kind": e.ActorKind.PERSON.value,
        "did": _("tried: %(action)s") % facts,
        "subject": attempt.subject,
        "url": _run_url(attempt.subject),
        "result": "refused",
        "why": _why(attempt),
        "seen": attempt.seen,
        "reason": attempt.reason,
        "request_id": attempt.request_id,
    }


def _run_url(subject: str) -> str:
    found = re.match(RUN_ID, subject)
    try:
        return reverse("run", args=[found[0]]) if found else ""
    except NoReverseMatch:
        return ""


def _why(attempt: Attempt) -> str:
    code, _colon, condition = attempt.refusal.partition(":")
    if condition:
        return _("the condition “%(condition)s” failed") % {"condition": condition}
    return str(REFUSALS.get(code, attempt.refusal))


def _people(person: User) -> list[str]:
    """The people of one's organisations, by name."""
    members = User.objects.filter(memberships__tenant__in=person.tenants()).distinct()
    return sorted(member.shown_name for member in members)


def _paging(filters: Filters, page: int, pages: int) -> Row:
    found: Row = {"page": page, "pages": pages}
    if page > 1:
        found["previous_url"] = filters.url(page - 1)
    if page < pages:
        found["next_url"] = filters.url(page + 1)
    return found
