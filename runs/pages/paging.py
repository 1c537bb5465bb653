"""Which page of a list is shown, and where the ones before and after it are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def paging(page: int, pages: int, url: Callable[[int], str]) -> dict[str, Any]:
    """The `paging` of parts/pages.html. `url` is the address of a page by its number, which begins at 1."""
    found: dict[str, Any] = {"page": page, "pages": pages}
    if page > 1:
        found["previous_url"] = url(page - 1)
    if page < pages:
        found["next_url"] = url(page + 1)
    return found
