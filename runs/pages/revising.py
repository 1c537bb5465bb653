"""What another goal would do to a run, in words, before it is done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.rights import Right
from approvals.policy import Party
from runs import planning
from runs.machine import decide
from runs.machine import events as e
from runs.machine import state as s
from runs.machine.evolve import reduce
from runs.models import Run
from runs.pages import undo, words
from runs.pages.goal_versions import version
from runs.pages.run_page import Reader, heading
from runs.pages.stopping import may

Context = dict[str, Any]


def context(run: Run, state: s.RunState, reader: Reader) -> Context:
    """All of runs/revise_goal.html but what a sent form adds."""
    impact = decide.goal_impact(state)
    return {
        "run": heading(run, state),
        "original": version(state.goals[0]),
        "committed": version(state.goal),
        "next_version": state.goal.version + 1,
        "impact": [*impact_lines(state, impact), *_duties(run, state, reader)],
        "impact_digest": impact.digest,
        "over": _over(state),
        **may("may_revise", Right.REVISE_GOALS, reader),
        "values": {},
        "errors": [],
    }


def _over(state: s.RunState) -> str:
    """Why the goal cannot be revised, with what can be done instead; empty where it can."""
    match decide.cannot_revise(state):
        case "":
            return ""
        case "over" if state.successor:
            return _("This run is over: %(run)s goes on with its goal. Revise the goal there.") % {
                "run": state.successor
            }
        case "over":
            return _("This run is over, so its goal stays as it is. Start another run for another goal.")
        case _:
            return _(
                "The end of this run was asked for, so it goes on towards no goal. Let it end, and start another run."
            )


def impact_lines(state: s.RunState, impact: decide.GoalImpact) -> list[str]:
    """What the revision would end, and what it would leave, as sentences."""
    return [*_ends(state, impact), *_stops(state, impact), *_stays(state, impact)]


def _ends(state: s.RunState, impact: decide.GoalImpact) -> Iterator[str]:
    facts = {"plan": impact.plan, "goal": impact.goal + 1}
    if impact.plan is None:
        yield _("No plan is in force: the agent makes one for goal v%(goal)d.") % facts
    elif impact.at_once:
        yield (
            _("Plan v%(plan)d loses its validity at once, and the agent makes another for goal v%(goal)d.")
            % facts
        )
    else:
        yield (
            _("Nothing more is sent on plan v%(plan)d. It loses its validity once what it began is settled.")
            % facts
        )
    if state.request and impact.request:
        yield voided(state.request)
    if impact.plan is not None and impact.at_once and state.state is s.State.WAITING:
        yield _("What the run waits for now is not waited for any more.")


def voided(request: s.Request) -> str:
    given = [d.name for d in request.decisions if d.verdict == "approve"]
    facts = {"plan": request.version, "names": words.joined(given)}
    if request.status is s.RequestStatus.VALID:
        return _("The approval of plan v%(plan)d by %(names)s is voided.") % facts
    if given:
        return (
            _("The request to approve plan v%(plan)d is voided, and with it what %(names)s approved.") % facts
        )
    return _("The request to approve plan v%(plan)d is voided.") % facts


def _stops(state: s.RunState, impact: decide.GoalImpact) -> Iterator[str]:
    """What a run that stands still, or whose outcome is unknown, needs afterwards."""
    yield from settled_first(state)
    for child in state.open_children:
        facts = {"run": child.run, "goal": words.ended(child.goal)}
        yield _("Keeps its own goal and is waited for before another plan is made: %(run)s. %(goal)s") % facts
    for reason in state.reasons:
        facts = {"reason": words.reason(reason)}
        if reason.code in impact.answered:
            yield _("Answered by this, so the run goes on: %(reason)s.") % facts
        else:
            yield _("Still needs a person afterwards: %(reason)s.") % facts


def settled_first(state: s.RunState) -> Iterator[str]:
    """The effects that are open, of which nothing that people change about a run stops one."""
    for effect in state.open_effects:
        text = _(
            "%(effect)s may be happening or have happened: it is settled first, and is not stopped by this."
        )
        yield text % {"effect": words.effect_title(effect)}


def _stays(state: s.RunState, impact: decide.GoalImpact) -> Iterator[str]:
    number = len(impact.obligations)
    text = ngettext(
        "Obligations kept: %(number)d. It stays owed whatever the goal is.",
        "Obligations kept: %(number)d. They stay owed whatever the goal is.",
        number,
    )
    yield text % {"number": number} if number else _("No obligation is open.")
    stands = len(impact.standing) + len(state.inherited)
    text = ngettext(
        "Effects that stand and stay as they are: %(number)d. It is not undone.",
        "Effects that stand and stay as they are: %(number)d. None is undone.",
        stands,
    )
    yield text % {"number": stands} if stands else _("Nothing was done yet that could stand.")


def _duties(run: Run, state: s.RunState, reader: Reader) -> Iterator[str]:
    """What it means for the person's own right to approve; nothing for one who has none."""
    if not {Right.APPROVE_PLANS, Right.REVISE_GOALS} <= reader.mine:
        return
    facts = {"goal": state.goal.version + 1}
    match _kept_out(run, reader.whole or state):
        case True:
            yield (
                _("You will not be able to approve plans made for goal v%(goal)d (separation of duties).")
                % facts
            )
        case False:
            yield _("The policy in force lets who wrote goal v%(goal)d approve plans made for it.") % facts
        case None:
            yield (
                _(
                    "You will not be able to approve plans made for goal v%(goal)d where the policy asks for "
                    "separation of duties."
                )
                % facts
            )


def _kept_out(run: Run, state: s.RunState) -> bool | None:
    """Whether the policy keeps who revised the goal from approving; None where that cannot be told before a plan."""
    agent = undo.code_of(run)
    if agent is None or state.plan is None:
        return None
    asked = planning.asked_by(planning.policy_for(state, agent), state, state.plan.plan)
    return Party.GOAL_REVISER in asked.not_by if asked.needed else None


def moved_impact(state: s.RunState, log: Sequence[e.Recorded], since: int | None) -> tuple[str, str]:
    """What a revision would have done as of version `since`, and what it would do now: only what differs."""
    then = reduce([r for r in log if since is None or r.seq <= since] or log[:1])
    old, new = (impact_lines(x, decide.goal_impact(x)) for x in (then, state))
    saw = " ".join(line for line in old if line not in new)
    now = " ".join(line for line in new if line not in old)
    return saw or "–", now or "–"
