"""What `make smoke` reads and counts with: it must see what is wrong."""

from __future__ import annotations

import pytest

from examples.refunds.smoke.counting import count
from examples.refunds.smoke.html import NotOnPage, read
from examples.refunds.smoke.stage import Shown

PAGE = read(
    """<!doctype html><main><p>Two <b>bold</b> words<br>here</p><script>never()</script>
    <form method="post" action="ask/"><input type="hidden" name="seq" value="7"><input name="note">
    <input type="radio" name="way" value="a"><input type="radio" name="way" value="b" checked>
    <textarea name="why"> as &amp; is </textarea><button>Ask again</button></form>
    <a href="/x/">Review plan v2</a></main>"""
)


def _runs(**states: str) -> dict[str, Shown]:
    return {o: Shown(id=f"run_{o}", order=o, state=s, url="/") for o, s in states.items()}


def test_a_form_is_read_with_what_stands_in_it() -> None:
    form = PAGE.button("Ask")

    assert (form.method, form.action) == ("post", "ask/")
    assert form.values == {"seq": "7", "note": "", "way": "b", "why": "as & is"}
    assert form.choices == {"way": ["a", "b"]}
    assert PAGE.one("p").text == "Two bold words here"
    assert PAGE.link("Review plan") == "/x/"


def test_what_is_not_there_is_named_with_what_is() -> None:
    with pytest.raises(NotOnPage, match=r"no button “Stop”.*Two bold words here"):
        PAGE.button("Stop")
    with pytest.raises(NotOnPage, match="no link “Stop”"):
        PAGE.link("Stop")


def test_the_count_is_right_where_all_is_well() -> None:
    counted = count(
        runs=_runs(a="succeeded", b="cancelled"), executed={"refund:order-a": 1, "mail:order-a": 1}
    )

    assert counted.problems() == []
    assert str(counted) == "2 runs, 1 refunds approved, 1 executed, 0 duplicated, 0 lost"


@pytest.mark.parametrize(
    ("state", "times", "problem"),
    [
        ("succeeded", 2, "refunded twice: a"),
        ("succeeded", 0, "approved and not refunded: a"),
        ("cancelled", 1, "refunded and not approved: a"),
        ("unknown", 0, "not finished: a"),
    ],
)
def test_the_count_names_what_must_not_be(state: str, times: int, problem: str) -> None:
    counted = count(runs=_runs(a=state), executed={"refund:order-a": times})

    assert counted.problems() == [problem]
