"""The default storage of artifacts: files that are on disk, their names too, before anybody is told of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from django.core.files.storage import FileSystemStorage


class DurableFiles(FileSystemStorage):
    """Private files under one folder, served by no web server. A power cut after `save` loses none."""

    def __init__(self, **options: Any) -> None:
        private = {"file_permissions_mode": 0o600, "directory_permissions_mode": 0o700}
        super().__init__(**{**private, **options})

    def _save(self, name: str, content: Any) -> str:
        saved: str = super()._save(name, content)  # type: ignore[misc]  # the stubs lack it
        file, root = Path(self.path(saved)), Path(self.location)
        for place in (file, *(p for p in file.parents if p == root or root in p.parents)):
            _flush(place)
        return saved


def _flush(place: Path) -> None:
    handle = os.open(place, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
