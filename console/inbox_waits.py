"""What the runs of a list wait for, as sentences, read in two queries whatever their number."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Count
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.machine.waits import WaitKind
from runs.models import Child, Run, Wait
from runs.pages import words


def waits(runs: Sequence[Run]) -> dict[str, str]:
    """Run -> what it waits for, of those that wait for a time, an answer or other runs."""
    waiting = [run.pk for run in runs if run.state == "waiting"]
    if not waiting:
        return {}
    open_ = Wait.objects.filter(run_id__in=waiting, ended_seq__isnull=True)
    started = _open_children(waiting)
    return {wait.run_id: _sentence(wait, started.get(wait.run_id, 0)) for wait in open_}


def _open_children(run_ids: Sequence[str]) -> dict[str, int]:
    found = Child.objects.filter(run_id__in=run_ids, ended_seq__isnull=True).values("run_id")
    return {row["run_id"]: row["number"] for row in found.annotate(number=Count("child_id"))}


def _sentence(wait: Wait, children: int) -> str:
    until = words.moment(wait.until) if wait.until else ""
    match wait.kind:
        case WaitKind.TIMER.value:
            return _("Waits until %(until)s.") % {"until": until}
        case WaitKind.SIGNAL.value if until:
            facts = {"signal": wait.signal, "until": until}
            return _("Waits for the answer “%(signal)s” until %(until)s; then a person is asked.") % facts
        case WaitKind.SIGNAL.value:
            return _("Waits for the answer “%(signal)s”.") % {"signal": wait.signal}
        case _:
            text = ngettext(
                "Waits for %(number)d run that it started.",
                "Waits for %(number)d runs that it started.",
                children,
            )
            return text % {"number": children}
