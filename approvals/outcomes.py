"""What became of a decision: three ways in which it is recorded, and the errors that refuse it.

ApprovalError
  AlreadyOpenError             the subject already has an open request: decide or void that one
  DecisionRefusedError         record the attempt, answer with `sentence`
    NotAllowedError              403: this person lacks the right, now
    SeparationOfDutiesError      403: this person has a part in what is decided
    StaleError                   409: not what is decided about any more; shows from what to what
    ConflictError                409: it was decided the other way; shows who, when and what
    ExpiredError                 409: nothing was approved; ask anew
    GroundMissingError           409: what an approval would rest on is not there now
    NotOpenError                 409: nothing here to decide, take back, void or use
    ValuesUnopenedError          422: over-long values that this person has not looked at whole
    ReasonMissingError           422: all but an approval needs words, ten characters at least
    CheckFailedError             422: the policy does not let this plan be approved, or only knowingly
    SubmissionReusedError        400: this form's id belongs to another decision
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from accounts.models import User
from accounts.rights import Denial
from approvals.binding import Change
from approvals.models import Decision, Request, RequestState


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The decision counts."""

    request: Request
    decision: Decision

    @property
    def given(self) -> int:
        """How many approvals the request had after this decision, of `request.needed`."""
        return self.decision.approvals_after

    @property
    def state(self) -> RequestState:
        """The request's state after this decision."""
        return RequestState(self.decision.state_after)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyRecorded(Recorded):
    """This person decided just that before: here is the first result. Nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotNeeded(Recorded):
    """It was already decided the same way. The decision is kept and does not count."""

    by: Decision | None  #: the one that decided it; None: the policy did


type Outcome = Recorded | AlreadyRecorded | NotNeeded


class ApprovalError(Exception):
    """Something about a request is not as the caller took it."""

    code = "refused"

    @property
    def sentence(self) -> str:
        """One translated sentence for the person."""
        return str(self)

    @property
    def facts(self) -> Mapping[str, str | None]:
        """What an audit entry keeps beside the code."""
        return {}


class AlreadyOpenError(ApprovalError):
    """The subject has an open request: decide or void that one before opening another."""

    code = "already_open"

    def __init__(self, *, request: Request) -> None:
        super().__init__(f"{request.subject} has the open request {request.pk}")
        self.request = request


class DecisionRefusedError(ApprovalError):
    """This decision is refused and nothing was written; record the attempt once the transaction has ended."""


class NotAllowedError(DecisionRefusedError):
    """The person may not decide, now. `denial` says why."""

    code = "not_allowed"

    def __init__(self, *, denial: Denial) -> None:
        super().__init__(f"{denial.person.pk}: {denial.kind}")
        self.denial = denial

    @property
    def sentence(self) -> str:
        return self.denial.sentence

    @property
    def facts(self) -> Mapping[str, str | None]:
        return {"why": self.denial.kind.value, "right": self.denial.right.value}


class SeparationOfDutiesError(DecisionRefusedError):
    """The person holds the right and has a part in what is decided. `rule` is the request's name for it."""

    code = "separation_of_duties"

    def __init__(self, *, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule

    @property
    def sentence(self) -> str:
        return _("You have a part in this plan (%(rule)s), so somebody else must decide.") % {
            "rule": self.rule
        }

    @property
    def facts(self) -> Mapping[str, str | None]:
        return {"rule": self.rule}


class StaleError(DecisionRefusedError):
    """What the person saw is not what is decided about any more. `changes` says from what to what."""

    code = "stale"

    def __init__(self, *, changes: tuple[Change, ...]) -> None:
        super().__init__(", ".join(change.what for change in changes))
        self.changes = changes

    @property
    def sentence(self) -> str:
        return _("What you saw has changed since, so nothing was recorded.")

    @property
    def facts(self) -> Mapping[str, str | None]:
        return {change.what: f"{change.before} -> {change.after}" for change in self.changes}


class ConflictError(DecisionRefusedError):
    """It was decided another way. `who` None: the policy approved it."""

    code = "conflict"

    def __init__(self, *, who: User | None, when: datetime, what: RequestState) -> None:
        super().__init__(f"{what} by {who.pk if who else 'the policy'} at {when.isoformat()}")
        self.who, self.when, self.what = who, when, what

    @property
    def sentence(self) -> str:
        facts = {"who": self.who.shown_name if self.who else _("the policy"), "what": self.what.label}
        return _("This was already decided by %(who)s: %(what)s. Your decision was not recorded.") % facts

    @property
    def facts(self) -> Mapping[str, str | None]:
        who = str(self.who.pk) if self.who else None
        return {"who": who, "when": self.when.isoformat(), "what": self.what.value}


class ExpiredError(DecisionRefusedError):
    """The request's time is over; nothing can be decided on it."""

    code = "expired"

    def __init__(self, *, at: datetime) -> None:
        super().__init__(at.isoformat())
        self.at = at

    @property
    def sentence(self) -> str:
        return _("This request expired. Nothing was approved.")

    @property
    def facts(self) -> Mapping[str, str | None]:
        return {"at": self.at.isoformat()}


class GroundMissingError(DecisionRefusedError):
    """Nobody can approve now: `what`, on which an approval would rest, is not there. `why` says so to a person."""

    code = "ground_missing"

    def __init__(self, *, what: str, why: str) -> None:
        super().__init__(what)
        self.what, self.why = what, why

    @property
    def sentence(self) -> str:
        return _("Nothing was approved: %(why)s") % {"why": self.why}

    @property
    def facts(self) -> Mapping[str, str | None]:
        return {"what": self.what}


class NotOpenError(DecisionRefusedError):
    """The request is in a state in which this cannot be done; `state` is that state."""

    code = "not_open"

    def __init__(self, *, state: RequestState) -> None:
        super().__init__(state.value)
        self.state = state

    @property
    def sentence(self) -> str:
        return _("This cannot be done any more: %(state)s.") % {"state": self.state.label}

    @property
    def facts(self) -> Mapping[str, str | None]:
        return {"state": self.state.value}


class ReasonMissingError(DecisionRefusedError):
    """A rejection, a wish for changes and taking back need a reason, which the agent and the next operator read."""

    code = "reason_missing"

    @property
    def sentence(self) -> str:
        return _("Enter a reason of at least 10 characters. The agent and the next operator will read it.")


class CheckFailedError(DecisionRefusedError):
    """A check of the policy fails. `hard`: nobody can approve; else an approver can, by naming the check and why."""

    code = "check_failed"

    def __init__(self, *, name: str, must: str, hard: bool) -> None:
        super().__init__(name)
        self.name, self.must, self.hard = name, must, hard

    @property
    def sentence(self) -> str:
        facts = {"name": self.name, "must": self.must}
        if self.hard:
            return _("This plan cannot be approved. It fails the check “%(name)s”: %(must)s") % facts
        return (
            _(
                "This plan fails the check “%(name)s”: %(must)s To approve it all the same, tick its box and enter "
                "a reason."
            )
            % facts
        )

    @property
    def facts(self) -> Mapping[str, str | None]:
        return {"check": self.name, "kind": "hard" if self.hard else "soft"}


class ValuesUnopenedError(DecisionRefusedError):
    """An approval of values that this person has not looked at whole: they are opened first. `names` says which."""

    code = "values_unopened"

    def __init__(self, *, names: tuple[str, ...]) -> None:
        super().__init__(", ".join(names))
        self.names = names

    @property
    def sentence(self) -> str:
        return _(
            "Nothing was approved. Open these values first, since their middle is not shown here: %(names)s."
        ) % {"names": ", ".join(self.names)}

    @property
    def facts(self) -> Mapping[str, str | None]:
        return {"values": ", ".join(self.names)}


class SubmissionReusedError(DecisionRefusedError):
    """The submission id belongs to another decision; a form's id is good for one."""

    code = "submission_reused"

    @property
    def sentence(self) -> str:
        return _("This form was already used for another decision. Open the page again.")
