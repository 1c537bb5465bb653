"""The checks of the review page, from what is stored. All are made again before each change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from approvals.policy import CheckKind, Quorum
from approvals.quorums import Met, met
from runs import binding, planning, predicates
from runs.agents import Agent
from runs.grants import still_lent
from runs.machine import state as s
from runs.machine.canonical import digest
from runs.machine.decide import constraints_digest
from runs.machine.hidden import hides
from runs.pages import words
from runs.pages.run_page import Reader
from runs.pages.who import deciders, who_can

Row = dict[str, Any]


def checks(
    state: s.RunState, plan: s.PlanVersion, request: s.Request | None, agent: Agent | None, reader: Reader
) -> list[Row]:
    """The `checks` of parts/checks.html."""
    return [
        *_binding(state, plan, request),
        *_sources(state, agent),
        *_constraints(state, plan, *reader.judged(state, plan), reader),
        *_policy(state, plan, agent),
        *_asked(*reader.judged(state, plan), agent, reader),
        *_people(state, plan, request, reader),
        _authority(state),
        *(_read(state, rest, reader) for rest in _rests(state, plan)),
    ]


def blocked(made: list[Row]) -> str:
    """Why approving is not possible now: the first hard check that fails; empty where none does."""
    return next((row["hard"] for row in made if row["state"] == "fail" and row["hard"]), "")


def _row(name: str, passed: bool, detail: str = "", hard: str = "") -> Row:
    return {
        "name": name,
        "state": "pass" if passed else "fail",
        "detail": detail,
        "hard": hard,
        "again": True,
    }


def _binding(state: s.RunState, plan: s.PlanVersion, request: s.Request | None) -> Iterator[Row]:
    again = digest("plan", plan.document)
    asked = request.digest if request else plan.digest
    yield _row(
        _("The stored plan has the digest that is asked about"),
        again == plan.digest == asked,
        hard=_("the stored plan is not the one whose approval was asked for."),
    )
    document = plan.plan
    yield _row(
        _("The plan is for the committed goal"),
        document.goal_version == state.goal.version,
        hard=_("the goal was revised since; another plan is needed."),
    )
    yield _row(
        _("The constraints are those the plan was made under"),
        document.undo or document.constraints_digest == constraints_digest(state),
        hard=_("the constraints changed since; another plan is needed."),
    )


def _sources(state: s.RunState, agent: Agent | None) -> Iterator[Row]:
    """What the sources say now, whether or not the run was told."""
    changed = binding.at_source(state, agent)
    yield _row(
        _("Each constraint stands at its source"),
        not changed,
        detail=words.clauses(words.bound_change(c) for c in changed),
        hard=_("a constraint was withdrawn or amended at its source since."),
    )


def _constraints(
    state: s.RunState, plan: s.PlanVersion, whole: s.RunState, judged: s.PlanVersion, reader: Reader
) -> Iterator[Row]:
    """Each constraint in force: whether the plan keeps its predicate, or that only people can judge it."""
    broken = {x.constraint: x for x in predicates.broken(whole, judged.plan)}
    for c in (x for x in state.constraints if not x.withdrawn):
        unsure = _("(inferred by the agent, not confirmed by a person)") if c.unconfirmed else ""
        name = " ".join(filter(None, (f"C-{c.number}", c.term.name, f"“{c.term.text}”", unsure)))
        if not c.term.predicate or plan.plan.undo:
            yield {"name": name, "state": "not_checked", "detail": _unchecked(c), "hard": "", "again": False}
            continue
        found = broken.get(c.number)
        detail = reader.told(words.not_kept(found)) if found else c.term.predicate
        hard = _("it breaks a constraint; another plan is needed.")
        yield {**_row(name, found is None, detail, hard), "again": bool(late_steps(plan))}


def _unchecked(constraint: s.Constraint) -> str:
    if constraint.term.predicate:
        return _("Not checked by code: this plan undoes what was done, and no constraint keeps it from that.")
    return _("Not checked by code. Only people can tell whether the plan keeps it.")


def late_steps(plan: s.PlanVersion) -> list[s.PlanStep]:
    """The steps whose arguments come later, which are then checked again."""
    return [step for step in plan.plan.steps if step.late]


def _policy(state: s.RunState, plan: s.PlanVersion, agent: Agent | None) -> Iterator[Row]:
    was = plan.plan.policy_version
    name = _("The policy is %(version)s") % {"version": was}
    rules = planning.policy_if_known(state, agent)
    if rules is None:
        detail = _("This console does not have the agent’s version; the worker checks it.")
        yield {"name": name, "state": "not_checked", "detail": detail, "hard": "", "again": True}
        return
    now = rules.version
    detail = "" if now == was else words.policy_changed(was, now)
    yield _row(name, now == was, detail, _("the policy changed since; another plan is needed."))


def _asked(state: s.RunState, plan: s.PlanVersion, agent: Agent | None, reader: Reader) -> Iterator[Row]:
    """Why the policy asks people, where it could not be told; and its own checks that fail."""
    rules = planning.policy_if_known(state, agent)
    failure = planning.asked_by(rules, state, plan.plan).failure if rules else ""
    if failure:
        facts = {"why": reader.told(failure)}
        detail = _("People are asked because a rule could not be evaluated. %(why)s") % facts
        yield {**_row(_("The policy could be evaluated"), False, detail), "again": False}
    for check in planning.unpassed(state, plan, agent):
        why = reader.told(" ".join(filter(None, (check.sentence, getattr(check, "failure", "")))))
        hard = check.sentence if check.kind == CheckKind.HARD else ""
        yield {**_row(check.name, False, why, hard), "again": False}


def _people(
    state: s.RunState, plan: s.PlanVersion, request: s.Request | None, reader: Reader
) -> Iterator[Row]:
    if request is None:
        return
    people = deciders(request, reader.holders, hidden=hides(plan.plan))
    name = _("Enough people may approve: %(needed)d needed") % {"needed": request.needed}
    yield _row(name, len(people) >= request.needed, who_can(people))
    for left in met_by(state, request, [p.pk for p in people]):
        facts = {"needed": left.quorum.needed, "groups": words.joined(list(left.quorum.groups))}
        detail = _("%(number)d who may approve are.") % {"number": left.given}
        yield _row(_("Enough of them are in %(groups)s: %(needed)d needed") % facts, left.enough, detail)


def met_by(state: s.RunState, request: s.Request, people: list[UUID]) -> Sequence[Met]:
    """Each quorum with how many of the people are in its groups now."""
    quorums = [Quorum(needed=q.needed, groups=q.groups) for q in request.quorums]
    return met(quorums, tenant_id=UUID(state.identity.tenant), people=people)


def _authority(state: s.RunState) -> Row:
    """Asked of the grant itself, whether or not the run was told of its end."""
    lost = "" if state.state in s.TERMINAL else still_lent(state)[0]
    why = words.LENDING.get(lost, lost)
    detail = _("It does not: %(why)s.") % {"why": why} if lost else ""
    hard = _("what it acts on is over; it has to be lent anew, and then people are asked again.")
    return _row(_("What was lent to the run carries it"), not lost, detail, hard)


def _rests(state: s.RunState, plan: s.PlanVersion) -> list[s.PlanRest]:
    rests = {(r.tool, r.arguments): r for step in plan.plan.steps for r in step.rests_on}
    return list(rests.values())


def _read(state: s.RunState, rest: s.PlanRest, reader: Reader) -> Row:
    """Resource version and age of one observation. Its source itself is read again before each change."""
    seen = state.observations.get((rest.tool, rest.arguments))
    facts = {"resource": rest.resource, "version": rest.version}
    name = _("%(resource)s is at version %(version)s and was read within its limit") % facts
    if seen is None:
        return _row(name, False, _("It was never read."), _("what the plan rests on was never read."))
    bound = state.produced.get(rest.resource, rest.version)
    detail = _("Last seen at version %(version)s.") % {"version": seen.version}
    if seen.version != bound:
        return _row(name, False, detail, _("what the plan acts on has changed; another plan is needed."))
    if seen.expires_at <= reader.now:
        detail = _("Read too long ago: it is read again before anything is sent.")
        return {"name": name, "state": "noted", "detail": detail, "hard": "", "again": True}
    return _row(name, True, detail)
