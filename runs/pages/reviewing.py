"""The review page: exactly what will be executed, from the stored document that the digest is of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.rights import Right
from approvals.policy import CheckKind
from runs import planning
from runs.agents import Agent
from runs.machine import decide
from runs.machine import state as s
from runs.machine.canonical import round_suffix
from runs.machine.hidden import hides
from runs.models import Run
from runs.pages import late, next_action, plans, requests, undo, waiting_steps, words
from runs.pages.checks import blocked, checks, met_by
from runs.pages.run_page import Reader, heading
from runs.pages.who import rule_against, why_not, why_not_decide

Context = dict[str, Any]


def context(run: Run, state: s.RunState, plan: s.PlanVersion, reader: Reader, agent: Agent | None) -> Context:
    """All of runs/review.html but what a sent form adds."""
    request = latest_request(state, plan)
    made = checks(state, plan, request, agent, reader)
    found: Context = {
        "run": heading(run, state),
        "plan": _plan(state, plan),
        "checks": made,
        "claim": plan.claim or None,
        "proposed": requests.proposed(state, plan),
        "covers": _covers(plan),
        "conditions": request.conditions_digest if request else "",
        "blocked": blocked(made),
        "asked_by": asked_by(*reader.judged(state, plan), agent),
        "overrides": _overrides(*reader.judged(state, plan), agent),
        "phrase": phrase(state, plan),
        "undo": plan.plan.undo,
        "take_back_url": _take_back_url(state, plan, reader),
        **_texts(request, plan, _effects(covered(state, plan))),
        "values": {},
        "errors": [],
    }
    body = _to_decide(state, plan, request, reader) if is_open(request) else _over(state, plan)
    return found | body | _may(state, plan, request, reader) | _renewal(state, plan, request, reader)


def _renewal(state: s.RunState, plan: s.PlanVersion, request: s.Request | None, reader: Reader) -> Context:
    """That the time for deciding is over and nobody was asked again yet, and whether this person may do that."""
    if request is None or request.status is not s.RequestStatus.EXPIRED or request is not state.request:
        return {}
    if state.state is not s.State.WAITING_APPROVAL or plan is not state.plan:
        return {}
    mine = Right.OPERATE_RUNS in reader.mine or not _why_not(plan, request, reader)
    why = "" if mine else why_not(reader.person, Right.OPERATE_RUNS, reader.holders[Right.OPERATE_RUNS])
    return {"expired_at": request.expires_at, "may_renew": mine, "renew_why_not": why}


def _why_not(plan: s.PlanVersion, request: s.Request, reader: Reader) -> str:
    return why_not_decide(request, reader.person, reader.holders, hidden=hides(plan.plan))


def _take_back_url(state: s.RunState, plan: s.PlanVersion, reader: Reader) -> str:
    """Where this person takes their approval of the version back; empty where there is none to take back."""
    given = requests.mine(state, reader.person, plan.version)
    return requests.take_back_address(state, plan.version) if given else ""


def is_open(request: s.Request | None) -> bool:
    """Whether anybody may still decide."""
    return request is not None and request.status is s.RequestStatus.PENDING


def _to_decide(state: s.RunState, plan: s.PlanVersion, request: s.Request | None, reader: Reader) -> Context:
    """What approving would let happen, and until when."""
    assert request is not None
    mine = not _why_not(plan, request, reader)
    return {
        "reviewer": {"sentence": _reviewer(plan, request, reader)},
        "expires_at": request.expires_at,
        "summary": summary(state, plan, mine=mine),
        "changes": [change(state, plan, step) for step in covered(state, plan)],
        "left_out": left_out(state, plan),
        "before": next_action.lost_before(state) if request is state.request else "",
        "given": " ".join(filter(None, (given(state, request), _reset(state, request)))),
    }


def _over(state: s.RunState, plan: s.PlanVersion) -> Context:
    """The plan as it was decided about: every step, and nothing that speaks of a decision to come."""
    changes = [change(state, plan, step) | {"key_note": ""} for step in plan.plan.steps]
    return {"closed": True, "changes": changes, "left_out": []}


def latest_request(state: s.RunState, plan: s.PlanVersion) -> s.Request | None:
    """The newest request about this version."""
    return next((r for r in reversed(state.requests) if r.version == plan.version), None)


def covered(state: s.RunState, plan: s.PlanVersion) -> tuple[s.PlanStep, ...]:
    """The steps that approving would let happen: those whose effect does not stand already."""
    return tuple(step for step in plan.plan.steps if not _done(state, step))


def _done(state: s.RunState, step: s.PlanStep) -> str:
    """The effect that stands already for the step, of this run or of an earlier one of its lineage; else nothing."""
    held = state.standing(step.system, step.operation_id)
    if held and held.status is s.EffectStatus.CONFIRMED:
        return f"E-{held.number}"
    before = state.inherited_by(step.system, step.operation_id)
    return f"E-{before.effect} ({before.run})" if before else ""


def left_out(state: s.RunState, plan: s.PlanVersion) -> list[Context]:
    """The steps that nothing will be sent for, each with why."""
    found = []
    for step in plan.plan.steps:
        if held := _done(state, step):
            reason = _("It is done already: %(effect)s is confirmed and is never sent again.")
            found.append({"step": step.title, "reason": reason % {"effect": held}})
    return found


def change(state: s.RunState, plan: s.PlanVersion, step: s.PlanStep) -> Context:
    """One change with every argument as it will be sent, and its key; or a wait, which sends nothing."""
    if step.wait is not None:
        return waiting_steps.row(step, step.wait)
    round_ = state.round_of(step)
    key = decide.key_of(state, step)
    again = any(effect.key == key for effect in state.effects.values())
    note = _("the same as in an earlier attempt: a late arrival cannot double it") if again else ""
    return {
        "title": step.title,
        "step": step.name,
        "tool": step.tool,
        "system": step.system,
        "reversible": step.reversible,
        "undo": _("can be undone") if step.reversible else "",
        "arguments": late.arguments(step),
        "operation_id": round_suffix(step.operation_id, round_),
        "key": key,
        "key_note": note,
        "expects": [_expected(state, rest) for rest in step.rests_on],
        "if_fails": _("The run stops and is handed to a person."),
        "undoes": undo.undone_of(state, step.undoes) if step.undoes else "",
    }


def _expected(state: s.RunState, rest: s.PlanRest) -> Context:
    seen = state.observations.get((rest.tool, rest.arguments))
    return {
        "resource": rest.resource,
        "version": rest.version,
        "read_at": seen.observed_at if seen else None,
        "limit": seen.half_life if seen else None,
    }


def summary(state: s.RunState, plan: s.PlanVersion, *, mine: bool) -> str:
    """How many changes approving allows and how many of them cannot be undone; `mine`: the reader may approve."""
    steps = [step for step in covered(state, plan) if step.wait is None]
    runs = waiting_steps.starts(covered(state, plan))
    if not steps:
        return waiting_steps.nothing_but(runs)
    first = _allows(len(steps), mine=mine) % {"number": len(steps)}
    said = _("%(changes)s %(undo)s") % {"changes": first, "undo": _how_undone(plan, steps)}
    return " ".join(filter(None, (said, runs)))


def _how_undone(plan: s.PlanVersion, steps: Sequence[s.PlanStep]) -> str:
    if plan.plan.undo:
        return _("They undo what the run did, the latest first.")
    hard = sum(not step.reversible for step in steps)
    if not hard:
        return _("All of them can be undone.")
    text = ngettext("%(hard)d of them cannot be undone.", "%(hard)d of them cannot be undone.", hard)
    return text % {"hard": hard}


def _allows(number: int, *, mine: bool) -> str:
    if mine:
        return ngettext(
            "If you approve, the agent will be allowed to make exactly this %(number)d change.",
            "If you approve, the agent will be allowed to make exactly these %(number)d changes.",
            number,
        )
    return ngettext(
        "Approving it allows the agent to make exactly this %(number)d change.",
        "Approving it allows the agent to make exactly these %(number)d changes.",
        number,
    )


def phrase(state: s.RunState, plan: s.PlanVersion) -> str:
    """What an approver types: the phrases of the changes that cannot be undone, in their order."""
    return " ".join(step.phrase for step in covered(state, plan) if step.phrase)


def same_phrase(typed: str, phrase_: str) -> bool:
    """Whether what was typed is the phrase; case and spaces are forgiven."""
    return "".join(typed.split()).casefold() == "".join(phrase_.split()).casefold()


def _plan(state: s.RunState, plan: s.PlanVersion) -> Context:
    base = plans.base_of(state, plan)
    different = plans.difference_sentence(plans.steps(state, plan, base)) if base else ""
    url = reverse("plan", args=[state.identity.run, plan.version])
    return {"version": plan.version, "digest": plan.digest, "url": url, "differences": different or None}


def _reviewer(plan: s.PlanVersion, request: s.Request, reader: Reader) -> str:
    """What part the reader has; empty for one without the right, who is told that instead."""
    facts = {"name": reader.person.shown_name}
    if rule := rule_against(request, reader.person, reader.holders):
        facts["rule"] = str(words.RULES.get(rule, rule))
        return _("You are %(name)s. You have a part in this plan: %(rule)s.") % facts
    if _why_not(plan, request, reader):
        return ""
    return _("You are %(name)s. No rule of this plan’s policy excludes you.") % facts


def _covers(plan: s.PlanVersion) -> Context:
    document = plan.plan
    return {
        "policy_version": document.policy_version,
        "constraints_digest": document.constraints_digest,
        "goal_version": document.goal_version,
    }


def asked_by(state: s.RunState, plan: s.PlanVersion, agent: Agent | None) -> str:
    """The rules of the policy in force that ask for people's approval of this plan."""
    rules = planning.policy_if_known(state, agent)
    because = planning.asked_by(rules, state, plan.plan).because if rules else ()
    named = words.joined([f"“{name}”" for name in because])
    return _("The policy asks for it by: %(rules)s.") % {"rules": named} if because else ""


def _overrides(state: s.RunState, plan: s.PlanVersion, agent: Agent | None) -> list[Context]:
    """The soft checks that fail, each with what an approver ticks to approve all the same."""
    failed = (check for check in planning.unpassed(state, plan, agent) if check.kind == CheckKind.SOFT)
    return [
        {
            "name": check.name,
            "text": _("Approve although “%(name)s” fails: %(must)s")
            % {"name": check.name, "must": check.sentence},
        }
        for check in failed
    ]


def given(state: s.RunState, request: s.Request | None) -> str | None:
    """How many of the approvals that are needed are there, by whom, and how many from which groups."""
    if request is None:
        return None
    names = [d.name for d in request.decisions if d.verdict == "approve"]
    facts = {"given": len(names), "needed": request.needed, "names": words.joined(names)}
    if not names:
        text = ngettext("%(needed)d approval is needed.", "%(needed)d approvals are needed.", request.needed)
    else:
        text = _("%(given)d of %(needed)d approvals are given, for this digest: %(names)s.")
    return " ".join([text % facts, *_from_groups(state, request)])


def _from_groups(state: s.RunState, request: s.Request) -> list[str]:
    """How many of those who approved are in the groups that are asked for, now."""
    people = [UUID(d.person) for d in request.decisions if d.verdict == "approve"]
    said = []
    for left in met_by(state, request, people):
        groups = words.joined(list(left.quorum.groups))
        facts = {"given": left.given, "needed": left.quorum.needed, "groups": groups}
        said.append(_("From %(groups)s: %(given)d of %(needed)d.") % facts)
    return said


def _reset(state: s.RunState, request: s.Request) -> str:
    """That approvals of the request before do not count for this one; empty where there were none."""
    before = next((r for r in reversed(state.requests) if r.seq < request.seq), None)
    names = [d.name for d in before.decisions if d.verdict == "approve"] if before else []
    if before is None or not names or request.decisions or before.status is s.RequestStatus.CONSUMED:
        return ""
    facts = {
        "needed": request.needed, "number": len(names), "names": words.joined(names), "version": before.version,
    }  # fmt: skip
    if before.version == request.version:
        text = ngettext(
            "0 of %(needed)d: %(number)d approval was given for an earlier request about it (%(names)s).",
            "0 of %(needed)d: %(number)d approvals were given for an earlier request about it (%(names)s).",
            len(names),
        )
        return text % facts
    text = ngettext(
        "0 of %(needed)d: %(number)d approval was given for version %(version)d (%(names)s), which this replaces.",
        "0 of %(needed)d: %(number)d approvals were given for version %(version)d (%(names)s), which this replaces.",
        len(names),
    )
    return text % facts


def _effects(steps: Sequence[s.PlanStep]) -> int:
    return sum(step.wait is None for step in steps)


def _texts(request: s.Request | None, plan: s.PlanVersion, number: int) -> Context:
    facts = {
        "number": number,
        "until": words.clock(request.expires_at) if request else "",
    }
    approve = ngettext(
        "Approve this %(number)d change, once, until %(until)s.",
        "Approve these %(number)d changes, once, until %(until)s.",
        number,
    )
    return {
        "approve_text": approve % facts if number else _("Approve this plan, once, until %(until)s.") % facts,
        "reject_text": _reject_text(plan),
        "ask_text": _(
            "Ask for changes. The agent gets your text and makes another version, or hands the run to a person."
        ),
    }


def _reject_text(plan: s.PlanVersion) -> str:
    if plan.plan.undo:
        return _(
            "Reject. Nothing is undone by this plan. A person decides whether another is made or the run ends as it is."
        )
    return _("Reject. The run goes to “Needs a person”. Nothing is cancelled or undone.")


def _may(state: s.RunState, plan: s.PlanVersion, request: s.Request | None, reader: Reader) -> Context:
    """Whether there is a form: not where it is decided, nor for a person who may not."""
    if decided := decided_sentence(state, plan, request, reader):
        open_ = is_open(request)
        title = _("You decided already") if open_ else _("This plan cannot be decided any more")
        return {"decided": decided, "decided_title": title, "may_decide": False, "summary": ""}
    assert request is not None
    why = _why_not(plan, request, reader)
    return {"may_decide": not why, "why_not": why}


def decided_sentence(
    state: s.RunState, plan: s.PlanVersion, request: s.Request | None, reader: Reader
) -> str:
    """What became of the version, where nothing is left to decide for this person; empty where there is."""
    if request is None or not is_open(request):
        return _ended(state, plan, request)
    mine = [d for d in request.decisions if d.person == str(reader.person.pk)]
    if mine:
        return _("You decided already, at %(at)s: %(verdict)s. %(given)s") % {
            "at": words.clock(mine[-1].at),
            "verdict": requests.verdict(mine[-1].verdict),
            "given": given(state, request),
        }
    return ""


def _ended(state: s.RunState, plan: s.PlanVersion, request: s.Request | None) -> str:
    told = plans.became(state, plan)
    if request is None or not request.decisions:
        return " ".join(filter(None, (told, _closed_at(request))))
    return _("%(told)s %(by)s") % {"told": told, "by": decisions_sentence(request.decisions)}


def _closed_at(request: s.Request | None) -> str:
    unanswered = (s.RequestStatus.EXPIRED, s.RequestStatus.VOIDED)
    if request is None or request.closed_at is None or request.status not in unanswered:
        return ""
    return _("Nobody decided; the request was closed at %(at)s.") % {"at": words.clock(request.closed_at)}


def decisions_sentence(decisions: Sequence[s.Decision]) -> str:
    """Who decided what, when."""
    said = [
        _("%(name)s %(verdict)s it at %(at)s.")
        % {"name": d.name, "verdict": requests.verdict(d.verdict), "at": words.clock(d.at)}
        for d in decisions
    ]
    return " ".join(said)
