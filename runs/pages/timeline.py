"""One sentence per event: what happened, said about its actor. A type without a sentence fails a test."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from msgspec import Raw

from runs.machine import events as e
from runs.machine.revalidate import STATED
from runs.pages import words
from runs.pages.timeline_constraints import CONSTRAINTS
from runs.pages.timeline_duties import DUTIES
from runs.pages.timeline_lending import LENDING
from runs.pages.timeline_waits import WAITS
from runs.pages.values import indented

Say = Callable[[Any], str]
SENTENCES: dict[type[e.Event], Say] = {**WAITS, **LENDING, **CONSTRAINTS, **DUTIES}


def _says(event_type: type[e.Event]) -> Callable[[Say], Say]:
    def register(say: Say) -> Say:
        SENTENCES[event_type] = say
        return say

    return register


def sentence(event: e.Event) -> str:
    """What happened, as a predicate after the actor's name. Raises KeyError for a type nobody has words for."""
    return SENTENCES[type(event)](event)


def entries(log: Iterable[e.Recorded], *, events_url: str, saw: int | None = None) -> list[dict[str, Any]]:
    """Timeline rows (parts/timeline.html), newest first. `saw` is the version that the reader knew."""
    return [_entry(recorded, events_url, saw) for recorded in sorted(log, key=lambda r: -r.seq)]


def _entry(recorded: e.Recorded, events_url: str, saw: int | None) -> dict[str, Any]:
    return {
        "seq": recorded.seq,
        "at": recorded.at,
        "kind": recorded.actor.kind.value,
        "actor": recorded.actor.name,
        "text": sentence(recorded.event),
        "detail": _detail(recorded.event),
        "url": f"{events_url}?from={recorded.seq}#event-{recorded.seq}",
        "changed": saw is not None and recorded.seq > saw,
    }


def _detail(event: e.Event) -> str:
    """What an outside system gave as evidence; the other fields stand in the sentence or under raw events."""
    evidence = getattr(event, "evidence", None)
    return indented(e.text_of(evidence)) if isinstance(evidence, Raw) else ""


@_says(e.RunStarted)
def _started(event: e.RunStarted) -> str:
    facts = {"goal": event.goal, "run": event.predecessor}
    if event.predecessor:
        return _("started the run as the successor of %(run)s: “%(goal)s”") % facts
    return _("started the run: “%(goal)s”") % facts


@_says(e.RunTakenIn)
def _taken_in(event: e.RunTakenIn) -> str:
    text = _(
        "took the run in from its checkpoint as of event %(seq)d. What happened until then is not in this log."
    )
    return text % {"seq": event.seq}


@_says(e.ObservationRecorded)
def _observed(event: e.ObservationRecorded) -> str:
    facts = {"resource": event.resource, "version": event.version, "tool": event.tool}
    return _("read %(resource)s at version %(version)s with %(tool)s.") % facts


@_says(e.AttemptFailed)
def _failed(event: e.AttemptFailed) -> str:
    detail = words.inside(event.detail)
    facts = {"what": event.what, "detail": detail, "at": words.clock(event.retry_at)}
    return _("could not finish “%(what)s” (%(detail)s) and tries again at %(at)s. Nothing was sent.") % facts


@_says(e.ProposalRefused)
def _proposal_refused(event: e.ProposalRefused) -> str:
    facts = {
        "problems": words.clauses(event.problems),
        "broken": words.joined([_named(x) for x in event.broken]),
    }
    if event.broken:
        return _("refused what the agent proposed, since it breaks %(broken)s: %(problems)s") % facts
    return _("refused what the agent proposed: %(problems)s") % facts


def _named(broken: e.Broken) -> str:
    return f"C-{broken.constraint}" + (f" “{broken.name}”" if broken.name else "")


@_says(e.PlanProposed)
def _proposed(event: e.PlanProposed) -> str:
    facts = {"version": event.version}
    if e.value_of(event.document).get("undo"):
        return _("stored plan v%(version)d, made by code to undo what the run did.") % facts
    return _("stored plan v%(version)d as the agent proposed it.") % facts


@_says(e.ApprovalRequested)
def _requested(event: e.ApprovalRequested) -> str:
    facts = {"version": event.version, "number": event.needed, "until": words.clock(event.expires_at)}
    text = ngettext(
        "asked for %(number)d approval of plan v%(version)d, until %(until)s.",
        "asked for %(number)d approvals of plan v%(version)d, until %(until)s.",
        event.needed,
    )
    return text % facts


@_says(e.PlanApprovedByPolicy)
def _by_policy(event: e.PlanApprovedByPolicy) -> str:
    facts = {"version": event.version, "policy": event.policy_version}
    return _("found that policy %(policy)s asks for nobody’s approval of plan v%(version)d.") % facts


@_says(e.ApprovalGiven)
def _given(event: e.ApprovalGiven) -> str:
    if not event.overrides:
        return _quoted(_("approved plan v%(version)d.") % {"version": event.version}, event.reason)
    facts = {"version": event.version, "checks": words.joined([f"“{name}”" for name in event.overrides])}
    said = _("approved plan v%(version)d although it fails %(checks)s.") % facts
    return _quoted(said, event.reason)


@_says(e.PlanApproved)
def _approved(event: e.PlanApproved) -> str:
    return _("completed the approval of plan v%(version)d. Nothing was sent yet.") % {
        "version": event.version
    }


@_says(e.PlanRejected)
def _rejected(event: e.PlanRejected) -> str:
    return _quoted(_("rejected plan v%(version)d.") % {"version": event.version}, event.reason)


@_says(e.ChangesAsked)
def _changes(event: e.ChangesAsked) -> str:
    return _quoted(_("asked for changes to plan v%(version)d.") % {"version": event.version}, event.reason)


@_says(e.ApprovalTakenBack)
def _taken_back(event: e.ApprovalTakenBack) -> str:
    text = _("took the approval of plan v%(version)d back. Nothing more is sent on it.")
    return _quoted(text % {"version": event.version}, event.reason)


def _quoted(text: str, said: str) -> str:
    return _("%(sentence)s “%(words)s”") % {"sentence": text, "words": said} if said else text


@_says(e.ApprovalVoided)
def _voided(event: e.ApprovalVoided) -> str:
    facts = {"version": event.version, "causes": " ".join(map(words.cause, event.causes))}
    return _("voided the approval of plan v%(version)d. %(causes)s") % facts


@_says(e.ExpiryAnnounced)
def _expiry_announced(event: e.ExpiryAnnounced) -> str:
    facts = {"version": event.version, "at": words.moment(event.expires_at)}
    return (
        _("announced that the time for approving plan v%(version)d, or acting on it, ends at %(at)s.") % facts
    )


@_says(e.ApprovalExpired)
def _expired(event: e.ApprovalExpired) -> str:
    return _("noted that the time for approving plan v%(version)d is over. Nothing was sent.") % {
        "version": event.version
    }


@_says(e.PlanVoided)
def _plan_voided(event: e.PlanVoided) -> str:
    facts = {"version": event.version, "causes": " ".join(map(words.cause, event.causes))}
    return _("voided plan v%(version)d; the agent makes another. %(causes)s") % facts


@_says(e.RevalidationPassed)
def _passed(event: e.RevalidationPassed) -> str:
    number = len(event.checks)
    text = ngettext("made %(number)d check; it passes.", "made %(number)d checks; all pass.", number)
    as_read = [c.subject for c in event.checks if c.name == "observations" and c.was == c.now]
    said = text % {"number": number}
    if as_read:
        facts = {"said": said, "resources": words.joined(as_read)}
        said = _("%(said)s Read again and as it was: %(resources)s.") % facts
    return " ".join([said, *_noted(event.checks)])


@_says(e.RevalidationRefused)
def _refused(event: e.RevalidationRefused) -> str:
    failed = [words.failed_check(x) for x in event.checks if not x.passed and x.subject != "quorum"]
    facts = {"number": len(event.checks), "failed": words.clauses(failed)}
    said = _("made %(number)d checks. Not so any more: %(failed)s. Nothing was sent.") % facts
    return " ".join([said, *_noted(event.checks)])


def _noted(checks: Iterable[e.Check]) -> list[str]:
    """What passed and is to be known all the same: constraints that are stated by now and were not accepted."""
    noted = [words.check(x) for x in checks if x.became == STATED]
    return [_("To be known: %(noted)s.") % {"noted": words.clauses(noted)}] if noted else []


@_says(e.HistoryChanged)
def _history_changed(event: e.HistoryChanged) -> str:
    return _(
        "found another history of the database (%(was)s → %(now)s): events may be lost, so every effect is "
        "asked about before it is first sent."
    ) % {"was": event.was, "now": event.now}


@_says(e.EffectIntended)
def _intended(event: e.EffectIntended) -> str:
    facts = {"effect": f"E-{event.effect}", "step": event.step, "system": event.system}
    said = _("recorded the intent of %(effect)s (%(step)s) and may send it to %(system)s.") % facts
    if not event.bound:
        return said
    came = words.joined([f"{x.path} = {e.text_of(x.value)}" for x in event.bound])
    return _("%(said)s What the plan left open: %(came)s.") % {"said": said, "came": came}


@_says(e.EffectSent)
def _sent(event: e.EffectSent) -> str:
    return _("may send %(effect)s again, under the same key.") % {"effect": f"E-{event.effect}"}


@_says(e.EffectDispatched)
def _dispatched(event: e.EffectDispatched) -> str:
    return _("marked that the call of %(effect)s begins now.") % {"effect": f"E-{event.effect}"}


@_says(e.StepAnswered)
def _step_answered(event: e.StepAnswered) -> str:
    facts = {"step": event.step, "run": event.run, "reference": event.reference}
    return _("did not send “%(step)s”: %(run)s did it before, reference %(reference)s") % facts


@_says(e.EffectAttested)
def _attested(event: e.EffectAttested) -> str:
    facts = {"effect": f"E-{event.effect}", "reference": event.reference, "how": event.how}
    if event.happened:
        return _("stated that %(effect)s happened, by proof “%(reference)s”: %(how)s") % facts
    return _("stated that %(effect)s did not happen: %(how)s") % facts


@_says(e.AttestationAccepted)
def _accepted(event: e.AttestationAccepted) -> str:
    return _("settled E-%(effect)d by what people stated, not by an answer of the other system") % {
        "effect": event.effect
    }


@_says(e.RunRestarted)
def _restarted(event: e.RunRestarted) -> str:
    return _("closed this run; %(run)s goes on as its successor") % {"run": event.successor}


@_says(e.EffectUnsent)
def _unsent(event: e.EffectUnsent) -> str:
    return _("found that %(effect)s was never sent: the mark of its call is missing.") % {
        "effect": f"E-{event.effect}"
    }


@_says(e.EffectAnswered)
def _answered(event: e.EffectAnswered) -> str:
    facts = {"step": event.step, "effect": f"E-{event.effect}"}
    return _("answered step %(step)s from the receipt of %(effect)s. Nothing was sent.") % facts


@_says(e.OutcomeUnknown)
def _unknown(event: e.OutcomeUnknown) -> str:
    facts = {"effect": f"E-{event.effect}", "detail": words.inside(event.detail)}
    return _("does not know what became of %(effect)s: %(detail)s.") % facts


@_says(e.ReceiptStored)
def _receipt(event: e.ReceiptStored) -> str:
    facts = {"effect": f"E-{event.effect}", "reference": event.reference, "detail": event.detail}
    if not event.executed:
        return _("stored that %(effect)s was refused and did not happen: %(detail)s") % facts
    if event.source == "query":
        return _(
            "stored the receipt %(reference)s of %(effect)s, which the other system gave when asked."
        ) % (facts)
    return _("stored the receipt %(reference)s of %(effect)s.") % facts


@_says(e.EffectQueried)
def _queried(event: e.EffectQueried) -> str:
    facts = {"effect": f"E-{event.effect}", "number": len(event.matches)}
    if event.failure is not None:
        return _("asked what became of %(effect)s and got no answer (%(failure)s). Nothing was sent.") % {
            **facts,
            "failure": words.inside(event.failure),
        }
    text = ngettext(
        "asked what became of %(effect)s: %(number)d record. Nothing was sent.",
        "asked what became of %(effect)s: %(number)d records. Nothing was sent.",
        len(event.matches),
    )
    return text % facts


@_says(e.EffectReconciled)
def _reconciled(event: e.EffectReconciled) -> str:
    facts = {"effect": f"E-{event.effect}", "seq": event.asked, "reference": event.reference}
    text = (
        _("concluded from the answer in event %(seq)d that %(effect)s happened: %(reference)s.") % facts
        if event.happened
        else _("concluded from the answer in event %(seq)d that %(effect)s did not happen.") % facts
    )
    return _quoted(text, event.note)


@_says(e.EvidenceKept)
def _kept(event: e.EvidenceKept) -> str:
    facts = {"effect": f"E-{event.effect}", "reference": event.reference}
    if event.contradicts:
        return _("kept late evidence about %(effect)s that contradicts the record: %(reference)s") % facts
    return _("kept late evidence about %(effect)s: %(reference)s") % facts


@_says(e.ArtifactKept)
def _artifact(event: e.ArtifactKept) -> str:
    facts = {"name": event.name, "size": words.file_size(event.size), "about": event.about}
    if event.about:
        return _("kept “%(name)s” (%(size)s), which belongs to %(about)s.") % facts
    return _("kept the file “%(name)s” (%(size)s).") % facts


@_says(e.ContradictionStated)
def _finding(event: e.ContradictionStated) -> str:
    facts = {
        "effect": f"E-{event.effect}", "seq": event.evidence, "how": event.how, "reference": event.reference,
        "found": words.FINDINGS[event.finding],
    }  # fmt: skip
    if event.reference:
        return (
            _(
                "found about %(effect)s and the evidence in event %(seq)d: %(found)s Reference “%(reference)s”. %(how)s"
            )
            % facts
        )
    return _("found about %(effect)s and the evidence in event %(seq)d: %(found)s %(how)s") % facts


@_says(e.ContradictionSettled)
def _found(event: e.ContradictionSettled) -> str:
    facts = {"effect": f"E-{event.effect}", "found": words.FINDINGS[event.finding]}
    return (
        _("settled the evidence against %(effect)s by what people found: %(found)s Both stay shown.") % facts
    )


@_says(e.InheritedLost)
def _inherited_lost(event: e.InheritedLost) -> str:
    facts = {"run": event.run, "effect": f"E-{event.effect}"}
    return _("found that %(effect)s of %(run)s, which was taken for done here, did not happen.") % facts


@_says(e.HumanNeeded)
def _human(event: e.HumanNeeded) -> str:
    reasons = " ".join(words.reason_with_evidence(r, whole=True) for r in event.reasons)
    return _("stopped the run for a person. %(reasons)s") % {"reasons": reasons}


@_says(e.RunResumed)
def _resumed(event: e.RunResumed) -> str:
    text = (
        _("decided that the refused step is tried again in a new round.")
        if event.decision == "retry"
        else _("decided that the run goes on.")
    )
    return _quoted(text, event.note)


@_says(e.VersionMoved)
def _version_moved(event: e.VersionMoved) -> str:
    text = _("moved the run from version %(was)s to version %(now)s of its agent.")
    if event.voids:
        ended = _("Its plan ended with that. %(causes)s")
        text = f"{text} {ended}"
    causes = " ".join(map(words.cause, event.voids))
    return _quoted(text % {"was": event.was, "now": event.now, "causes": causes}, event.note)


@_says(e.GoalRevised)
def _goal_revised(event: e.GoalRevised) -> str:
    facts = {"was": event.version - 1, "version": event.version, "goal": event.text}
    return _quoted(_("revised the goal from v%(was)d to v%(version)d: “%(goal)s”") % facts, event.reason)


@_says(e.ReplanOrdered)
def _replan(event: e.ReplanOrdered) -> str:
    return _quoted(_("decided that the agent makes another plan."), event.note)


@_says(e.CancelRequested)
def _cancel(event: e.CancelRequested) -> str:
    if event.undo:
        text = _("asked for the end of the run at the next safe point, and for what it did to be undone.")
        return _quoted(text, event.note)
    return _quoted(_("asked for the end of the run at the next safe point."), event.note)


@_says(e.CancelBegan)
def _cancel_began(event: e.CancelBegan) -> str:
    return _("began to end the run; nothing is in flight or unknown.")


@_says(e.RunCancelled)
def _cancelled(event: e.RunCancelled) -> str:
    number = len(event.obligations)
    if event.owner is not None:
        text = ngettext(
            "ended the run before its goal. %(number)d open obligation is handed to %(owner)s, unless it has an owner.",
            "ended the run before its goal. %(number)d open obligations are handed to %(owner)s, unless they have an "
            "owner.",
            number,
        )
        return text % {"number": number, "owner": event.owner.name}
    text = ngettext(
        "ended the run before its goal. %(number)d open obligation is handed to a person.",
        "ended the run before its goal. %(number)d open obligations are handed to a person.",
        number,
    )
    return text % {"number": number}


@_says(e.RunSucceeded)
def _succeeded(event: e.RunSucceeded) -> str:
    return _("completed the run: every step is done and nothing is open.")
