"""The console's own glyphs: 16 px grid, stroke 1.6, each state with a silhouette of its own.

Three classes do the colouring (console.css): `g-fill` is filled with the tone's mark, `g-line` is drawn
with it, `g-cut` is drawn in the surface's colour on top of a fill.
"""

from __future__ import annotations

from typing import Final

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

_RING: Final = '<circle class="g-line" cx="8" cy="8" r="6.3"/>'

GLYPHS: Final[dict[str, str]] = {
    "unknown": '<circle class="g-line g-dashed" cx="8" cy="8" r="7"/>'
    '<path class="g-line" d="M5.9 6.3a2.1 2.1 0 1 1 3 1.9c-.7.3-.9.7-.9 1.4M8 11.9v.1"/>',
    "triangle": '<path class="g-fill" d="M8 1.2 15.2 14.4H.8Z"/><path class="g-cut" d="M8 6v3.6M8 11.9v.1"/>',
    "hourglass": '<rect class="g-fill" x="1.2" y="1.2" width="13.6" height="13.6" rx="1.5"/>'
    '<path class="g-cut" d="M5.5 4h5M5.5 12h5M6 4c0 2.6 4 5.4 4 8M10 4c0 2.6-4 5.4-4 8"/>',
    "octagon": '<path class="g-fill" d="M5.1 1h5.8L15 5.1v5.8L10.9 15H5.1L1 10.9V5.1Z"/>'
    '<path class="g-cut" d="m5.5 5.5 5 5m0-5-5 5"/>',
    "check": '<circle class="g-fill" cx="8" cy="8" r="7"/><path class="g-cut" d="M4.8 8.2 7.1 10.5 11.3 5.8"/>',
    "running": _RING + '<path class="g-fill" d="M6.4 5v6L11.2 8Z"/>',
    "uturn": '<path class="g-line" d="M5.5 3 2.8 5.7l2.7 2.7M3.2 5.7h6.2a3.4 3.4 0 0 1 0 6.8H5.6"/>',
    "ring": _RING,
    "ring-dot": _RING + '<circle class="g-fill" cx="8" cy="8" r="2.6"/>',
    "ring-bar": _RING + '<path class="g-line" d="M5 8h6"/>',
    "ring-slash": _RING + '<path class="g-line" d="m3.6 12.4 8.8-8.8"/>',
    "clock": _RING + '<path class="g-line" d="M8 4.4V8l2.4 1.6"/>',
    "clock-bar": '<circle class="g-line" cx="8" cy="6.8" r="5.6"/>'
    '<path class="g-line" d="M8 3.8v3l2 1.2M2.5 14.7h11"/>',
    "again": '<path class="g-line" d="M13.2 8a5.2 5.2 0 1 1-1.6-3.8M13 1.8v3.1H9.9"/>',
    "no-undo": '<path class="g-line" d="M6.2 2.6 3 5.8l3.2 3.2M3.4 5.8h5.8a3.9 3.9 0 0 1 0 7.8H6.4M2 14.5 14 1.5"/>',
    "arrow": '<path class="g-line" d="M2.5 8h10.2M8.7 4l4 4-4 4"/>',
    "copy": '<path class="g-line" d="M5.5 5.5h8v8h-8zM3.2 10.5h-.7v-8h8v.7"/>',
    "person": '<circle class="g-line" cx="8" cy="5" r="2.9"/>'
    '<path class="g-line" d="M2.6 14c.5-3 2.6-4.3 5.4-4.3s4.9 1.3 5.4 4.3"/>',
    "agent": '<path class="g-line" d="M8 1.6 13.6 4.8v6.4L8 14.4 2.4 11.2V4.8Z"/>'
    '<path class="g-fill" d="M8 5.8 9.9 8 8 10.2 6.1 8Z"/>',
    "policy": '<path class="g-line" d="M8 1.6c1.7 1.1 3.5 1.6 5.4 1.7 '
    '0 5-1.4 8.7-5.4 11.1-4-2.4-5.4-6.1-5.4-11.1 1.9-.1 3.7-.6 5.4-1.7Z"/>',
    "external": '<path class="g-line" d="M9 2h5v5M13.6 2.4 7.4 8.6M11.5 9.5V14H2V4.5h4.5"/>',
    "console": '<rect class="g-line" x="1.6" y="2.6" width="12.8" height="10.8"/>'
    '<path class="g-line" d="m4.4 6 2.2 2-2.2 2M8.4 10.4h3"/>',
}


def icon(name: str) -> SafeString:
    """One glyph as decorative inline SVG; the words stand beside it. Unknown names raise KeyError."""
    glyph = mark_safe(GLYPHS[name])
    return format_html(
        '<svg class="glyph" viewBox="0 0 16 16" aria-hidden="true" focusable="false">{}</svg>', glyph
    )
