"""Flushing at a rate, straight into a socket: what is sent when, against an oracle, and nothing is lost or torn."""

import socket
from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.net.flush import SocketSink
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.token_bucket import BucketChain, TokenBucket
from tests.broker.wire.publisher import Publisher, message, native_target

LARGE = 40_000  # bytes, of which only the head is copied into an outbox


class Waiting:
    """The transport of a sink that writes into the socket itself; it waits for room, and nothing else."""

    def wait_for_room(self) -> None:
        """The test calls `resumed` when it has read."""

    def write(self, octets: bytes) -> None:
        self.rest += octets

    def __init__(self) -> None:
        self.rest = b""

    def get_write_buffer_size(self) -> int:
        return len(self.rest)

    def is_closing(self) -> bool:
        return False


class Pair:
    """An outbox with a sink, and the other end of its socket."""

    def __init__(self, ledger: Ledger, delivery: BucketChain | None) -> None:
        self.near, self.far = socket.socketpair()
        self.near.setblocking(False)
        self.far.setblocking(False)
        self.outbox = Outbox(ledger, 1 << 24, "pause")
        self.outbox.delivery = delivery
        self.waiting = Waiting()
        transport: Any = self.waiting
        self.sink = self.outbox.sink = SocketSink(self.outbox, transport, lambda outbox: None, self.near.fileno(), True)

    def read(self) -> bytes:
        """All that comes without time passing."""
        found = b""
        while True:
            try:
                found += self.far.recv(1 << 20)
            except BlockingIOError:
                rest = self.waiting.rest
                if not (self.sink.full or rest):
                    return found
                sent = self.near.send(rest) if rest else 0
                self.waiting.rest = rest[sent:]
                if not self.waiting.rest:
                    self.sink.resumed()

    def close(self) -> None:
        self.near.close()
        self.far.close()


STEPS = st.lists(
    st.tuples(st.lists(st.sampled_from([-1, 0, 10, 200, LARGE]), max_size=12), st.integers(0, 16)), max_size=8
)


@given(STEPS, st.integers(1, 8), st.sampled_from([0, 100, 50_000]), st.integers(1, 3), st.booleans())
def test_messages_leave_whole_and_in_order_when_there_are_tokens(
    steps: list[tuple[list[int], int]], rate: int, octets_rate: int, burst: int, wider: bool
) -> None:
    """-1: an answer, which passes if no message waits before it."""
    ledger = Ledger(1 << 30, lambda: None)
    bucket = TokenBucket(rate, octets_rate, burst=burst)
    woken: list[TokenBucket] = []
    bucket.on_wait = woken.append
    chain = BucketChain(TokenBucket(10**6), BucketChain(bucket)) if wider else BucketChain(bucket)
    pair, free = Pair(ledger, chain), Pair(ledger, None)
    try:
        publisher = Publisher(ledger)
        publisher.route(b"t", [native_target(pair.outbox, 1), native_target(free.outbox, 1)])
        tokens, most = Fraction(rate * burst), Fraction(rate * burst)
        octets = octets_most = Fraction(max(1, octets_rate * burst))
        pending: list[tuple[bool, bytes]] = []
        now = 0.0
        for sizes, eighths in steps:
            for size in sizes:
                if size < 0:
                    pair.outbox.write(b"answer")
                    pending.append((False, b"answer"))
                else:
                    assert publisher.publish(b"t", bytes(size))
                    pending.append((True, message(1, b"t", bytes(size))))
            for passed in (Fraction(0), Fraction(eighths, 8)):
                ledger.now = now = now + float(passed)
                tokens = min(tokens + passed * rate, most)
                octets = min(octets + passed * octets_rate, octets_most)
                expected = b""
                while pending and (not pending[0][0] or (tokens >= 1 and (octets >= 1 or not octets_rate))):
                    is_message, frame = pending.pop(0)
                    expected += frame
                    if is_message:
                        tokens -= 1
                        octets -= len(frame)
                if pair.outbox.sits_out and bucket.seconds(ledger.now) == 0:
                    assert bucket.next_waiting() is pair.outbox
                    pair.outbox.sit_no_more()
                else:
                    pair.sink.flush_now()
                free.sink.flush_now()
                assert pair.read() == expected
                assert pair.outbox.sits_out == bool(pending)
                assert bucket.waits == bool(pending)
                free.read()
        assert ledger.used == sum(len(frame) for _, frame in pending)
        assert len(woken) >= bool(pending)
    finally:
        pair.close()
        free.close()


def test_a_chain_owes_as_long_as_one_of_its_buckets_does() -> None:
    small, large = TokenBucket(1), TokenBucket(10)
    chain = BucketChain(small, BucketChain(large))
    assert chain.buckets == (small, large)
    for _ in range(3):
        chain.take(1, 0, 0.0)
    assert chain.owing(0.0) is small
    small.limit(0, 0)
    assert chain.owing(0.0) is None
    chain.take(8, 0, 0.0)
    assert chain.owing(0.0) is large
    assert (small.spent, large.spent) == (11, 11)
