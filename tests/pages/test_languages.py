"""Every page in another language: no English word of ours is left, and nothing of what others wrote is translated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import Any

import pytest
from django.utils import translation
from django.utils.translation import trans_real

from tests.pages.examples import PAGES
from tests.pages.test_look import LIN, rendered

#: The same in every language: names of languages and of formats, and the label of the environment, which is a setting.
NAMES = {"English", "JSON", "TEST", "UTC"}
WORDS = re.compile(r"[A-Za-z]{3,}")
KEPT = re.compile(r"%\(\w+\)[sd]|%%|<[^>]*>|&\w+;")
LETTERS = str.maketrans("abcdefghijklmnopqrstuvwxyz", "áƀćďéƒǵħíĵķĺɱńóƥɋŕšťúṽŵẋýž")


class Pseudo:
    """A language that is English with other letters: what stays plain was never given to the catalogue."""

    def gettext(self, message: str) -> str:
        message = message.rpartition("\x04")[2]
        parts, kept = KEPT.split(message), [*KEPT.findall(message), ""]
        return "".join(part.lower().translate(LETTERS) + keep for part, keep in zip(parts, kept, strict=True))

    def ngettext(self, one: str, many: str, number: int) -> str:
        return self.gettext(one if number == 1 else many)

    def to_language(self) -> str:
        return "zh-hans"

    def language(self) -> str:
        return "zh-hans"


@pytest.fixture
def pseudo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(vars(trans_real)["_translations"], "zh-hans", Pseudo())
    with translation.override("zh-hans"):
        yield


def said(value: Any) -> Iterator[str]:
    """Every text in what a page was given: data, and sentences that were made before."""
    if isinstance(value, str | bytes | int | float):
        yield str(value)
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield str(key)
            yield from said(one)
    elif isinstance(value, list | tuple | set | frozenset):
        for one in value:
            yield from said(one)
    elif value is not None:
        yield str(value)
        yield from said(vars(value) if hasattr(value, "__dict__") and not callable(value) else [])


@pytest.mark.parametrize("name", PAGES)
def test_every_word_of_ours_is_given_to_the_catalogue(pseudo: None, name: str) -> None:
    """Plain letters on a page are data, or names."""
    _template, context = PAGES[name]
    data = {word for text in (*said(context), str(LIN)) for word in WORDS.findall(text)}
    page = re.sub(r"<(script|style|code|kbd)\b.*?</\1>", " ", rendered(name), flags=re.DOTALL)
    shown = [unescape(re.sub(r"<[^>]+>", "\n", page)), *re.findall(r'(?:aria-label|title)="([^"]*)"', page)]
    assert {word for text in shown for word in WORDS.findall(text)} - data - NAMES == set()
