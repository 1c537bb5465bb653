"""An append-only file of lines, each on the disk before `append` returns."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


class JournalInUse(Exception):
    """Another process serves this folder: stop that one, or give this one another --home."""


class Journal:
    """One writer's file of lines. A last line that was torn by a crash is dropped when it is opened."""

    def __init__(self, path: Path) -> None:
        """Open or create the file. Raises JournalInUse where another process holds it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._claim()
        self._drop_torn_line()
        _sync_folder(path.parent)

    def append(self, line: bytes) -> None:
        """Write one line and sync it. Raises OSError with the file as it was before."""
        end = os.fstat(self._file).st_size
        try:
            _write_all(self._file, line + b"\n")
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, end)
            raise

    def lines(self) -> Iterator[bytes]:
        """Every line, oldest first."""
        with self.path.open("rb") as file:
            for line in file:
                yield line.rstrip(b"\n")

    def close(self) -> None:
        """Give the file free for another process."""
        os.close(self._file)

    def _claim(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise JournalInUse(f"{self.path} is in use by another process") from None

    def _drop_torn_line(self) -> None:
        # A line without its end was never acknowledged: nobody was told that it happened.
        content = self.path.read_bytes()
        os.ftruncate(self._file, content.rfind(b"\n") + 1)
        os.fsync(self._file)


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
