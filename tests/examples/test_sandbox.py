"""The sandbox keeps its word about keys, questions, faults and crashes. All tests go through a socket."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.examples.outside import ROOT, Outside, until

REFUND = "/payments/refunds"
REFUND_BODY = {
    "operation_id": "refund:1042",
    "order": "1042",
    "amount": "120.00",
    "currency": "EUR",
    "supplier": "Nord GmbH",
}


def refund(client: httpx.Client, *, key: str = "k-1", **other: str) -> httpx.Response:
    """Ask for a refund of order 1042."""
    headers = {"Idempotency-Key": key}
    if_match = other.pop("if_match", None)
    if if_match:
        headers["If-Match"] = if_match
    return client.post(REFUND, json=REFUND_BODY | other, headers=headers)


def refund_and_expect_nothing(outside: Outside) -> threading.Thread:
    """Ask in the background, from a client that gets no answer."""

    def ask() -> None:
        with outside.client() as client, pytest.raises(httpx.HTTPError):
            refund(client)

    thread = threading.Thread(target=ask)
    thread.start()
    return thread


def refunds(client: httpx.Client, operation_id: str = "refund:1042") -> list[dict[str, Any]]:
    """What the service says was done."""
    found: list[dict[str, Any]] = client.get(REFUND, params={"operation_id": operation_id}).json()
    return found


def leave_while_held(outside: Outside) -> None:
    """Ask for a refund on a bare connection, wait until it is held, and leave."""
    body = json.dumps(REFUND_BODY).encode()
    host, port = outside.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as sock:
        head = f"POST {REFUND} HTTP/1.1\r\nHost: {host}\r\nIdempotency-Key: k-1\r\n"
        sock.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        until(outside.held)
    until(lambda: not outside.held())


class TestOrders:
    def test_it_loads_an_order_and_shows_its_version(self, outside: Outside, client: httpx.Client) -> None:
        outside.load("1042")
        answer = client.get("/orders/1042")
        assert answer.headers["ETag"] == '"1"'
        assert answer.json() == {
            "id": "1042",
            "supplier": "Nord GmbH",
            "email": "pay@nord.example",
            "amount": "120.00",
            "currency": "EUR",
            "ticket": "T-1042",
            "version": 1,
        }

    def test_loading_the_same_again_changes_nothing(self, outside: Outside) -> None:
        assert outside.load("1042")["version"] == outside.load("1042")["version"] == 1
        assert outside.load("1042", amount="7.00")["version"] == 2

    def test_touching_moves_the_version_and_the_amount(self, outside: Outside, client: httpx.Client) -> None:
        outside.load("1042")
        assert client.post("/control/orders/1042/touch").json()["version"] == 2
        moved = client.post("/control/orders/1042/touch", json={"amount": "99.00"}).json()
        assert (moved["version"], moved["amount"]) == (3, "99.00")

    def test_chinese_names_come_back_as_they_were(self, outside: Outside, client: httpx.Client) -> None:
        outside.load("订单7", supplier="深圳市华强电子有限公司")
        assert client.get("/orders/订单7").json()["supplier"] == "深圳市华强电子有限公司"

    @pytest.mark.parametrize("amount", ["-1.00", "1", "1.0", "1e3", "NaN", "01.00", "1.00\n", "١.00"])
    def test_it_refuses_amounts_that_are_not_money(self, outside: Outside, amount: str) -> None:
        with pytest.raises(httpx.HTTPStatusError, match="400"):
            outside.load("1042", amount=amount)


class TestRefunds:
    def test_it_pays_once_per_key(self, outside: Outside, client: httpx.Client) -> None:
        outside.load("1042")
        first, again = refund(client), refund(client)
        assert (first.status_code, again.status_code) == (201, 200)
        assert again.headers["Idempotent-Replayed"] == "true"
        assert again.json() == first.json()
        assert first.json()["account"] == "acct_demo"
        assert outside.ledger()["operations"] == {"refund:1042": 1}

    def test_a_key_with_another_request_is_refused(self, outside: Outside, client: httpx.Client) -> None:
        outside.load("1042")
        refund(client)
        assert refund(client, amount="119.00").json()["error"] == "key_reused"
        assert refund(client, operation_id="refund:1042#1").status_code == 422
        assert outside.ledger()["totals"]["refunds"] == 1

    def test_a_forgotten_key_pays_twice_and_the_ledger_says_so(
        self, outside: Outside, client: httpx.Client
    ) -> None:
        outside.load("1042")
        outside.set(key_retention=0)
        assert [refund(client).status_code, refund(client).status_code] == [201, 201]
        assert outside.ledger()["duplicated"] == ["refund:1042"]

    @pytest.mark.parametrize(
        ("other", "status", "error"),
        [
            ({"order": "nowhere"}, 404, "order_unknown"),
            ({"amount": "120.01"}, 422, "amount_refused"),
            ({"amount": "0.00"}, 422, "amount_refused"),
            ({"amount": "-5.00"}, 400, "body_refused"),
            ({"currency": "USD"}, 422, "order_mismatch"),
            ({"supplier": "Somebody else"}, 422, "order_mismatch"),
            ({"if_match": '"2"'}, 412, "order_changed"),
            ({"key": ""}, 400, "key_missing"),
            ({"operation_id": "  "}, 400, "body_refused"),
            ({"note": "unknown field"}, 400, "body_refused"),
        ],
    )
    def test_a_refused_request_executes_nothing(
        self, outside: Outside, client: httpx.Client, other: dict[str, str], status: int, error: str
    ) -> None:
        outside.load("1042")
        answer = refund(client, **other)
        assert (answer.status_code, answer.json()["error"]) == (status, error)
        assert outside.ledger()["totals"]["executed"] == 0

    def test_it_is_found_by_its_operation_id(self, outside: Outside, client: httpx.Client) -> None:
        outside.load("1042")
        made = refund(client, if_match='"1"').json()
        assert refunds(client) == [made]
        assert made["status"] == "final"
        assert refunds(client, "refund:1") == []

    def test_it_can_be_pending(self, outside: Outside, client: httpx.Client) -> None:
        outside.load("1042")
        outside.set(pending_seconds=0.5)
        assert refund(client).json()["status"] == "pending"
        until(lambda: refunds(client)[0]["status"] == "final")

    def test_many_at_once_under_one_key_pay_once(self, outside: Outside) -> None:
        outside.load("1042")
        barrier, answers = threading.Barrier(8), list[int]()

        def ask() -> None:
            with outside.client() as client:
                barrier.wait()
                answers.append(refund(client).status_code)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answers) == [200] * 7 + [201]
        assert outside.ledger()["totals"]["refunds"] == 1


class TestMailAndTickets:
    def test_it_mails_once_per_key(self, outside: Outside, client: httpx.Client) -> None:
        body = {"operation_id": "mail:1042", "to": "a@b.example", "subject": "Refund", "text": "Hello\nyou"}
        first = client.post("/mail/messages", json=body, headers={"Idempotency-Key": "m"})
        again = client.post("/mail/messages", json=body, headers={"Idempotency-Key": "m"})
        assert again.json() == first.json()
        assert client.get("/mail/messages", params={"operation_id": "mail:1042"}).json() == [first.json()]

    def test_it_closes_a_ticket_once(self, outside: Outside, client: httpx.Client) -> None:
        outside.load("1042")
        assert client.get("/tickets/T-1042").json()["state"] == "open"
        body, path = {"operation_id": "close:T-1042"}, "/tickets/T-1042/close"
        first = client.post(path, json=body, headers={"Idempotency-Key": "c"})
        assert client.post(path, json=body, headers={"Idempotency-Key": "c"}).json() == first.json()
        other = client.post(path, json=body, headers={"Idempotency-Key": "d"})
        assert (other.status_code, other.json()["by"]) == (409, "close:T-1042")
        assert client.get("/tickets/T-1042").json()["closure"] == first.json()
        assert client.get("/tickets/T-9").status_code == 404


class TestFaults:
    def test_it_executes_and_holds_the_answer(self, outside: Outside, client: httpx.Client) -> None:
        outside.load("1042")
        outside.set(hold_after=1, match_operation="refund:1042")
        leave_while_held(outside)
        assert len(refunds(client)) == 1
        assert refund(client).headers["Idempotent-Replayed"] == "true"

    def test_a_held_answer_arrives_when_released(self, outside: Outside, client: httpx.Client) -> None:
        outside.load("1042")
        outside.set(hold_after=1)
        answers = list[int]()
        thread = threading.Thread(target=lambda: answers.append(refund(client).status_code))
        thread.start()
        assert until(outside.held)[0]["operation_id"] == "refund:1042"
        with outside.client() as other:
            assert other.post("/control/release").json() == {"released": 1}
        thread.join()
        assert answers == [201]

    def test_a_client_that_leaves_before_executing_was_never_served(
        self, outside: Outside, client: httpx.Client
    ) -> None:
        outside.load("1042")
        outside.set(hold_before=1)
        leave_while_held(outside)
        assert refunds(client) == []
        assert refund(client).status_code == 201

    def test_it_executes_and_drops_the_connection(self, outside: Outside, client: httpx.Client) -> None:
        outside.load("1042")
        outside.set(drop_after=1)
        refund_and_expect_nothing(outside).join()
        assert len(refunds(client)) == 1

    def test_the_faults_hit_only_what_they_are_meant_for(
        self, outside: Outside, client: httpx.Client
    ) -> None:
        outside.load("1042")
        outside.set(drop_after=1, match_operation="refund:7", match_path="/payments/")
        assert refund(client).status_code == 201
        assert client.get("/control/switches").json()["drop_after"] == 1

    def test_a_refused_write_does_not_use_up_a_fault(self, outside: Outside, client: httpx.Client) -> None:
        outside.set(drop_after=1)
        assert refund(client).status_code == 404
        assert client.get("/control/switches").json()["drop_after"] == 1

    def test_slow_serves_also_a_client_that_has_left(self, outside: Outside, client: httpx.Client) -> None:
        outside.load("1042")
        outside.set(slow_seconds=0.4, match_path=REFUND, match_operation="refund:1042")
        with outside.client(timeout=0.1) as hasty, pytest.raises(httpx.ReadTimeout):
            refund(hasty)
        until(lambda: outside.ledger()["totals"]["refunds"] == 1)

    def test_an_outage_refuses_questions_only(self, outside: Outside, client: httpx.Client) -> None:
        outside.load("1042")
        outside.set(outage=True)
        assert refund(client).status_code == 201
        assert client.get(REFUND, params={"operation_id": "refund:1042"}).status_code == 503
        assert client.get("/tickets/T-1042").status_code == 503
        assert client.get("/orders/1042").status_code == 200

    def test_down_refuses_everything_but_the_control(self, outside: Outside, client: httpx.Client) -> None:
        outside.load("1042")
        outside.set(down=True)
        assert refund(client).status_code == 503
        assert client.get("/orders/1042").status_code == 503
        assert outside.ledger()["totals"]["executed"] == 0

    def test_it_answers_a_web_page_or_half_an_answer(self, outside: Outside, client: httpx.Client) -> None:
        outside.load("1042")
        outside.set(answer_as="html")
        assert client.get("/orders/1042").headers["Content-Type"].startswith("text/html")
        outside.set(answer_as="truncated")
        with pytest.raises(ValueError, match=r"Unterminated|delimiter|Expecting"):
            client.get("/orders/1042").json()

    @pytest.mark.parametrize("switches", [{"hold_aftre": 1}, {"hold_after": -1}, {"outage": "yes"}, {}, []])
    def test_switches_are_strict(self, outside: Outside, client: httpx.Client, switches: object) -> None:
        answer = client.post("/control/switches", json=switches)
        assert answer.status_code == (200 if switches == {} else 400)


class TestCrashes:
    def test_nothing_acknowledged_is_lost_by_a_kill(self, tmp_path: Path) -> None:
        outside = Outside(tmp_path).start()
        outside.load("1042")
        outside.set(outage=True, hold_after=2)
        outside.set(hold_after=0)
        with outside.client() as client:
            made = refund(client).json()
        outside.kill()
        with outside, outside.client() as client:
            assert client.get("/control/switches").json()["outage"] is True
            outside.set(outage=False)
            assert refunds(client) == [made]
            assert refund(client).json() == made

    def test_a_torn_last_line_is_dropped(self, tmp_path: Path) -> None:
        outside = Outside(tmp_path).start()
        outside.load("1042")
        assert outside.stop() == 0
        journal = tmp_path / "journal.jsonl"
        whole = journal.read_bytes()
        journal.write_bytes(whole + b'{"type":"executed","execution":{"id":"rf_1"')
        with outside, outside.client() as client:
            assert refunds(client) == []
            assert journal.read_bytes() == whole
            assert refund(client).status_code == 201

    def test_a_damaged_line_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "journal.jsonl").write_text("not a record\n{}\n")
        with pytest.raises(AssertionError, match="line 1"):
            Outside(tmp_path).start()

    def test_a_held_answer_does_not_outlive_a_kill_and_what_was_executed_does(self, tmp_path: Path) -> None:
        outside = Outside(tmp_path).start()
        outside.load("1042")
        outside.set(hold_after=1)
        thread = refund_and_expect_nothing(outside)
        until(outside.held)
        outside.kill()
        thread.join()
        with outside, outside.client() as client:
            assert outside.held() == []
            assert len(refunds(client)) == 1

    def test_a_port_that_is_taken_is_said(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            command = [sys.executable, "-m", "examples.sandbox", "--port", port, "--home", str(tmp_path)]
            ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20, check=False)
        assert ended.returncode == 1
        assert "cannot start" in ended.stderr

    def test_two_processes_do_not_share_a_home(self, tmp_path: Path) -> None:
        with Outside(tmp_path), pytest.raises(AssertionError, match="in use"):
            Outside(tmp_path).start()


class TestPage:
    def test_it_shows_orders_executions_and_escapes_everything(
        self, outside: Outside, client: httpx.Client
    ) -> None:
        hostile = "<script>alert(1)</script>"
        outside.load("1042", supplier=hostile)
        refund(client, supplier=hostile)
        page = client.get("/").text
        assert hostile not in page
        assert "&lt;script&gt;" in page
        assert "refund:1042" in page
        assert "Refunds executed: 1. Operations executed more than once: 0." in page

    def test_a_person_ends_the_outage(self, outside: Outside, client: httpx.Client) -> None:
        outside.set(outage=True, hold_after=1, key_retention=30)
        assert "End the outage" in client.get("/").text
        answer = client.post("/control/end-outage", data={"x": ""})
        assert (answer.status_code, answer.headers["Location"]) == (303, "/")
        switches = client.get("/control/switches").json()
        assert (switches["outage"], switches["hold_after"], switches["key_retention"]) == (False, 0, 30)
        assert "Everything is in order" in client.get("/").text

    def test_a_person_moves_switches_and_orders(self, outside: Outside, client: httpx.Client) -> None:
        outside.load("1042")
        assert client.post("/control/switches", data={"outage": "true", "hold_after": "2"}).status_code == 303
        assert client.get("/control/switches").json()["hold_after"] == 2
        assert client.post("/control/orders/1042/touch", data={"amount": "5.00"}).status_code == 303
        assert client.get("/orders/1042").json()["amount"] == "5.00"

    def test_the_policy_allows_no_script(self, client: httpx.Client) -> None:
        assert "default-src 'none'" in client.get("/").headers["Content-Security-Policy"]
        assert client.get("/style.css").status_code == 200

    def test_other_sites_may_not_move_anything(self, client: httpx.Client) -> None:
        crossed = client.post(
            "/control/switches", json={"down": True}, headers={"Sec-Fetch-Site": "cross-site"}
        )
        rebound = client.get("/control/orders", headers={"Host": "evil.example"})
        assert (crossed.status_code, rebound.status_code) == (403, 403)

    @pytest.mark.parametrize(
        ("method", "path", "status"),
        [("GET", "/nowhere", 404), ("PUT", "/", 405), ("POST", "/orders/1", 405), ("DELETE", "/", 501)],
    )
    def test_unknown_paths_and_methods(
        self, client: httpx.Client, method: str, path: str, status: int
    ) -> None:
        assert client.request(method, path).status_code == status

    def test_a_body_too_large_is_refused(self, client: httpx.Client) -> None:
        answer = client.post("/control/switches", content=b" " * 70_000)
        assert answer.status_code == 413
