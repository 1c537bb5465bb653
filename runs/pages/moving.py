"""Moving runs to another version of their agent, in words: which could take one over, and what stands in the way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.rights import Right
from runs import agents
from runs.compatibility import Obstacle, changed_since, obstacles
from runs.machine import decide
from runs.machine import state as s
from runs.machine.transitions import Decision
from runs.models import Run
from runs.pages import words
from runs.pages.run_page import Reader, heading
from runs.pages.stopping import may, subject
from runs.versions import recorded

Context = dict[str, Any]

#: Why a version cannot take a run over, by the code of the obstacle.
_OBSTACLES: Final[dict[str, str | Promise]] = {
    "over": gettext_lazy("The run is over."),
    "open_effects": gettext_lazy("An effect is in flight or unknown. It has to be settled first."),
    "cancel": gettext_lazy("The end of the run was asked for."),
    "children": gettext_lazy("Runs that it started go on, and it waits for them."),
    "working": gettext_lazy(
        "The run does not wait for people. It can be moved while it waits for a person or for approval."
    ),
    "version_missing": gettext_lazy("This console has no version %(subject)s of the agent."),
    "same_code": gettext_lazy("The run is bound to version %(subject)s as it is."),
    "not_taken_over": gettext_lazy(
        "Version %(now)s does not say that it takes over runs of version %(was)s."
    ),
    "tool_missing": gettext_lazy("It has no tool %(subject)s, which the run uses."),
    "system": gettext_lazy("Its tool %(subject)s acts on %(now)s and not on %(was)s."),
    "arguments": gettext_lazy("It does not take the arguments of %(subject)s: %(now)s"),
    "operation_id": gettext_lazy(
        "Its tool %(subject)s calls %(was)s %(now)s: it could be done a second time."
    ),
    "meaning": gettext_lazy("%(subject)s was done with %(was)s; to this version it would be %(now)s."),
    "unreadable": gettext_lazy("Its log cannot be read at event %(subject)s: %(now)s"),
    "refused": gettext_lazy("It was refused: %(now)s"),
}


def why_not(found: Obstacle) -> str:
    """One obstacle as a sentence."""
    facts = {"subject": found.subject, "was": words.short(found.was), "now": words.short(found.now)}
    return words.ended(str(_OBSTACLES[found.code]) % facts)


def sentences(found: Iterable[Obstacle]) -> str:
    """All that stands in the way."""
    return " ".join(map(why_not, found))


def others(run: Run, state: s.RunState) -> list[agents.Agent]:
    """The versions of the run's agent that this console has, its own only where its code is not the recorded one."""
    here = [a for a in agents.registered().values() if a.name == run.agent.name]
    mine = state.identity.agent_version
    return [a for a in here if a.version != mine or changed_since(state.identity, a)]


def link(run: Run, state: s.RunState) -> Context | None:
    """The decision as it stands on other pages; None where the run cannot be moved now or there is nowhere to move."""
    if decide.cannot_move(state) or not others(run, state):
        return None
    name, does = words.DECISIONS[Decision.MOVE.value]
    return {"title": name, "text": does, "url": reverse("run-move", args=[run.pk])}


def move(run: Run, state: s.RunState, reader: Reader) -> Context:
    """All of runs/decide.html for moving one run."""
    known = {a.version: obstacles(reader.whole or state, a) for a in others(run, state)}
    fits = [version for version, found in known.items() if not found]
    facts = {"version": state.identity.agent_version}
    return {
        "run": heading(run, state),
        "title": _("Move this run to another version?"),
        "why": [
            _("It is bound to version %(version)s of its agent.") % facts,
            *map(reader.told, _unfit(known)),
        ],
        "choices": [_choice(state, version) for version in fits],
        "nothing": "" if fits else _nothing(state, known),
        "hint": _("Required, at least 10 characters. It is shown in the timeline and in the audit log."),
        "subject": subject(state),
        "commit": _("Move the run"),
        **may("may_decide", Right.OPERATE_RUNS, reader),
        "values": {},
        "errors": [],
    }


def _unfit(known: dict[str, tuple[Obstacle, ...]]) -> list[str]:
    """Each version that cannot take it, and why."""
    text = _("Version %(version)s cannot take it over. %(why)s")
    return [text % {"version": v, "why": sentences(found)} for v, found in known.items() if found]


def _choice(state: s.RunState, version: str) -> Context:
    code = agents.registered()[state.identity.agent, version]
    return {
        "value": version,
        "title": _("Version %(version)s") % {"version": version},
        "text": ends(state, code),
    }


def ends(state: s.RunState, code: agents.Agent) -> str:
    """What a move to this code would do with the run's plan and approval, in words."""
    changed = decide.ended_by(state, recorded(code))
    if not changed:
        return _("What is approved stays approved. All checks are made again first.")
    causes = " ".join(map(words.cause, changed))
    return _("The present plan and its approval end, and the agent plans anew. %(causes)s") % {
        "causes": causes
    }


def _nothing(state: s.RunState, known: dict[str, tuple[Obstacle, ...]]) -> str:
    if code := decide.cannot_move(state):
        return str(_OBSTACLES[code])
    return (
        _("No version that this console has can take this run over.")
        if known
        else _("This console has no other version of the agent.")
    )


def kind(found: Obstacle) -> str:
    """What sort of obstacle it is, for counting: the sentence where it is about no single run."""
    return str(_KINDS.get(found.code) or why_not(found))


#: Sentences of obstacles that name what belongs to one run, said of many.
_KINDS: Final[dict[str, str | Promise]] = {
    "arguments": gettext_lazy("It does not take the arguments of an operation."),
    "operation_id": gettext_lazy("It calls an operation by another id: it could be done a second time."),
    "meaning": gettext_lazy("What was done would be something else to it."),
    "unreadable": gettext_lazy("The log cannot be read."),
    "refused": gettext_lazy("It was refused."),
}
