"""One function per state change, called by pages, API, tasks and commands. Each writes its event in its
transaction.

A person's action takes the fence and the run's lock, reads, decides, appends. What it is compared with is
what it decides on (digest, effect, request); the run's bare seq never refuses it.
"""

from __future__ import annotations

from runs.actions.constraints import (
    ConstraintMoved,
    ConstraintNotManaged,
    ConstraintRefused,
    Stated,
    accept_amendment,
    add_constraint,
    amend_constraint,
    withdraw_constraint,
    withdraw_here,
)
from runs.actions.expiring import (
    lapsed_runs,
    overdue_runs,
    record_expiry,
    stop_unlent,
    unlent_runs,
    void_lapsed,
)
from runs.actions.files import attach_file
from runs.actions.findings import right_to_find, settle_contradiction
from runs.actions.frame import Done, locked, person_actor, repeated
from runs.actions.goals import REVISE, GoalRefused, ImpactMoved, refuse_words, revise_goal
from runs.actions.lending import GrantOver, ImpactChanged, check_now, end_grant, lend_all, lend_anew
from runs.actions.limiting import LimitMoved, confirm_constraint, limit_run
from runs.actions.marking import mark_constraints
from runs.actions.notes import NOTE, note_run
from runs.actions.obligations import (
    attest_obligation,
    hand_on_obligation,
    keepers,
    open_obligation,
    overdue_obligations,
    record_overdue,
)
from runs.actions.opening import opened_by, record_opened
from runs.actions.plans import NoPlanToDecide, NothingToChange, decide_plan, renew_request
from runs.actions.policies import (
    PolicyNotManaged,
    PolicyOutdated,
    add_policy,
    release_policy,
    void_outdated,
)
from runs.actions.reading import reread_observations
from runs.actions.relatives import tell_untold
from runs.actions.rereducing import rereduce_run
from runs.actions.starting import AlreadyStarted, new_run_id, restart_run, start_run
from runs.actions.steering import (
    attest_effect,
    cancel_run,
    conclude_effect,
    decide_run,
    end_run,
    record_answer,
    signal_run,
    stop_unserved,
)
from runs.actions.taking_back import take_back_approval
from runs.actions.taking_in import AgentMissing, AlreadyHere, take_in
from runs.actions.using import AgentNotConfiguredError, AgentStandsError, add_agent, title_agent, usable
from runs.actions.versions import Moved, MoveRefused, move_run, move_runs, moved_by
from runs.actions.working import (
    ASSIGNING,
    Worked,
    assign_run,
    assignable,
    claim_run,
    release_run,
    renew_seen,
)
from runs.actions.writing import subject_of, write

__all__ = [
    "ASSIGNING",
    "NOTE",
    "REVISE",
    "AgentMissing",
    "AgentNotConfiguredError",
    "AgentStandsError",
    "AlreadyHere",
    "AlreadyStarted",
    "ConstraintMoved",
    "ConstraintNotManaged",
    "ConstraintRefused",
    "Done",
    "GoalRefused",
    "GrantOver",
    "ImpactChanged",
    "ImpactMoved",
    "LimitMoved",
    "MoveRefused",
    "Moved",
    "NoPlanToDecide",
    "NothingToChange",
    "PolicyNotManaged",
    "PolicyOutdated",
    "Stated",
    "Worked",
    "accept_amendment",
    "add_agent",
    "add_constraint",
    "add_policy",
    "amend_constraint",
    "assign_run",
    "assignable",
    "attach_file",
    "attest_effect",
    "attest_obligation",
    "cancel_run",
    "check_now",
    "claim_run",
    "conclude_effect",
    "confirm_constraint",
    "decide_plan",
    "decide_run",
    "end_grant",
    "end_run",
    "hand_on_obligation",
    "keepers",
    "lapsed_runs",
    "lend_all",
    "lend_anew",
    "limit_run",
    "locked",
    "mark_constraints",
    "move_run",
    "move_runs",
    "moved_by",
    "new_run_id",
    "note_run",
    "open_obligation",
    "opened_by",
    "overdue_obligations",
    "overdue_runs",
    "person_actor",
    "record_answer",
    "record_expiry",
    "record_opened",
    "record_overdue",
    "refuse_words",
    "release_policy",
    "release_run",
    "renew_request",
    "renew_seen",
    "repeated",
    "reread_observations",
    "rereduce_run",
    "restart_run",
    "revise_goal",
    "right_to_find",
    "settle_contradiction",
    "signal_run",
    "start_run",
    "stop_unlent",
    "stop_unserved",
    "subject_of",
    "take_back_approval",
    "take_in",
    "tell_untold",
    "title_agent",
    "unlent_runs",
    "usable",
    "void_lapsed",
    "void_outdated",
    "withdraw_constraint",
    "withdraw_here",
    "write",
]
