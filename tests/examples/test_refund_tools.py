"""The tools against the real service: what is certain is said so, everything else is ambiguous."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from examples.refunds.csvfile import read_orders
from examples.refunds.shop import ORDERS, load_orders
from examples.refunds.tools.base import ServiceTool
from examples.refunds.tools.mail import MailSupplier
from examples.refunds.tools.orders import LookupOrder
from examples.refunds.tools.payments import RefundSupplier
from examples.refunds.tools.tickets import CloseTicket, ReopenTicket
from runs.tools import Ambiguous, ArgumentsRefused, Call, Executed, Found, Refused, Unreadable
from tests.examples.outside import Outside

SECOND = timedelta(seconds=1)
REFUND = {"order": "1042", "supplier": "深圳市 Nord", "amount": "120.00", "currency": "EUR"}
MAIL = {"order": "1042", "to": "pay@nord.example", "subject": "Refund", "text": "Hello\nyou"}
CLOSE = {"ticket": "T-1042"}

EACH = pytest.mark.parametrize(
    ("tool", "arguments"),
    [(RefundSupplier(), REFUND), (MailSupplier(), MAIL), (CloseTicket(), CLOSE)],
    ids=["refund", "mail", "close"],
)


def a_call(tool: ServiceTool, arguments: dict[str, str], *, key: str = "a" * 64) -> Call:
    """The first send of an effect."""
    return Call(arguments=arguments, operation_id=tool.operation_id(arguments), key=key, timeout=SECOND)


@pytest.fixture
def service(outside: Outside, monkeypatch: pytest.MonkeyPatch) -> Outside:
    """The service that the tools find, with one order in it."""
    monkeypatch.setenv("REFUNDS_SERVICE_URL", outside.url)
    outside.load("1042", supplier="深圳市 Nord")
    return outside


@contextmanager
def answering(monkeypatch: pytest.MonkeyPatch, answer: bytes) -> Iterator[None]:
    """A service that sends these bytes to one caller whatever it is asked, and closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("REFUNDS_SERVICE_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
        thread = threading.Thread(target=_answer_once, args=(server, answer))
        thread.start()
        yield
        thread.join()


def _answer_once(server: socket.socket, answer: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass


def http(body: str, *, status: str = "200 OK", kind: str = "application/json", more: int = 0) -> bytes:
    """An answer, announcing `more` bytes than it has."""
    content = body.encode()
    head = f"HTTP/1.1 {status}\r\nAccount: acct_demo\r\nContent-Type: {kind}\r\n"
    return f"{head}Content-Length: {len(content) + more}\r\n\r\n".encode() + content


class TestEffects:
    @EACH
    def test_it_executes_and_the_evidence_proves_it(
        self, service: Outside, tool: ServiceTool, arguments: dict[str, str]
    ) -> None:
        answer = tool.call(a_call(tool, arguments))
        assert isinstance(answer, Executed)
        assert answer.account == tool.account
        assert tool.postcondition(arguments, answer.evidence) is None
        assert service.ledger()["operations"] == {tool.operation_id(arguments): 1}

    @EACH
    def test_the_same_call_again_executes_nothing(
        self, service: Outside, tool: ServiceTool, arguments: dict[str, str]
    ) -> None:
        first, again = (tool.call(a_call(tool, arguments)) for _ in range(2))
        assert first == again
        assert service.ledger()["totals"]["executed"] == 1

    @EACH
    def test_a_question_finds_it(
        self, service: Outside, tool: ServiceTool, arguments: dict[str, str]
    ) -> None:
        call = a_call(tool, arguments)
        executed = tool.call(call)
        assert isinstance(executed, Executed)
        found = tool.query(call)
        assert isinstance(found, Found)
        (match,) = found.matches
        assert (match.reference, match.operation_id, match.key) == (
            executed.reference,
            call.operation_id,
            call.key,
        )
        assert (match.account, match.final, found.account) == ("acct_demo", True, "acct_demo")
        assert match.arguments.items() <= arguments.items()
        assert tool.postcondition(arguments, found.evidence) is None

    @EACH
    def test_a_question_before_it_finds_nothing(
        self, service: Outside, tool: ServiceTool, arguments: dict[str, str]
    ) -> None:
        found = tool.query(a_call(tool, arguments))
        assert isinstance(found, Found)
        assert (found.matches, found.account) == ((), "acct_demo")

    @EACH
    def test_another_round_is_another_operation(
        self, service: Outside, tool: ServiceTool, arguments: dict[str, str]
    ) -> None:
        call = a_call(tool, arguments)
        tool.call(call)
        found = tool.query(replace(call, operation_id=f"{call.operation_id}#1"))
        assert isinstance(found, Found)
        assert found.matches == ()


class TestRefusals:
    @pytest.mark.parametrize("change", [{"order": "nowhere"}, {"amount": "120.01"}, {"currency": "USD"}])
    def test_what_the_service_refuses_is_definite(self, service: Outside, change: dict[str, str]) -> None:
        tool, arguments = RefundSupplier(), REFUND | change
        answer = tool.call(a_call(tool, arguments))
        assert isinstance(answer, Refused)
        assert answer.evidence["message"] == answer.detail
        assert service.ledger()["totals"]["executed"] == 0

    def test_the_version_that_the_plan_rests_on_goes_with_the_refund(self, service: Outside) -> None:
        tool = RefundSupplier()
        call = replace(a_call(tool, REFUND), expects={"order:1042": "2"})
        assert isinstance(tool.call(call), Refused)
        assert isinstance(tool.call(replace(call, expects={"order:1042": "1"})), Executed)

    def test_a_key_that_was_used_for_something_else_is_not_a_refusal(self, service: Outside) -> None:
        tool = RefundSupplier()
        tool.call(a_call(tool, REFUND))
        assert isinstance(tool.call(a_call(tool, REFUND | {"amount": "5.00"})), Ambiguous)

    def test_a_ticket_is_opened_again_and_can_be_closed_again(self, service: Outside) -> None:
        close, reopen = CloseTicket(), ReopenTicket()
        assert isinstance(reopen.call(a_call(reopen, CLOSE, key="r")), Refused)
        assert isinstance(close.call(a_call(close, CLOSE)), Executed)
        assert dict(close.undo_arguments(CLOSE, "cl_1")) == reopen.validate(CLOSE)

        done = reopen.call(a_call(reopen, CLOSE, key="r"))
        found = reopen.query(a_call(reopen, CLOSE, key="r"))

        assert isinstance(done, Executed) and isinstance(found, Found)
        assert [match.reference for match in found.matches] == [done.reference]
        for evidence in (done.evidence, found.evidence):
            assert reopen.postcondition(CLOSE, evidence) is None
        anew = replace(a_call(close, CLOSE, key="b"), operation_id="close:ticket-T-1042#1")
        assert isinstance(close.call(anew), Executed)
        assert service.ledger()["totals"]["closures"] == 2

    def test_a_ticket_closed_by_someone_else_is_refused(self, service: Outside) -> None:
        tool = CloseTicket()
        call = a_call(tool, CLOSE)
        tool.call(replace(call, operation_id="close:by-hand", key="b"))
        assert isinstance(tool.call(call), Refused)
        found = tool.query(call)
        assert isinstance(found, Found)
        assert found.matches == ()

    @pytest.mark.parametrize(
        "change", [{"amount": "1.5"}, {"amount": "-1.00"}, {"amount": "1.00\n"}, {"note": "x"}]
    )
    def test_arguments_are_strict(self, change: dict[str, str]) -> None:
        with pytest.raises(ArgumentsRefused):
            RefundSupplier().validate(REFUND | change)


class TestAmbiguity:
    @pytest.mark.parametrize(
        "switches",
        [{"down": True}, {"drop_after": 1}, {"answer_as": "html"}, {"answer_as": "truncated"}],
        ids=["down", "dropped", "html", "truncated"],
    )
    @EACH
    def test_a_broken_answer_is_ambiguous(
        self, service: Outside, tool: ServiceTool, arguments: dict[str, str], switches: dict[str, object]
    ) -> None:
        service.set(**switches)
        assert isinstance(tool.call(a_call(tool, arguments)), Ambiguous)

    @pytest.mark.parametrize(
        "switches",
        [{"outage": True}, {"down": True}, {"answer_as": "html"}, {"answer_as": "truncated"}],
        ids=["outage", "down", "html", "truncated"],
    )
    @EACH
    def test_a_broken_answer_to_a_question_is_ambiguous(
        self, service: Outside, tool: ServiceTool, arguments: dict[str, str], switches: dict[str, object]
    ) -> None:
        service.set(**switches)
        assert isinstance(tool.query(a_call(tool, arguments)), Ambiguous)

    def test_a_held_answer_is_ambiguous_after_the_limit_and_found_afterwards(self, service: Outside) -> None:
        service.set(hold_after=1)
        tool = RefundSupplier()
        call = replace(a_call(tool, REFUND), timeout=timedelta(seconds=0.3))
        answer = tool.call(call)
        assert isinstance(answer, Ambiguous)
        assert "0.3 seconds" in answer.detail
        found = tool.query(call)
        assert isinstance(found, Found)
        assert len(found.matches) == 1

    def test_pending_is_ambiguous_and_found_as_not_final(self, service: Outside) -> None:
        service.set(pending_seconds=60)
        tool = RefundSupplier()
        call = a_call(tool, REFUND)
        assert isinstance(tool.call(call), Ambiguous)
        found = tool.query(call)
        assert isinstance(found, Found)
        assert [match.final for match in found.matches] == [False]
        assert tool.postcondition(REFUND, found.evidence) == "It is still pending."

    def test_a_service_that_is_not_there_is_ambiguous(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        monkeypatch.setenv("REFUNDS_SERVICE_URL", f"http://127.0.0.1:{port}")
        tool = RefundSupplier()
        assert isinstance(tool.call(a_call(tool, REFUND)), Ambiguous)
        assert isinstance(tool.query(a_call(tool, REFUND)), Ambiguous)

    @pytest.mark.parametrize(
        "answer",
        [
            b"",
            b"HTTP/1.1 200 OK\r\n",
            b"nonsense\r\n\r\n",
            http("{}"),
            http("[]"),
            http("null"),
            http('{"id": NaN}'),
            http('{"id": "rf_1"}', more=10),
            http("<p>ok", kind="text/html"),
            http("{}", status="302 Found"),
            http("{}", status="404 Not Found"),
            http("<p>no", status="404 Not Found", kind="text/html"),
            http('{"error": "x", "message": "y"}', status="500 Oops"),
            http("[" * 100_000),
            http('{"a": "\\ud800"}'),
        ],
    )
    def test_no_bytes_are_taken_for_success_or_refusal(
        self, monkeypatch: pytest.MonkeyPatch, answer: bytes
    ) -> None:
        tool = RefundSupplier()
        with answering(monkeypatch, answer):
            assert isinstance(tool.call(a_call(tool, REFUND)), Ambiguous)

    @pytest.mark.parametrize("field", ["operation_id", "key"])
    def test_an_answer_about_another_request_is_ambiguous(
        self, service: Outside, monkeypatch: pytest.MonkeyPatch, field: str
    ) -> None:
        tool = RefundSupplier()
        answer = tool.call(a_call(tool, REFUND))
        assert isinstance(answer, Executed)
        with answering(monkeypatch, http(json.dumps(answer.evidence | {field: "other"}))):
            assert isinstance(tool.call(a_call(tool, REFUND)), Ambiguous)

    def test_a_service_that_drips_is_cut_off_at_the_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stop = threading.Event()

        def drip(server: socket.socket) -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(http("", more=100_000))
                while not stop.wait(0.05):
                    connection.sendall(b" ")

        with socket.create_server(("127.0.0.1", 0)) as server:
            monkeypatch.setenv("REFUNDS_SERVICE_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
            thread = threading.Thread(target=drip, args=(server,))
            thread.start()
            tool = RefundSupplier()
            answer = tool.call(replace(a_call(tool, REFUND), timeout=timedelta(seconds=0.4)))
            stop.set()
            thread.join()
        assert isinstance(answer, Ambiguous)
        assert "0.4 seconds" in answer.detail


class TestPostconditions:
    def evidence(self, **changes: str) -> dict[str, Any]:
        """What the service says of the refund."""
        record = REFUND | {
            "id": "rf_1",
            "operation_id": "refund:order-1042",
            "key": "k",
            "account": "acct_demo",
            "status": "final",
            "created_at": "2026-01-01T00:00:00+00:00",
        }
        return record | changes

    @pytest.mark.parametrize(
        ("changes", "wrong"),
        [
            ({}, None),
            ({"amount": "12.00"}, "amount was ordered as 120.00 and done as 12.00."),
            ({"supplier": "Nord"}, "supplier was ordered as 深圳市 Nord and done as Nord."),
            ({"account": "acct_live"}, "It was done in the account acct_live."),
            ({"status": "pending"}, "It is still pending."),
            ({"status": "failed"}, "The evidence does not show exactly one record."),
        ],
    )
    def test_it_compares_the_record_with_the_order(self, changes: dict[str, str], wrong: str | None) -> None:
        assert RefundSupplier().postcondition(REFUND, self.evidence(**changes)) == wrong

    @pytest.mark.parametrize("count", [0, 2])
    def test_none_or_two_records_prove_nothing(self, count: int) -> None:
        evidence = [self.evidence()] * count
        assert RefundSupplier().postcondition(REFUND, evidence) is not None

    @pytest.mark.parametrize("evidence", [None, "done", {"claim": "I refunded it"}, 7])
    def test_a_claim_is_no_evidence(self, evidence: object) -> None:
        assert RefundSupplier().postcondition(REFUND, evidence) is not None
        assert CloseTicket().postcondition(CLOSE, evidence) is not None


class TestLookup:
    def read(self, order: str = "1042") -> Any:
        """Look an order up."""
        return LookupOrder().read({"order": order}, timeout=SECOND)

    def test_it_reads_the_order_and_its_version(self, service: Outside) -> None:
        reading = self.read()
        assert (reading.resource, reading.version) == ("order:1042", "1")
        assert reading.value["supplier"] == "深圳市 Nord"
        with service.client() as client:
            client.post("/control/orders/1042/touch")
        assert self.read().version == "2"

    def test_an_unknown_order_is_a_fact(self, service: Outside) -> None:
        reading = self.read("nowhere")
        assert (reading.value, reading.version) == (None, "absent")

    @pytest.mark.parametrize("switches", [{"down": True}, {"answer_as": "html"}, {"answer_as": "truncated"}])
    def test_it_never_guesses(self, service: Outside, switches: dict[str, object]) -> None:
        service.set(**switches)
        with pytest.raises(Unreadable):
            self.read()

    def test_slow_is_unreadable(self, service: Outside) -> None:
        service.set(slow_seconds=0.5)
        with pytest.raises(Unreadable, match=r"0\.1 seconds"):
            LookupOrder().read({"order": "1042"}, timeout=timedelta(seconds=0.1))


def test_the_demo_orders_can_be_loaded_again_and_again(service: Outside) -> None:
    rows = read_orders(ORDERS.read_bytes())
    assert (load_orders(rows), load_orders(rows)) == (25, 0)
    reading = LookupOrder().read({"order": "1002"}, timeout=SECOND)
    assert (reading.value["supplier"], reading.version) == ("深圳市华强电子有限公司", "1")


def test_a_tool_works_where_an_event_loop_runs(service: Outside) -> None:
    service.load("1042", "120.00")

    async def inside() -> str:
        return LookupOrder().read({"order": "1042"}, timeout=SECOND).version

    assert asyncio.run(inside()) == LookupOrder().read({"order": "1042"}, timeout=SECOND).version
