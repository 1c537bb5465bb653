"""The audit log as a person may see it: what people did, what they tried and were refused, who got which right.

Whoever may see the whole log of an organisation sees all that is of it; everybody else what they did themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from heapq import merge
from itertools import islice
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import CharField, F, Func, Q, QuerySet, Value
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from accounts.rights import Right, tenants_with
from approvals.models import Attempt
from approvals.models import Decision as Decided
from console import (
    audit_agreeing,
    audit_constraints,
    audit_people,
    audit_policies,
    audit_rights,
    audit_working,
)
from console.audit_frame import Row, origin, visible
from runs import seeing
from runs.actions.constraints import ADD, AMEND, WITHDRAW
from runs.actions.limiting import CONFIRM
from runs.actions.policies import ADD as ADD_POLICY
from runs.actions.policies import RELEASE as RELEASE_POLICY
from runs.machine import events as e
from runs.machine.hidden import Hidden
from runs.models import Event, Submission
from runs.pages import timeline, words
from runs.views.frame import number

PAGE = 50
CHUNK = 500  #: rows that an export reads at a time
#: A subject begins with the run that it is about; the id of a run that a step started is longer than others.
RUN_ID = "^run_[0-9A-Z]+"


@dataclass(frozen=True, kw_only=True)
class Source:
    """One of the tables that the log is merged from: its rows, newest first, and what makes entries of some of them."""

    rows: QuerySet[Any]
    entries: Callable[[list[Any]], list[Row]]

    def newest(self, upto: int) -> list[Row]:
        """The first so many entries."""
        return self.entries(list(self.rows[:upto]))

    def all(self) -> Iterator[Row]:
        """Every entry, few of them in memory at once."""
        rows = self.rows.iterator(chunk_size=CHUNK)
        while some := list(islice(rows, CHUNK)):
            yield from self.entries(some)


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
    "move": (gettext_lazy("Move a run to another version"), e.VersionMoved.__name__, "move"),
    "goal": (gettext_lazy("Revise the goal"), e.GoalRevised.__name__, "revise goal"),
    ADD: (gettext_lazy("Hold a constraint"), "", ADD),
    AMEND: (gettext_lazy("State a constraint otherwise"), "", AMEND),
    "revoke": (
        gettext_lazy("Withdraw a constraint"),
        e.ConstraintWithdrawn.__name__,
        WITHDRAW,
    ),
    "confirm": (
        gettext_lazy("Confirm an inferred constraint"),
        e.ConstraintConfirmed.__name__,
        CONFIRM,
    ),
    "accept": (
        gettext_lazy("Accept an amended constraint"),
        e.AmendmentAccepted.__name__,
        "accept amendment",
    ),
    ADD_POLICY: (gettext_lazy("Add a version of a policy"), "", ADD_POLICY),
    RELEASE_POLICY: (gettext_lazy("Release a policy"), "", RELEASE_POLICY),
    "lend": (gettext_lazy("Lend to a run anew"), e.AuthorityLent.__name__, "lend"),
    "end_grant": (gettext_lazy("End a grant"), "", "end_grant"),
    "check": (gettext_lazy("Have the checks made"), e.ChecksMade.__name__, "check"),
    "replan": (gettext_lazy("Ask for another plan"), e.ReplanOrdered.__name__, "replan"),
    "restart": (gettext_lazy("Restart a run"), e.RunRestarted.__name__, "restart"),
    "cancel": (gettext_lazy("Cancel a run"), e.CancelRequested.__name__, "cancel"),
    "end": (gettext_lazy("End a run as it is"), e.RunCancelled.__name__, "end"),
    "rereduce": (gettext_lazy("Re-reduce a run"), "", "rereduce"),
    "attach": (gettext_lazy("Attach a file to a run"), e.ArtifactKept.__name__, "attach"),
    "signal": (gettext_lazy("Give a run an answer"), e.SignalReceived.__name__, "signal"),
    "reread": (gettext_lazy("Have an observation read again"), e.ObservationReread.__name__, "reread"),
    "owe": (gettext_lazy("Write down what a run owes"), e.ObligationOpened.__name__, "owe"),
    "attest_obligation": (
        gettext_lazy("State that what is owed is done"),
        e.ObligationAttested.__name__,
        "attest_obligation",
    ),
    "hand_on": (gettext_lazy("Hand on what is owed"), e.ObligationHandedOn.__name__, "hand_on"),
    **audit_working.ACTIONS,
}
#: The filter's value for what is no action on a run.
RIGHTS = "rights"
PEOPLE = "people"
#: What is kept of refused attempts only: the form was sent without a choice, or takes back what it did.
_ALSO_TRIED: dict[str, Promise] = {
    "decide": gettext_lazy("Decide"),
    **audit_constraints.TRIED,
    **audit_people.TRIED,
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
    "check_failed": gettext_lazy("a check of the policy fails"),
    "ground_missing": gettext_lazy("what an approval would rest on was not there"),
    "values_unopened": gettext_lazy("values had not been looked at whole"),
    "incompatible": gettext_lazy("that version cannot take the run over"),
    "form": gettext_lazy("the form was incomplete"),
    "sign_in_too_old": gettext_lazy("the sign-in was too old for what cannot be undone"),
    "csv": gettext_lazy("the file had errors"),
    **audit_people.REFUSED,
}


@dataclass(frozen=True, kw_only=True)
class Filters:
    """What the address asks for. `first` and `last` are days in UTC, both included."""

    person: str
    action: str
    run: str
    result: str
    first: date | None
    last: date | None
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
            first=_day(sent.get("from", "")),
            last=_day(sent.get("to", "")),
            page=number(sent.get("page")) or 1,
        )

    def values(self) -> dict[str, str]:
        """What is asked for, by the names of the form; only what narrows."""
        days = {"from": self.first, "to": self.last}
        asked = {"person": self.person, "action": self.action, "run": self.run, "result": self.result}
        return {**{k: v.isoformat() for k, v in days.items() if v}, **{k: v for k, v in asked.items() if v}}

    def url(self, **more: str | int) -> str:
        """The same question, with something beside it."""
        return "?" + urlencode({**self.values(), **more})

    def when(self) -> Q:
        """The rows of a table with an `at` that lie in the asked days."""
        found = Q()
        if self.first:
            found &= Q(at__gte=_midnight(self.first))
        if self.last:
            found &= Q(at__lt=_midnight(self.last) + timedelta(days=1))
        return found


def _day(text: str) -> date | None:
    try:
        found = date.fromisoformat(text)
    except ValueError:
        return None
    return found if found.year in range(1970, 9999) else None


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def sources(person: User, filters: Filters) -> list[Source]:
    """What the log is merged from."""
    if filters.action == RIGHTS:
        return [_rights(person, filters)]
    if filters.action == PEOPLE:
        return _people(person, filters, sign_ins=True)
    of_runs = [_done(person, filters), _tried(person, filters)]
    of_runs += [
        _formed(person, filters, "rereduce", _made_anew),
        _formed(person, filters, "end_grant", _ended),
    ]
    of_runs += [*_agreed(person, filters), *_stated(person, filters), *_beside(person, filters)]
    seen = [replace(source, entries=partial(_seen, person, source.entries)) for source in of_runs]
    others = [*_policies(person, filters), *_people(person, filters, sign_ins=False)]
    return [*seen, _rights(person, filters), *others]


def _seen(person: User, entries: Callable[[list[Any]], list[Row]], rows: list[Any]) -> list[Row]:
    """The entries without what is hidden of their runs from this person."""
    made = entries(rows)
    about = {found[0] for row in made if (found := re.match(RUN_ID, str(row["subject"])))}
    hidden = seeing.hidden_rows(seeing.not_seen(person, about))
    if not hidden:
        return made
    return [_marked(row, hidden.get(str(row["subject"]).partition(":")[0].partition(" ")[0])) for row in made]


def _marked(row: Row, hidden: Hidden | None) -> Row:
    if hidden is None:
        return row
    texts: Row = {
        name: hidden.text(str(row[name])) for name in ("did", "seen", "reason", "why") if name in row
    }
    return {**row, **texts, "details": [(name, hidden.text(str(said))) for name, said in row["details"]]}


def _people(person: User, filters: Filters, *, sign_ins: bool) -> list[Source]:
    """What was done with people; sign-ins too where only that is asked for, since they would hide all else."""
    if filters.run or filters.action not in ("", PEOPLE):
        return []
    found: list[Source] = []
    if filters.result != "refused":
        changed = audit_people.changes(person, named=filters.person).filter(filters.when())
        found.append(Source(rows=changed, entries=lambda some: [audit_people.change_row(x) for x in some]))
    if sign_ins:
        signed = audit_people.sign_ins(person, named=filters.person, result=filters.result)
        rows = signed.filter(filters.when())
        found.append(Source(rows=rows, entries=lambda some: [audit_people.sign_in_row(x) for x in some]))
    return found


def _stated(person: User, filters: Filters) -> list[Source]:
    """Constraints that are held here: for a run alone, or for all of an agent or an organisation."""
    if filters.result == "refused" or filters.action not in ("", *audit_constraints.WANTED):
        return []
    found = audit_constraints.statements(person, named=filters.person, run=filters.run, action=filters.action)
    return [Source(rows=found.filter(filters.when()), entries=audit_constraints.as_rows)]


def _agreed(person: User, filters: Filters) -> list[Source]:
    """Decisions that came too late to be needed."""
    if filters.result == "refused" or filters.action not in ("", *audit_agreeing.VERDICTS):
        return []
    asked = {"named": filters.person, "run": filters.run, "action": filters.action}
    found = audit_agreeing.decisions(person, **asked).filter(filters.when())
    return [Source(rows=found, entries=audit_agreeing.rows)]


def _beside(person: User, filters: Filters) -> list[Source]:
    """What people did beside runs: who works on them, and notes."""
    if filters.result == "refused" or filters.action not in ("", *audit_working.ACTIONS):
        return []
    asked = {"named": filters.person, "run": filters.run, "action": filters.action}
    worked = audit_working.forms(person, **asked).filter(filters.when())
    noted = audit_working.notes(person, **asked).filter(filters.when())
    return [
        Source(rows=worked, entries=audit_working.form_rows),
        Source(rows=noted, entries=audit_working.note_rows),
    ]


def _policies(person: User, filters: Filters) -> list[Source]:
    """Policies that are held here, which are about no run."""
    if filters.run or filters.result == "refused":
        return []
    found: list[Source] = []
    if filters.action in ("", ADD_POLICY):
        added = audit_policies.versions(person, named=filters.person).filter(filters.when())
        found.append(Source(rows=added, entries=audit_policies.version_rows))
    if filters.action in ("", RELEASE_POLICY):
        released = audit_policies.releases(person, named=filters.person).filter(filters.when())
        found.append(Source(rows=released, entries=audit_policies.release_rows))
    return found


def page_of(found: list[Source], page: int) -> list[Row]:
    """One page of all, merged by time. Only as many of each are read as that page can need."""
    upto = page * PAGE
    return list(islice(merge(*(source.newest(upto) for source in found), key=_newest), upto - PAGE, upto))


def all_of(found: list[Source]) -> Iterator[Row]:
    """Everything, newest first, few rows in memory at once."""
    return merge(*(source.all() for source in found), key=_newest)


def _newest(row: Row) -> float:
    at: datetime = row["at"]
    return -at.timestamp()


def _rights(person: User, filters: Filters) -> Source:
    """Changes of rights, which are about no run and never refused."""
    found = audit_rights.changes(person, named=filters.person).filter(filters.when())
    elsewhere = filters.run or filters.result == "refused" or filters.action not in ("", RIGHTS)
    row = audit_rights.as_rows(person)
    return Source(rows=found.none() if elsewhere else found, entries=lambda some: [row(x) for x in some])


def _done(person: User, filters: Filters) -> Source:
    """People's events."""
    mine = Q(actor_id=str(person.pk), tenant__in=person.tenants())
    wanted = filters.when() & Q(actor_kind=e.ActorKind.PERSON.value)
    wanted &= mine | Q(tenant__in=tenants_with(person, Right.SEE_AUDIT))
    if filters.person:
        wanted &= Q(actor_name=filters.person)
    if filters.run:
        wanted &= Q(run_id=filters.run)
    if filters.action:
        wanted &= Q(type=ACTIONS[filters.action][1] or "-")
    events = Event.objects.filter(wanted).exclude(audit_constraints.told_by_statement())
    events = events.order_by("-at", "-seq", "run_id")
    return Source(rows=events.none() if filters.result == "refused" else events, entries=_did)


def _tried(person: User, filters: Filters) -> Source:
    """Refused attempts."""
    about = Func(F("subject"), Value(RUN_ID), function="substring", output_field=CharField())
    attempts = Attempt.objects.annotate(about=about).select_related("person")
    wanted = Q(person_id=person.pk) | Q(tenant__in=tenants_with(person, Right.SEE_AUDIT))
    if filters.person:
        wanted &= Q(person__display_name=filters.person) | Q(person__username=filters.person)
    if filters.run:
        wanted &= Q(about=filters.run)
    if filters.action:
        also = [tried for tried, under in audit_constraints.FOUND_UNDER.items() if under == filters.action]
        wanted &= Q(action__in=[ACTIONS[filters.action][2], *also])
    found = attempts.filter(wanted & filters.when()).order_by("-at", "-pk")
    elsewhere = filters.result == "recorded"
    return Source(rows=found.none() if elsewhere else found, entries=lambda some: [_refused(x) for x in some])


def _formed(person: User, filters: Filters, action: str, row: Callable[[Submission], Row]) -> Source:
    """What is no event of a run: only the form tells it."""
    wanted = Q(action=action) & filters.when() & visible(person, by="person", named=filters.person)
    if filters.run:
        wanted &= Q(run_id=filters.run)
    found = Submission.objects.filter(wanted).select_related("person").order_by("-at", "pk")
    elsewhere = filters.result == "refused" or filters.action not in ("", action)
    return Source(rows=found.none() if elsewhere else found, entries=lambda some: [row(x) for x in some])


def _did(events: list[Event]) -> list[Row]:
    came = _origins(events)
    return [_event(event, came) for event in events]


def _event(event: Event, came: dict[tuple[str, str, int], Row]) -> Row:
    told = _read(event)
    seen = getattr(told, "digest", "")
    return {
        "at": event.at,
        "actor": event.actor_name,
        "kind": event.actor_kind,
        "did": timeline.sentence(told) if told else event.type,
        "subject": event.run_id,
        "url": f"{reverse('run-events', args=[event.run_id])}?from={event.seq}#event-{event.seq}",
        "result": "recorded",
        "seen": seen,
        "reason": "",
        "details": [
            (_("Event"), f"{event.seq} {event.type}"),
            (_("State before and after"), f"{event.state_before or '–'} → {event.state_after}"),
            (_("Hash"), bytes(event.hash).hex()),
        ],
        **origin(_origin_of(event, told, came)),
    }


def _read(event: Event) -> e.Event | None:
    if event.body is None:
        return None
    try:
        return e.decode(seq=event.seq, type_=event.type, version=event.version, body=event.body)
    except e.UnknownEvent:
        return None


def _origins(events: list[Event]) -> dict[tuple[str, str, int], Row]:
    """Where what was done in these events came from: by run, person and event, and of decisions by their form's id."""
    runs = {event.run_id for event in events}
    people = {UUID(event.actor_id) for event in events}
    forms = Submission.objects.filter(run_id__in=runs, person_id__in=people, seq__isnull=False)
    found: dict[tuple[str, str, int], Row] = {}
    for form in forms.only("run_id", "person_id", "seq", "origin"):
        found[str(form.run_id), str(form.person_id), form.seq or 0] = form.origin
    ids = {sent for event in events if (sent := getattr(_read(event), "submission", ""))}
    for made in Decided.objects.filter(submission__in=ids).only("submission", "origin"):
        found["", str(made.submission), 0] = made.origin
    return found


def _origin_of(event: Event, told: e.Event | None, came: dict[tuple[str, str, int], Row]) -> Row:
    """An action's form names the last event that it wrote."""
    decided = came.get(("", str(getattr(told, "submission", "")), 0))
    mine = [
        seq for run, who, seq in came if (run, who) == (event.run_id, event.actor_id) and seq >= event.seq
    ]
    return decided or (came[event.run_id, event.actor_id, min(mine)] if mine else {})


def _made_anew(form: Submission) -> Row:
    differed = form.result.get("differences", [])
    return {
        "at": form.at,
        "actor": form.person.shown_name,
        "kind": e.ActorKind.PERSON.value,
        "did": _("re-reduced the run: its rows were made anew from its log"),
        "subject": form.run_id,
        "url": reverse("run-rereduce", args=[form.run_id]),
        "result": "recorded",
        "seen": _("version %(seq)s") % {"seq": form.seq},
        "reason": "",
        "details": [(_("What differed"), line) for line in differed],
        **origin(form.origin),
    }


def _ended(form: Submission) -> Row:
    grant = str(form.result.get("grant", ""))
    return {
        "at": form.at,
        "actor": form.person.shown_name,
        "kind": e.ActorKind.PERSON.value,
        "did": _("ended a grant: nothing is sent on it any more"),
        "subject": words.grant_name(grant),
        "url": reverse("grant-end", args=[grant]),
        "result": "recorded",
        "seen": str(form.result.get("impact", "")),
        "reason": str(form.result.get("why", "")),
        "details": [(_("Grant"), grant)],
        **origin(form.origin),
    }


def _refused(attempt: Attempt) -> Row:
    known = {kept: str(shown) for shown, _event, kept in ACTIONS.values()}
    also = {kept: str(shown) for kept, shown in _ALSO_TRIED.items()}
    # A form's choice is kept as it was sent, whatever that was, so not every one has words.
    facts = {"action": {**known, **also}.get(attempt.action, _("something that no form offers"))}
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
        "details": [(name, str(value)) for name, value in attempt.detail.items()],
        "via": "console" if attempt.request_id else "command",
        "ip": attempt.ip or "",
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
