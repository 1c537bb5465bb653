"""An answer as people and programs type it, made the value that is stored."""

from __future__ import annotations

from django.utils.translation import gettext as _

from runs.limits import LONGEST_TEXT
from runs.machine.canonical import Uncanonical, canonical, parse
from runs.waiting import SIGNAL_NAME

#: What begins like this is meant as JSON, so a mistake in it is said and not taken for text.
_JSON_BEGINS = ("{", "[", '"')
_NO_JSON = ("NaN", "Infinity", "-Infinity")  #: Python's reader takes these words for numbers


class AnswerWrong(ValueError):
    """The answer cannot be taken. `field` is "name" or "payload"; the text says why and what to do."""

    def __init__(self, field: str, text: str) -> None:
        self.field = field
        super().__init__(text)


def name_of(typed: str) -> str:
    """The name, if an answer can have it. Raises AnswerWrong."""
    name = typed.strip()
    if not SIGNAL_NAME.fullmatch(name):
        text = _("No answer can have this name. Use the one that the agent asks for, such as “approved”.")
        raise AnswerWrong("name", text)
    return name


def payload_of(typed: str) -> str:
    """The canonical text of what was typed: JSON as it is, other text as a string, nothing as null.

    Raises AnswerWrong.
    """
    text = typed.strip()
    if len(text) > LONGEST_TEXT:
        facts = {"limit": LONGEST_TEXT, "length": len(text)}
        raise AnswerWrong("payload", _("Use at most %(limit)d characters; these are %(length)d.") % facts)
    try:
        return canonical(_value(text))
    except Uncanonical as error:
        told = _("This answer cannot be stored: %(why)s.") % {"why": str(error)}
        raise AnswerWrong("payload", told) from error


def _value(text: str) -> object:
    if not text:
        return None
    if text in _NO_JSON:
        return text
    try:
        return parse(text)
    except Uncanonical as error:
        if text.startswith(_JSON_BEGINS) or not error.why.startswith("not JSON"):
            raise
        return text
