"""The catalogue: codes of the machine as whole sentences. Pages and inbox take their words from here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy

from accounts.rights import Right
from accounts.zones import written
from approvals.binding import Change
from runs.machine.events import Broken, Cause, Check, Lent, Reason
from runs.machine.revalidate import REENTRY, STATED
from runs.machine.state import Effect, RequestStatus
from runs.machine.transitions import ROWS
from runs.pages.differing import differing

Words = str | Promise
NBSP: Final = "\u00a0"
FIRST_EAST_ASIAN: Final = "\u2e80"  #: the letters from here on have a full stop of their own
QUOTED: Final = 200  #: characters of a text of others that a sentence of ours quotes

#: Why a run needs a person. `subject` and `evidence` are what the event says.
REASONS: Final[dict[str, Words]] = {
    "log_damaged": gettext_lazy("the stored log does not agree with itself"),
    "history_lost": gettext_lazy("the database was put back and %(subject)s cannot be asked about"),
    "effect_unknown": gettext_lazy("nobody could say what became of %(subject)s"),
    "effect_conflict": gettext_lazy("the other system’s record of %(subject)s contradicts what was sent"),
    "schema_incompatible": gettext_lazy("the run’s stored form is not one that this version can read"),
    "version_unavailable": gettext_lazy("no worker has the code that this run is bound to"),
    "deadline_passed": gettext_lazy("the run’s deadline has passed"),
    "authority_lost": gettext_lazy("nobody may act for this run any more (%(subject)s)"),
    "constraint_withdrawn": gettext_lazy("the constraint %(subject)s was withdrawn"),
    "constraint_amended": gettext_lazy("the constraint %(subject)s says something else at its source"),
    "budget_exhausted": gettext_lazy("the run’s budget does not cover %(subject)s"),
    "resource_changed": gettext_lazy("%(subject)s changed again and again while plans were made"),
    "out_of_bounds": gettext_lazy("what came for %(subject)s lay outside its bounds, again and again"),
    "observation_stale": gettext_lazy("%(subject)s could not be read again"),
    "postcondition_failed": gettext_lazy("the result of %(subject)s is not what was ordered"),
    "tool_failed": gettext_lazy("the other system refused %(subject)s"),
    "plan_rejected": gettext_lazy("plan %(subject)s was rejected"),
    "planner_refused": gettext_lazy("the agent proposes no plan that is allowed"),
    "obligation_open": gettext_lazy("every step is done and something promised is still open"),
    "no_progress": gettext_lazy("workers took the run again and again and nothing moved"),
    "asked": gettext_lazy("the agent asks a person"),
    "signal_missing": gettext_lazy("the answer “%(subject)s” did not come in time"),
    "child_stopped": gettext_lazy("a run that this one started, %(subject)s, ended before its goal"),
    "compensation_failed": gettext_lazy("what the run did could not be undone"),
}

#: What a person may decide: (name, what it does).
DECISIONS: Final[dict[str, tuple[Words, Words]]] = {
    "reconcile": (gettext_lazy("Reconcile"), gettext_lazy("Record what became of the effect.")),
    "resume": (
        gettext_lazy("Go on"),
        gettext_lazy("The run goes on from where it was, after all checks are made again."),
    ),
    "retry": (
        gettext_lazy("Try again"),
        gettext_lazy(
            "The refused step is done again in a new round, under a new key, after all checks are made again."
        ),
    ),
    "lend": (
        gettext_lazy("Lend anew"),
        gettext_lazy("Another grant carries the run from here on, and a person approves the plan again."),
    ),
    "accept": (
        gettext_lazy("Accept the new text"),
        gettext_lazy(
            "What the constraint says now holds for the run, and the agent makes another plan under it."
        ),
    ),
    "move": (
        gettext_lazy("Move to another version"),
        gettext_lazy("Another version of the agent goes on with the run, after all checks are made again."),
    ),
    "replan": (
        gettext_lazy("Ask for another plan"),
        gettext_lazy("The present plan ends. The agent gets your note and proposes a new version."),
    ),
    "attest": (
        gettext_lazy("Attest"),
        gettext_lazy("State what became of the effect, as a person. It is never shown as a receipt."),
    ),
    "settle": (
        gettext_lazy("Settle the evidence"),
        gettext_lazy("Find which is true: the record of the effect, or the evidence that came later."),
    ),
    "restart": (
        gettext_lazy("Restart as a new run"),
        gettext_lazy(
            "This run closes. A new one begins with planning and takes over the goal, the constraints in force, "
            "open obligations and what stands. No approval is taken over."
        ),
    ),
    "cancel": (
        gettext_lazy("Cancel the run"),
        gettext_lazy("No new effect starts. What can be undone is undone where you ask for it."),
    ),
    "end": (
        gettext_lazy("End the run as it is"),
        gettext_lazy("Nothing more is undone. What still stands is listed and left to people."),
    ),
}

#: What people find where evidence contradicts the record.
FINDINGS: Final[dict[str, Words]] = {
    "as_recorded": gettext_lazy("It is as recorded."),
    "happened": gettext_lazy("It happened."),
    "not_happened": gettext_lazy("It did not happen."),
    "happened_twice": gettext_lazy("It happened twice."),
}

#: What is not safe now, and why.
NOT_SAFE: Final[dict[str, Words]] = {
    "approve": gettext_lazy("Approving a plan: it could do %(effect)s a second time."),
    "send_again": gettext_lazy("Sending %(effect)s again: it could happen twice."),
    "restart": gettext_lazy("Restarting as a new run: it could send %(effect)s again."),
    "send": gettext_lazy("Carrying out plan v%(plan)s by hand: it is not approved and could be done twice."),
}

#: The checks of a revalidation, by name.
CHECKS: Final[dict[str, Words]] = {
    "log": gettext_lazy("the stored log is whole"),
    "history": gettext_lazy("the database is the one that the run was last held on"),
    "effects": gettext_lazy("nothing is in flight or unknown"),
    "schema": gettext_lazy("the stored form can be read"),
    "code": gettext_lazy("the code is the one that the run is bound to"),
    "cancel": gettext_lazy("nobody asked for the end of the run"),
    "deadline": gettext_lazy("the deadline has not passed"),
    "approval": gettext_lazy("the approval still stands in time"),
    "constraints": gettext_lazy("the constraint stands at its source"),
    "goal": gettext_lazy("the plan is for the committed goal"),
    "plan": gettext_lazy("the plan’s digest is the one that was approved"),
    "approvers": gettext_lazy("those who approved still may, and are enough"),
    "rounds": gettext_lazy("each step is in the round that was approved"),
    "authority": gettext_lazy("what was lent to the run still carries it"),
    "budget": gettext_lazy("what is left of the budget covers the rest of the plan"),
    "policy": gettext_lazy("the policy is the one the plan was made under"),
    "resources": gettext_lazy("the version of what the plan acts on"),
    "observations": gettext_lazy("what was read is still so"),
    "assumptions": gettext_lazy("what the plan takes for true still holds"),
}

#: Why a request or a plan version ended.
_CAUSES: Final[dict[str, Words]] = {
    "resources": gettext_lazy("%(subject)s changed from version %(was)s to version %(now)s."),
    "observations": gettext_lazy("What was read about %(subject)s changed from %(was)s to %(now)s."),
    "assumptions": gettext_lazy(
        "What the plan took for true, “%(subject)s”, does not hold any more: %(now)s changed."
    ),
    "constraints_digest": gettext_lazy("The digest of the constraints changed from %(was)s to %(now)s."),
    "goal": gettext_lazy("The committed goal changed from v%(was)s to v%(now)s."),
    "policy": gettext_lazy("The policy changed from %(was)s to %(now)s."),
    "code": gettext_lazy("%(subject)s changed from %(was)s to %(now)s with the agent’s version."),
    "rounds": gettext_lazy(
        "%(subject)s is to be done in round %(now)s. The approval was for round %(was)s and stands for no other."
    ),
    "late": gettext_lazy("%(subject)s had to be within %(was)s and came as %(now)s. Nothing was sent."),
    "policy_asks": gettext_lazy(
        "%(subject)s takes %(now)s approvals with the values that came for it, and the plan had %(was)s. "
        "Nothing was sent."
    ),
    "constraint_broken": gettext_lazy(
        "%(subject)s does not keep %(was)s with the values that came for it: %(now)s Nothing was sent."
    ),
    "changes_asked": gettext_lazy("Changes to plan %(subject)s were asked for."),
    "replan_ordered": gettext_lazy("A person asked for another plan."),
    "grant": gettext_lazy("%(subject)s lent to the run anew: grant %(was)s was replaced by grant %(now)s."),
    "cancelled": gettext_lazy("The run is being cancelled."),
    "stands_no_more": gettext_lazy("%(subject)s does not stand any more, so there is nothing to undo."),
    "taken_in": gettext_lazy("The run was taken in from a checkpoint, and no approval comes with one."),
    "stands_too": gettext_lazy("%(subject)s was found to stand too, and is to be undone."),
}

#: What an approver lost: kind of the denial.
_LOSSES: Final[dict[str, Words]] = {
    "not_active": gettext_lazy("%(person)s, who approved, cannot sign in any more."),
    "not_member": gettext_lazy("%(person)s, who approved, does not belong to this organisation any more."),
    "other_tenant": gettext_lazy("%(person)s, who approved, belongs to another organisation as well now."),
    "right_missing": gettext_lazy("%(person)s, who approved, lost the right “%(right)s”."),
}

#: Why what was lent does not carry a run any more.
LENDING: Final[dict[str, Words]] = {
    "not_member": gettext_lazy(
        "who lent to it cannot sign in any more, or does not belong to this organisation"
    ),
    "may_not_lend": gettext_lazy("who lent to it may not start runs of this agent any more"),
    "ended": gettext_lazy("the grant was ended"),
    "expired": gettext_lazy("the time of the grant is over"),
    "session_closed": gettext_lazy("the session that the grant was bound to is closed"),
    "out_of_scope": gettext_lazy("it was not lent for this"),
}

#: Why a conclusion cannot be recorded: (what fails, what would be needed).
CONDITIONS: Final[dict[str, tuple[Words, Words]]] = {
    "not_asked": (
        gettext_lazy("nobody has asked since the last send."),
        gettext_lazy("Needed: an answer of the other system. Ask it above."),
    ),
    "no_answer": (
        gettext_lazy("the latest question got no answer."),
        gettext_lazy("Needed: an answer of the other system. Ask it again."),
    ),
    "newer_answer": (
        gettext_lazy("the other system has answered again since."),
        gettext_lazy("Needed: a conclusion from its latest answer."),
    ),
    "no_match": (
        gettext_lazy("the other system reports no record under this operation id."),
        gettext_lazy("Needed: an answer with one matching record."),
    ),
    "several_matches": (
        gettext_lazy("the other system reports more than one record under this operation id."),
        gettext_lazy("Needed: an answer with exactly one record."),
    ),
    "differs": (
        gettext_lazy("the record differs from what was sent."),
        gettext_lazy("Needed: a record with our key, our account and the arguments that were sent."),
    ),
    "pending": (
        gettext_lazy("the record is not final yet."),
        gettext_lazy("Needed: an answer in which the record is final. Ask again later."),
    ),
    "match": (
        gettext_lazy("the other system reports a match."),
        gettext_lazy("Needed: an answer that finds nothing."),
    ),
    "other_account": (
        gettext_lazy("another account was asked than the one that was sent in."),
        gettext_lazy("Needed: an answer from the same account."),
    ),
    "too_early": (
        gettext_lazy("the answer was heard before “not found” can be believed."),
        gettext_lazy("Needed: an answer that finds nothing, heard after %(settled)s."),
    ),
}

#: What became of a plan version by its latest request.
REQUESTS: Final[dict[RequestStatus, Words]] = {
    RequestStatus.PENDING: gettext_lazy("Waits for approval."),
    RequestStatus.VALID: gettext_lazy("Approved; the approval stands."),
    RequestStatus.CONSUMED: gettext_lazy("Approved, and the approval is used up."),
    RequestStatus.VOIDED: gettext_lazy("The approval or its request was voided."),
    RequestStatus.EXPIRED: gettext_lazy("The time for approving it is over."),
    RequestStatus.REJECTED: gettext_lazy("Rejected."),
    RequestStatus.CHANGES_ASKED: gettext_lazy("Changes were asked for."),
    RequestStatus.TAKEN_BACK: gettext_lazy("The approval was taken back."),
}

RULES: Final[dict[str, Words]] = {
    "principal": gettext_lazy("the run acts on your behalf"),
    "creator": gettext_lazy("you started the run"),
    "plan_author": gettext_lazy("this plan follows what you asked for"),
    "goal_reviser": gettext_lazy("you wrote the goal that the plan is for"),
    "constraint_revoker": gettext_lazy("you revoked a constraint of the run"),
    "other_tenant": gettext_lazy("you belong to another organisation as well"),
}

SOURCES: Final[dict[str, Words]] = {
    "policy": pgettext_lazy("source of a constraint", "policy"),
    "configuration": pgettext_lazy("source of a constraint", "the agent’s configuration"),
    "orchestrator": pgettext_lazy("source of a constraint", "the orchestrator’s configuration"),
    "inferred": pgettext_lazy("source of a constraint", "inferred by the agent"),
    "tenant": pgettext_lazy("source of a constraint", "the organisation’s settings"),
    "person": pgettext_lazy("source of a constraint", "written by a person"),
    "document": pgettext_lazy("source of a constraint", "derived from a document"),
}


def clock(moment: datetime) -> str:
    """The time of day with its zone, for use inside a sentence."""
    return written(moment, "%H:%M:%S")


def moment(at: datetime) -> str:
    """A time with its date and zone, for use inside a sentence."""
    return written(at, "%Y-%m-%d %H:%M:%S")


def file_size(size: int) -> str:
    """How large a file is, in the unit that is easiest to read."""
    for unit, bytes_ in (("MB", 1_000_000), ("kB", 1_000)):
        if size >= bytes_:
            return f"{size / bytes_:.1f}{NBSP}{unit}"
    return ngettext("%(number)d byte", "%(number)d bytes", size) % {"number": size}


#: The same where the event names no subject.
_BARE: Final[dict[str, Words]] = {
    "budget_exhausted": gettext_lazy("the run’s budget does not cover the rest of its plan"),
    "authority_lost": gettext_lazy("nobody may act for this run any more"),
    "observation_stale": gettext_lazy("something that the plan rests on could not be read again"),
    "tool_failed": gettext_lazy("the other system refused a step"),
}
_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def times_in(text: str) -> str:
    """The text with each time in it as pages write times."""
    return _ISO.sub(lambda found: moment(datetime.fromisoformat(found[0])), text)


def reason(found: Reason) -> str:
    """Why a run needs a person, as a clause without its evidence."""
    if (found.code, found.subject) == ("log_damaged", ROWS):
        return _("the rows beside the stored log are not what its events amount to")
    words = REASONS.get(found.code)
    if not found.subject:
        words = _BARE.get(found.code, words)
    return str(words) % {"subject": found.subject} if words else found.code


def reason_alone(code: str) -> str:
    """The reason for which runs stopped, whatever it was about in each of them."""
    return sentence_case(reason(Reason(code=code, subject="" if code in _BARE else "…")))


def reason_with_evidence(found: Reason, *, whole: bool = False) -> str:
    """The reason as a whole sentence with what was seen, cut at QUOTED characters unless `whole`."""
    evidence = _evidence(found)
    evidence = evidence if whole else short(evidence)
    facts = {"reason": sentence_case(reason(found)), "evidence": ended(evidence)}
    return _("%(reason)s: %(evidence)s") % facts if found.evidence else _("%(reason)s.") % facts


def _evidence(found: Reason) -> str:
    """What was seen, in words where the event has a bare value."""
    if found.code == "budget_exhausted" and found.evidence.startswith("-"):
        return _("%(amount)s is missing") % {"amount": found.evidence.removeprefix("-")}
    return times_in(str(LENDING.get(found.evidence, found.evidence)))


def short(text: str) -> str:
    """The beginning of a text, for a sentence that quotes it; the timeline has all of it."""
    return text if len(text) <= QUOTED else f"{text[:QUOTED].rstrip()}…"


def inside(text: object) -> str:
    """A text of others, such as a tool's detail, inside a sentence of ours: without its own full stop."""
    said = str(text).rstrip()
    return said if said.endswith(("..", "。。")) else said.removesuffix(".").removesuffix("。")


def ended(text: str) -> str:
    """The text with an end: where it has none, the full stop of the script that it ends in."""
    if not text or text[-1] in ".!?。！？…":
        return text
    return f"{text}{'。' if text[-1] >= FIRST_EAST_ASIAN else '.'}"


def sentence_case(text: str) -> str:
    """The first letter as at the start of a sentence; an id stays as it is."""
    first = text.split(" ", 1)[0]
    if any(not letter.isalpha() for letter in first.rstrip(",.;’s")):
        return text
    return text[:1].upper() + text[1:]


def policy_changed(was: str, now: str) -> str:
    """That what people were asked under is not in force any more: the same words wherever that is told."""
    facts = {"changed": cause(Cause(what="policy", subject="", was=was, now=now))}
    return _("%(changed)s Another plan is needed; a worker makes it, and people are asked anew.") % facts


def cause(found: Cause) -> str:
    """Why an approval or a plan is void: from what to what, and which person lost which right."""
    if found.what == "approvers" and found.subject == "quorum":
        return _("%(needed)s approvals that stand are needed, and there are fewer.") % {"needed": found.was}
    if found.what == "approvers":
        return _loss(found)
    if found.what == "constraints":
        return _constraint(found)
    if found.what == "grant":
        facts = {"subject": found.subject, "was": grant_name(found.was), "now": grant_name(found.now)}
        return str(_CAUSES["grant"]) % facts
    if found.what == "observations" and (what := differing(found.was, found.now)):
        return _("What was read about %(subject)s changed: %(what)s.") % {
            "subject": found.subject,
            "what": what,
        }
    was, now = times_in(found.was) or "–", times_in(found.now) or "–"
    facts = {"subject": found.subject, "was": was, "now": now, "what": found.what}
    words = _CAUSES.get(found.what)
    return str(words) % facts if words else _("%(what)s %(subject)s: %(was)s → %(now)s") % facts


def _constraint(found: Cause) -> str:
    facts = {"subject": found.subject, "was": inside(found.was), "now": inside(found.now)}
    if not found.now:
        return _("%(subject)s, “%(was)s”, was withdrawn.") % facts
    if not found.was:
        return _("%(subject)s was accepted: “%(now)s”.") % facts
    return _("%(subject)s changed from “%(was)s” to “%(now)s”.") % facts


def _loss(found: Cause) -> str:
    kind, _colon, right = found.now.partition(":")
    if kind == "group":
        facts = {"number": found.was, "groups": found.subject, "left": right}
        return _("Of those who approved, %(number)s must be in %(groups)s, and %(left)s are.") % facts
    named = {r.value: str(r.label) for r in Right}
    words = _LOSSES.get(kind, _LOSSES["right_missing"])
    return str(words) % {"person": found.subject, "right": named.get(right, right)}


def lending_facts(lent: Lent) -> dict[str, str]:
    """What sentences about a grant say of it: grant, name, scopes, until."""
    return {
        "grant": grant_name(lent.grant),
        "name": lent.name,
        "scopes": joined(list(lent.scopes)),
        "until": moment(lent.expires_at),
    }


def grant_name(grant: str) -> str:
    """A grant as sentences name it: the beginning of its id."""
    return f"G-{grant[:8]}" if grant else "–"


def failed_check(made: Check) -> str:
    """A check that fails; of what was read, with what of it is otherwise and by how much."""
    if made.name != "observations" or made.unread:
        return check(made)
    facts = {"check": check(made), "what": differing(made.was, made.now)}
    return _("%(check)s: %(what)s") % facts if facts["what"] else check(made)


def check(made: Check) -> str:
    """A check by name, with what it is about."""
    if made.name == "authority" and made.subject == REENTRY:
        facts = {"was": grant_name(made.was), "now": grant_name(made.now)}
        return _("a person approved the plan since grant %(now)s took the place of %(was)s") % facts
    if (made.name, made.subject) == ("log", ROWS):
        return _("the rows beside the stored log are what its events amount to")
    if made.became == STATED:
        return _("stated at a source and not accepted by this run: “%(now)s”") % {"now": made.now}
    if made.became == "amended":
        facts = {"subject": made.subject, "was": made.was, "now": made.now}
        return _("the source of %(subject)s says “%(now)s” and no longer “%(was)s”") % facts
    words = str(CHECKS.get(made.name, made.name))
    return f"{words} ({made.subject})" if made.subject else words


def effect_title(effect: Effect) -> str:
    """What the effect is and whether it can be undone, for use inside a sentence."""
    facts = {"effect": f"E-{effect.number}", "title": effect.title}
    if effect.terms.reversible:
        return _("%(effect)s (%(title)s)") % facts
    return _("%(effect)s (%(title)s, cannot be undone)") % facts


def not_kept(found: Broken) -> str:
    """Where a constraint is not kept, and why where that could not be told."""
    facts = {"step": found.step, "why": found.why}
    if found.why:
        return _("It cannot be told, and so counts as broken: %(why)s") % facts
    return _("Step %(step)s does not keep it.") % facts


def joined(items: Iterable[str]) -> str:
    """A list inside a sentence."""
    return _(", ").join(items)


def clauses(parts: Iterable[str]) -> str:
    """Sayings one after the other inside a sentence."""
    return _("; ").join(parts)


#: What an approval is bound to, by the name of the value.
_BINDING: Final[dict[str, Words]] = {
    "digest": gettext_lazy("plan digest"),
    "conditions": gettext_lazy("conditions of the approval"),
    "conditions_digest": gettext_lazy("digest of the conditions"),
    "expires_at": gettext_lazy("end of the request’s time"),
    "policy_version": gettext_lazy("policy version"),
    "plan_digest": gettext_lazy("plan digest in the conditions"),
    "goal_version": gettext_lazy("goal version"),
    "constraints_digest": gettext_lazy("digest of the constraints"),
    "constraints": gettext_lazy("what the source says of"),
    "needed": gettext_lazy("number of approvals needed"),
    "right": gettext_lazy("right that approving takes"),
    "resource_versions": gettext_lazy("version of"),
    "arguments_digests": gettext_lazy("digest of the arguments of step"),
    "excluded": gettext_lazy("people who may not decide"),
    "quorums": gettext_lazy("groups that must approve"),
    "not_by": gettext_lazy("kinds of people who may not decide"),
    "rounds": gettext_lazy("round of"),
}


def binding(path: str) -> str:
    """One value that an approval is bound to, in words: "resource_versions.order:7" and its like."""
    name, _dot, rest = path.partition(".")
    name, _bracket, index = name.partition("[")
    words = str(_BINDING.get(name, name))
    return f"{words} {rest or index.rstrip(']')}".strip()


def bound_change(change: Change) -> str:
    """One value that an approval is bound to and that changed, from what to what."""
    was, now = times_in(change.before or "–"), times_in(change.after or "–")
    facts = {"what": binding(change.what), "was": was, "now": now}
    return _("%(what)s %(was)s → %(now)s") % facts


def shown_state(state: str, reasons: Iterable[str]) -> str:
    """The state that a tag shows: a run that stopped over an unknown effect is first of all that."""
    return "unknown" if state == "needs_human" and "effect_unknown" in reasons else state
