"""Looks an order up."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from django.utils.translation import gettext as _

from examples.refunds.tools import answers
from examples.refunds.tools.wire import Ask, NoAnswer, Reply, exchange
from runs.tools import Arguments, Reading, ReadingTool, Unreadable

ABSENT = "absent"  #: the version of an order that the shop does not know


class LookupArguments(Arguments):
    """Which order."""

    order: str


class LookupOrder(ReadingTool):
    """Reads an order and its version. That the shop does not know one is a fact too: the value None."""

    name = "lookup_order"
    system = "orders"
    schema = LookupArguments
    half_life = timedelta(minutes=1)
    sensitive = frozenset({"email"})

    def read(self, arguments: Mapping[str, Any], *, timeout: timedelta) -> Reading:
        """Read it now."""
        order = arguments["order"]
        try:
            reply = exchange(Ask(method="GET", path=f"/orders/{quote(order, safe='')}", timeout=timeout))
            value, version = (
                _absent(reply) if reply.status == HTTPStatus.NOT_FOUND else _present(reply, order)
            )
        except NoAnswer as error:
            raise Unreadable(str(error)) from error
        return Reading(value=value, resource=resource(order), version=version)


def resource(order: str) -> str:
    """What the versions of an order are versions of."""
    return f"order:{order}"


def _present(reply: Reply, order: str) -> tuple[Any, str]:
    if not reply.ok:
        raise NoAnswer(_("The service refuses the question."), reply.evidence())
    said, _value = reply.read(answers.Order)
    if said.id != order:
        raise NoAnswer(_("The answer is about another order."), reply.evidence())
    return said.model_dump(mode="json"), str(said.version)


def _absent(reply: Reply) -> tuple[None, str]:
    said, _value = reply.read(answers.Error)
    if said.error != "order_unknown":
        raise NoAnswer(said.message, reply.evidence())
    return None, ABSENT
