"""The pages and paths for those who watch the service and make it misbehave. No fault touches them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import msgspec

from examples.sandbox import page, service
from examples.sandbox.faults import Holds
from examples.sandbox.records import Kind, Switched, Switches
from examples.sandbox.wire import Answer, Refusal, Request, as_json
from examples.sandbox.world import World


def get_health() -> Answer:
    """The process answers."""
    return as_json({"ok": True})


def get_ledger(world: World) -> Answer:
    """How often each operation id was really executed, and what was done twice."""
    counts = world.counts()
    return as_json(
        {
            "operations": counts,
            "duplicated": sorted(name for name, count in counts.items() if count > 1),
            "totals": {
                "refunds": world.total(Kind.REFUND),
                "messages": world.total(Kind.MAIL),
                "closures": world.total(Kind.CLOSURE),
                "executed": sum(counts.values()),
            },
        }
    )


def get_orders(world: World) -> Answer:
    """Every order, by id."""
    with world.lock:
        return as_json([world.orders[name] for name in sorted(world.orders)])


def get_held(holds: Holds) -> Answer:
    """The requests that wait now."""
    return as_json(holds.waiting())


def get_switches(world: World) -> Answer:
    """All switches."""
    return as_json(world.switches)


def set_switches(world: World, request: Request) -> Answer:
    """Move the switches that the body names, the others stay. Unknown names are refused."""
    named = request.form() if request.is_form else request.parse(dict[str, Any])
    with world.lock:
        world.record(Switched(_moved(world.switches, named, lax=request.is_form)))
        return _done(request, world.switches)


def release(holds: Holds, request: Request) -> Answer:
    """Let every held request go on."""
    return _done(request, {"released": holds.release()})


def end_outage(world: World, holds: Holds, request: Request) -> Answer:
    """All faults off, everything held goes on."""
    with world.lock:
        world.record(Switched(world.switches.ended()))
    return _done(request, {"released": holds.release()})


def touch_order(world: World, request: Request, order_id: str) -> Answer:
    """Change an order behind everybody's back."""
    if not request.is_form:
        return service.touch_order(world, request, order_id)
    amount = request.form().get("amount")
    asked = Request(
        method="POST", target=request.target, body=msgspec.json.encode({"amount": amount} if amount else {})
    )
    service.touch_order(world, asked, order_id)
    return _back()


def get_page(world: World, holds: Holds) -> Answer:
    """The page for a person."""
    with world.lock:
        text = page.render(world, holds.waiting())
    return Answer(body=text.encode(), content_type="text/html; charset=utf-8")


def get_style() -> Answer:
    """The page's style sheet."""
    return Answer(body=page.STYLE.read_bytes(), content_type="text/css; charset=utf-8")


def _moved(switches: Switches, named: dict[str, Any], *, lax: bool) -> Switches:
    values = msgspec.to_builtins(switches) | named
    try:
        return msgspec.convert(values, Switches, strict=not lax)
    except msgspec.ValidationError as error:
        raise Refusal(HTTPStatus.BAD_REQUEST, "switch_refused", str(error)) from error


def _done(request: Request, value: object) -> Answer:
    return _back() if request.is_form else as_json(value)


def _back() -> Answer:
    return Answer(status=HTTPStatus.SEE_OTHER, headers={"Location": "/"})
