"""One event of every type, with every field filled."""

from __future__ import annotations

from datetime import timedelta

from runs.machine import checkpoint, checkpointing
from runs.machine import events as e
from runs.machine.canonical import digest
from runs.machine.decide import plan_document
from runs.machine.specimens import specimen
from runs.machine.state import State
from tests.machine.lives import CHECKS, SENDER, T0, TERMS, plan_of, planning

_plan = plan_document(plan_of(planning().state))
_digest = digest("plan", _plan)
_causes = (e.Cause(what="resources", subject="order:7", was="v1", now="v2"),)
_match = e.MatchFound(
    reference="ref-1", operation_id="pay:7", key=None, account="acct", final=True, reversed=False,
    arguments=e.raw('{"order":"7"}'),
)  # fmt: skip

_kept = checkpoint.text_of(
    checkpointing.document(specimen(State.UNKNOWN), head="ab" * 32, schema=1, evidence={}, started={})
)
_term = e.Term(
    text="y",
    source_kind="policy",
    source_ref="held/R",
    source_version="2",
    name="n",
    predicate="step.cost < 5",
)
_lent = e.Lent(
    grant="8f14e45f-0000-4000-8000-000000000001", principal="p", name="Olga", scopes=("pay", "runs"),
    expires_at=T0, budget="20.00", bound=True,
)  # fmt: skip

_olga = e.Actor(e.ActorKind.PERSON, "p", "Olga")
_ALL: tuple[e.Event, ...] = (
    e.RunStarted(
        run="run_A", tenant="t", agent="payer", agent_version="1", goal="Zahle “42” \U0001f4b6 e\u0301\u0000",
        input=e.raw('{"n":0.1}'), creator="p", principal="p", lineage="run_A", start_key="k",
        constraints=(e.Term(text="x", source_kind="policy", source_ref="r", source_version="1"),), deadline=T0,
        keys={"bank pay:7": "0" * 64}, code={"policy": "1", "tool:pay": "c"},
        goal_taken=e.GoalTaken(
            run="run_0", version=2, author=e.Actor(e.ActorKind.PERSON, "p", "Kim"), at=T0, reason="less"
        ),
        lent=_lent,
    ),
    e.ObservationRecorded(
        tool="look_up", arguments=e.raw("{}"), value=e.raw("[1]"), resource="order:7", version="v1", observed_at=T0,
        half_life=timedelta(minutes=10, microseconds=1),
    ),
    e.AttemptFailed(what="planner", detail="no", retry_at=T0),
    e.ProposalRefused(problems=("a", "b")),
    e.PlanProposed(version=1, document=e.raw(_plan), digest=_digest, claim="fine"),
    e.ApprovalRequested(
        request="r", version=1, digest=_digest, conditions=e.raw("{}"), conditions_digest="d", needed=2,
        right="approve_plans", policy_version="1", expires_at=T0, excluded={"p": "principal"},
        announce_at=T0, unpassed=(e.Unpassed(name="limit", kind="hard", sentence="At most 10."),),
    ),
    e.PlanApprovedByPolicy(version=1, digest=_digest, policy_version="1"),
    e.ApprovalGiven(request="r", version=1, digest=_digest, person="p", submission="s", reason="yes"),
    e.PlanApproved(request="r", version=1, digest=_digest),
    e.PlanRejected(request="r", version=1, digest=_digest, person="p", submission="s", reason="no"),
    e.ChangesAsked(request="r", version=1, digest=_digest, person="p", submission="s", reason="less"),
    e.ApprovalTakenBack(request="r", version=1, digest=_digest, person="p", submission="s", reason="wrong order"),
    e.ApprovalVoided(request="r", version=1, causes=_causes),
    e.ExpiryAnnounced(request="r", version=1, expires_at=T0),
    e.ApprovalExpired(request="r", version=1),
    e.PlanVoided(version=1, causes=_causes),
    e.RevalidationPassed(checks=CHECKS),
    e.RevalidationRefused(checks=(e.Check(name="log", passed=False, was="a", now="b", unread=True),)),
    e.EffectIntended(
        effect=1, step="pay:7", tool="pay", system="bank", account="acct", operation_id="pay:7", key="0" * 64,
        round=0, arguments=e.raw('{"amount":"10.00"}'), arguments_digest="d", plan_version=1, terms=TERMS,
        sender=SENDER, grant="g",
    ),
    e.EffectSent(effect=1, sender=SENDER, grant="g"),
    e.EffectDispatched(effect=1),
    e.EffectUnsent(effect=1),
    e.EffectAnswered(step="pay:7", effect=1, plan_version=1),
    e.RunTakenIn(
        run="run_0", tenant="t", principal="p", seq=7, head="ab" * 32, digest=checkpoint.digest_of(_kept),
        checkpoint=e.raw(_kept),
    ),
    e.OutcomeUnknown(effect=1, detail="timed out", evidence=e.raw("null")),
    e.ReceiptStored(
        effect=1, executed=True, reference="ref-1", evidence=e.raw("{}"), source="query", detail="d",
        failed="another amount", asked=3, versions={"order:7": "v2"},
        promises=(e.Promised(text="send the slip", to="Acme", due=timedelta(days=3)),),
    ),
    e.EffectQueried(
        effect=1, failure=None, matches=(_match,), account="acct", evidence=e.raw("[]"), boot="b",
        uptime=timedelta(days=400), next_at=T0,
    ),
    e.EffectReconciled(effect=1, happened=True, asked=3, reference="ref-1", note="seen"),
    e.EvidenceKept(
        effect=1, executed=None, reference="", evidence=e.raw("{}"), source="call", contradicts=False
    ),
    e.ArtifactKept(
        artifact="sha256:" + "0" * 64, name="Beleg “7”.pdf", kind="file", media_type="application/pdf", size=5,
        about="E-1",
    ),
    e.ContradictionStated(
        effect=1, evidence=7, finding="happened", reference="slip 7", how="I called the bank", person="p"
    ),
    e.ContradictionSettled(
        effect=1, evidence=7, finding="happened_twice", reference="slip 7", settles=(7, 8), owes="undo it"
    ),
    e.InheritedLost(run="run_B", effect=1, operation="bank pay:7", round=0, steps=("pay:7",)),
    e.HumanNeeded(reasons=(e.Reason(code="tool_failed", subject="E-1", evidence="no"),)),
    e.RunResumed(decision="retry", note="", raised=("pay:7",)),
    e.VersionMoved(was="1", now="2", code={"policy": "2", "tool:pay": "d"}, note="1 is gone", voids=_causes),
    e.GoalRevised(version=2, text="Pay order 7, 至多 50.00", reason="the order was cut"),
    e.ReplanOrdered(note="smaller"),
    e.CancelRequested(note="not needed", undo=True, owner=_olga),
    e.EffectCompensated(effect=1, by_run="run_B", by_effect=2),
    e.PlanCarriedOut(version=1),
    e.WaitBegan(
        step="rest", kind="signal", digest="d", signal="answer", length=timedelta(days=3), until=T0
    ),
    e.WaitEnded(step="rest", signal="s-1"),
    e.SignalReceived(id="s-1", name="answer", payload=e.raw('{"yes":true}')),
    e.ChildStarted(
        run="run_C", step="ask", name="one", agent="payer", agent_version="1", goal="Pay", input=e.raw("{}"),
        budget="10.00",
    ),
    e.ChildReplaced(run="run_C", successor="run_D"),
    e.ChildEnded(
        run="run_D", ended="succeeded", spent="10.00", rounds={"bank pay:7": 1}, keys={"bank pay:7": "0" * 64},
        standing=(
            e.Inherited(
                run="run_D", effect=1, step="pay:7", tool="pay", system="bank", operation_id="pay:7",
                arguments=e.raw("{}"), arguments_digest="d", reference="ref-1", title="pay", round=1, seq=9,
            ),
        ),
    ),
    e.CancelBegan(),
    e.StepAnswered(step="pay:1", run="run_B", effect=1, reference="ref-1", plan_version=1),
    e.EffectAttested(effect=1, happened=True, reference="bank slip 7", how="I called the bank", person="p"),
    e.AttestationAccepted(effect=1, happened=True, reference="bank slip 7"),
    e.ChecksMade(checks=CHECKS),
    e.AuthorityLent(lent=_lent, was="g", note="as agreed", budget="20.00"),
    e.ProjectionRebuilt(was="1.1", now="1.2"),
    e.HistoryChanged(was="7/1/0", now="7/2/0"),
    e.ConstraintAccepted(number=2, term=_term, reason="one more limit"),
    e.ConstraintConfirmed(number=2, note="it stands in the contract"),
    e.ConstraintWithdrawn(number=1, why="not needed", by=e.Actor(e.ActorKind.PERSON, "p", "Kim"), here=True),
    e.ConstraintAmended(number=1, term=_term, why="narrower", by=e.Actor(e.ActorKind.PERSON, "p", "Kim")),
    e.AmendmentAccepted(number=1, term=_term, reason="it is fine for this run"),
    e.RunRestarted(successor="run_C", note="the constraint is gone"),
    e.RunCancelled(obligations=(1, 2), owner=_olga),
    e.ObligationOpened(text="Tell 供应商", to="Acme", owner=_olga, due_at=T0, by="pay:7"),
    e.ObligationAttested(obligation=1, how="I called them", reference="ticket 7", person="p"),
    e.ObligationHandedOn(obligation=1, owner=_olga, note="on leave"),
    e.ObligationOverdue(obligation=1, due_at=T0),
    e.ObservationReread(
        tool="look_up", arguments=e.raw("{}"), value=e.raw("[2]"), resource="order:7", version="v2", observed_at=T0,
        half_life=timedelta(minutes=10),
    ),
    e.RunSucceeded(),
)  # fmt: skip
SAMPLES: dict[type[e.Event], e.Event] = {type(event): event for event in _ALL}
