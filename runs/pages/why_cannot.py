"""Why a person can or cannot do a thing: with a run, by the rights, the rules between people and the run's state; with
an agent or an organisation, by the rights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.contrib.contenttypes.models import ContentType
from django.utils.translation import gettext as _

from accounts.held import held_by
from accounts.models import Tenant, User
from accounts.permissions import ON_AGENT, ON_RUN
from accounts.rights import DenialKind, Right, holders, why_not
from accounts.second_factors import lacks_factor
from approvals.checks import refuse_person
from approvals.models import Request
from approvals.outcomes import DecisionRefusedError
from runs.agents import registered
from runs.binding import changed, never_read
from runs.grants import still_lent
from runs.machine import state as s
from runs.machine.decide import cannot_revise, gone_on
from runs.machine.events import CancelRequested, EffectAttested, SignalReceived
from runs.machine.hidden import hides
from runs.machine.safety import decisions_of
from runs.machine.transitions import Decision, allows
from runs.models import Agent, Run
from runs.pages import words
from runs.pages.who import who_can

Thing = Run | Agent | Tenant


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Yes or no, the rule that decides, and what else there is to know."""

    yes: bool
    rule: str
    more: tuple[str, ...] = ()
    #: Whether doing it takes a recent sign-in.
    recent: bool = False


def about(right: Right, thing: Thing) -> Thing:
    """What the question is about where it is asked of a run or an agent: what the right is held on at the nearest."""
    if isinstance(thing, Run) and right not in ON_RUN:
        thing = thing.agent
    if isinstance(thing, Agent) and right not in ON_AGENT:
        return thing.tenant
    return thing


def answer_at(person: User, right: Right, thing: Agent | Tenant) -> Answer:
    """Of an agent or an organisation: the person and the right decide, and whether an organisation asks for more."""
    if denial := why_not(person, right, thing):
        return Answer(yes=False, rule=denial.sentence, more=_without(person, right, thing, denial.kind))
    had = tuple(_held(person, right, thing))
    if lacking := _factor(person):
        return Answer(yes=False, rule=lacking, more=had)
    return Answer(yes=True, rule=_("Nothing stands in the way now."), more=had)


def _factor(person: User) -> str:
    """That nothing but a second factor is shown to the person before they have one; empty where that is not so."""
    if not lacks_factor(person):
        return ""
    facts = {"person": person.shown_name}
    return _("An organisation demands a second factor that %(person)s has not set up yet.") % facts


def answer(person: User, right: Right, run: Run, state: s.RunState) -> Answer:
    """The first rule that stands in the way decides: the person, the right, a rule between people, the run's state."""
    if denial := why_not(person, right, run):
        return Answer(yes=False, rule=denial.sentence, more=_without(person, right, run, denial.kind))
    had = tuple(_held(person, right, run))
    if lacking := _factor(person):
        return Answer(yes=False, rule=lacking, more=had)
    request = _request(run, state) if right is Right.APPROVE_PLANS else None
    if request and (refused := _part(request, person)):
        return Answer(yes=False, rule=refused, more=had)
    unseen = _unseen(person, run, state) if right is Right.APPROVE_PLANS else ""
    if unseen:
        return Answer(yes=False, rule=unseen, more=had)
    in_the_way = _STATES.get(right)
    if in_the_way and (stands := in_the_way(state)):
        return Answer(yes=False, rule=stands, more=had)
    if right is Right.APPROVE_PLANS and (missing := _ground(request, state)):
        return Answer(yes=False, rule=missing, more=had)
    later = _later(right, state)
    return Answer(yes=True, rule=_("Nothing stands in the way now."), more=(*had, *later), recent=bool(later))


def _without(person: User, right: Right, thing: Thing, kind: DenialKind) -> tuple[str, ...]:
    people = who_can([other for other in holders(right, thing) if other != person])
    if kind is DenialKind.RIGHT_MISSING:
        return _where(thing), people
    return *_held(person, right, thing), people


def _where(thing: Thing) -> str:
    """On what the right can be held, so that it counts here."""
    match thing:
        case Run():
            places = {"run": thing.pk, "agent": thing.agent.title, "tenant": thing.tenant.name}
            text = _(
                "It can be held on this run (%(run)s), on its agent (%(agent)s), or on all of %(tenant)s."
            )
        case Agent():
            places = {"agent": thing.title, "tenant": thing.tenant.name}
            text = _("It can be held on this agent (%(agent)s), or on all of %(tenant)s.")
        case _:
            places = {"tenant": thing.name}
            text = _("It is held on all of %(tenant)s.")
    return text % places


def _names(thing: Thing) -> dict[int, str]:
    """The names of the places that rights on the thing are held on, by kind."""
    kinds = ContentType.objects.get_for_models(Run, Agent, Tenant)
    agent = thing.agent if isinstance(thing, Run) else thing
    tenant = agent.tenant if isinstance(agent, Agent) else agent
    found = {kinds[Tenant].pk: tenant.name}
    if isinstance(agent, Agent):
        found[kinds[Agent].pk] = agent.title
    return found | ({kinds[Run].pk: thing.pk} if isinstance(thing, Run) else {})


def _held(person: User, right: Right, thing: Thing) -> list[str]:
    """How the person holds the right, one sentence for each way."""
    names = _names(thing)
    found = []
    for one in held_by(person, [right], thing):
        facts = {"right": one.right.label, "place": names.get(one.object_type_id, ""), "group": one.group}
        by_group = _("The right “%(right)s” is held on %(place)s by the group %(group)s.")
        alone = _("The right “%(right)s” is held on %(place)s by the person alone.")
        found.append((by_group if one.group else alone) % facts)
    return list(dict.fromkeys(found))


def _request(run: Run, state: s.RunState) -> Request | None:
    return Request.objects.filter(pk=state.request.id, tenant=run.tenant).first() if state.request else None


def _part(request: Request, person: User) -> str:
    """The rule between people that keeps this one from deciding; empty where none does."""
    try:
        refuse_person(request, person)
    except DecisionRefusedError as refused:
        return refused.sentence
    return ""


def _unseen(person: User, run: Run, state: s.RunState) -> str:
    """Why the person may not approve a plan with values that are hidden from them; empty where they see all of it."""
    if state.plan is None or not hides(state.plan.plan):
        return ""
    denial = why_not(person, Right.SEE_VALUES, run)
    return denial.sentence if denial else ""


def _ground(request: Request | None, state: s.RunState) -> str:
    """What an approval would rest on and is not so now; empty where all is."""
    if request and changed(
        state, request, registered().get((state.identity.agent, state.identity.agent_version))
    ):
        return _("What was asked about has changed since; a worker asks people anew.")
    if still_lent(state)[0]:
        return _("What the run acts on is over. It has to be lent anew, and then people are asked again.")
    return _("What the plan rests on was never read.") if never_read(state) else ""


def _revise(state: s.RunState) -> str:
    match cannot_revise(state):
        case "":
            return ""
        case "over":
            return _("This run is over.")
        case _:
            return _("The end of this run was asked for already.")


def _approve(state: s.RunState) -> str:
    request = state.request
    if state.state is not s.State.WAITING_APPROVAL or request is None:
        return _("No plan of this run waits for approval now.")
    if request.status is not s.RequestStatus.PENDING:
        return str(words.REQUESTS[request.status])
    return ""


def _cancel(state: s.RunState) -> str:
    if not allows(state.state, CancelRequested):
        return _("This run is over.")
    return _("The end of this run was asked for already.") if state.cancel_requested else ""


def _decides(*decisions: Decision) -> Callable[[s.RunState], str]:
    def stands(state: s.RunState) -> str:
        if state.state is not s.State.NEEDS_HUMAN:
            return _("This run is not stopped for a person, so there is nothing to decide.")
        if set(decisions) & set(decisions_of(state)):
            return ""
        return _("What the run is stopped for does not allow it now.")

    return stands


def _operate(state: s.RunState) -> str:
    """Answers, files and questions are taken as long as a run is open; what it owes is handed on after that, too."""
    return "" if allows(state.state, SignalReceived) or _owes(state) else _("This run is over.")


def _owes(state: s.RunState) -> bool:
    """Whether anything is owed that no successor keeps."""
    return any(not gone_on(state, x) for x in state.open_obligations)


def _reconcile(state: s.RunState) -> str:
    return "" if state.open_effects or state.contradicted else _("No effect of this run is in doubt.")


def _attest(state: s.RunState) -> str:
    unknown = any(effect.status is s.EffectStatus.UNKNOWN for effect in state.open_effects)
    if state.contradicted or (unknown and allows(state.state, EffectAttested)) or _owes(state):
        return ""
    return _("No effect of this run is unknown, and it owes nothing.")


_STATES: Final[dict[Right, Callable[[s.RunState], str]]] = {
    Right.APPROVE_PLANS: _approve,
    Right.CANCEL_RUNS: _cancel,
    Right.RESTART_RUNS: _decides(Decision.RESTART),
    Right.OPERATE_RUNS: _operate,
    Right.RECONCILE_EFFECTS: _reconcile,
    Right.ATTEST_EFFECTS: _attest,
    Right.REVISE_GOALS: _revise,
}


def _later(right: Right, state: s.RunState) -> list[str]:
    """What is asked for once more in the moment of doing it."""
    hard = state.plan is not None and any(not step.reversible for step in state.plan.plan.steps)
    if right is Right.APPROVE_PLANS and hard:
        return [_("What cannot be undone asks for a recent sign-in when it is decided.")]
    if right is Right.ATTEST_EFFECTS:
        return [_("What cannot be undone takes two people and asks for a recent sign-in.")]
    return []
