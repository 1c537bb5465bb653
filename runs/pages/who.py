"""Who may act: per action "you", or who can and why not you. Actions are never hidden."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import Tenant, User
from accounts.rights import Denial, DenialKind, Right
from approvals.quorums import barred_from
from runs.machine import decide
from runs.machine import state as s
from runs.machine.decide import cannot_limit, cannot_revise
from runs.machine.events import CancelRequested, EffectAttested
from runs.machine.hidden import hides
from runs.machine.safety import Action, next_safe_action, right_to
from runs.machine.transitions import ROWS, Decision, allows
from runs.models import Agent
from runs.pages import ending, next_action, requests, words
from runs.pages import owed as rows

_RUN = re.compile(r"run_[0-9A-Z]+")
Holders = Mapping[Right, Sequence[User]]
ACTING = (
    Right.RECONCILE_EFFECTS, Right.ATTEST_EFFECTS, Right.APPROVE_PLANS, Right.OPERATE_RUNS, Right.CANCEL_RUNS,
    Right.REVISE_GOALS, Right.RESTART_RUNS, Right.REREDUCE_RUNS, Right.SEE_VALUES, Right.START_RUNS,
    Right.REVOKE_CONSTRAINTS,
)  # fmt: skip


def rights_of(person: User, holders: Holders) -> frozenset[Right]:
    """Those of the asked rights that this person holds."""
    return frozenset(right for right, people in holders.items() if person in people)


def lines(state: s.RunState, person: User, holders: Holders) -> list[dict[str, Any]]:
    """The `who` of parts/who.html."""
    return list(_lines(state, person, holders))


def _lines(state: s.RunState, person: User, holders: Holders) -> Iterator[dict[str, Any]]:
    run = state.identity.run
    action = next_safe_action(state)
    for effect in state.open_effects:
        url = reverse("effect-reconcile", args=[run, effect.number])
        name = _("Reconcile %(effect)s") % {"effect": f"E-{effect.number}"}
        yield _line(name, url, Right.RECONCILE_EFFECTS, person, holders)
        if effect.status is s.EffectStatus.UNKNOWN and allows(state.state, EffectAttested):
            name = _("Attest %(effect)s") % {"effect": f"E-{effect.number}"}
            yield _line(name, f"{url}#state-it", Right.ATTEST_EFFECTS, person, holders)
    for effect in state.contradicted:
        url = reverse("effect-finding", args=[run, effect.number])
        name = _("Settle the evidence against %(effect)s") % {"effect": f"E-{effect.number}"}
        yield _line(name, url, Right.RECONCILE_EFFECTS, person, holders)
    if action.action is Action.REVIEW:
        yield _approve(state, person, holders)
    if requests.mine(state, person):
        yield _take_back(state)
    if action.action is Action.RENEW:
        url = next_action.address(run, action)
        yield _line(next_action.label(action), url, Right.OPERATE_RUNS, person, holders)
    if action.action is Action.DECIDE:
        yield from _decisions(state, action.decisions, person, holders)
    if name := next_action.awaited(state):
        label = _("Give the answer “%(name)s”") % {"name": name}
        yield _line(label, next_action.answer_address(run), Right.OPERATE_RUNS, person, holders)
    if allows(state.state, CancelRequested) and not state.cancel_requested:
        url = reverse("run-stop", args=[run])
        line = _line(str(words.DECISIONS[Decision.CANCEL][0]), url, Right.CANCEL_RUNS, person, holders)
        text = " ".join(filter(None, (line.get("text"), ending.waits(state))))
        yield {**line, **({"text": text} if text else {})}
    if not cannot_revise(state):
        yield _line(
            _("Revise the goal"), reverse("run-goal", args=[run]), Right.REVISE_GOALS, person, holders
        )
    yield from _limit(state, person, holders)
    if ending.owes(state) or any(x.code == "obligation_open" for x in state.reasons):
        for owed in state.open_obligations:
            yield from _keeping(state, owed, person, holders)


def _decisions(
    state: s.RunState, decisions: Sequence[Decision], person: User, holders: Holders
) -> Iterator[dict[str, Any]]:
    """A line for each page on which one of the decisions is taken, the first one's first; cancelling has its own."""
    run = state.identity.run
    if any((r.code, r.subject) == ("log_damaged", ROWS) for r in state.reasons):
        url = reverse("run-rereduce", args=[run])
        yield _line(_("Make the rows anew from the log"), url, Right.REREDUCE_RUNS, person, holders)
    seen = {Decision.CANCEL}
    for decision in decisions:
        alone = decision in _ALONE
        if decision in seen:
            continue
        seen |= {decision} if alone else {d for d in decisions if d not in _ALONE}
        name = str(words.DECISIONS[decision.value][0]) if alone else _("Decide how it goes on")
        yield _line(name, _taken_at(state, decision), Right(right_to(decision)), person, holders)


#: Decisions of which each has a line of its own.
_ALONE = (Decision.LEND, Decision.ACCEPT, Decision.RESTART)


def _taken_at(state: s.RunState, decision: Decision) -> str:
    run = state.identity.run
    if decision is Decision.ACCEPT:
        return next_action.accept_address(state)
    return reverse("run-lend" if decision is Decision.LEND else "run-decide", args=[run])


def _keeping(
    state: s.RunState, owed: s.Obligation, person: User, holders: Holders
) -> Iterator[dict[str, Any]]:
    """What people can do about an obligation that no worker keeps any more."""
    at, facts = [state.identity.run, owed.number], {"obligation": f"B-{owed.number}"}
    if decide.owed(state, owed.number) is None:
        return
    name = _("State that %(obligation)s is done") % facts
    line = _line(name, reverse("obligation-attest", args=at), Right.ATTEST_EFFECTS, person, holders)
    by = rows.owner(state, owed)
    text = " ".join(filter(None, (line.get("text"), _("Owner: %(owner)s.") % {"owner": by})))
    yield {**line, "text": text}
    name = _("Hand %(obligation)s on") % facts
    yield _line(name, reverse("obligation-hand-on", args=at), Right.OPERATE_RUNS, person, holders)


def _limit(state: s.RunState, person: User, holders: Holders) -> Iterator[dict[str, Any]]:
    run = state.identity.run
    if not cannot_limit(state):
        url = reverse("run-constraint-add", args=[run])
        yield _line(_("Add a constraint"), url, Right.REVISE_GOALS, person, holders)
    for c in state.constraints if state.state not in s.TERMINAL else ():
        if c.unconfirmed and not c.withdrawn:
            url = reverse("run-constraint-confirm", args=[run, c.number])
            name = _("Confirm %(constraint)s") % {"constraint": f"C-{c.number}"}
            yield _line(name, url, Right.OPERATE_RUNS, person, holders)


def _line(action: str, url: str, right: Right, person: User, holders: Holders) -> dict[str, Any]:
    people = holders[right]
    if person in people:
        return {"action": action, "you": True, "url": url}
    run = _RUN.search(url)
    asked = {"why_url": why_address(right, run[0])} if run else {}
    return {"action": action, "you": False, "text": why_not(person, right, people), **asked}


def why_address(right: Right, run: str) -> str:
    """Where it is told in full why one can or cannot do this with the run."""
    return f"{reverse('permission-check')}?{urlencode({'action': right.value, 'run': run})}"


def why_address_at(right: Right, thing: Agent | Tenant) -> str:
    """The same for an agent or an organisation."""
    on = f"{'tenant' if isinstance(thing, Tenant) else 'agent'}-{thing.pk}"
    return f"{reverse('permission-check')}?{urlencode({'action': right.value, 'on': on})}"


def why_not(person: User, right: Right, people: Sequence[User]) -> str:
    """Why this person may not, by which right, and who can."""
    denial = Denial(kind=DenialKind.RIGHT_MISSING, person=person, right=right)
    return _("%(why)s %(who)s") % {"why": denial.sentence, "who": who_can(people)}


def who_can(people: Sequence[User]) -> str:
    """Who may do it, by name; where it is nobody, that."""
    if not people:
        return _("Nobody may do this now: ask the people who run this console.")
    return _("People who can: %(names)s.") % {"names": words.joined([p.shown_name for p in people])}


def _approve(state: s.RunState, person: User, holders: Holders) -> dict[str, Any]:
    request = state.request
    assert request is not None
    people = deciders(request, holders, hidden=hides_values(state))
    facts = {"plan": request.version}
    line = {"action": _("Approve plan v%(plan)d") % facts, "you": person in people}
    if line["you"]:
        return {**line, "url": reverse("plan-review", args=[state.identity.run, request.version])}
    asked = why_address(Right(request.right), state.identity.run)
    return {
        **line,
        "text": why_not_decide(request, person, holders, hidden=hides_values(state)),
        "why_url": asked,
    }


def _take_back(state: s.RunState) -> dict[str, Any]:
    """One's own approval: nobody else can take it back."""
    assert state.request is not None
    version = state.request.version
    action = _("Take back your approval of plan v%(plan)d") % {"plan": version}
    return {"action": action, "you": True, "url": requests.take_back_address(state, version)}


def hides_values(state: s.RunState) -> bool:
    """Whether its latest plan has values that not everybody may see."""
    return state.plan is not None and hides(state.plan.plan)


def may_decide(request: s.Request, holders: Holders) -> list[User]:
    """Those who hold the right and whom no rule of the request keeps from deciding."""
    people = [p for p in holders[Right(request.right)] if str(p.pk) not in request.excluded]
    out = barred_from(UUID(request.id), [p.pk for p in people]) if request.not_by else frozenset()
    return [p for p in people if p.pk not in out]


def deciders(request: s.Request, holders: Holders, *, hidden: bool) -> list[User]:
    """Those of them who see all of the plan; `hidden`: it has values that not everybody may see."""
    people = may_decide(request, holders)
    return [p for p in people if p in holders[Right.SEE_VALUES]] if hidden else people


def rule_against(request: s.Request, person: User, holders: Holders) -> str:
    """The rule that keeps a person who holds the right from deciding; empty where none does."""
    if rule := request.excluded.get(str(person.pk)):
        return rule
    holds = person in holders[Right(request.right)]
    return "other_tenant" if holds and person not in may_decide(request, holders) else ""


def why_not_decide(request: s.Request, person: User, holders: Holders, *, hidden: bool) -> str:
    """Why this person may not decide on the request; empty where they may. `hidden` as for `deciders`."""
    right = Right(request.right)
    people = deciders(request, holders, hidden=hidden)
    if person in people:
        return ""
    if rule := rule_against(request, person, holders):
        facts = {"rule": str(words.RULES.get(rule, rule)), "who": who_can(people)}
        return _("Somebody else must decide, because %(rule)s. %(who)s") % facts
    if person in holders[right]:
        why = why_not(person, Right.SEE_VALUES, people)
        return _("Values of this plan are hidden from you, so you cannot approve it. %(why)s") % {"why": why}
    return why_not(person, right, people)
