"""The form of a document of constraints: JSON text, strict, so that nothing in it is passed over.

    {"constraints": [{"name": "one supplier", "text": "Only suppliers in the EU are paid.",
                      "predicate": "tool != \"refund\" || arguments.country in [\"DE\", \"FR\"]"}]}

The name says which constraint it is, over all its versions. The predicate may be left out: people alone check it then.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, Final

import msgspec
from django.utils.translation import gettext as _

from approvals.expressions import ExpressionRefused, compiled
from runs.limits import LONGEST_CONSTRAINT, LONGEST_CONSTRAINT_NAME
from runs.machine.canonical import Uncanonical, parse, plain

MOST: Final = 100  #: constraints
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_CONSTRAINT_NAME)]
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_CONSTRAINT)]


class Stated(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A constraint as the document states it."""

    name: _Name
    text: _Text
    predicate: str = ""


class Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that a document says."""

    constraints: Annotated[tuple[Stated, ...], msgspec.Meta(max_length=MOST)]


class DocumentRefused(ValueError):
    """This is no document of constraints. The text says what is wrong with it, and where."""


@lru_cache(maxsize=16)
def read(data: bytes) -> Document:
    """Raises DocumentRefused."""
    try:
        found = msgspec.convert(parse(data.decode("utf-8")), Document)
    except UnicodeDecodeError:
        raise DocumentRefused(_("It is not written in UTF-8.")) from None
    except (Uncanonical, ValueError, RecursionError) as error:
        raise DocumentRefused(
            plain(_("It is no document of constraints: %(why)s.") % {"why": error})
        ) from None
    if problems := tuple(_problems(found)):
        raise DocumentRefused(" ".join(problems))
    return found


def _problems(found: Document) -> Iterator[str]:
    names = [x.name for x in found.constraints]
    for name in sorted({x for x in names if names.count(x) > 1}):
        yield _("Two constraints are called “%(name)s”.") % {"name": name}
    for x in found.constraints:
        said = x.name + x.text + x.predicate
        if plain(said) != said or not x.name.strip() or not x.text.strip():
            yield _("“%(name)s” is empty or holds characters that no text can hold.") % {
                "name": plain(x.name)
            }
        yield from _predicate(x)


def _predicate(stated: Stated) -> Iterator[str]:
    try:
        if stated.predicate:
            compiled(stated.predicate)
    except ExpressionRefused as error:
        facts = {"name": stated.name, "line": error.line, "column": error.column, "why": str(error)}
        yield _("The predicate of “%(name)s”, line %(line)d, column %(column)d: %(why)s") % facts
