"""How long the two pages take that people look at most: a run's, and the inbox."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from statistics import median
from time import perf_counter

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import User
from evals.figures import Figure
from evals.long_log import long_run
from evals.people import House, build_house
from runs import engine

SIGN_IN = "django.contrib.auth.backends.ModelBackend"


def measure(*, events: int = 200, runs: int = 1000, times: int = 15) -> Iterator[Figure]:
    """Each page as the operator sees it, from the request to the last byte, and how many queries it asks."""
    house = build_house()
    run = long_run(house, length=events)
    yield from _page("run_page", reverse("run", args=[run]), house.operator, times)
    inbox = _filled(runs)
    yield from _page("inbox_page", reverse("inbox") + "?view=all", inbox.approver, times)


def _filled(runs: int) -> House:
    """People whose inbox holds as many runs that wait for approval."""
    house = build_house()
    for _ in range(runs):
        engine.advance(house.started(steps=1).pk)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return house


def _page(name: str, url: str, person: User, times: int) -> Iterator[Figure]:
    client = Client(SERVER_NAME="localhost")
    client.force_login(person, backend=SIGN_IN)
    _open(client, url)
    with CaptureQueriesContext(connection) as asked:
        _open(client, url)
    queries = len(asked)  # counted now: the next request empties the list
    found = []
    for _ in range(times):
        gc.collect()
        began = perf_counter()
        _open(client, url)
        found.append(perf_counter() - began)
    yield Figure(name=f"{name}_ms", value=1000 * median(found), unit="ms")
    yield Figure(name=f"{name}_queries", value=queries, unit="queries")


def _open(client: Client, url: str) -> None:
    answer = client.get(url)
    if answer.status_code != 200:
        raise RuntimeError(f"{url} answered {answer.status_code}: nothing was measured")
