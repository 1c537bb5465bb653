"""The page of the service: what was ordered, what was executed, what is switched, one way back to order."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from examples.sandbox.faults import Held
from examples.sandbox.markup import Child, Markup, el, join
from examples.sandbox.records import AnswerAs, Execution, Kind, Order, Switches
from examples.sandbox.world import World

STYLE = Path(__file__).with_name("style.css")
#: A page with ten thousand rows helps nobody.
ROWS = 200

KINDS = {
    Kind.REFUND: "Refund",
    Kind.MAIL: "Message",
    Kind.CLOSURE: "Ticket closed",
    Kind.REOPENING: "Ticket opened again",
}
ANSWERS = {
    AnswerAs.JSON: "As they should be",
    AnswerAs.HTML: "A web page instead of JSON",
    AnswerAs.TRUNCATED: "Cut in the middle",
}
COUNTED = {
    "hold_after": "Execute, then hold the answer of the next",
    "drop_after": "Execute, then drop the connection of the next",
    "hold_before": "Hold before executing the next",
}
TIMED = {
    "slow_seconds": "Wait before each answer, seconds",
    "pending_seconds": "New refunds are pending for, seconds",
    "key_retention": "Remember idempotency keys for, seconds",
}

SHORTCUTS = {
    "Execute the next refund and hold its answer": {"hold_after": "1", "match_path": "/payments/"},
    "The same, and refuse questions": {"hold_after": "1", "match_path": "/payments/", "outage": "true"},
    "Refuse everything": {"down": "true"},
}


def render(world: World, held: list[Held]) -> str:
    """The whole page. The caller holds the world's lock."""
    body = el(
        "body",
        el(
            "header",
            el("h1", "Outside world"),
            el("p", "Payments, mail and tickets of the demo. Nothing here is real."),
        ),
        el(
            "main",
            _condition(world.switches, held),
            _held(held),
            _executions(world),
            _orders(world),
            _switches(world.switches),
        ),
    )
    return f'<!doctype html><html lang="en">{_head()}{body}</html>'


def _head() -> Markup:
    return el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("title", "Outside world"),
        el("link", rel="stylesheet", href="/style.css"),
    )


def _condition(switches: Switches, held: list[Held]) -> Markup:
    faults = [*_faults(switches), *([f"Requests that are held: {len(held)}."] if held else [])]
    if faults:
        return el(
            "section",
            el("h2", "Something is wrong with the service"),
            el("ul", *(el("li", fault) for fault in faults)),
            _button("/control/end-outage", "End the outage", class_="big"),
            el("p", "All faults are switched off and every held request goes on."),
            class_="wrong",
        )
    return el(
        "section",
        el("h2", "Everything is in order"),
        el("p", "Make something go wrong:"),
        el("div", *(_button("/control/switches", label, **fields) for label, fields in SHORTCUTS.items())),
        class_="right",
    )


def _faults(switches: Switches) -> Iterable[str]:
    if switches.down:
        yield "The service is down: every request is refused."
    if switches.outage:
        yield "Questions about what was executed are refused."
    if switches.hold_after:
        yield f"Answers that will be held after executing: the next {switches.hold_after}."
    if switches.drop_after:
        yield f"Connections that will be dropped after executing: the next {switches.drop_after}."
    if switches.hold_before:
        yield f"Requests that will be held before executing: the next {switches.hold_before}."
    if switches.slow_seconds:
        yield f"Every answer takes {switches.slow_seconds:g} seconds longer."
    if switches.pending_seconds:
        yield f"New refunds are pending for {switches.pending_seconds:g} seconds."
    if switches.answer_as is not AnswerAs.JSON:
        yield f"Answers: {ANSWERS[switches.answer_as].lower()}."


def _held(held: list[Held]) -> Markup | None:
    if not held:
        return None
    rows = [(h.operation_id, h.path, f"{h.when} executing", f"{h.since:%H:%M:%S} UTC") for h in held]
    return el(
        "section",
        el("h2", "Held requests"),
        _table(("Operation", "Path", "Held", "Since"), rows),
        _button("/control/release", "Release them"),
    )


def _executions(world: World) -> Markup:
    counts = world.counts()
    shown = world.executions[-ROWS:][::-1]
    return el(
        "section",
        el("h2", "Executed"),
        _said(
            refunds=world.total(Kind.REFUND),
            twice=sum(count > 1 for count in counts.values()),
            left=len(world.executions) - len(shown),
        ),
        _table(
            ("Operation", "What", "Times executed", "Id", "When"),
            [_execution_row(execution, times=counts[execution.operation_id]) for execution in shown],
        ),
    )


def _said(*, refunds: int, twice: int, left: int) -> Markup:
    return join(
        el("p", f"Refunds executed: {refunds}. Operations executed more than once: {twice}."),
        el("p", f"Older executions that are not shown: {left}.") if left else None,
    )


def _execution_row(execution: Execution, *, times: int) -> tuple[Child, ...]:
    what = f"{KINDS[execution.kind]} {_words(execution)}"
    count = el("strong", times, class_="twice") if times > 1 else times
    return execution.operation_id, what, count, execution.id, f"{execution.at:%H:%M:%S} UTC"


def _words(execution: Execution) -> str:
    request = execution.request
    match execution.kind:
        case Kind.REFUND:
            return f"{request['currency']} {request['amount']} to {request['supplier']}"
        case Kind.MAIL:
            return f"to {request['to']}"
        case Kind.CLOSURE | Kind.REOPENING:
            return request["ticket"]


def _orders(world: World) -> Markup:
    names = sorted(world.orders)
    return el(
        "section",
        el("h2", "Orders"),
        el("p", f"Further orders that are not shown: {len(names) - ROWS}.") if len(names) > ROWS else None,
        _table(
            ("Order", "Supplier", "Amount", "Ticket", "Version", "Change it"),
            [_order_row(world, world.orders[name]) for name in names[:ROWS]],
        ),
    )


def _order_row(world: World, order: Order) -> tuple[Child, ...]:
    state = "closed" if world.closure(order.ticket) else "open"
    change = el(
        "form",
        el(
            "input", name="amount", aria_label=f"New amount of {order.id}", placeholder=order.amount, size="9"
        ),
        el("button", "Change", type="submit"),
        method="post",
        action=f"/control/orders/{quote(order.id, safe='')}/touch",
        class_="row",
    )
    amount = f"{order.currency} {order.amount}"
    return order.id, order.supplier, amount, f"{order.ticket} ({state})", order.version, change


def _switches(switches: Switches) -> Markup:
    counted = [_number(name, label, getattr(switches, name)) for name, label in COUNTED.items()]
    timed = [_number(name, label, getattr(switches, name)) for name, label in TIMED.items()]
    return el(
        "section",
        el("h2", "Switches"),
        el(
            "form",
            *counted,
            *timed,
            _choice(
                "answer_as", "Answers are", {a.value: text for a, text in ANSWERS.items()}, switches.answer_as
            ),
            _yes_or_no("outage", "Questions about what was executed are refused", switches.outage),
            _yes_or_no("down", "Everything is refused", switches.down),
            _text("match_operation", "Only for this operation id", switches.match_operation),
            _text("match_path", "Only for paths that begin so", switches.match_path),
            el("button", "Set the switches", type="submit"),
            method="post",
            action="/control/switches",
            class_="switches",
        ),
    )


def _table(heads: tuple[str, ...], rows: Iterable[tuple[Child, ...]]) -> Markup:
    body = [el("tr", *(el("td", cell, dir="auto") for cell in row)) for row in rows]
    if not body:
        return el("p", "Nothing yet.")
    return el(
        "div",
        el(
            "table",
            el("thead", el("tr", *(el("th", head, scope="col") for head in heads))),
            el("tbody", *body),
        ),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=heads[0],
    )


def _button(action: str, label: str, *, class_: str | None = None, **fields: str) -> Markup:
    hidden = [el("input", type="hidden", name=name, value=value) for name, value in fields.items()]
    return el(
        "form", *hidden, el("button", label, type="submit", class_=class_), method="post", action=action
    )


def _number(name: str, label: str, value: float) -> Markup:
    return _field(
        name, label, el("input", type="number", name=name, id=name, value=f"{value:g}", min="0", step="any")
    )


def _text(name: str, label: str, value: str) -> Markup:
    return _field(name, label, el("input", name=name, id=name, value=value))


def _yes_or_no(name: str, label: str, value: bool) -> Markup:
    return _choice(name, label, {"false": "No", "true": "Yes"}, "true" if value else "false")


def _choice(name: str, label: str, options: dict[str, str], chosen: str) -> Markup:
    shown = [el("option", text, value=value, selected=value == chosen) for value, text in options.items()]
    return _field(name, label, el("select", *shown, name=name, id=name))


def _field(name: str, label: str, control: Markup) -> Markup:
    return el("p", el("label", label, for_=name), control)
