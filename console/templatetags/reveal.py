"""Untrusted text as text: escaped, and with what cannot be seen made visible."""

from __future__ import annotations

import re
from typing import Final

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

# Controls (but newline and tab), soft hyphen, bidi and zero-width characters, spaces that pass for another
# character, variation selectors, byte-order mark, surrogates, tag characters. U+00A0 and U+3000 are left:
# amounts and Chinese prose use them.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"
    "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e01ef]"
)


def hidden_count(value: object) -> int:
    """How many characters of the text would not be seen without `reveal`."""
    return len(_HIDDEN.findall(str(value)))


def reveal(value: object) -> SafeString:
    """The text escaped, each hidden character as a visible token such as [U+202E]. Always safe to insert."""
    parts: list[str] = []
    end = 0
    text = str(value)
    for match in _HIDDEN.finditer(text):
        parts.append(escape(text[end : match.start()]))
        parts.append(f'<span class="token" dir="ltr">[U+{ord(match[0]):04X}]</span>')
        end = match.end()
    parts.append(escape(text[end:]))
    return mark_safe("".join(parts))
