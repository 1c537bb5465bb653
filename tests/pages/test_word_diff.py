"""The difference between two texts: nothing of either is lost, and only what changed is marked."""

from __future__ import annotations

from django.template import Context, Template
from hypothesis import example, given
from hypothesis import strategies as st

from runs.pages.word_diff import Change, Part, word_diff

KEPT, REMOVED, ADDED = Change.KEPT, Change.REMOVED, Change.ADDED
TEXTS = st.text(st.sampled_from("ab  \n.,的一款e\u0301\u202e\u200b<&") | st.characters(), max_size=40)


@given(TEXTS, TEXTS)
@example("", "")
@example("退款 ab", "全额退款ab ")
@example("a" * 3000, "b c" * 1000)
def test_both_texts_stand_in_it(before: str, after: str) -> None:
    parts = word_diff(before, after)
    assert "".join(x.text for x in parts if x.change is not ADDED) == before
    assert "".join(x.text for x in parts if x.change is not REMOVED) == after
    assert all(x.text for x in parts)


@given(TEXTS)
def test_of_the_same_text_nothing_changed(text: str) -> None:
    assert {x.change for x in word_diff(text, text)} <= {KEPT}


def test_it_goes_by_words() -> None:
    assert word_diff("Refund all of it", "Refund half of it") == (
        Part(KEPT, "Refund "), Part(REMOVED, "all"), Part(ADDED, "half"), Part(KEPT, " of it"),
    )  # fmt: skip


def test_where_no_blanks_are_by_signs() -> None:
    assert word_diff("全额退款ab12", "半额退款ab12") == (
        Part(REMOVED, "全"), Part(ADDED, "半"), Part(KEPT, "额退款ab12"),
    )  # fmt: skip


def test_texts_too_long_to_compare_are_shown_whole() -> None:
    before, after = "的" * 3000, "了" * 3000
    assert word_diff(before, after) == (Part(REMOVED, before), Part(ADDED, after))


def test_it_is_marked_by_signs_and_words_and_is_no_html() -> None:
    parts = word_diff("pay <b>all</b>", "pay <b>half</b>\u202e")
    html = Template("{% load console_tags %}{% word_diff parts %}").render(Context({"parts": parts}))
    assert '<del><b aria-hidden="true">−</b><span class="unseen">removed: </span>all</del>' in html
    assert "half" in html and "added: " in html
    assert "<b>all" not in html and "&lt;" in html
    assert "\u202e" not in html and "U+202E" in html
