"""What a tool says is owed with an effect, as an event keeps it."""

from __future__ import annotations

import logging
from typing import Any

from runs import artifacts
from runs.agents import registered
from runs.ledger import log
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.canonical import parse, plain
from runs.tools import WritingTool

logger = logging.getLogger(__name__)


def promised(tool: WritingTool, arguments: str, evidence: Any) -> tuple[e.Promised, ...]:
    """What the tool reads from the evidence. A tool that fails on it keeps no receipt from being stored: then a person
    is told by an obligation to look.
    """
    try:
        found = tool.promises(parse(arguments), evidence)
        return tuple(e.Promised(text=plain(x.text), to=plain(x.to), due=x.due) for x in found)
    except Exception as error:
        logger.exception("the tool failed to say what it promised", extra={"tool": tool.name})
        text = f"look what {tool.name} promised: its evidence could not be read ({type(error).__name__})"
        return (e.Promised(text=plain(text)),)


def of_answer(state: s.RunState, number: int, asked: int) -> tuple[e.Promised, ...]:
    """As `promised`, of an effect that a person concludes to have happened from the answer in event `asked`.

    Empty where this process has not the code of the run's agent: then a person writes down what is owed.
    """
    identity, effect = state.identity, state.effects[number]
    agent = registered().get((identity.agent, identity.agent_version))
    told = next((r.event for r in log(identity.run, after=asked - 1, until=asked)), None)
    if agent is None or not isinstance(told, e.EffectQueried):
        return ()
    try:
        text = artifacts.text_of(identity.tenant, e.text_of(told.evidence))
    except artifacts.ArtifactUnreadable:
        logger.exception("the answer could not be read", extra={"run": identity.run, "effect": number})
        text = e.text_of(told.evidence)
    return promised(agent.writing(effect.tool), effect.arguments, parse(text))
