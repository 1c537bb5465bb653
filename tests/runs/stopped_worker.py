"""A worker process that stands still between its last check and the socket: `python -m tests.runs.stopped_worker RUN`.

It stops itself by SIGSTOP there; whoever continues it sees it send.
"""

from __future__ import annotations

import os
import signal
import sys

import django


def main(run_id: str) -> None:
    django.setup()
    from runs import crash, engine

    def reach(run_id: str, point: str) -> None:
        if point == crash.BEFORE_CALL:
            os.kill(os.getpid(), signal.SIGSTOP)

    crash.reach = reach
    engine.advance(run_id)


if __name__ == "__main__":
    main(sys.argv[1])
