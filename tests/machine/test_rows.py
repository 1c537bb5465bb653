"""Which columns the rows beside the log have: where that changes, the rows of open runs are another version's."""

from __future__ import annotations

from msgspec.structs import replace

from runs.machine import projection
from runs.machine import state as s
from runs.machine.waits import Child
from tests.machine.lives import LIVES, T0

KEPT = {
    "1.1": {
        "run": "agent_version before cancel_requested direction goal goal_version grant_id plan_version reasons since "
        "state wake_at",
        "effects": "arguments_digest cost grant_id intent_seq key lineage number operation_id receipt_seq reference "
        "reversible round run_id send_seq status step system tenant_id title tool undoes_effect undoes_run",
        "plans": "by_policy constraints_digest digest goal_version irreversible policy_version run_id seq steps "
        "tenant_id version voided_seq",
        "constraints": "number run_id seq source_kind source_ref source_version tenant_id text",
        "obligations": "discharged_seq due_at handed_over number opened_seq run_id tenant_id text",
        "observations": "expires_at number observed_at resource run_id seq tenant_id tool version",
        "waits": "began_seq ended_seq kind run_id signal step tenant_id until",
        "children": "child_id ended_seq name run_id seq step tenant_id",
    },
}
KEPT["1.2"] = KEPT["1.1"] | {
    "constraints": "amended_version name number predicate run_id seq source_kind source_ref source_version tenant_id "
    "text withdrawn_seq",
}


KEPT["1.3"] = KEPT["1.2"] | {
    "obligations": "discharged_seq due_at handed_over number opened_seq overdue_seq owner owner_name run_id tenant_id "
    "text to_whom",
    "assumptions": "broken_by broken_seq constraints number observations plan_version run_id tenant_id text",
}


def test_other_columns_are_another_version() -> None:
    """Raise projection.VERSION and add its columns: else open runs of the release before are taken for damaged."""
    found: dict[str, set[str]] = {}
    owing = replace(
        LIVES[s.State.EXECUTING]().state,
        obligations=(s.Obligation(number=1, text="", by="", opened_seq=1, opened_at=T0, due_at=None),),
        children={"c": Child(run="run_C", name="", step="", agent="", goal="", budget=None, seq=1)},
    )
    plan = owing.plans[-1]
    assumes = replace(plan.plan, assumptions=(s.PlanAssumption(text="", rests_on=()),))
    owing = replace(owing, plans=(replace(plan, plan=assumes),))
    for state in (owing, *(life().state for life in LIVES.values())):
        found.setdefault("run", set()).update(projection.run_row(state))
        for name, rows in projection.changes(None, state).items():
            found.setdefault(name, set()).update(*rows)
    assert {name: " ".join(sorted(columns)) for name, columns in found.items()} == KEPT[projection.PROJECTED]
