"""Everything the story is played with: people signed in, the service's page, the workers, and patience."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from console.embedded.control import ask
from console.embedded.home import Home
from examples.refunds.demo.people import APPROVER, OPERATOR, PEOPLE, SECOND, VIEWER
from examples.refunds.smoke.html import Form, Node
from examples.refunds.smoke.visitor import Visitor

_ORDER = re.compile(r"order (\d+)")
LOOK_EVERY = 0.3  # seconds between two looks at something that is waited for

#: The rule of the next safe action that hands an unknown effect to a person; pages name it.
SETTLED_BY_PERSON = "NSA-4"


class StoryFailed(Exception):
    """Something did not come as the story says; the text says what was waited for and what is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A run as the list of runs shows it."""

    id: str
    order: str
    state: str
    url: str


class Stage:
    """Use it with `with`; `say` is told what happens."""

    def __init__(self, *, home: Home, console: str, service: str, say: Callable[[str], None]) -> None:
        self.home, self.console, self.say = home, console, say
        self.service = Visitor(name="the service's page", url=service)
        self.people: dict[str, Visitor] = {}

    def sign_in(self, passwords: Mapping[str, str]) -> None:
        """All four people, each in a browser of their own."""
        for who in PEOPLE:
            visitor = Visitor(name=who.name, url=self.console)
            visitor.sign_in(username=who.username, password=passwords[who.username])
            self.people[who.username] = visitor

    @property
    def operator(self) -> Visitor:
        return self.people[OPERATOR.username]

    @property
    def approver(self) -> Visitor:
        return self.people[APPROVER.username]

    @property
    def second(self) -> Visitor:
        return self.people[SECOND.username]

    @property
    def viewer(self) -> Visitor:
        return self.people[VIEWER.username]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for visitor in (self.service, *self.people.values()):
            visitor.close()

    # What can be seen.

    def runs(self) -> dict[str, Shown]:
        """Every run by its order, as the viewer's list shows them."""
        rows = self.viewer.open("/runs/").all("tr", data_testid="row")
        return {run.order: run for run in map(_shown, rows)}

    def run(self, order: str) -> Shown:
        """The run of an order."""
        return self.runs()[order]

    def wait(self, what: str, there: Callable[[], bool], *, seconds: float) -> None:
        """Look again and again until it is there. Raises StoryFailed when the time is over."""
        end = time.monotonic() + seconds
        while not there():
            if time.monotonic() > end:
                raise StoryFailed(f"{seconds:g} seconds passed without this: {what}. {self._told()}")
            time.sleep(LOOK_EVERY)

    def wait_state(self, order: str, state: str, *, seconds: float) -> None:
        """Until the list shows the run of the order in the state."""
        self.wait(f"order {order}: {state}", lambda: self.run(order).state == state, seconds=seconds)

    def wait_person(self, order: str, *, seconds: float) -> None:
        """Until the run's page says that a person has to settle the effect: the workers have stopped asking."""
        self.wait(f"order {order}: a person is asked", lambda: self._settles(order), seconds=seconds)

    def _settles(self, order: str) -> bool:
        page = self.operator.open(self.run(order).url)
        return SETTLED_BY_PERSON in page.one("section", data_testid="next-safe-action").text

    def _told(self) -> str:
        return "; ".join(f"{run.order} {run.state} {run.id}" for run in self.runs().values())

    # What people do.

    def decide(self, who: Visitor, order: str, decision: str, *, reason: str = "") -> None:
        """Review the plan that the run shows now, and decide it as the page asks to."""
        url = who.open(self.run(order).url).link("Review plan v")
        page = who.open(url)
        phrase = next((hint.one(data_content="").text for hint in page.all(id="hint-phrase")), "")
        typed = {"phrase": phrase} if decision == "approve" and phrase else {}
        who.send(url, page.button("Record decision"), decision=decision, reason=reason, **typed)
        self.say(f"    {who.name}: {decision} order {order}")

    # What the service does.

    def switch(self, **switches: str) -> None:
        """Set switches on the service's page."""
        self.service.press("/", "Set the switches", **switches)

    def change_order(self, order: str) -> None:
        """Press "Change" beside the order."""
        page = self.service.open("/")
        forms = [form for form in page.all("form") if form.get("action") == f"/control/orders/{order}/touch"]
        self.service.send("/", Form.of(forms[0]))

    def held(self, order: str) -> bool:
        """Whether the service's page lists the order's refund among the held requests."""
        return any(
            f"refund:order-{order}" in cell.text for table in _held(self.service) for cell in table.all("td")
        )

    def executed(self) -> dict[str, int]:
        """How often the service really executed each operation."""
        ledger: Any = self.service.json("/control/ledger")
        counted: dict[str, int] = ledger["operations"]
        return counted

    def refunds(self, order: str) -> list[dict[str, str]]:
        """The refunds that the service made for an order, as it answers for them."""
        found: Any = self.service.json("/payments/refunds", operation_id=f"refund:order-{order}")
        answered: list[dict[str, str]] = found
        return answered

    # What happens to the workers.

    def kill_worker(self) -> None:
        """SIGKILL for the whole group of one that works; the supervisor starts another."""
        ask(self.home, "start", name="worker")
        ask(self.home, "kill", name="worker")
        self.say("    a worker was killed")

    def stop_worker(self) -> None:
        """Ask it to end, and start none."""
        ask(self.home, "stop", name="worker")
        self.say("    the workers stopped")

    def start_worker(self) -> None:
        """Start it, unless it runs; until it is ready."""
        ask(self.home, "start", name="worker")
        self.say("    a worker runs")


def _shown(row: Node) -> Shown:
    link = row.one("th").one("a")
    order = _ORDER.search(link.text)
    if order is None:
        raise StoryFailed(f"a run names no order: {link.text}")
    state = next(tag.get("data-state") for tag in row.all("span") if tag.get("data-state"))
    return Shown(id=row.get("data-run"), order=order[1], state=state, url=link.get("href"))


def _held(service: Visitor) -> list[Node]:
    sections = service.open("/").all("section")
    return [s for s in sections if any(h.text == "Held requests" for h in s.all("h2"))]
