"""The story's six steps. Where one waits, the next begins: together they take little longer than the longest."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from django.core.management import call_command

from examples.refunds.agent import APPROVAL_FROM
from examples.refunds.csvfile import read_orders
from examples.refunds.demo.people import APPROVER
from examples.refunds.shop import ORDERS
from examples.refunds.smoke.counting import Counted, count
from examples.refunds.smoke.html import Node
from examples.refunds.smoke.stage import Stage, StoryFailed

SOON = 60.0  #: for what takes a moment where the machine is not busy
RECOVERED = 90.0  #: a lease's end, what has to pass until "not found" is believed, and SOON
OUTAGE = 150.0  #: the same with the tool's patience
ENOUGH = "The supplier's invoice was corrected."


@dataclass(frozen=True, kw_only=True)
class Cast:
    """Which order plays which part. Every other one from the limit up is approved in step 1."""

    executed: str = "1002"
    not_called: str = "1004"
    waiting: str = "1008"
    outage: str = "1010"
    changed: str = "1012"
    lost: str = "1014"
    rejected: tuple[str, ...] = ("1006", "1018")

    @property
    def parts(self) -> set[str]:
        return {
            self.executed,
            self.not_called,
            self.waiting,
            self.outage,
            self.changed,
            self.lost,
            *self.rejected,
        }


def play(stage: Stage) -> Counted:
    """All of it. Raises StoryFailed, NotOnPage, NotAnswered at the first thing that is not as the story says."""
    cast = Cast()
    begin(stage)
    kill_before_the_call(stage, cast)
    kill_after_the_refund(stage, cast)
    kill_while_waiting(stage, cast)
    decide_the_rest(stage, cast)
    recovered(stage, cast)
    begin_outage(stage, cast)
    change_while_stopped(stage, cast)
    end_outage(stage, cast)
    return end(stage)


def begin(stage: Stage) -> None:
    """Step 1, first half: those below the limit finish by themselves, the others wait."""
    small, large = _orders()
    stage.say(f"1. {len(small)} runs are approved by policy and finish, {len(large)} wait for approval.")

    def there() -> bool:
        runs = stage.runs()
        finished = all(runs[order].state == "succeeded" for order in small)
        return finished and all(runs[order].state == "waiting_approval" for order in large)

    stage.wait("the small ones finished, the others waiting", there, seconds=SOON)


def _orders() -> tuple[list[str], list[str]]:
    rows = read_orders(ORDERS.read_bytes())
    small = [row.order for row in rows if Decimal(row.amount) < APPROVAL_FROM]
    return small, [row.order for row in rows if row.order not in small]


def kill_before_the_call(stage: Stage, cast: Cast) -> None:
    """Step 2, second part; first here, since it takes longest to be sure of."""
    stage.say("2. A worker is killed before the service executes the refund.")
    _held(stage, cast.not_called, hold_before="1")
    stage.kill_worker()


def kill_after_the_refund(stage: Stage, cast: Cast) -> None:
    """Step 2, first part."""
    stage.say("   A worker is killed after the service executed the refund, before it answered.")
    _held(stage, cast.executed, hold_after="1")
    stage.kill_worker()


def kill_while_waiting(stage: Stage, cast: Cast) -> None:
    """Step 2, third part."""
    stage.say("   A worker is killed while a run waits for approval.")
    stage.kill_worker()
    stage.wait_state(cast.waiting, "waiting_approval", seconds=SOON)
    stage.decide(stage.approver, cast.waiting, "approve")


def _held(stage: Stage, order: str, **switch: str) -> None:
    """Let the service hold this order's refund, and approve it."""
    stage.switch(match_operation=f"refund:order-{order}", match_path="/payments/", **switch)
    stage.decide(stage.approver, order, "approve")
    stage.wait(f"the refund of order {order} is held", lambda: stage.held(order), seconds=SOON)


def decide_the_rest(stage: Stage, cast: Cast) -> None:
    """Step 1, second half."""
    stage.say("1. The approvers approve and reject; the operator ends what was rejected.")
    _, large = _orders()
    approved = [order for order in large if order not in cast.parts]
    for order in approved:
        stage.decide(stage.second, order, "approve")
    for order in cast.rejected:
        stage.decide(stage.approver, order, "reject", reason=ENOUGH)
        _cancel(stage, order)
    for order in approved:
        stage.wait_state(order, "succeeded", seconds=SOON)
    for order in cast.rejected:
        stage.wait_state(order, "cancelled", seconds=SOON)


def _cancel(stage: Stage, order: str) -> None:
    url = stage.run(order).url
    stop = stage.operator.open(url).link("Other actions")
    stage.operator.press(stop, "Cancel the run", reason=ENOUGH)
    stage.say(f"    {stage.operator.name}: cancel order {order}")


def recovered(stage: Stage, cast: Cast) -> None:
    """Step 2: what was killed is done, with nobody's help."""
    for order in (cast.waiting, cast.executed, cast.not_called):
        stage.wait_state(order, "succeeded", seconds=RECOVERED)
        _same_on_both_sides(stage, order)
        stage.say(
            f"   Order {order} recovered by itself, its receipt is there, its key the one it was sent with."
        )


def _same_on_both_sides(stage: Stage, order: str) -> None:
    """The effect on the run's page is confirmed, with the id and the key that the service knows its one refund by."""
    effect = _effect(stage, order)
    refunds = stage.refunds(order)
    if len(refunds) != 1:
        raise StoryFailed(f"order {order}: the service made {len(refunds)} refunds")
    state = effect.one("td", data_label="State").one("span").get("data-state")
    shown = effect.text.replace(" ", "")
    if state != "confirmed" or refunds[0]["id"] not in shown or refunds[0]["key"] not in shown:
        raise StoryFailed(
            f"order {order}: the page does not show {refunds[0]} as confirmed, but: {effect.text}"
        )


def _effect(stage: Stage, order: str) -> Node:
    """The refund among the effects of a run's page."""
    page = stage.viewer.open(stage.run(order).url)
    found = [row for row in page.all("tr", data_testid="effect") if f"refund:order-{order}" in row.text]
    if not found:
        raise StoryFailed(f"order {order}: its page shows no refund: {page.text[:600]}")
    return found[0]


def begin_outage(stage: Stage, cast: Cast) -> None:
    """Step 3, first half."""
    stage.say("3. The same as the first, while the service refuses questions.")
    stage.switch(outage="true")
    _held(stage, cast.outage, hold_after="1")
    stage.kill_worker()
    stage.wait_state(cast.outage, "unknown", seconds=RECOVERED)
    stage.say("   Another worker found it, and asks in vain.")


def change_while_stopped(stage: Stage, cast: Cast) -> None:
    """Steps 4 and 5, while the outage lasts."""
    stage.say("4. With the workers stopped, an order changes after its plan was proposed; it is approved.")
    stage.stop_worker()
    stage.change_order(cast.changed)
    stage.decide(stage.second, cast.changed, "approve")
    stage.say(f"5. {stage.approver.name} approves another, and then loses the right.")
    stage.decide(stage.approver, cast.lost, "approve")
    call_command("rights", "withdraw", APPROVER.username, "approve_plans", "refunds")
    stage.start_worker()
    _voided(stage, cast.changed, f"order:{cast.changed} changed from version 1 to version 2")
    _voided(stage, cast.lost, f"{stage.approver.name}, who approved, lost the right")
    for order in (cast.changed, cast.lost):
        stage.decide(stage.second, order, "approve")
        stage.wait_state(order, "succeeded", seconds=SOON)
    call_command("rights", "grant", APPROVER.username, "approve_plans", "refunds")


def _voided(stage: Stage, order: str, cause: str) -> None:
    """Wait until the run waits again, its old approval voided, and read the cause on its page."""

    def causes() -> list[str]:
        page = stage.viewer.open(stage.run(order).url)
        voided = page.all("li", data_testid="approval", data_state="voided")
        return [said.text for item in voided for said in item.all("p")]

    def there() -> bool:
        return bool(causes()) and stage.run(order).state == "waiting_approval"

    stage.wait(f"the approval of order {order} is voided and asked for again", there, seconds=SOON)
    told = next((said for said in causes() if cause in said), "")
    if not told:
        raise StoryFailed(f"order {order}: its page does not say “{cause}”, but: {' '.join(causes())}")
    stage.say(f"    order {order}, approval voided: {told}")


def end_outage(stage: Stage, cast: Cast) -> None:
    """Step 3, second half."""
    stage.wait_person(cast.outage, seconds=OUTAGE)
    first = next(stage.operator.open("/inbox/").all("tr", data_testid="row"))
    run = stage.run(cast.outage)
    if first.get("data-run") != run.id:
        raise StoryFailed(f"order {cast.outage} does not stand first in the inbox, but: {first.text}")
    stage.say(f"3. Order {cast.outage} needs a person and stands first in the inbox. The outage is ended.")
    stage.service.press("/", "End the outage")
    _reconcile(stage, run.url)
    stage.wait_state(cast.outage, "succeeded", seconds=SOON)


def _reconcile(stage: Stage, run_url: str) -> None:
    """The operator asks again, and records what the service answers."""
    operator = stage.operator
    url = operator.open(run_url).link("Reconcile E-")
    operator.press(url, "Ask")
    stage.say(f"    {operator.name}: asked the service again")
    operator.press(url, "Record conclusion", conclusion="happened", note="The service shows the refund.")
    stage.say(f"    {operator.name}: recorded that it happened")


def end(stage: Stage) -> Counted:
    """Step 6."""
    stage.say("6. Count what the service executed, and compare every log with the rows beside it.")
    call_command("rereduce", "--check")
    counted = count(runs=stage.runs(), executed=stage.executed())
    if problems := counted.problems():
        raise StoryFailed("; ".join(problems))
    return counted
