"""state + what was asked + facts -> the events that follow, or a refusal. Pure: `now` is an argument."""

from __future__ import annotations

from runs.machine.decide.artifacts import kept, kept_result
from runs.machine.decide.common import (
    FAILURES_BEFORE_HUMAN,
    READS_IN_A_ROW,
    Events,
    attempt_failed,
    finished,
    history,
    human,
)
from runs.machine.decide.evidence import ambiguous, asked, asked_by_person, executed, refused_call
from runs.machine.decide.findings import done_again, findings, findings_needed, found, inherited_lost
from runs.machine.decide.held import Holder, occupied
from runs.machine.decide.people import (
    ConclusionRefused,
    attestations_needed,
    attested,
    concluded,
    conclusion_conditions,
    decided,
    restarted,
    unserved,
)
from runs.machine.decide.plans import (
    Requirement,
    conditions,
    constraints_digest,
    expired,
    plan_document,
    proposal_refused,
    proposed,
    read,
    requested,
)
from runs.machine.decide.revalidation import REPLANS_IN_A_ROW, causes, revalidated
from runs.machine.decide.sends import dispatched, found_open, next_send, resend_unknown
from runs.machine.decide.undoing import (
    begin_cancel,
    cancel,
    compensated,
    end,
    finish_cancel,
    keys_to_go_on,
    rounds_to_go_on,
    standing,
)
from runs.machine.decide.versions import cannot_move, ended_by, moved, other_parts
from runs.machine.decide.waiting import begin_wait, child_moved, latest_children, signalled, wait_over

__all__ = [
    "FAILURES_BEFORE_HUMAN",
    "READS_IN_A_ROW",
    "REPLANS_IN_A_ROW",
    "ConclusionRefused",
    "Events",
    "Holder",
    "Requirement",
    "ambiguous",
    "asked",
    "asked_by_person",
    "attempt_failed",
    "attestations_needed",
    "attested",
    "begin_cancel",
    "begin_wait",
    "cancel",
    "cannot_move",
    "causes",
    "child_moved",
    "compensated",
    "concluded",
    "conclusion_conditions",
    "conditions",
    "constraints_digest",
    "decided",
    "dispatched",
    "done_again",
    "end",
    "ended_by",
    "executed",
    "expired",
    "findings",
    "findings_needed",
    "finish_cancel",
    "finished",
    "found",
    "found_open",
    "history",
    "human",
    "inherited_lost",
    "kept",
    "kept_result",
    "keys_to_go_on",
    "latest_children",
    "moved",
    "next_send",
    "occupied",
    "other_parts",
    "plan_document",
    "proposal_refused",
    "proposed",
    "read",
    "refused_call",
    "requested",
    "resend_unknown",
    "restarted",
    "revalidated",
    "rounds_to_go_on",
    "signalled",
    "standing",
    "unserved",
    "wait_over",
]
