"""The flush at the end of a turn, when one connection's goes wrong."""

from typing import Any

import pytest

from fanlight_broker.net.flush import Flusher, SocketSink
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.outbox import Outbox
from tests.broker.wire.publisher import Publisher, message, native_target


class Transport:
    """Takes what is written, unless it is broken: then writing raises, as no transport should."""

    def __init__(self, broken: bool) -> None:
        self.broken = broken
        self.written = b""
        self.aborted = False

    def write(self, octets: bytes) -> None:
        if self.broken:
            raise RuntimeError("out of order")
        self.written += octets

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None:
        self.aborted = True


def test_a_fault_costs_its_own_connection_and_the_others_are_flushed_in_the_same_turn() -> None:
    ledger = Ledger(1 << 20, lambda: None)
    faults: list[tuple[Outbox, str]] = []
    flusher = Flusher(ledger, lambda outbox, error: faults.append((outbox, str(error))))
    transports = [Transport(broken=False), Transport(broken=True), Transport(broken=False)]
    outboxes = []
    for transport in transports:
        outbox = Outbox(ledger, 1 << 16, "pause")
        writable: Any = transport
        outbox.sink = SocketSink(outbox, writable, lambda outbox: None)
        outbox.write(b"frame")
        outboxes.append(outbox)

    flusher.flush()

    assert [transport.written for transport in transports] == [b"frame", b"", b"frame"]
    assert [transport.aborted for transport in transports] == [False, True, False]
    assert faults == [(outboxes[1], "out of order")]


def test_an_outbox_that_a_full_socket_leaves_half_full_is_reported_each_time_it_becomes_so() -> None:
    ledger = Ledger(1 << 20, lambda: None)
    flusher = Flusher(ledger, lambda outbox, error: None)
    transport = Transport(broken=False)
    outbox = Outbox(ledger, 10_000, "drop_newest")
    writable: Any = transport
    outbox.sink = sink = SocketSink(outbox, writable, lambda outbox: None)
    for turn in range(1, 3):
        sink.paused()
        outbox.write(bytes(5_000))
        flusher.flush()
        assert ledger.attention == [outbox] * (turn - 1)
        for _ in range(2):
            outbox.write(bytes(100))
            flusher.flush()
        assert ledger.attention == [outbox] * turn
        sink.resumed()
    assert not outbox.noticed
    assert transport.written == bytes(2 * 5_200)


def test_a_fault_while_a_message_asks_for_room_is_not_its_publishers() -> None:
    ledger = Ledger(1 << 20, lambda: None)
    faults: list[tuple[Outbox, str]] = []
    flusher = Flusher(ledger, lambda outbox, error: faults.append((outbox, str(error))))
    transports = [Transport(broken=True), Transport(broken=False)]
    outboxes = []
    for transport in transports:
        outbox = Outbox(ledger, 1_000, "drop_newest")
        writable: Any = transport
        outbox.sink = SocketSink(outbox, writable, lambda outbox: None)
        outboxes.append(outbox)
    publisher = Publisher(ledger)
    publisher.route(b"t", [native_target(outbox, 1) for outbox in outboxes])
    payloads = [bytes((n,)) * 600 for n in range(4)]

    for payload in payloads:
        assert publisher.publish(b"t", payload)
    assert faults == []  # the end of the turn is the time for that
    flusher.flush()
    flusher.flush()

    assert transports[1].written == b"".join(message(1, b"t", payload) for payload in payloads)
    assert [transport.aborted for transport in transports] == [True, False]
    assert faults == [(outboxes[0], "out of order")]
    assert outboxes[0].closed


def test_what_a_call_puts_into_outboxes_is_flushed_when_it_is_over() -> None:
    """An acknowledgement does not wait for the loop's next turn."""
    ledger = Ledger(1 << 20, lambda: None)
    flusher = Flusher(ledger, lambda outbox, error: None)
    transport: Any = Transport(broken=False)
    outbox = Outbox(ledger, 1 << 16, "pause")
    outbox.sink = SocketSink(outbox, transport, lambda outbox: None)
    assert flusher.at_end(lambda: outbox.write(b"lost")) is False

    def then() -> None:
        assert flusher.at_end(lambda: outbox.write(b" last")) is True
        flusher.call(lambda: outbox.write(b"first"))  # within it: the flush is that of the whole
        assert transport.written == b""

    flusher.call(then)
    assert transport.written == b"first last"
    flusher.call(lambda: outbox.write(b", again"))
    assert transport.written == b"first last, again"


def test_what_raises_in_a_call_does_not_hold_up_the_flush() -> None:
    ledger = Ledger(1 << 20, lambda: None)
    flusher = Flusher(ledger, lambda outbox, error: None)
    transport: Any = Transport(broken=False)
    outbox = Outbox(ledger, 1 << 16, "pause")
    outbox.sink = SocketSink(outbox, transport, lambda outbox: None)

    def fail() -> None:
        outbox.write(b"sent")
        flusher.at_end(fail_again)
        raise RuntimeError("in the call")

    def fail_again() -> None:
        raise RuntimeError("at its end")

    with pytest.raises(RuntimeError, match="at its end"):
        flusher.call(fail)
    assert transport.written == b"sent"
    assert flusher.at_end(fail) is False
