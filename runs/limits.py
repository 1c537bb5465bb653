"""How much a person may write, for the forms and for what checks them."""

from __future__ import annotations

from typing import Final

LONGEST_TEXT: Final = 4000  #: characters of a reason or a note
