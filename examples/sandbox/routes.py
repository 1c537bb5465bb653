"""Which path leads where."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus

from examples.sandbox import control, service
from examples.sandbox.faults import Client, Faults, Holds
from examples.sandbox.wire import Answer, Refusal, Request, answered
from examples.sandbox.world import World

type Endpoint = Callable[..., Answer]
type Table = list[tuple[str, re.Pattern[str], Endpoint]]

ORDER = r"/orders/(?P<order_id>[^/\s\x00-\x1f]{1,100})"
TICKET = r"/tickets/(?P<ticket>[^/\s\x00-\x1f]{1,100})"

#: What the agents use: (world, request, parts of the path) -> answer.
OUTSIDE: Table = [
    ("GET", re.compile(ORDER), service.get_order),
    ("PUT", re.compile(ORDER), service.put_order),
    ("POST", re.compile("/payments/refunds"), service.create_refund),
    ("GET", re.compile("/payments/refunds"), service.find_refunds),
    ("POST", re.compile("/mail/messages"), service.create_message),
    ("GET", re.compile("/mail/messages"), service.find_messages),
    ("POST", re.compile(TICKET + "/close"), service.close_ticket),
    ("POST", re.compile(TICKET + "/reopen"), service.reopen_ticket),
    ("GET", re.compile(TICKET), service.get_ticket),
]

#: Questions about what was executed: an outage refuses these.
QUESTIONS = (service.find_refunds, service.find_messages, service.get_ticket)


@dataclass(frozen=True, slots=True)
class Router:
    """Finds who answers a request, and lets the faults have their way with it."""

    world: World
    holds: Holds

    def serve(self, request: Request, client: Client) -> Answer:
        """Answer. Raises ConnectionDropped where no answer may be given."""
        refused = _foreign(request)
        if refused is not None:
            return refused
        faults = Faults(world=self.world, holds=self.holds)
        for endpoint, parts in _matching(OUTSIDE, request):
            serving = partial(endpoint, self.world, request, **parts)
            return faults.serve(request, client, endpoint=serving, asks=endpoint in QUESTIONS)
        return answered(partial(self._control, request))

    def _control(self, request: Request) -> Answer:
        for endpoint, parts in _matching(self._control_table(request), request):
            return endpoint(**parts)
        known = [*OUTSIDE, *self._control_table(request)]
        if any(pattern.fullmatch(request.path) for _, pattern, _ in known):
            raise Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "method_refused", "This path has other methods.")
        raise Refusal(HTTPStatus.NOT_FOUND, "path_unknown", "There is nothing at this path.")

    def _control_table(self, request: Request) -> Table:
        world, holds = self.world, self.holds
        return [
            ("GET", re.compile("/"), partial(control.get_page, world, holds)),
            ("GET", re.compile(r"/style\.css"), control.get_style),
            ("GET", re.compile("/control/health"), control.get_health),
            ("GET", re.compile("/control/ledger"), partial(control.get_ledger, world)),
            ("GET", re.compile("/control/orders"), partial(control.get_orders, world)),
            ("GET", re.compile("/control/held"), partial(control.get_held, holds)),
            ("GET", re.compile("/control/switches"), partial(control.get_switches, world)),
            ("POST", re.compile("/control/switches"), partial(control.set_switches, world, request)),
            ("POST", re.compile("/control/release"), partial(control.release, holds, request)),
            ("POST", re.compile("/control/end-outage"), partial(control.end_outage, world, holds, request)),
            ("POST", re.compile("/control" + ORDER + "/touch"), partial(control.touch_order, world, request)),
        ]


def _matching(table: Table, request: Request) -> list[tuple[Endpoint, dict[str, str]]]:
    return [
        (endpoint, found.groupdict())
        for method, pattern, endpoint in table
        if method == request.method and (found := pattern.fullmatch(request.path))
    ]


def _foreign(request: Request) -> Answer | None:
    """Refuse what a page of another site asks a visitor's browser to send."""
    own = request.headers.get("host", "").partition(":")[0] in ("127.0.0.1", "localhost")
    crossed = request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
    if own and not (crossed and request.method != "GET"):
        return None

    def refuse() -> Answer:
        raise Refusal(HTTPStatus.FORBIDDEN, "foreign", "Only this machine's own pages may ask this.")

    return answered(refuse)
