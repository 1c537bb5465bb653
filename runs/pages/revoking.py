"""Withdrawing a constraint, from the page of a run that accepted it: what it would end, here or wherever it applies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import User
from accounts.rights import Right, holders, why_not
from runs import constrained, ledger
from runs.access import visible_runs
from runs.actions.constraints import place_of
from runs.actions.frame import person_actor
from runs.machine import decide
from runs.machine import state as s
from runs.machine.transitions import Refused
from runs.models import Run, Statement
from runs.pages import next_action, revising, undo, who, words
from runs.pages.paging import paging
from runs.pages.run_page import Reader, heading
from runs.pages.stopping import may
from runs.sources import held
from runs.tools import WritingTool

Context = dict[str, Any]
HERE, EVERYWHERE = "here", "everywhere"
LINES = 50  #: of an impact list on one page


def statement_of(run: Run, constraint: s.Constraint) -> Statement | None:
    """The version of the constraint that counts now; None where it is not held here."""
    if not held.holds(constraint.term):
        return None
    return held.latest(tenant_id=run.tenant_id).filter(ref=constraint.term.source_ref).first()


def context(
    run: Run, state: s.RunState, constraint: s.Constraint, reader: Reader, *, page: int = 1
) -> Context:
    """All of runs/revoke.html but what a sent form adds."""
    statement = statement_of(run, constraint)
    impact = constrained.impact(tenant_id=run.tenant_id, ref=statement.ref) if statement else None
    possible, denied = _possible(run), _why_not_everywhere(reader.person, statement, constraint)
    return {
        "run": heading(run, state),
        "constraint": _shown(run, constraint),
        "over": _over(state, constraint),
        "possible": possible,
        "phrase": name_of(constraint) if possible else "",
        "ends": _ends(state),
        "elsewhere": everywhere(statement, impact, reader.person, page=page)
        if statement and impact
        else None,
        "stays": list(_stays(state, constraint)),
        "next": _next(state, constraint, reader),
        "here_digest": decide.goal_impact(state).digest,
        "statement": statement,
        "impact_digest": impact.digest if impact else "",
        "may_everywhere": not denied,
        "why_not_everywhere": denied,
        **may("may_revoke", Right.REVOKE_CONSTRAINTS, reader),
        "values": {},
        "errors": [],
    }


def name_of(constraint: s.Constraint) -> str:
    """How a run calls it."""
    return f"C-{constraint.number}"


def _shown(run: Run, constraint: s.Constraint) -> Context:
    term = constraint.term
    events = reverse("run-events", args=[run.pk])
    return {
        "id": name_of(constraint), "name": term.name, "text": term.text, "predicate": term.predicate,
        "kind": str(words.SOURCES.get(term.source_kind, term.source_kind)),
        "source": f"{term.source_ref} {term.source_version}", "at": constraint.at,
        "event_url": f"{events}?from={constraint.seq}#event-{constraint.seq}",
    }  # fmt: skip


def _over(state: s.RunState, constraint: s.Constraint) -> str:
    """Why nothing can be withdrawn here, with what can be done instead; empty where it can."""
    if constraint.withdrawn:
        return _("It was withdrawn already, at event %(seq)d.") % {"seq": constraint.withdrawn.seq}
    if state.state in s.TERMINAL:
        return _("This run is over and rests on no constraint any more.")
    if state.cancel_requested or state.undoing:
        return _("This run is ending, and what is undone rests on no constraint.")
    return ""


def _possible(run: Run) -> list[str]:
    """What the agent can do that nobody could take back, which one limit less may let a restarted run do."""
    agent = undo.code_of(run)
    tools = [t for t in agent.tools if isinstance(t, WritingTool) and not t.reversible] if agent else []
    text = _(
        "In a restarted run, as far as no other constraint forbids it: %(tool)s in %(system)s (cannot be undone)."
    )
    if agent is None:
        return [
            _("This console does not have the agent’s code, so it may be something that cannot be undone.")
        ]
    return [text % {"tool": t.name, "system": t.system} for t in tools]


def _ends(state: s.RunState) -> list[str]:
    """What of this run loses its validity, and what has to be settled first."""
    impact = decide.goal_impact(state)
    said = []
    if impact.plan is not None:
        said.append(_("Plan v%(plan)d loses its validity.") % {"plan": impact.plan})
    if state.request and impact.request:
        said.append(revising.voided(state.request))
    for effect in state.open_effects:
        said.append(_("%(effect)s is reconciled first.") % {"effect": words.effect_title(effect)})
    for child in state.open_children:
        said.append(_("%(run)s, which this run started, keeps its own constraints.") % {"run": child.run})
    return [*said, _("This run does not go on: it can be restarted without the constraint, or cancelled.")]


def _stays(state: s.RunState, constraint: s.Constraint) -> Iterator[str]:
    number = sum(x.status is s.EffectStatus.CONFIRMED for x in state.effects.values()) + len(state.inherited)
    text = ngettext("%(number)d effect that stands.", "%(number)d effects that stand.", number)
    yield text % {"number": number} if number else _("Nothing was done yet that could stand.")
    others = [name_of(c) for c in state.constraints if c.stands and c.number != constraint.number]
    if others:
        yield _("The other constraints: %(names)s.") % {"names": words.joined(others)}


def _next(state: s.RunState, constraint: s.Constraint, reader: Reader) -> str:
    """What the next safe action is now, and what it would be."""
    by = person_actor(reader.person)
    try:
        events = decide.withdrawn_here(state, constraint.number, why="", by=by)
    except (Refused, LookupError):
        return ""
    then = ledger.foreseen(state, events, actor=by, now=reader.now)
    was, now = (next_action.shown(x, reader.mine)["do"] for x in (state, then))
    if was == now:
        return _("“%(action)s”, as before.") % {"action": words.inside(was)}
    return _("from “%(was)s” to “%(now)s”") % {"was": words.inside(was), "now": words.inside(now)}


def counts(impact: constrained.Impact) -> str:
    """The exact numbers, in one sentence."""
    facts = {
        "runs": ngettext("%(number)d run", "%(number)d runs", impact.runs) % {"number": impact.runs},
        "plans": ngettext("%(number)d plan", "%(number)d plans", impact.plans) % {"number": impact.plans},
        "pending": ngettext("%(number)d request", "%(number)d requests", impact.pending)
        % {"number": impact.pending},
        "valid": ngettext("%(number)d approval", "%(number)d approvals", impact.valid)
        % {"number": impact.valid},
    }
    return _("%(runs)s, %(plans)s, %(pending)s for approval and %(valid)s lose their validity.") % facts


def everywhere(
    statement: Statement, impact: constrained.Impact, person: User, *, page: int = 1, url: str = ""
) -> Context:
    """The list of what ends everywhere: `parts/rests.html`."""
    pages = max(1, -(-impact.runs // LINES))
    page = min(max(page, 1), pages)
    rows = constrained.rests(
        tenant_id=statement.tenant_id, ref=statement.ref, most=LINES, skip=LINES * (page - 1)
    )
    seen = set(visible_runs(person).filter(pk__in=[x.run for x in rows]).values_list("pk", flat=True))
    return {
        "text": counts(impact),
        "rows": [_rest(x, visible=x.run in seen) for x in rows],
        "paging": paging(page, pages, lambda n: f"{url}?page={n}") if pages > 1 else None,
    }


def _rest(rest: constrained.Rest, *, visible: bool) -> Context:
    facts = {"plan": rest.plan}
    match rest.plan, rest.request:
        case None, _request:
            said = _("no plan in force")
        case _plan, "valid":
            said = _("plan v%(plan)d and its approval") % facts
        case _plan, "pending":
            said = _("plan v%(plan)d and the request to approve it") % facts
        case _:
            said = _("plan v%(plan)d") % facts
    return {
        "id": rest.run, "state": rest.state, "what": said, "name": f"C-{rest.number}",
        "title": rest.goal if visible else "", "url": reverse("run", args=[rest.run]) if visible else "",
    }  # fmt: skip


def _denied(person: User, statement: Statement) -> bool:
    return why_not(person, Right.REVOKE_CONSTRAINTS, place_of(statement)) is not None


def _why_not_everywhere(person: User, statement: Statement | None, constraint: s.Constraint) -> str:
    """Why this person cannot end it at its source from here; empty where they can."""
    if statement is None:
        facts = {"source": constraint.term.source_ref}
        return _("its source, %(source)s, is not held in this console: change it there.") % facts
    if statement.withdrawn:
        return _("it is withdrawn at its source already.")
    if not _denied(person, statement):
        return ""
    people: Sequence[User] = holders(Right.REVOKE_CONSTRAINTS, place_of(statement))
    return who.why_not(person, Right.REVOKE_CONSTRAINTS, people)
