"""The contract of an agent version, in sentences made from its declarations and from nothing else.

What outlives the process, which effects may be sent again, which outcomes can only be asked, which can be neither,
what must never be mixed, when people must agree. Reads no database and calls no tool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.rights import Right
from approvals.documents import DocumentPolicy, rule_of
from approvals.policy import ApprovalRule, Policy, RulePolicy
from runs.agents import Agent
from runs.context import budget_of
from runs.engine import terms_of
from runs.history import CONDENSED
from runs.ledger import SCHEMA_VERSION
from runs.machine.events import Terms
from runs.tools import ReadingTool, Tool, WritingTool
from runs.versions import recorded

#: Every field of a run's state, all of which the log amounts to; those without words of their own are cursors.
KEPT: Final[dict[str, str | Promise]] = {
    "identity": gettext_lazy(
        "input, creator, principal, lineage, start key, and the code that the run is bound to"
    ),
    "goals": gettext_lazy("the original goal and every revision of it"),
    "constraints": gettext_lazy("the constraints that were accepted"),
    "plans": gettext_lazy("every plan version, with its digest"),
    "requests": gettext_lazy("every approval request, with what it was bound to and who decided"),
    "effects": gettext_lazy("every intent, send, question, receipt and attestation"),
    "done": gettext_lazy("which steps are done, and by which effect"),
    "rounds": gettext_lazy("the round of each operation"),
    "keys": gettext_lazy("the keys under which an earlier run of the lineage may still be sending"),
    "observations": gettext_lazy("what was read, with its version and half-life"),
    "obligations": gettext_lazy("what was promised and what has discharged it"),
    "artifacts": gettext_lazy("which files, evidence and results were kept, by the hash of their bytes"),
    "advice": gettext_lazy("what people wrote for the planner"),
    "inherited": gettext_lazy("what stands from earlier runs of the lineage"),
    "waits": gettext_lazy("what it waits for and has waited for"),
    "signals": gettext_lazy("every answer that came from outside"),
    "children": gettext_lazy("the runs that it started, and how they ended"),
    "undone": gettext_lazy("what of earlier runs it undid"),
    "undo_requested": gettext_lazy("whether what it did is to be undone"),
    "cancelled_by": gettext_lazy("who asked for its end"),
    "hands_to": gettext_lazy("who is to keep what it owes when it is cancelled"),
    "taken_in": gettext_lazy("the checkpoint that it was taken in from"),
    "reasons": gettext_lazy("why the run needs a person"),
    "revalidation": gettext_lazy("the latest report of checks"),
    "checked": gettext_lazy("the latest report of checks that a person had made"),
    "lendings": gettext_lazy("what was lent to it, by reference: each grant is asked afresh"),
}


@dataclass(frozen=True, kw_only=True)
class Section:
    """One question and its answers; never empty: where there is nothing, a line says so."""

    key: str
    title: str
    lines: tuple[str, ...]


def sections(agent: Agent) -> tuple[Section, ...]:
    """The whole contract, in fixed order."""
    return tuple(
        Section(key=key, title=str(title), lines=tuple(lines(agent)) or (_("None."),))
        for key, (title, lines) in _SECTIONS.items()
    )


def versions(agent: Agent) -> dict[str, str]:
    """What must not be mixed: name of the part -> its version or digest."""
    return {"agent": agent.version, "schema": str(SCHEMA_VERSION), **recorded(agent)}


def length(duration: timedelta) -> str:
    """A duration in its two largest units: "1 h 30 min", "0.5 s"."""
    seconds = duration.total_seconds()
    if seconds < 60:
        return _("%(seconds)g s") % {"seconds": seconds}
    whole, found = int(seconds), []
    for size, words in _UNITS:
        if whole >= size:
            found.append(str(words) % {"number": whole // size})
            whole %= size
    return " ".join(found[:2])


_UNITS: Final = (
    (86400, gettext_lazy("%(number)d d")),
    (3600, gettext_lazy("%(number)d h")),
    (60, gettext_lazy("%(number)d min")),
    (1, gettext_lazy("%(number)d s")),
)


def _kept(agent: Agent) -> Iterator[str]:
    yield _("Outlives every process, since it is the log of the run: %(parts)s.") % {
        "parts": "; ".join(str(words) for words in KEPT.values())
    }
    yield _(
        "Does not outlive the process: whatever the planner keeps for itself. It is given the same view again."
    )
    yield _(
        "The planner is given at most %(bytes)d bytes. Where what it must know is more, the run stops for a person; a "
        "summary of what happened (%(summariser)s) can be lost at any moment and is made again."
    ) % {"bytes": budget_of(agent), "summariser": (agent.summariser or CONDENSED).version}


def _writing(agent: Agent) -> list[tuple[WritingTool, Terms]]:
    return [(tool, terms_of(tool)) for tool in agent.tools if isinstance(tool, WritingTool)]


def _name(tool: Tool) -> dict[str, str]:
    return {"tool": tool.name, "system": tool.system}


def _resent(agent: Agent) -> Iterator[str]:
    for tool, terms in _writing(agent):
        if terms.retention is not None:
            facts = {**_name(tool), "time": length(terms.retention)}
            yield _("%(tool)s (%(system)s): under the same key, for %(time)s after the first send.") % facts
        if terms.guarded:
            text = _(
                "%(tool)s (%(system)s): each call carries a precondition that the other system enforces."
            )
            yield text % _name(tool)


def _asked(agent: Agent) -> Iterator[str]:
    for tool, terms in _writing(agent):
        if terms.queryable and terms.retention is None and not terms.guarded:
            text = _(
                "%(tool)s (%(system)s): sent again only where every earlier sender is known to be gone and the other "
                "system says that nothing happened."
            )
            yield text % _name(tool)


def _keyed(agent: Agent) -> Iterator[str]:
    for tool, terms in _writing(agent):
        if not terms.queryable and not terms.blind:
            text = _(
                "%(tool)s (%(system)s): its outcome cannot be asked; only sending again under its key tells it."
            )
            yield text % _name(tool)


def _blind(agent: Agent) -> Iterator[str]:
    for tool, terms in _writing(agent):
        if terms.blind:
            text = _(
                "%(tool)s (%(system)s): a mark is stored just before the call. Without the mark nothing was sent; with "
                "it and without a receipt a person settles it."
            )
            yield text % _name(tool)


def _alone(agent: Agent) -> Iterator[str]:
    for tool, terms in _writing(agent):
        if terms.repeatable:
            yield _(
                "%(tool)s (%(system)s): any number of lineages may do the same operation; within one it is done once."
            ) % _name(tool)
        else:
            yield _(
                "%(tool)s (%(system)s): an operation that stands or is open anywhere in the organisation is not sent "
                "again; a person settles it."
            ) % _name(tool)


def _undone(agent: Agent) -> Iterator[str]:
    for tool, terms in _writing(agent):
        if not terms.reversible:
            yield _("%(tool)s (%(system)s)") % _name(tool)


def _compensated(agent: Agent) -> Iterator[str]:
    for tool, terms in _writing(agent):
        if terms.reversible and tool.compensation:
            facts = {**_name(tool), "by": tool.compensation}
            yield (
                _("%(tool)s (%(system)s): undone by %(by)s, with an intent, key and receipt of its own.")
                % facts
            )
        elif terms.reversible:
            yield _("%(tool)s (%(system)s): can be undone outside, by no tool of this agent.") % _name(tool)


def _waits(agent: Agent) -> Iterator[str]:
    yield _(
        "A plan may wait for a time, for an answer by name, or for runs that it starts; nothing is held meanwhile."
    )
    yield _("An answer that comes before the wait begins is kept. One answer ends one wait.")
    yield _(
        "A plan may leave an argument open within bounds that people see. It is bound just before the send. "
        "Outside its bounds nothing is sent, and the plan ends."
    )
    yield _(
        "A run that a step starts has an id made from parent, step and name, so it is started once; its end is told to "
        "its parent, and the parent’s end reaches it."
    )


def _times(agent: Agent) -> Iterator[str]:
    for tool, terms in _writing(agent):
        facts = {
            **_name(tool), "window": length(terms.dispatch_window), "timeout": length(terms.timeout),
            "settle": length(terms.settle), "patience": length(terms.patience),
        }  # fmt: skip
        yield (
            _(
                "%(tool)s: a call begins within %(window)s and ends within %(timeout)s; “not found” is believed after "
                "another %(settle)s; a person is asked after %(patience)s."
            )
            % facts
        )
    for reading in agent.tools:
        if isinstance(reading, ReadingTool):
            facts = {**_name(reading), "time": length(reading.half_life)}
            yield _("%(tool)s (%(system)s): what it read may be taken for current for %(time)s.") % facts
    for kind, half_life in sorted({**agent.half_lives, **settings.HANDOFF_HALF_LIVES}.items()):
        facts = {"kind": kind, "time": length(half_life)}
        yield _("What was read of a resource “%(kind)s:…” may be taken for current for %(time)s.") % facts


def _unmixed(agent: Agent) -> Iterator[str]:
    yield _(
        "A run goes on only on a worker with the code that it is bound to, part by part; where there is none, a "
        "person decides. Another policy ends the plan and not the run."
    )
    if agent.takes_over:
        yield _(
            "By a person’s logged decision it goes on with runs of version %(versions)s that wait, where every "
            "operation that the run planned or did is the same one to it."
        ) % {"versions": ", ".join(agent.takes_over)}
    else:
        yield _("It takes over no other version’s runs.")
    for part, version in versions(agent).items():
        yield f"{part}: {version}"


def _agreed(agent: Agent) -> Iterator[str]:
    yield _("Policy %(version)s. Another version voids what was approved under this one.") % {
        "version": agent.policy.version
    }
    rules = _rules(agent.policy)
    for rule in rules:
        yield _rule(rule)
    if not rules:
        yield _("Its rules are code; each request names what it asks for.")


def _rules(policy: Policy) -> Iterable[ApprovalRule]:
    match policy:
        case RulePolicy(rules=rules):
            return rules
        case DocumentPolicy(document=document):
            return [rule_of(rule) for rule in document.rules]
        case _:
            return ()


def _rule(rule: ApprovalRule) -> str:
    stands = rule.stands_for or settings.HANDOFF_DURATIONS.approval_stands
    facts = {
        "name": rule.name, "number": rule.needed, "right": Right(rule.right).label, "time": length(stands),
        "not": ", ".join(sorted(rule.not_by)) or "–",
    }  # fmt: skip
    text = ngettext(
        "%(name)s: %(number)d person with the right “%(right)s”; stands for %(time)s; not by: %(not)s.",
        "%(name)s: %(number)d people with the right “%(right)s”; stands for %(time)s; not by: %(not)s.",
        rule.needed,
    )
    return text % facts


def _limits(agent: Agent) -> Iterator[str]:
    for found in agent.constraints:
        yield f"{found.text} ({found.source_kind} {found.source_ref} {found.source_version})"


_SECTIONS: Final[dict[str, tuple[str | Promise, Callable[[Agent], Iterator[str]]]]] = {
    "kept": (gettext_lazy("What outlives the process"), _kept),
    "resent": (gettext_lazy("Effects that may be sent again"), _resent),
    "asked": (gettext_lazy("Effects whose outcome can only be asked"), _asked),
    "keyed": (gettext_lazy("Effects whose outcome cannot be asked"), _keyed),
    "blind": (gettext_lazy("Effects that can neither be asked nor sent again"), _blind),
    "alone": (gettext_lazy("Which operations may repeat"), _alone),
    "undone": (gettext_lazy("Effects that cannot be undone"), _undone),
    "compensated": (gettext_lazy("Effects that can be undone, and by which tool"), _compensated),
    "waits": (gettext_lazy("What a run may wait for"), _waits),
    "unmixed": (gettext_lazy("Versions that must not be mixed"), _unmixed),
    "agreed": (gettext_lazy("When people must agree"), _agreed),
    "limits": (gettext_lazy("Constraints that every new run accepts"), _limits),
    "times": (gettext_lazy("How long each thing may take"), _times),
}
