"""The broker, whichever it is: asked in vain it holds nobody up, and what nobody reads does not stay with it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from console.celery import app
from console.embedded.identity import wait_until
from console.health import broker as broker_health
from runs.outbox import broker_errors, wake
from tests.fixtures.brokers import Broker, RabbitMQ, killed

#: A page that a person waits for takes no longer because of it.
BEARABLE_SECONDS = 7.0


def _wake() -> bool:
    return wake(run_id="00000000-0000-0000-0000-000000000000", agent="brokertest", version="1")


def _wake_in_time() -> bool:
    began = time.monotonic()
    taken = _wake()
    assert time.monotonic() - began < BEARABLE_SECONDS
    return taken


def _taken() -> bool:
    """A connection from before a restart fails once."""
    return wait_until(_wake, seconds=10, every=0.1)


@contextmanager
def _stopped(broker: Broker) -> Iterator[None]:
    """It takes connections and says nothing, as one does whose machine is out of breath."""
    assert broker.child.process
    os.kill(broker.child.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(broker.child.process.pid, signal.SIGCONT)


def test_a_dead_broker_is_not_waited_for(broker: Broker) -> None:
    assert _taken()
    with killed(broker):
        began = time.monotonic()
        assert [_wake(), _wake()] == [False, False]
        assert time.monotonic() - began < 1
        with pytest.raises(broker_errors()):
            broker_health()
    assert _taken()


def test_a_broker_that_says_nothing_is_not_waited_for_long(broker: Broker) -> None:
    assert _taken()
    with _stopped(broker):
        assert not _wake_in_time()
        assert not _wake_in_time()
    assert _taken()


def test_health_names_it(broker: Broker) -> None:
    assert broker_health() == {"server": broker.name}


@pytest.mark.rabbitmq
def test_a_queue_that_nobody_reads_ends_with_what_is_in_it(broker: RabbitMQ) -> None:
    """So old versions of agents leave nothing behind; and no message is worth a disk."""
    assert _taken()
    told = broker.control(
        "list_queues", "name", "arguments", "messages_persistent", "messages", "--no-table-headers"
    )
    lines = {line.split("\t")[0]: line.split("\t")[1:] for line in told.splitlines()}
    arguments, on_disk, waiting = lines["agent.brokertest.1"]
    assert '{"x-message-ttl",60000}' in arguments
    assert '{"x-expires",3600000}' in arguments
    assert on_disk == "0"
    assert int(waiting) > 0


@pytest.mark.rabbitmq
def test_a_full_broker_is_not_waited_for_long(broker: RabbitMQ) -> None:
    """It blocks whoever sends once memory or disk are short, and answers that connection nothing more."""
    assert _taken()
    broker.control("set_vm_memory_high_watermark", "absolute", "1")
    try:
        while _wake_in_time():
            time.sleep(0.1)
    finally:
        broker.control("set_vm_memory_high_watermark", "0.4")
    assert _taken()


@pytest.mark.rabbitmq
@pytest.mark.parametrize("wrong", ["guest:wrong@127.0.0.1:{port}//", "guest:guest@127.0.0.1:{port}/nowhere"])
def test_a_broker_that_refuses_us_is_not_called_well(
    broker: RabbitMQ, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "amqp://" + wrong.format(port=broker.environment["RABBITMQ_NODE_PORT"])
    with app.connection_for_write(url) as link, pytest.raises(broker_errors()):
        link.ensure_connection(max_retries=0)
