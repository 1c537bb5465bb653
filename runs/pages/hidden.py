"""Characters that nobody sees, and how they are shown."""

from __future__ import annotations

import re
from typing import Final

# Controls (but newline and tab), soft hyphen, bidi and zero-width characters, spaces that pass for another
# character, variation selectors, byte-order mark, surrogates, tag characters. U+00A0 and U+3000 are left:
# amounts and Chinese prose use them.
HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"
    "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e01ef]"
)


def token(character: str) -> str:
    """A visible token, such as [U+202E]."""
    return f"[U+{ord(character):04X}]"


def shown(text: str) -> str:
    """The text with each hidden character as a token."""
    return HIDDEN.sub(lambda found: token(found[0]), text)
