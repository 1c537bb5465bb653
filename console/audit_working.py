"""Who claimed, released and assigned runs, and the notes on them, as entries of the audit log: no events of any run."""

from __future__ import annotations

from typing import Final

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from console.audit_frame import Row, of_run, origin, visible
from runs.actions import NOTE, Worked
from runs.actions.working import ASSIGN, CLAIM, RELEASE
from runs.models import Note, Submission

#: What can be done: code -> (words, no event, how a refused attempt is kept).
ACTIONS: Final[dict[str, tuple[Promise, str, str]]] = {
    CLAIM: (gettext_lazy("Claim a run"), "", CLAIM),
    RELEASE: (gettext_lazy("Release a run"), "", RELEASE),
    ASSIGN: (gettext_lazy("Assign a run"), "", ASSIGN),
    NOTE: (gettext_lazy("Write a note on a run"), "", NOTE),
}
#: What forms did, in words. One that changed nothing is no entry.
_DID: Final[dict[str, Promise]] = {
    Worked.CLAIMED: gettext_lazy("claimed the run"),
    Worked.TAKEN_OVER: gettext_lazy("took the run over from %(name)s"),
    Worked.RELEASED: gettext_lazy("released the run"),
    Worked.ASSIGNED: gettext_lazy("assigned the run to %(name)s"),
    Worked.UNASSIGNED: gettext_lazy("assigned the run to nobody any more"),
}


def forms(person: User, *, named: str = "", run: str = "", action: str = "") -> QuerySet[Submission]:
    """Claims, releases and assignments that changed something, the newest first. `action`: one of `ACTIONS`."""
    actions = [x for x in (CLAIM, RELEASE, ASSIGN) if action in ("", x)]
    found = Submission.objects.filter(
        visible(person, by="person", named=named), action__in=actions, result__outcome__in=list(_DID)
    )
    found = found.filter(run_id=run) if run else found
    return found.select_related("person").order_by("-at", "pk")


def form_rows(some: list[Submission]) -> list[Row]:
    """Words for such entries."""
    return [_form_row(form) for form in some]


def _form_row(form: Submission) -> Row:
    did = str(_DID[form.result["outcome"]]) % {"name": form.result.get("name", "")}
    return {**of_run(form.person, str(form.run_id)), "at": form.at, "did": did, **origin(form.origin)}


def notes(person: User, *, named: str = "", run: str = "", action: str = "") -> QuerySet[Note]:
    """Notes, the newest first."""
    found = Note.objects.filter(visible(person, by="person", named=named))
    found = found.filter(run_id=run) if run else found
    found = found.select_related("person").order_by("-at", "-pk")
    return found if action in ("", NOTE) else found.none()


def note_rows(some: list[Note]) -> list[Row]:
    """Words for such entries; the note itself is what its person typed."""
    return [
        {
            **of_run(note.person, note.run_id),
            "at": note.at,
            "did": _("wrote a note on the run"),
            "url": f"{reverse('run-notes', args=[note.run_id])}#note-{note.pk}",
            "reason": note.text,
            **origin(note.origin),
        }
        for note in some
    ]
