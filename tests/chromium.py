"""The Chromium that browser tests drive."""

from __future__ import annotations

import os
import shutil


def chromium() -> str | None:
    """`$CHROMIUM`, else the system's."""
    chosen = os.environ.get("CHROMIUM")
    return shutil.which(chosen) if chosen else shutil.which("chromium") or shutil.which("chromium-browser")


def without_browser() -> bool:
    """True where the person running the tests asked for none of those in a browser."""
    return os.environ.get("BROWSER", "").lower() == "none"


def how_to_get_chromium() -> str:
    """What to do where there is none; empty where there is one."""
    if chromium():
        return ""
    return (
        "no Chromium was found. Install it (apt-get install --no-install-recommends chromium), "
        "set CHROMIUM to its program, or leave the browser tests out with BROWSER=none"
    )
