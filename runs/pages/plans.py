"""Plan versions: their steps, what changed from a base, and what became of them."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from runs.machine import state as s
from runs.pages import late, undo, waiting_steps, words

Row = dict[str, Any]


def base_of(state: s.RunState, plan: s.PlanVersion) -> s.PlanVersion | None:
    """What a version is compared with: the last approved one before it, else the one before it.

    One that undoes is compared with others that undo: it has no step in common with what it undoes.
    """
    before = [p for p in state.plans if p.version < plan.version and p.plan.undo is plan.plan.undo]
    approved = [p for p in before if p.by_policy or _approved(state, p)]
    found = approved or before
    return found[-1] if found else None


def _approved(state: s.RunState, plan: s.PlanVersion) -> bool:
    kept = (s.RequestStatus.VALID, s.RequestStatus.CONSUMED)
    return any(r.version == plan.version and r.status in kept for r in state.requests)


def version_of(state: s.RunState, number: int) -> s.PlanVersion | None:
    """The stored version of this number."""
    return next((p for p in state.plans if p.version == number), None)


def steps(state: s.RunState, plan: s.PlanVersion, base: s.PlanVersion | None) -> list[Row]:
    """Every step of the version (parts/plan_steps.html), with what changed from the base and what is gone."""
    old = {step.name: step for step in base.plan.steps} if base else {}
    rows = [_step(state, plan, n, step, old.get(step.name)) for n, step in enumerate(plan.plan.steps, 1)]
    if base is None:
        return rows
    names = {step.name for step in plan.plan.steps}
    gone = [step for name, step in old.items() if name not in names]
    return rows + [{**_facts(state, "–", step), "change": "removed", "diffs": []} for step in gone]


def _step(
    state: s.RunState, plan: s.PlanVersion, number: int, step: s.PlanStep, old: s.PlanStep | None
) -> Row:
    diffs = differences(late.arguments(old), late.arguments(step)) if old else []
    change = "added" if old is None else "changed" if diffs or _other_kind(old, step) else "same"
    return {
        **_facts(state, str(number), step),
        "change": change,
        "diffs": diffs,
        **_became(state, plan, step),
    }


def _other_kind(old: s.PlanStep, step: s.PlanStep) -> bool:
    """Whether a step of the same name does something else now: with another tool, for another effect, or by waiting."""
    return (old.tool, old.undoes, old.wait is None) != (step.tool, step.undoes, step.wait is None)


def _facts(state: s.RunState, number: str, step: s.PlanStep) -> Row:
    if step.wait is not None:
        return {
            "number": number,
            "title": waiting_steps.what_for(step.wait),
            "waits": True,
            "writes": False,
            "reversible": None,
        }
    return {
        "undoes": undo.undone_of(state, step.undoes) if step.undoes else "",
        "number": number,
        "title": step.title,
        "tool": step.tool,
        "system": step.system,
        "writes": True,
        "reversible": step.reversible,
        "undo": _("can be undone") if step.reversible else "",
    }


def differences(before: list[Row], after: list[Row]) -> list[Row]:
    """[{path, before, after}] of the arguments that differ, of rows as pages show them."""
    old, new = (
        {r["path"]: r["value"] + (f" ({r['note']})" if r.get("note") else "") for r in rows}
        for rows in (before, after)
    )
    paths = [*new, *(p for p in old if p not in new)]
    return [{"path": p, "before": old.get(p), "after": new.get(p)} for p in paths if old.get(p) != new.get(p)]


def _became(state: s.RunState, plan: s.PlanVersion, step: s.PlanStep) -> Row:
    if step.wait is not None:
        return {"state_note": _waited(state, step)} if plan is state.plan else {}
    effect = next((e for e in reversed(tuple(state.effects.values())) if e.step == step.name), None)
    if effect is None or (plan is not state.plan and effect.plan_version != plan.version):
        return {"state": "planned" if plan is state.plan and plan.voided_seq is None else ""}
    return {"state": effect.status.value, "state_note": f"E-{effect.number}"}


def _waited(state: s.RunState, step: s.PlanStep) -> str:
    known = state.waits.get(step.name)
    if step.name in state.done:
        return _("over")
    if known is None or known.ended_seq is not None:
        return ""
    return _("waits since %(at)s") % {"at": words.moment(known.began_at)}


def difference_sentence(rows: list[Row]) -> str:
    """The difference in one line; empty where there is none."""
    parts = []
    for row in rows:
        parts += [f"{d['path']} {d['before'] or '–'} → {d['after'] or '–'}" for d in row["diffs"]]
        if row["change"] in ("added", "removed"):
            name = _("added: %(title)s") if row["change"] == "added" else _("removed: %(title)s")
            parts.append(name % {"title": row["title"]})
    return words.clauses(parts)


def shown(state: s.RunState, *, may_review: bool) -> Row:
    """The plan part of runs/run.html: `plan`, `steps`, `base_label`, `claim`."""
    plan = state.plan
    if plan is None:
        return {"plan": None}
    base = base_of(state, plan)
    all_steps = steps(state, plan, base)
    changed = all_steps if base is None else [r for r in all_steps if r["change"] != "same"]
    url = reverse("plan", args=[state.identity.run, plan.version])
    found = {
        "version": plan.version,
        "digest": plan.digest,
        "url": url,
        "summary": summary(plan, base, all_steps),
        "unchanged": len(all_steps) - len(changed),
        "approved": became(state, plan),
    }
    if may_review and _waits(state, plan):
        found["review_url"] = f"{url}review/"
    return {"plan": found, "steps": changed, "base_label": label(base), "claim": plan.claim or None}


def _waits(state: s.RunState, plan: s.PlanVersion) -> bool:
    request = state.request
    return bool(request and request.status is s.RequestStatus.PENDING and request.version == plan.version)


def label(base: s.PlanVersion | None) -> str:
    """The base as a caption names it."""
    return f"v{base.version}" if base else ""


def summary(plan: s.PlanVersion, base: s.PlanVersion | None, rows: list[Row]) -> str:
    """The version and how much of it differs."""
    if base is None:
        return _("v%(version)d") % {"version": plan.version}
    facts = {
        "version": plan.version,
        "base": base.version,
        **{c: sum(r["change"] == c for r in rows) for c in ("added", "removed", "changed")},
    }
    text = _(
        "v%(version)d compared with v%(base)d: %(added)d added · %(removed)d removed · %(changed)d changed"
    )
    return text % facts


def became(state: s.RunState, plan: s.PlanVersion) -> str:
    """What became of the version, as a sentence."""
    if plan.voided_seq is not None:
        facts = {"seq": plan.voided_seq, "causes": " ".join(words.cause(c) for c in plan.voided)}
        return _("No longer valid since event %(seq)d. %(causes)s") % facts
    if state.outdated and plan is state.plan:
        facts = {"was": plan.plan.goal_version, "now": state.goal.version}
        text = _(
            "Made for goal v%(was)d; committed now is v%(now)d. Nothing more is sent on it, and it ends once what it "
            "began is settled."
        )
        return text % facts
    if plan.by_policy:
        return _("Approved by policy %(policy)s; nobody had to be asked.") % {
            "policy": plan.plan.policy_version
        }
    request = next((r for r in reversed(state.requests) if r.version == plan.version), None)
    return str(words.REQUESTS[request.status]) if request else ""
