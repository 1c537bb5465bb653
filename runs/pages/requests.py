"""Approval requests and what was decided on them, with why one is void."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import User
from runs.machine import proposals
from runs.machine import state as s
from runs.pages import words

VERDICTS = {
    "approve": lambda: _("approved"),
    "reject": lambda: _("rejected"),
    "ask": lambda: _("asked for changes"),
    "take_back": lambda: _("took the approval back"),
}


def rows(state: s.RunState) -> list[dict[str, Any]]:
    """The `approvals` of parts/approvals.html, newest first."""
    return [_row(request) for request in reversed(state.requests)]


def _row(request: s.Request) -> dict[str, Any]:
    return {
        "plan_version": request.version,
        "digest": request.digest,
        "state": request.status.value,
        "at": request.at,
        "expires_at": request.expires_at,
        "decisions": [
            {"name": d.name, "verdict": verdict(d.verdict), "reason": d.reason, "at": d.at}
            for d in request.decisions
        ],
        "causes": _causes(request),
    }


def mine(state: s.RunState, person: User, version: int | None = None) -> s.Decision | None:
    """This person's approval that stands, or counts towards one, and can be taken back; None where there is none."""
    request = state.request
    if request is None or request.status not in s.OPEN_REQUEST or version not in (None, request.version):
        return None
    given = (d for d in request.decisions if d.verdict == "approve" and d.person == str(person.pk))
    return next(given, None)


def take_back_address(state: s.RunState, version: int) -> str:
    """Where it is taken back."""
    return reverse("plan-take-back", args=[state.identity.run, version])


def verdict(code: str) -> str:
    """A verdict as a verb in the past."""
    say = VERDICTS.get(code)
    return say() if say else code


def proposed(state: s.RunState, plan: s.PlanVersion) -> list[dict[str, Any]]:
    """The `proposed` of parts/proposed.html: what was asked for before the version, and what the agent says of it."""
    return [
        {
            "name": asked.name,
            "at": asked.at,
            "version": asked.version,
            "text": asked.text,
            "says": _("This version keeps to it.")
            if asked.number in plan.takes
            else _("Nothing: it does not say that this version keeps to it."),
        }
        for asked in proposals.before(state, plan)
    ]


def _causes(request: s.Request) -> list[str]:
    """When and why it lost its validity."""
    if request.closed_at is None or not request.causes:
        return []
    facts = {"at": words.clock(request.closed_at), "seq": request.closed_seq}
    first = _("No longer valid since %(at)s (event %(seq)d).") % facts
    return [first, *(words.cause(c) for c in request.causes)]
