"""Constraints that are held here as entries of the audit log: each version of one, and its end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from console.audit_frame import Row, origin, visible
from console.constraints import address, named_place
from runs.actions.constraints import ADD, AMEND, WITHDRAW, place_of
from runs.actions.limiting import LIMIT
from runs.machine import events as e
from runs.models import Statement, Submission

#: The filter's value -> the versions that it asks for. The end of one is asked for with that of one for a run alone.
WANTED: Final[dict[str, Q]] = {
    ADD: Q(version=1),
    AMEND: Q(version__gt=1, withdrawn=False),
    "revoke": Q(withdrawn=True),
}
#: What refused attempts say on the page of a run, and the filter's value that finds them too.
TRIED: Final[dict[str, Promise]] = {LIMIT: gettext_lazy("Add a constraint to a run")}
FOUND_UNDER: Final = {LIMIT: ADD}
#: Of a version that a form made: organisation, person, reference and version.
type Made = tuple[UUID, UUID, str, int]


def statements(person: User, *, named: str = "", run: str = "", action: str = "") -> QuerySet[Statement]:
    """Versions, the newest first. `run`: for that run alone, or decided on its page; `action`: of `WANTED`."""
    found = Statement.objects.filter(visible(person, by="by", named=named), WANTED.get(action, Q()))
    if run:
        found = found.filter(_about(run))
    return found.select_related("by", "agent__tenant", "run", "tenant").order_by("-at", "-pk")


def _about(run: str) -> Q:
    wanted = Q(run_id=run)
    for form in Submission.objects.filter(run_id=run, action__in=(ADD, AMEND, WITHDRAW)):
        said = form.result
        wanted |= Q(tenant_id=form.tenant_id, ref=said.get("ref"), version=said.get("version"))
    return wanted


def told_by_statement() -> Q:
    """The events by which runs accepted what a person held for them alone: the constraint's own entry tells that."""
    held_then = Statement.objects.filter(run_id=OuterRef("run_id"), version=1, at=OuterRef("at"))
    return Q(Exists(held_then), type=e.ConstraintAccepted.__name__)


def as_rows(some: list[Statement]) -> list[Row]:
    """Words for such entries; their forms and the versions before them are read once for all."""
    forms, before = _forms(some), _before(some)
    return [
        _row(row, before.get((row.tenant_id, row.ref, row.version - 1)), forms.get(_made(row)))
        for row in some
    ]


def _made(row: Statement) -> Made:
    return row.tenant_id, row.by_id, row.ref, row.version


def _forms(some: list[Statement]) -> dict[Made, Submission]:
    """Which form made which version. A form on a run's page names the run alone: it was sent at the same moment."""
    actions, people = (ADD, AMEND, WITHDRAW, LIMIT), {row.by_id for row in some}
    sent = Submission.objects.filter(
        person__in=people,
        at__in={row.at for row in some},
        action__in=actions,
        tenant__in={r.tenant_id for r in some},
    )
    limits = {(row.by_id, row.run_id or "", row.at): row for row in some if row.version == 1}
    found: dict[Made, Submission] = {}
    for form in sent:
        if form.action != LIMIT:
            said = form.result
            found[form.tenant_id, form.person_id, said["ref"], said["version"]] = form
        elif limit := limits.get((form.person_id, form.run_id or "", form.at)):
            found.setdefault(_made(limit), form)
    return found


def _before(some: Iterable[Statement]) -> dict[tuple[UUID, str, int], Statement]:
    """The versions of the same constraints, for what each of them changed."""
    followed = {row.ref for row in some if row.version > 1}
    rows = Statement.objects.filter(ref__in=followed, tenant__in={row.tenant_id for row in some})
    return {(row.tenant_id, row.ref, row.version): row for row in rows}


def _row(row: Statement, before: Statement | None, form: Submission | None) -> Row:
    place = named_place(place_of(row))
    run = row.run_id or (form.run_id if form else None)
    return {
        "at": row.at,
        "actor": row.by.shown_name,
        "kind": e.ActorKind.PERSON.value,
        "did": _did(row) % {"name": row.name},
        "subject": run or place,
        "url": address(row.ref),
        "result": "recorded",
        "seen": _("version %(seq)s") % {"seq": row.version - 1} if row.version > 1 else "",
        "reason": row.reason,
        "details": [
            (_("Held for"), place),
            *_said(row, before),
            (_("Constraint"), f"{row.ref} {row.version}"),
            *_event(form),
        ],
        **origin(form.origin if form else {}),
    }


def _event(form: Submission | None) -> list[tuple[str, str]]:
    """Where the run's log tells it: the page of a run adds one by an event."""
    accepted = form is not None and form.action == LIMIT and form.seq is not None
    return [(_("Event"), f"{form.seq} {e.ConstraintAccepted.__name__}")] if form and accepted else []


def _did(row: Statement) -> str:
    if row.withdrawn:
        return _("withdrew the constraint “%(name)s”")
    if row.version > 1:
        return _("stated the constraint “%(name)s” otherwise")
    return _("held the constraint “%(name)s”")


def _said(row: Statement, before: Statement | None) -> list[tuple[str, str]]:
    """What it says, and where that is another text than before, that one too."""
    if row.withdrawn or before is None:
        said = [(_("Text"), row.text), (_("Predicate"), row.predicate)]
    else:
        said = [(_("Text before"), before.text), (_("Text afterwards"), row.text)]
        if before.predicate != row.predicate:
            changed = (
                (_("Predicate before"), before.predicate or "–"),
                (_("Predicate afterwards"), row.predicate or "–"),
            )
            said += changed
    return [(name, text) for name, text in said if text]
