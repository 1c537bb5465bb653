"""A run and those that it started: each page names the other, says where it is, and reaches it where it ends."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.rights import Right, withdraw_right
from runs.clock import database_now
from runs.ledger import load
from runs.machine.state import State
from runs.models import Run
from runs.pages import relatives
from tests.outside import World
from tests.pages.conftest import SignIn
from tests.pages.reading import form_of, read
from tests.people import House, advance


def family(house: House, *, number: int = 2, order: str = "7", **more: object) -> tuple[Run, list[Run]]:
    """A parent that waits for its children, which wait for an answer."""
    plan = [[{"tool": "give", "order": f"{order}{n}"}, {"signal": "go"}] for n in range(number)]
    given: dict[str, object] = {f"part {n}": {"plans": [plan[n]]} for n in range(number)}
    parent = house.scripted([{"tool": "give", "order": order}, {"children": given, **more}])
    children = [Run.objects.get(pk=child.run) for child in load(parent.pk).children.values()]
    for child in children:
        advance(child)
    return parent, children


def test_parent_and_child_name_each_other(house: House, sign_in: SignIn) -> None:
    parent, (first, second) = family(house)
    client = sign_in(house.viewer)

    page = read(client.get(f"/runs/{parent.pk}/"))
    below = read(client.get(f"/runs/{first.pk}/"))

    listed = page.part("children").all("li")
    assert [x.one("a").attrs["href"] for x in listed] == [f"/runs/{second.pk}/", f"/runs/{first.pk}/"]
    assert "Pay part 0" in listed[1].text and "part 0 of step delegate" in listed[1].text
    assert "Waiting as planned" in listed[1].text
    action = page.part("next-safe-action").text
    assert f"Wait: the run goes on when {first.pk}, {second.pk} have ended." in action
    assert "A step started them and waits until all have ended." in action
    assert below.part("parent").text == f"Started by {parent.pk} for its step delegate."
    assert below.part("parent").one("a").attrs["href"] == f"/runs/{parent.pk}/"
    printed = client.get(f"/runs/{first.pk}/handoff/?format=text").content.decode()
    assert f"Started by {parent.pk} for its step delegate" in printed
    assert (
        "Waits for the runs that it started since"
        in client.get(f"/runs/{parent.pk}/handoff/?format=text").content.decode()
    )


def test_a_child_that_ended_says_how(house: House, sign_in: SignIn) -> None:
    parent, (first, second) = family(house)
    house.answer(first, "go")
    assert advance(first).state is State.SUCCEEDED
    house.cancel(second)
    advance(second)
    assert advance(parent).state is State.NEEDS_HUMAN
    client = sign_in(house.operator)

    page = read(client.get(f"/runs/{parent.pk}/"))

    listed = page.part("children").all("li")
    assert "ended before its goal" in listed[0].text and "reached its goal" in listed[1].text
    decide = read(client.get(f"/runs/{parent.pk}/decide/"))
    assert "The runs that ended before their goal are started again" in decide.text
    sent = {**form_of(decide).sends(), "choice": "retry", "note": "once more"}
    client.post(f"/runs/{parent.pk}/decide/", sent)
    advance(parent)
    assert len(read(client.get(f"/runs/{parent.pk}/")).part("children").all("li")) == 3


def test_stopping_a_parent_says_whom_it_reaches(house: House, world: World, sign_in: SignIn) -> None:
    parent, children = family(house)
    client = sign_in(house.operator)
    page = read(client.get(f"/runs/{parent.pk}/stop/"))
    impact = page.part("impact").text
    for child in children:
        assert f"Ends too, since this run started it: {child.pk} (payer): Pay part" in impact
        assert child.pk in impact.partition("The run does not end before ")[2]
    assert "What the runs did that this one started, by plans of their own" in page.part("would-undo").text

    sent = {**form_of(page).sends(), "choice": "undo", "reason": "ordered by mistake"}
    page = read(client.post(f"/runs/{parent.pk}/stop/", sent, follow=True))

    assert f"It waits until {children[0].pk}, {children[1].pk} have ended." in page.part("end-asked").text
    for run in (*children, parent):
        assert advance(run).state is State.CANCELLED
    assert sorted(i for i, _, _ in world.executed if i.startswith("take_back")) == [
        "take_back:7", "take_back:70", "take_back:71",
    ]  # fmt: skip


def test_what_a_parent_undoes_of_its_child_is_linked_both_ways(house: House, sign_in: SignIn) -> None:
    part = {"plans": [[{"tool": "give", "order": "1"}]]}
    parent = house.scripted([{"children": {"part": part}}, {"signal": "go"}])
    (child,) = Run.objects.filter(parent=parent)
    assert advance(child).state is State.SUCCEEDED
    advance(parent)
    client = sign_in(house.operator)
    asked = read(client.get(f"/runs/{parent.pk}/stop/")).part("would-undo").text
    house.cancel(parent, undo=True)
    assert advance(parent).state is State.CANCELLED

    above = read(client.get(f"/runs/{parent.pk}/"))
    below = read(client.get(f"/runs/{child.pk}/"))

    assert f"E-1 of {child.pk} (pay 10.00 EUR for order 1), by: take back" in asked
    undoes = above.one(data_testid="effect", data_effect="E-1").part("undoes").one("a")
    assert (undoes.text, undoes.attrs["href"]) == (f"E-1 of {child.pk}", f"/runs/{child.pk}/#effect-E-1")
    by = below.part("undone-by").one("a")
    assert (by.text, by.attrs["href"]) == (f"E-1 of {parent.pk}", f"/runs/{parent.pk}/#effect-E-1")
    line = below.part("handoff").one("li", data_key="last_confirmed").text
    assert "None stands: what was done was undone." in line
    plan = read(client.get(f"/runs/{parent.pk}/plan/2/"))
    assert f"Undoes E-1 of {child.pk} (pay 10.00 EUR for order 1)" in plan.part("plan").text
    assert "There is no earlier version to compare with." in plan.text


def test_a_relative_that_one_may_not_see_is_named_without_a_link(house: House, sign_in: SignIn) -> None:
    parent, (first, _) = family(house)
    state = load(parent.pk)

    shown = relatives.context(state, {}, frozenset(), {})

    assert [x["url"] for x in shown["children"]] == ["", ""]
    assert relatives.context(load(first.pk), {}, frozenset(), {})["parent"]["url"] == ""
    withdraw_right(to=house.viewer, right=Right.VIEW_RUNS, obj=house.agent, actor=None, now=database_now())
    assert sign_in(house.viewer).get(f"/runs/{first.pk}/").status_code == 404


@pytest.mark.parametrize("path", ["", "stop/", "handoff/"])
def test_more_children_take_no_more_queries(house: House, sign_in: SignIn, path: str) -> None:
    few, many = family(house)[0], family(house, number=7, order="8")[0]
    client = sign_in(house.operator)
    counted = []
    for run in (few, few, many):
        with CaptureQueriesContext(connection) as made:
            assert client.get(f"/runs/{run.pk}/{path}").status_code == 200
        counted.append(len(made))
    assert counted[1] == counted[2]
