"""Runs from a CSV: all of them or none, and never twice."""

from __future__ import annotations

import threading

import pytest
from django.db import connection

from examples.refunds.csvfile import CsvRefused
from examples.refunds.starting import Started, start_from_csv
from runs.models import Run
from tests.story.world import HEADER, Story


def _csv(count: int, *, first: int = 3000) -> bytes:
    lines = [
        f"{n},测试 Søn & Co,a@b.example,{n % 90 + 1}.00,EUR,T-{n}\n" for n in range(first, first + count)
    ]
    return (HEADER + "".join(lines)).encode()


def _start(story: Story, data: bytes) -> Started:
    return start_from_csv(data=data, agent=story.agent, creator=story.operator, principal=story.operator)


def test_the_same_file_twice_starts_nothing_twice(story: Story) -> None:
    first = _start(story, _csv(5))
    again = _start(story, _csv(7))

    assert (len(first.runs), first.already) == (5, 0)
    assert (len(again.runs), again.already) == (2, 5)
    assert Run.objects.count() == 7


def test_a_row_at_fault_starts_nothing(story: Story) -> None:
    with pytest.raises(CsvRefused, match="Row 12, column amount: The amount is negative"):
        _start(story, _csv(10) + b"9999,Nord GmbH,a@b.example,-1.00,EUR,T-9\n")

    assert Run.objects.count() == 0


def test_a_start_that_breaks_off_leaves_no_run(story: Story) -> None:
    def told(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        start_from_csv(
            data=_csv(300), agent=story.agent, creator=story.operator, principal=story.operator, told=told
        )

    assert Run.objects.count() == 0


def test_two_who_upload_the_same_file_at_once_start_each_run_once(story: Story) -> None:
    found: list[Started] = []

    def upload() -> None:
        try:
            found.append(_start(story, _csv(40)))
        finally:
            connection.close()

    uploads = [threading.Thread(target=upload) for _ in range(2)]
    for each in uploads:
        each.start()
    for each in uploads:
        each.join()

    assert sorted(len(started.runs) + started.already for started in found) == [40, 40]
    assert Run.objects.count() == 40
    assert Run.objects.filter(seq=1).count() == 40
