"""Decisions that came after one that said the same, as entries of the audit log: kept, and no event of any run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from approvals.models import Decision, Verdict
from console.audit_frame import Row, of_run, origin, visible

#: The filter's word for each verdict.
VERDICTS: Final = {"approve": Verdict.APPROVE, "reject": Verdict.REJECT, "changes": Verdict.ASK}
_DID: Final[dict[Verdict, Callable[[], str]]] = {
    Verdict.APPROVE: lambda: _("approved plan v%(version)s, as was decided before: it was not needed."),
    Verdict.REJECT: lambda: _("rejected plan v%(version)s, as was decided before: it was not needed."),
    Verdict.ASK: lambda: _(
        "asked for changes to plan v%(version)s, as was decided before: it was not needed."
    ),
}


def decisions(person: User, *, named: str = "", run: str = "", action: str = "") -> QuerySet[Decision]:
    """Such decisions, the newest first. `action`: one of `VERDICTS`."""
    found = Decision.objects.filter(visible(person, by="person", named=named), needed=False)
    if action:
        found = found.filter(verdict=VERDICTS[action])
    if run:
        found = found.filter(request__subject__startswith=f"{run}:")
    return found.select_related("person", "request").order_by("-at", "pk")


def rows(some: list[Decision]) -> list[Row]:
    """Words for such entries."""
    return [_row(made) for made in some]


def _row(made: Decision) -> Row:
    run, _colon, version = made.request.subject.partition(":")
    return {
        **of_run(made.person, run),
        "at": made.at,
        "did": _DID[Verdict(made.verdict)]() % {"version": version},
        "seen": made.digest,
        "reason": made.reason,
        **origin(made.origin),
    }
