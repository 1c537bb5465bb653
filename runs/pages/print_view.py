"""The handoff to print and share: everything of the run page that a next person needs, expanded, also as plain text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from runs.machine import state as s

Context = dict[str, Any]
LAST = 20


def context(page: Context, state: s.RunState, *, by: str, at: datetime, url: str) -> Context:
    """All of runs/handoff.html, from the context of the run page."""
    doubtful = [row for row in page["effects"] if row["state"] in ("unknown", "in_flight")]
    return {
        **page,
        "unknown": doubtful,
        "timeline": page["timeline"][:LAST],
        "obligations": [{**row, "attest_url": "", "hand_on_url": ""} for row in page["obligations"]],
        "printed": {"by": by, "at": at, "url": url},
        "notices_url": "",
    }


def text(page: Context, state: s.RunState) -> str:
    """The same as plain text, for a ticket. Times are UTC."""
    return "\n".join(_lines(page, state)) + "\n"


def _lines(page: Context, state: s.RunState) -> Iterator[str]:
    run, printed = page["run"], page["printed"]
    yield run["title"]
    yield _("Run %(id)s, version %(seq)s, state %(state)s since %(since)s") % {
        "id": run["id"], "seq": run["seq"], "state": run["state"], "since": stamp(run["since"]),
    }  # fmt: skip
    if old := page.get("predecessor"):
        yield _("Successor of %(run)s") % old
    if parent := page.get("parent"):
        yield _("Started by %(run)s for its step %(step)s") % parent
    yield ""
    yield _("Next safe action: %(do)s") % page["next"]
    yield _("Why: %(why)s") % page["next"]
    yield from (_("Not safe now: %(what)s") % {"what": what} for what in page["next"]["not_safe"])
    yield from filter(None, [page["next"].get("ending")])
    yield ""
    for number, line in enumerate(page["handoff"], 1):
        yield f"{number}. {line['key']}: {line['text']}"
        yield from (f"   {quote['by']}: “{quote['text']}”" for quote in line.get("quotes", ()))
        yield from (f"   {detail}" for detail in line.get("details", ()))
    yield from _goals(page)
    yield from _doubt(page)
    yield from _relatives(page)
    yield ""
    yield _("Printed by %(by)s at %(at)s from version %(seq)s. Newer: %(url)s") % {
        "by": printed["by"], "at": stamp(printed["at"]), "seq": run["seq"], "url": printed["url"],
    }  # fmt: skip


def _goals(page: Context) -> Iterator[str]:
    """Every version of a goal that was revised."""
    for goal in page["goals"]:
        yield ""
        facts = {**goal, "at": stamp(goal["at"])}
        yield _("Goal v%(version)d, %(by)s, %(at)s: “%(text)s”") % facts
        yield from (_("   Reason: %(reason)s") % {"reason": said} for said in [goal["reason"]] if said)


def _doubt(page: Context) -> Iterator[str]:
    for effect in page["unknown"]:
        yield ""
        yield _("In doubt: %(id)s %(title)s, %(system)s, operation %(operation_id)s, key %(key)s") % effect
        yield from (f"   {row['path']} = {row['value']}" for row in effect["arguments"])


def _relatives(page: Context) -> Iterator[str]:
    """What is waited for, the runs that were started, and what stands of a run that ended before its goal."""
    for wait in page["waits"]:
        if not wait["ended_at"]:
            facts = {**wait, "since": stamp(wait["since"])}
            yield _("Waits for %(what)s since %(since)s (step %(step)s). %(note)s") % facts
    for child in page["children"]:
        yield _("Started %(id)s (%(agent)s): %(goal)s") % child + (
            f" [{child['ended']}]" if child["ended"] else ""
        )
    yield from (_("Still stands: %(what)s") % {"what": what} for what in page["left"])


def stamp(moment: datetime) -> str:
    """A time with date and zone."""
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")
