"""Refused sign-ins are counted in the database, so that several web processes count together."""

from __future__ import annotations

import requests

from accounts.models import User
from tests.fixtures.processes import Web

PASSWORD = "correct horse battery"


def test_two_processes_count_together(live_db: object, web: Web, second_web: Web) -> None:
    User.objects.create_user(username="kim", password=PASSWORD)
    served = [web, second_web, web, second_web, web]
    assert [_posted(one, "wrong") for one in served] == [200, 200, 200, 200, 429]
    assert _posted(second_web, PASSWORD) == 429


def _posted(served: Web, password: str) -> int:
    """The status of a sign-in sent as a browser does, to one of the processes."""
    with requests.Session() as browser:
        page = browser.get(f"{served.url}/login/", timeout=20).text
        token = page.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
        sent = {
            "username": "kim", "password": password, "csrfmiddlewaretoken": token,
        }  # fmt: skip
        return browser.post(f"{served.url}/login/", data=sent, allow_redirects=False, timeout=20).status_code
