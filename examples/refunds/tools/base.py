"""What the writing tools of the service have in common: calls, questions, the check of what came of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from http import HTTPStatus
from typing import Any, ClassVar

from django.utils.translation import gettext as _

from examples.refunds.tools import answers
from examples.refunds.tools.wire import Ask, NoAnswer, Reply, exchange
from runs.tools import Ambiguous, Answer, Call, Executed, Found, Match, Refused, WritingTool

#: Answers that say "no" before anything was done. Any other is unclear.
REFUSALS = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.CONFLICT,
        HTTPStatus.PRECONDITION_FAILED,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
    }
)
#: The key belongs to something that *was* done: what it is has to be asked.
KEY_REUSED = "key_reused"


class ServiceTool(WritingTool):
    """A writing tool of the service. Its records name operation id, key and account."""

    queryable = True
    idempotency_retention = timedelta(minutes=10)

    record: ClassVar[type[answers.Record]]
    shown: ClassVar[tuple[str, ...]]  #: the arguments that a record shows, under the same names

    @property
    def account(self) -> str:
        """The account that the service knows us by, from the environment."""
        return os.environ.get("REFUNDS_ACCOUNT", "acct_demo")

    def path(self, arguments: Mapping[str, Any]) -> str:
        """Where a call goes."""
        raise NotImplementedError

    def question(self, call: Call) -> Ask:
        """The question what became of a call."""
        return Ask(
            method="GET",
            path=self.path(call.arguments),
            params={"operation_id": call.operation_id},
            timeout=call.timeout,
        )

    def headers(self, call: Call) -> dict[str, str]:
        """What goes with a call beside its body."""
        return {"Idempotency-Key": call.key}

    def body(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What a call carries beside its operation id."""
        return {name: arguments[name] for name in self.shown}

    def call(self, call: Call) -> Answer:
        """Do it, once."""
        ask = Ask(
            method="POST",
            path=self.path(call.arguments),
            body={"operation_id": call.operation_id, **self.body(call.arguments)},
            headers=self.headers(call),
            timeout=call.timeout,
        )
        try:
            reply = exchange(ask)
            return self._executed(reply, call) if reply.ok else _refused(reply)
        except NoAnswer as error:
            return Ambiguous(detail=str(error), evidence=error.evidence)

    def query(self, call: Call) -> Found | Ambiguous:
        """Every record under the operation id."""
        try:
            reply = exchange(self.question(call))
            records, evidence = self.records(reply)
            account = reply.account()
        except NoAnswer as error:
            return Ambiguous(detail=str(error), evidence=error.evidence)
        found = [record for record in records if record.operation_id == call.operation_id]
        return Found(matches=tuple(map(self._match, found)), account=account, evidence=evidence)

    def records(self, reply: Reply) -> tuple[list[answers.Record], Any]:
        """The records of an answer to the question, and the answer itself. Raises NoAnswer."""
        if not reply.ok:
            raise NoAnswer(_("The service refuses the question."), reply.evidence())
        kind = self.record
        records, evidence = reply.read(list[kind])  # type: ignore[valid-type]
        return list(records), evidence

    def postcondition(self, arguments: Mapping[str, Any], evidence: Any) -> str | None:
        """Exactly one record, final, in our account, as ordered."""
        try:
            (record,) = self.evidenced(evidence)
        except (ValueError, TypeError):
            return _("The evidence does not show exactly one record.")
        if record.account != self.account:
            return _("It was done in the account %(account)s.") % {"account": record.account}
        if not record.final:
            return _("It is still pending.")
        return _difference({name: arguments[name] for name in self.shown}, record)

    def evidenced(self, evidence: Any) -> list[answers.Record]:
        """The records in a piece of evidence. Raises ValueError."""
        found = evidence if isinstance(evidence, list) else [evidence]
        # As JSON, since a time is text in evidence and stays strict otherwise.
        return [self.record.model_validate(record, strict=False) for record in found]

    def _executed(self, reply: Reply, call: Call) -> Executed | Ambiguous:
        record, evidence = reply.read(self.record)
        if (record.operation_id, record.key) != (call.operation_id, call.key):
            return Ambiguous(detail=_("The answer is about another request."), evidence=evidence)
        if not record.final:
            return Ambiguous(detail=_("The service took it and calls it pending."), evidence=evidence)
        return Executed(reference=record.id, account=record.account, evidence=evidence)

    def _match(self, record: answers.Record) -> Match:
        return Match(
            reference=record.id,
            operation_id=record.operation_id,
            key=record.key,
            account=record.account,
            final=record.final,
            arguments={name: getattr(record, name) for name in self.shown},
        )


def _refused(reply: Reply) -> Refused | Ambiguous:
    if reply.status not in REFUSALS:
        detail = _("The service answered with status %(status)d.") % {"status": reply.status}
        return Ambiguous(detail=detail, evidence=reply.evidence())
    said, evidence = reply.read(answers.Error)
    if said.error == KEY_REUSED:
        return Ambiguous(detail=said.message, evidence=evidence)
    return Refused(detail=said.message, evidence=evidence)


def _difference(ordered: Mapping[str, Any], record: answers.Record) -> str | None:
    for name, value in ordered.items():
        if getattr(record, name) != value:
            shown = {"name": name, "ordered": value, "done": getattr(record, name)}
            return _("%(name)s was ordered as %(ordered)s and done as %(done)s.") % shown
    return None
