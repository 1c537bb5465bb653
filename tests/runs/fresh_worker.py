"""A worker process that moves runs once each and ends: `python -m tests.runs.fresh_worker RUN…`."""

from __future__ import annotations

import sys

import django


def main(run_ids: list[str]) -> None:
    django.setup()
    from runs import engine

    for run_id in run_ids:
        engine.advance(run_id)


if __name__ == "__main__":
    main(sys.argv[1:])
