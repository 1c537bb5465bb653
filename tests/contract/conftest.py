"""People with a browser, as in the tests of pages."""

from __future__ import annotations

from tests.pages.conftest import house, sign_in, world

__all__ = ["house", "sign_in", "world"]
