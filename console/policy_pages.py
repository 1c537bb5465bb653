"""What the pages about policies show: rules in sentences, what counts since when, differences, and trying one out."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from difflib import SequenceMatcher
from typing import Any, Final

import msgspec
from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from approvals import held
from approvals.documents import Document, DocumentPolicy, Rule, rule_of
from approvals.expressions import NAMES
from approvals.models import PolicyRelease, PolicyVersion
from approvals.policy import (
    ApprovalRule,
    CheckKind,
    Party,
    Policy,
    Requirement,
    RulePolicy,
    Step,
    requirement,
)
from runs import agents, judging, tryout
from runs.contract import length
from runs.models import Agent, Run
from runs.pages import words

Context = dict[str, Any]
LONGEST_STEP: Final = 8000  #: characters of a step that is tried
PARTIES: Final[dict[Party, Promise]] = {
    Party.PRINCIPAL: gettext_lazy("the person on whose behalf the run acts"),
    Party.CREATOR: gettext_lazy("who started the run"),
    Party.PLAN_AUTHOR: gettext_lazy("who asked for the changes that the plan follows, or that it be undone"),
    Party.GOAL_REVISER: gettext_lazy("who revised the goal"),
    Party.CONSTRAINT_REVOKER: gettext_lazy("who revoked a constraint"),
    Party.OTHER_TENANT: gettext_lazy("members of another organisation too"),
}
#: What a new document begins with, where there is nothing to begin with: every plan takes one person.
SKELETON: Final = Document(rules=(Rule(name="every plan", when="true", not_by=(Party.PRINCIPAL,)),))


def own_policy(name: str) -> Policy | None:
    """The policy of the agent's own code: of its newest version that this console has."""
    code = agents.newest(name)
    return code.policy if code else None


def in_force(agent: Agent) -> Policy | None:
    """The policy that counts now; None: the code's, which this console does not have."""
    return held.in_force(tenant_id=agent.tenant_id, agent=agent.name, own=own_policy(agent.name))


def lines(policy: Policy | None) -> list[Context]:
    """A policy's rules and checks as sentences, each with its condition as it is typed."""
    match policy:
        case DocumentPolicy(document=document):
            rules = [{"text": _rule(rule_of(rule)), "code": rule.when} for rule in document.rules]
            return rules + [
                {"text": _check(c.name, c.kind, c.sentence), "code": c.must} for c in document.checks
            ]
        case RulePolicy(rules=rules):
            return [{"text": _rule(rule), "code": ""} for rule in rules]
        case None:
            return [
                {
                    "text": _("This console does not have the agent’s code, whose own policy counts."),
                    "code": "",
                }
            ]
        case held.Unreadable(why=why):
            told = _("It cannot be read by this version, so a person must approve every plan. %(why)s")
            return [{"text": told % {"why": why}, "code": ""}]
        case _:
            return [{"text": _("Its rules are code; each request names what it asks for."), "code": ""}]


def _rule(rule: ApprovalRule) -> str:
    stands = rule.stands_for or settings.HANDOFF_DURATIONS.approval_stands
    facts = {"name": rule.name, "number": rule.needed, "time": length(stands)}
    text = ngettext(
        "%(name)s: %(number)d approval, which stands for %(time)s.",
        "%(name)s: %(number)d approvals, which stand for %(time)s.",
        rule.needed,
    )
    said = [text % facts]
    if rule.groups:
        said.append(_("By members of: %(groups)s.") % {"groups": words.joined(list(rule.groups))})
    if rule.not_by:
        parties = words.joined([str(PARTIES[party]) for party in sorted(rule.not_by)])
        said.append(_("Not by: %(parties)s.") % {"parties": parties})
    return " ".join(said)


def _check(name: str, kind: CheckKind, sentence: str) -> str:
    facts = {"name": name, "must": words.ended(sentence)}
    if kind is CheckKind.HARD:
        return _("%(name)s: %(must)s A plan that fails it cannot be approved.") % facts
    return _("%(name)s: %(must)s A plan that fails it is approved only knowingly, with a reason.") % facts


def exported(policy: Policy | None) -> str:
    """A policy as the text that another version begins with. Conditions that are code cannot be: they are `true`."""
    match policy:
        case DocumentPolicy(text=text):
            return text
        case RulePolicy(rules=rules) if rules:
            made = tuple(
                Rule(
                    name=rule.name, when="true", needed=rule.needed, groups=rule.groups,
                    not_by=tuple(sorted(rule.not_by)), stands_for=_length(rule.stands_for),
                )
                for rule in rules
            )  # fmt: skip
            return written(Document(rules=made))
        case _:
            return written(SKELETON)


def _length(stands: timedelta | None) -> str:
    return f"{int(stands.total_seconds() // 60)}m" if stands and stands >= timedelta(minutes=1) else ""


def written(document: Document) -> str:
    """A document as it is typed."""
    return json.dumps(msgspec.to_builtins(document), ensure_ascii=False, indent=2)


def loses_code(policy: Policy | None) -> bool:
    """Whether the text that a new version begins with lacks conditions that are code."""
    return isinstance(policy, RulePolicy) and bool(policy.rules)


def history(agent: Agent) -> tuple[list[Context], list[Context]]:
    """Every version, the newest first; and every release, the latest first."""
    releases = list(held.releases(tenant_id=agent.tenant_id, agent=agent.name))
    current = releases[0].number if releases else None
    versions = [_version(v, current) for v in held.versions(tenant_id=agent.tenant_id, agent=agent.name)]
    return versions, [_release(release, n == 0) for n, release in enumerate(releases)]


def _version(version: PolicyVersion, current: int | None) -> Context:
    return {
        "number": version.number, "name": version.name, "author": version.author.shown_name, "at": version.at,
        "reason": version.reason, "digest": version.digest, "current": version.number == current,
    }  # fmt: skip


def _release(release: PolicyRelease, latest: bool) -> Context:
    what = (
        _("version %(number)d") % {"number": release.number}
        if release.number
        else _("the agent’s own policy")
    )
    return {
        "what": what, "number": release.number, "by": release.by.shown_name, "at": release.at,
        "reason": release.reason, "current": latest,
    }  # fmt: skip


def difference(before: str, after: str) -> list[Context]:
    """The lines of two texts: those that are gone, new or the same; in a line that replaces another, its new words."""
    old, new, rows = before.splitlines(), after.splitlines(), list[Context]()
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            rows += [{"change": "same", "pieces": [{"text": line, "changed": False}]} for line in new[c:d]]
            continue
        paired = min(b - a, d - c)
        rows += [_line("removed", old[a + n], new[c + n] if n < paired else None) for n in range(b - a)]
        rows += [_line("added", new[c + n], old[a + n] if n < paired else None) for n in range(d - c)]
    return rows


def _line(change: str, line: str, other: str | None) -> Context:
    if other is None:
        return {"change": change, "pieces": [{"text": line, "changed": True}]}
    mine, theirs = line.split(" "), other.split(" ")
    pieces = []
    for tag, a, b, _c, _d in SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes():
        if b > a:
            pieces.append({"text": " ".join(mine[a:b]) + " " * (b < len(mine)), "changed": tag != "equal"})
    return {"change": change, "pieces": pieces}


def asks(asked: Requirement) -> str:
    """What a policy asks for a plan, in one line."""
    if asked.needed == 0:
        return _("nobody")
    text = ngettext("%(number)d person", "%(number)d people", asked.needed) % {"number": asked.needed}
    said = [text, *(_("%(number)d from %(groups)s") % _quorum(q) for q in asked.quorums)]
    said += [_("check fails: %(name)s") % {"name": check.name} for check in asked.failed]
    if asked.failure:
        said.append(_("a rule fails"))
    return words.clauses(said)


def _quorum(quorum: Any) -> dict[str, object]:
    return {"number": quorum.needed, "groups": words.joined(list(quorum.groups))}


def tried(agent: Agent, then: Policy, titles: dict[str, Run]) -> Context:
    """The policy on past plans, beside the one in force. `titles` are the runs that the reader may see."""
    today = in_force(agent)
    found = tryout.tried(agent, today=today, then=then) if today else []
    other = [t for t in found if t.differs]
    facts = {
        "number": len(found), "then": sum(t.then.needed > 0 for t in found),
        "today": sum(t.today.needed > 0 for t in found),
    }  # fmt: skip
    text = _(
        "Of the last %(number)d plans it would have asked people for %(then)d; the one in force asks for %(today)d."
    )
    return {
        "text": text % facts if found else _("There is no past plan to try it on."),
        "refused": _refused(found),
        "differs": [_differs(t, titles[t.run]) for t in other if t.run in titles],
        "hidden": sum(t.run not in titles for t in other),
    }


def _refused(found: list[tryout.Tried]) -> str:
    """How many of the plans its limit would refuse as they are proposed; empty where neither policy refuses any."""
    then, today = sum(t.refused_then for t in found), sum(t.refused_today for t in found)
    if not (then or today):
        return ""
    text = ngettext(
        "It would refuse %(then)d plan for too many changes that cannot be undone; the one in force refuses "
        "%(today)d.",
        "It would refuse %(then)d plans for too many changes that cannot be undone; the one in force refuses "
        "%(today)d.",
        then,
    )
    return text % {"then": then, "today": today}


def _differs(found: tryout.Tried, run: Run) -> Context:
    return {
        "run": found.run, "title": run.goal, "version": found.version,
        "today": _or_refused(found.today, found.refused_today),
        "then": _or_refused(found.then, found.refused_then),
    }  # fmt: skip


def _or_refused(asked: Requirement, refused: bool) -> str:
    return _("refused: the agent has to split it") if refused else asks(asked)


class StepWrong(ValueError):
    """The text is no step that a policy could be tried on; says why."""


def step_of(text: str, agent: str) -> Step:
    """A step as a person writes one: {"tool", "arguments", "cost", "reversible", …}. Raises StepWrong."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StepWrong(_("This is no JSON: %(why)s.") % {"why": words.inside(error)}) from None
    if not isinstance(value, dict) or not isinstance(value.get("tool"), str):
        raise StepWrong(_('A step is an object with a tool: {"tool": "pay", "arguments": {}}.'))
    arguments, cost = value.get("arguments", {}), value.get("cost")
    if not isinstance(arguments, dict) or not isinstance(value.get("reversible", False), bool):
        raise StepWrong(_("“arguments” is an object, and “reversible” is true or false."))
    try:
        amount = None if cost is None else Decimal(str(cost))
    except InvalidOperation:
        raise StepWrong(_('“cost” is an amount, such as "100.00".')) from None
    return Step(
        tool=value["tool"], arguments=arguments, cost=amount, reversible=value.get("reversible", False),
        tenant=str(value.get("tenant", "")), agent=agent, principal=str(value.get("principal", "")),
    )  # fmt: skip


def step_tried(policy: Policy, step: Step) -> Context:
    """What the policy says of one step: which rules apply, which checks fail, and what is asked."""
    asked = requirement(policy=policy, steps=[step])
    found: Context = {"asks": asks(asked), "failure": asked.failure, "rules": [], "checks": []}
    if isinstance(policy, DocumentPolicy):
        rules, _failed = policy.judged([step])
        failing = {check.name: check for check in asked.failed}
        found["rules"] = [
            {"name": r.rule.name, "code": r.rule.when, "applies": r.applies, "failure": r.failure}
            for r in rules
        ]
        found["checks"] = [
            {
                "name": c.name,
                "code": c.must,
                "passed": c.name not in failing,
                "failure": _why(failing.get(c.name)),
            }
            for c in policy.document.checks
        ]
    return found


def _why(failed: Any) -> str:
    return failed.failure if failed else ""


def names() -> list[Context]:
    """What an expression may name."""
    return [{"name": name, "text": text} for name, text in NAMES.items()]


def example(agent: Agent) -> str:
    """A step to begin with: the first of the agent's latest plan, without its values."""
    for _run, plan, about in tryout.past_plans(agent):
        for step in judging.judged_steps(plan, about):
            blank = dict.fromkeys(step.arguments, "")
            shown = {"tool": step.tool, "arguments": blank, "cost": None, "reversible": step.reversible}
            return json.dumps(shown, ensure_ascii=False, indent=2)
    return '{"tool": "", "arguments": {}, "cost": null, "reversible": false}'
