"""Untrusted text as text: escaped, and with what cannot be seen made visible."""

from __future__ import annotations

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from runs.pages.hidden import HIDDEN, token


def hidden_count(value: object) -> int:
    """How many characters of the text would not be seen without `reveal`."""
    return len(HIDDEN.findall(str(value)))


def reveal(value: object) -> SafeString:
    """The text escaped, each hidden character as a visible token such as [U+202E]. Always safe to insert."""
    parts: list[str] = []
    end = 0
    text = str(value)
    for match in HIDDEN.finditer(text):
        parts.append(escape(text[end : match.start()]))
        parts.append(f'<span class="token" dir="ltr">{token(match[0])}</span>')
        end = match.end()
    parts.append(escape(text[end:]))
    return mark_safe("".join(parts))
