"""The handoff as Markdown. Nothing of the run becomes a link, HTML or a heading; what is hidden is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from django.utils.translation import gettext as _

from runs.machine import handoff_document as h
from runs.pages import handoff_words
from runs.pages.hidden import shown
from runs.pages.print_view import stamp

#: Whatever could begin something other than text, and what would make an address a link by itself. Ids and times stay
#: as they are: an underscore inside a word and a colon without slashes mean nothing.
_ACTIVE: Final = re.compile(
    r"([\\`*{}\[\]<>#!|~&@$]|(?<![^\W_])_|_(?![^\W_])|(?<=www)\.|:(?=//)|(?<=mailto):|(?<=xmpp):)",
    re.IGNORECASE,
)
_TICKS: Final = re.compile(r"`+")


def escaped(text: str) -> str:
    """Text of others inside a line: as it reads, on one line, and nothing but text."""
    return _ACTIVE.sub(r"\\\1", shown(" ↵ ".join(text.splitlines()) if "\n" in text else text))


def fenced(text: str) -> str:
    """A block of code that its own text cannot end, indented as a part of a list's item."""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    body = "\n".join(f"  {line}" for line in shown(text).splitlines())
    return f"  {fence}json\n{body}\n  {fence}"


def markdown(found: h.Handoff, action: dict[str, Any], *, url: str = "") -> str:
    """The whole handoff. `action` is the next safe action in words, as the run page has it."""
    return "\n".join(_lines(found, action, url)) + "\n"


def _lines(found: h.Handoff, action: dict[str, Any], url: str) -> Iterator[str]:
    yield f"# {escaped(found.asked.committed)}"
    yield ""
    yield escaped(
        _("Run %(run)s, version %(seq)d, agent %(agent)s %(version)s, state %(state)s, as of %(at)s.") % {
            "run": found.run, "seq": found.seq, "agent": found.agent, "version": found.agent_version,
            "state": found.state, "at": stamp(found.at),
        }
    )  # fmt: skip
    if found.taken_in_from:
        yield escaped(_("It was taken in from the checkpoint %(digest)s.") % {"digest": found.taken_in_from})
    yield ""
    yield f"## {_('Next safe action')}"
    yield ""
    yield from _next(found, action)
    for section in handoff_words.sections(found):
        yield ""
        yield f"## {section.title}"
        yield ""
        for line in section.lines:
            yield f"- {escaped(line.text)}"
            if line.data:
                yield fenced(line.data)
    if url:
        yield ""
        yield _("Newer: %(url)s") % {"url": url}


def _next(found: h.Handoff, action: dict[str, Any]) -> Iterator[str]:
    said = [
        action["do"], action["why"], action.get("wait", ""), handoff_words.may(found),
        *(_("Not safe now: %(what)s") % {"what": what} for what in action["not_safe"]), action.get("decided", ""),
    ]  # fmt: skip
    yield from (f"- {escaped(str(text))}" for text in said if text)
