"""What the service does when nothing is wrong with it: orders, refunds, mail, tickets."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus

from msgspec import Struct

from examples.sandbox.records import (
    Amount,
    Currency,
    Executed,
    Execution,
    Kind,
    Line,
    Name,
    Order,
    OrderSet,
    more_than,
)
from examples.sandbox.wire import Answer, Refusal, Request, as_json
from examples.sandbox.world import World, clock


class OrderBody(Struct, frozen=True, forbid_unknown_fields=True):
    """An order as it is loaded."""

    supplier: Line
    email: Line
    amount: Amount
    currency: Currency
    ticket: Name


class TouchBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A change behind everybody's back: always a new version, and a new amount where one is named."""

    amount: Amount | None = None


class RefundBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Money back to a supplier."""

    operation_id: Name
    order: Name
    amount: Amount
    currency: Currency
    supplier: Line


class MailBody(Struct, frozen=True, forbid_unknown_fields=True):
    """One message to one address."""

    operation_id: Name
    to: Line
    subject: Line
    text: str


class TicketBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The end of a ticket, or the end of that."""

    operation_id: Name


type Check = Callable[[], None]


def get_order(world: World, request: Request, order_id: str) -> Answer:
    """An order, with its version as ETag."""
    return _order_answer(_order(world, order_id))


def put_order(world: World, request: Request, order_id: str) -> Answer:
    """Load an order. The same again changes nothing; other values are a new version."""
    body = request.parse(OrderBody)
    with world.lock:
        old = world.orders.get(order_id)
        new = _with_version(order_id, body, version=old.version if old else 1)
        if new != old:
            new = _with_version(order_id, body, version=old.version + 1 if old else 1)
            world.record(OrderSet(new))
    return _order_answer(new, status=HTTPStatus.OK if old else HTTPStatus.CREATED)


def touch_order(world: World, request: Request, order_id: str) -> Answer:
    """Change an order's version, and its amount where the body names one."""
    body = request.parse(TouchBody) if request.body.strip() else TouchBody()
    with world.lock:
        old = _order(world, order_id)
        fields = OrderBody(old.supplier, old.email, body.amount or old.amount, old.currency, old.ticket)
        new = _with_version(order_id, fields, version=old.version + 1)
        world.record(OrderSet(new))
    return _order_answer(new)


def create_refund(world: World, request: Request) -> Answer:
    """Pay, once per key while the key is remembered."""
    body = request.parse(RefundBody)
    asked = {"order": body.order, "amount": body.amount, "currency": body.currency, "supplier": body.supplier}

    def check() -> None:
        _check_refund(_order(world, body.order), body, if_match=request.headers.get("if-match"))

    return _execute(
        world, request, kind=Kind.REFUND, operation_id=body.operation_id, asked=asked, check=check
    )


def create_message(world: World, request: Request) -> Answer:
    """Mail, once per key while the key is remembered."""
    body = request.parse(MailBody)
    asked = {"to": body.to, "subject": body.subject, "text": body.text}
    return _execute(
        world, request, kind=Kind.MAIL, operation_id=body.operation_id, asked=asked, check=_no_check
    )


def close_ticket(world: World, request: Request, ticket: str) -> Answer:
    """Close a ticket. One that is closed already is refused."""
    body = request.parse(TicketBody)

    def check() -> None:
        _known_ticket(world, ticket)
        if closure := world.closure(ticket):
            raise Refusal(
                HTTPStatus.CONFLICT, "already_closed", "The ticket is closed.", by=closure.operation_id
            )

    return _execute(
        world,
        request,
        kind=Kind.CLOSURE,
        operation_id=body.operation_id,
        asked={"ticket": ticket},
        check=check,
    )


def reopen_ticket(world: World, request: Request, ticket: str) -> Answer:
    """Open a closed ticket again. One that is open is refused."""
    body = request.parse(TicketBody)

    def check() -> None:
        _known_ticket(world, ticket)
        if world.closure(ticket) is None:
            raise Refusal(HTTPStatus.CONFLICT, "not_closed", "The ticket is open.")

    return _execute(
        world,
        request,
        kind=Kind.REOPENING,
        operation_id=body.operation_id,
        asked={"ticket": ticket},
        check=check,
    )


def get_ticket(world: World, request: Request, ticket: str) -> Answer:
    """A ticket, what closed it, and what opened it again last."""
    _known_ticket(world, ticket)
    closure, reopening = world.closure(ticket), world.reopening(ticket)
    return as_json(
        {
            "id": ticket,
            "state": "closed" if closure else "open",
            "closure": closure.answer(now=clock()) if closure else None,
            "reopening": reopening.answer(now=clock()) if reopening else None,
        }
    )


def find_refunds(world: World, request: Request) -> Answer:
    """Every refund executed under an operation id."""
    return _find(world, request, Kind.REFUND)


def find_messages(world: World, request: Request) -> Answer:
    """Every message sent under an operation id."""
    return _find(world, request, Kind.MAIL)


def _execute(
    world: World, request: Request, *, kind: Kind, operation_id: str, asked: dict[str, str], check: Check
) -> Answer:
    key, now = _key(request), clock()
    with world.lock:
        if first := world.remembered(kind=kind, key=key, now=now):
            return _replay(first, operation_id=operation_id, asked=asked)
        check()
        pending = world.switches.pending_seconds if kind is Kind.REFUND else 0.0
        execution = Execution(
            id=world.next_id(kind),
            kind=kind,
            operation_id=operation_id,
            key=key,
            request=asked,
            at=now,
            final_at=now + timedelta(seconds=pending),
        )
        world.record(Executed(execution))
    return as_json(execution.answer(now=now), status=HTTPStatus.CREATED)


def _replay(first: Execution, *, operation_id: str, asked: dict[str, str]) -> Answer:
    if (first.operation_id, first.request) != (operation_id, asked):
        raise Refusal(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "key_reused",
            "This idempotency key was used for another request.",
        )
    return as_json(first.answer(now=first.at), Idempotent_Replayed="true")


def _find(world: World, request: Request, kind: Kind) -> Answer:
    operation_id, now = request.parameter("operation_id"), clock()
    found = world.executed(kind=kind, operation_id=operation_id)
    return as_json([execution.answer(now=now) for execution in found])


def _check_refund(order: Order, body: RefundBody, *, if_match: str | None) -> None:
    if if_match is not None and if_match != _etag(order):
        raise Refusal(
            HTTPStatus.PRECONDITION_FAILED,
            "order_changed",
            "The order has another version by now.",
            version=order.version,
        )
    if (body.currency, body.supplier) != (order.currency, order.supplier):
        raise Refusal(
            HTTPStatus.UNPROCESSABLE_ENTITY, "order_mismatch", "The order has another currency or supplier."
        )
    if not more_than(body.amount, "0.00") or more_than(body.amount, order.amount):
        raise Refusal(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "amount_refused",
            "The amount must be above zero and not above the order's.",
        )


def _order(world: World, order_id: str) -> Order:
    order = world.orders.get(order_id)
    if order is None:
        raise Refusal(HTTPStatus.NOT_FOUND, "order_unknown", f"There is no order {order_id}.")
    return order


def _known_ticket(world: World, ticket: str) -> None:
    if not world.has_ticket(ticket):
        raise Refusal(HTTPStatus.NOT_FOUND, "ticket_unknown", f"There is no ticket {ticket}.")


def _key(request: Request) -> str:
    key = request.headers.get("idempotency-key", "")
    if not key or len(key) > 255:
        raise Refusal(
            HTTPStatus.BAD_REQUEST, "key_missing", "Send an Idempotency-Key of 1 to 255 characters."
        )
    return key


def _with_version(order_id: str, body: OrderBody, *, version: int) -> Order:
    return Order(
        id=order_id,
        supplier=body.supplier,
        email=body.email,
        amount=body.amount,
        currency=body.currency,
        ticket=body.ticket,
        version=version,
    )


def _etag(order: Order) -> str:
    return f'"{order.version}"'


def _order_answer(order: Order, *, status: HTTPStatus = HTTPStatus.OK) -> Answer:
    return as_json(order, status=status, ETag=_etag(order))


def _no_check() -> None:
    """Mail needs nothing to exist before it."""
