"""Canonical JSON, digests and keys: equal for equal intents, different for different ones, refusals with a path."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.machine.canonical import (
    Uncanonical,
    canonical,
    digest,
    idempotency_key,
    parse,
    plain,
    round_suffix,
)

# Characters that UTF-8 has; half surrogates have tests of their own.
TEXT = st.text(st.characters(codec="utf-8"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-(2.0**53) + 1, 2.0**53 - 1) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)  # fmt: skip

#: As ECMAScript writes them, so that the browser's digests are the same.
NUMBERS = {
    1e-5: "0.00001",
    1e-7: "1e-7",
    1e21: "1e+21",
    5e-324: "5e-324",
    0.1 + 0.2: "0.30000000000000004",
    -0.0: "0",
    1.0: "1",
}


@pytest.mark.parametrize(("number", "written"), NUMBERS.items())
def test_numbers_are_written_as_a_browser_writes_them(number: float, written: str) -> None:
    assert canonical(number) == written


@given(VALUES)
def test_reading_and_writing_again_gives_the_same_text(value: Any) -> None:
    text = canonical(value)
    assert canonical(parse(text)) == text
    assert canonical(json.loads(json.dumps(value))) == text


@given(st.dictionaries(TEXT, VALUES, max_size=6), st.randoms())
def test_the_order_of_keys_does_not_matter(value: dict[str, Any], random: Any) -> None:
    items = list(value.items())
    random.shuffle(items)
    assert canonical(dict(items)) == canonical(value)


def test_composed_and_decomposed_letters_stay_different() -> None:
    composed, decomposed = "é", "e\u0301"
    assert canonical(composed) != canonical(decomposed)
    assert canonical({composed: 1}) != canonical({decomposed: 1})
    assert len(parse(canonical({composed: 1, decomposed: 2}))) == 2


REFUSED = {
    "not a number": ({"items": [{"amount": float("nan")}]}, "$.items[0].amount"),
    "infinite": ([1, float("-inf")], "$[1]"),
    "too big an integer": ({"a": {"id": 321588685835436831}}, "$.a.id"),
    "2^53 itself": (2**53, "$"),
    "half a surrogate pair": ({"name": "x\ud800"}, "$.name"),
    "half a surrogate pair in a key": ({"a": {"\udc00": 1}}, "$.a.(key)"),
    "a key that is no string": ({"a": {1: 2}}, "$.a"),
    "a float that would be written as too big an integer": ({"a": 1e20}, "$.a"),
    "bytes": ({"a": b"x"}, "$.a"),
    "a set": ([[{1}]], "$[0][0]"),
}


@pytest.mark.parametrize(("value", "path"), REFUSED.values(), ids=list(REFUSED))
def test_what_has_no_canonical_form_is_refused_with_its_path(value: Any, path: str) -> None:
    with pytest.raises(Uncanonical) as refused:
        canonical(value)
    assert refused.value.path == path
    assert str(refused.value).startswith(f"{path}: ")


def test_the_biggest_safe_integers_pass() -> None:
    assert canonical([2**53 - 1, -(2**53) + 1]) == "[9007199254740991,-9007199254740991]"


def test_nesting_without_end_is_refused_and_not_a_crash() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(Uncanonical):
        canonical(deep)


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(Uncanonical):
        canonical(loop)


@pytest.mark.parametrize(
    "text",
    ['{"a":1,"a":1}', '{"x":{"a":1,"b":2,"a":3}}', "NaN", "[Infinity]", "-Infinity", "{", "", '{"a":1} x'],
)
def test_text_without_one_meaning_is_refused(text: str) -> None:
    with pytest.raises(Uncanonical):
        parse(text)


@pytest.mark.parametrize(
    "text", ["1" * 5000, '{"a":[' + "1" * 5000 + "]}", "[" * 200_000], ids=["number", "inside", "deep"]
)
def test_what_python_itself_does_not_read_is_refused_as_any_other(text: str) -> None:
    with pytest.raises(Uncanonical):
        parse(text)


def test_a_duplicate_key_is_named() -> None:
    with pytest.raises(Uncanonical, match=r"\$\.amount"):
        parse('{"amount":1,"amount":2}')


def test_a_digest_names_its_algorithm_and_never_changes() -> None:
    assert (
        digest("arguments", "{}") == "sha256:806a2714478eac5ca7162d05f1b537f8edce7affb00af4ccc3347c3c5439a4c9"
    )


@given(st.tuples(TEXT, TEXT), st.tuples(TEXT, TEXT))
def test_digests_are_equal_only_for_equal_tags_and_texts(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    tags = [tag.replace("\n", "").replace("/", "") for tag, _ in (one, other)]
    same = (tags[0], one[1]) == (tags[1], other[1])
    assert (digest(tags[0], one[1]) == digest(tags[1], other[1])) is same


PARTS = st.tuples(TEXT, TEXT, TEXT, st.integers(0, 3))


def _key(parts: tuple[str, str, str, int]) -> str:
    run, step, arguments, round_ = parts
    return idempotency_key(run_id=run, step=step, arguments=arguments, round_=round_)


@given(PARTS, PARTS)
def test_keys_are_equal_only_for_equal_intents(
    one: tuple[str, str, str, int], other: tuple[str, str, str, int]
) -> None:
    assert _key(one) == _key(one)
    assert (_key(one) == _key(other)) is (one == other)


def test_moving_a_letter_from_one_part_to_the_next_makes_another_key() -> None:
    keys = {
        _key(("ab", "c", "d", 0)),
        _key(("a", "bc", "d", 0)),
        _key(("a", "b", "cd", 0)),
        _key(("a", "b", "c", 1)),
    }
    assert len(keys) == 4
    assert all(len(k) == 64 and set(k) <= set(string.hexdigits.lower()) for k in keys)


def test_a_key_never_changes_between_versions_of_this_program() -> None:
    key = idempotency_key(run_id="run_A", step="pay:7", arguments='{"order":"7"}', round_=0)
    assert key == "43f34e517da471141ddd38c238d1a6ea66e665bdff498352e53f15251258f2dd"


def test_only_later_rounds_show_in_an_operation_id() -> None:
    assert [round_suffix("pay:7", n) for n in range(3)] == ["pay:7", "pay:7#1", "pay:7#2"]


@given(st.text())
def test_plain_text_can_be_stored_and_keeps_every_ordinary_character(text: str) -> None:
    stored = plain(text)
    stored.encode()
    assert "\x00" not in stored
    ordinary = [c for c in text if c != "\x00" and not "\ud800" <= c <= "\udfff"]
    assert plain("".join(ordinary)) == "".join(ordinary)
