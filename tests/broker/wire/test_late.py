"""Outboxes that are full for long: what drop-oldest leaves behind, what the late share, and who meets the policy."""

import pytest

from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.outbox import BURST, PAUSES, Outbox
from tests.broker.wire.publisher import Publisher, message, native_target, publish


@pytest.mark.parametrize("size", [40, 200, 2_000])
@pytest.mark.parametrize("answers", [0, 1, 50])
def test_drop_oldest_holds_no_more_memory_than_is_counted(size: int, answers: int) -> None:
    """Answers stay at the front, for nobody reads; what is dropped behind them leaves nothing that is not counted."""
    limit, ledger = 256 * 1024, Ledger(1 << 30, lambda: None)
    outbox, publisher = Outbox(ledger, limit, "drop_oldest"), Publisher(ledger)
    publisher.routes.batcher.off = True
    publisher.route(b"t", [native_target(outbox, 1)])
    for n in range(6 * limit // size):
        if n < answers:
            outbox.write(b"answer %3d;" % n)
        publisher.publish(b"t", bytes(size))
        assert ledger.used == outbox.size + outbox.dead
        assert outbox.dead <= 2 * outbox.control_size + 64
    assert outbox.dropped == ledger.dropped_oldest > 4 * limit // (size + 40)
    assert limit - 2 * (size + 40) < outbox.size <= limit
    # Twice what it may hold: the limit, what is dead at the most, and the message that made it grow.
    assert outbox.capacity <= 2 * (limit + 2 * outbox.control_size + 64 + size + 40)
    octets = outbox.read(1 << 20)
    assert octets[: 11 * answers] == b"".join(b"answer %3d;" % n for n in range(answers))
    assert ledger.used == 0


def test_drop_oldest_keeps_what_is_to_be_acknowledged_without_moving_it_for_each_message() -> None:
    """The price of what is kept at the front does not grow with what is dropped behind it."""
    ledger = Ledger(1 << 30, lambda: None)
    outbox, publisher = Outbox(ledger, 64 * 1024, "drop_oldest"), Publisher(ledger)
    publisher.routes.batcher.off = True
    publisher.route(b"t", [native_target(outbox, 1)])
    outbox.write(bytes(30_000))
    most = 0
    for n in range(3_000):
        publisher.publish(b"t", n.to_bytes(2, "big") + bytes(98))
        most = max(most, outbox.dead)
        assert ledger.used == outbox.size + outbox.dead
    assert 29_000 < most <= 30_000 + 100  # it is taken out only when as much is dead
    got = outbox.read(1 << 20)[30_000:]
    size = len(message(1, b"t", bytes(100)))
    kept = [int.from_bytes(got[at + size - 100 : at + size - 98], "big") for at in range(0, len(got), size)]
    assert kept == list(range(3_000 - len(kept), 3_000))


@pytest.mark.parametrize("policy", ["drop_oldest", "drop_newest"])
def test_those_that_are_late_share_the_bodies_of_their_messages(policy: str) -> None:
    ledger, limit = Ledger(1 << 30, lambda: None), 128 * 1024
    outboxes, publisher = [Outbox(ledger, limit, policy) for _ in range(50)], Publisher(ledger)
    publisher.route(b"t", [native_target(outbox, 1) for outbox in outboxes])
    for n in range(100):
        publisher.send(b"".join(publish(b"t", bytes([n]) * 1_000) for _ in range(10)))  # as they come: in runs
    assert all(outbox.dropped > 800 for outbox in outboxes)
    assert sum(outbox.size for outbox in outboxes) > 40 * limit
    # What each has of its own are heads, and what came when there was less room than for a run.
    assert sum(outbox.capacity for outbox in outboxes) <= 50 * limit
    if policy == "drop_oldest":
        for _ in range(300):
            publisher.publish(b"t", b"z" * 1_000)
        last = message(1, b"t", b"z" * 1_000)
        assert {outbox.read(1 << 20) for outbox in outboxes} == {last * (limit // len(last))}


def test_a_publisher_that_is_not_held_any_more_meets_the_policy_and_not_the_patience() -> None:
    ledger = Ledger(1 << 30, lambda: None)
    outbox, publisher = Outbox(ledger, 10_000, "drop_newest"), Publisher(ledger)
    publisher.route(b"t", [native_target(outbox, 1)])
    outbox.patient = True
    publisher.outbox.exempt = BURST
    for _ in range(50):
        assert publisher.publish(b"t", bytes(1_000))
    assert outbox.pausing
    assert 10_000 < outbox.size <= 11_100
    assert outbox.dropped == 50 - outbox.messages
    publisher.outbox.exempt = 0
    assert not publisher.publish(b"t", bytes(1_000))


def test_outboxes_that_fill_together_grow_one_after_the_other() -> None:
    """100 clients that read nothing: all their buffers were copied for the same message, 0.23 s in one turn."""
    ledger = Ledger(1 << 30, lambda: None)
    outboxes, publisher = [Outbox(ledger, 1 << 20, "drop_newest") for _ in range(64)], Publisher(ledger)
    publisher.routes.batcher.off = True
    publisher.route(b"t", [native_target(outbox, 1) for outbox in outboxes])
    most, before = 0, [0] * len(outboxes)
    while outboxes[0].size < (1 << 20) - 2_000:
        publisher.publish(b"t", bytes(1_000))
        now = [outbox.capacity for outbox in outboxes]
        if outboxes[0].size > 100_000:
            most = max(most, sum(a != b for a, b in zip(now, before, strict=True)))
        before = now
    assert 0 < most <= len(outboxes) // 8


@pytest.mark.parametrize("size", [100, 5_000, 30_000, 100_000])
@pytest.mark.parametrize("subscriptions", [1, 5])
def test_many_that_pause_stay_within_the_common_limit_and_64_kib_each(size: int, subscriptions: int) -> None:
    """Each by itself has room for megabytes."""
    common, count = 1 << 20, 100
    ledger = Ledger(common, lambda: None)
    outboxes = [Outbox(ledger, 1 << 20, "pause") for _ in range(count)]
    publisher = Publisher(ledger)
    for n, outbox in enumerate(outboxes):
        publisher.route(b"%d" % n, [native_target(outbox, number) for number in range(subscriptions)])
    publisher.route(b"all", [native_target(outbox, 9) for outbox in outboxes])
    for exempt in (0, PAUSES):
        publisher.outbox.exempt = exempt
        for n in range(5_000_000 // size):
            publisher.publish(b"all" if n % 3 == 0 else b"%d" % (n % count), bytes(size))
            if n % 50 == 0:
                outboxes[n % 7].read(100_000)
                outboxes[n % 7].drained()
        assert all(outbox.pausing for outbox in outboxes if outbox.overflows and outbox.size > 64 * 1024)
        assert common // 2 < ledger.used <= common + 64 * 1024 * count


def test_who_pauses_loses_nothing_at_the_common_limit_while_publishers_may_be_held() -> None:
    ledger = Ledger(1 << 20, lambda: None)
    outboxes = [Outbox(ledger, 1 << 20, "pause") for _ in range(20)]
    publisher = Publisher(ledger)
    publisher.route(b"t", [native_target(outbox, 1) for outbox in outboxes])
    taken = held = 0
    for n in range(2_000):
        while not publisher.publish(b"t", n.to_bytes(2, "big") + bytes(5_000)):
            held += 1
            for outbox in outboxes:
                taken += len(outbox.read(20_000))
                outbox.drained()
        assert ledger.used <= ledger.limit + 20 * 64 * 1024
    assert held
    assert [outbox.dropped for outbox in outboxes] == [0] * 20
    assert taken + sum(outbox.size for outbox in outboxes) == 2_000 * 20 * len(message(1, b"t", bytes(5_002)))
