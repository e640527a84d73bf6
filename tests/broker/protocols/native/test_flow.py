"""Slow consumers and held-back publishers (section 6), with the clock and the sockets in the test's hand."""

import pytest

from tests.broker.protocols.native.world import HELD, KIB, Peer, World, frame, messages, publish

SIZE = 1_000  # bytes of a payload
OUTBOX = 64 * KIB


def numbered(count: int, topic: str = "a", start: int = 0) -> bytes:
    return b"".join(publish(topic, n.to_bytes(4, "big") + bytes(SIZE - 4)) for n in range(start, start + count))


def numbers(peer: Peer) -> list[int]:
    return [int.from_bytes(payload[:4], "big") for _, payload in messages(peer.frames())]


def stalled(world: World, policy: str, pattern: str = "a") -> Peer:
    """A subscriber that reads nothing."""
    peer = world.connect(slow_policy=policy)
    peer.say(6, None, 1, pattern)
    peer.reads = False
    return peer


def test_drop_newest_keeps_the_oldest_and_counts_the_rest() -> None:
    world = World(outbox_bytes_max=OUTBOX)
    slow, publisher = stalled(world, "drop_newest"), world.connect()
    publisher.send(numbered(200) + frame(11, 1))
    assert publisher.frames() == [[12, 1]]
    assert slow.protocol.outbox.size <= OUTBOX
    slow.say(8, 5, 1)
    slow.read_all()
    *_, ok = frames = slow.frames()
    kept = len(frames) - 1
    assert ok == [7, 5, {"delivered": kept, "dropped": 200 - kept}]
    assert [int.from_bytes(fields[3][:4], "big") for fields in frames[:-1]] == list(range(kept))
    assert world.broker.ledger.dropped_newest == 200 - kept
    assert world.broker.flow.slow_consumers == 1


def test_drop_oldest_keeps_the_newest_and_every_answer() -> None:
    world = World(outbox_bytes_max=OUTBOX)
    slow, publisher = stalled(world, "drop_oldest"), world.connect()
    for n in range(200):
        publisher.send(numbered(1, start=n))
        if n % 20 == 0:
            slow.say(11, n)
    slow.say(8, 5, 1)
    slow.read_all()
    frames = slow.frames()
    got = [int.from_bytes(fields[3][:4], "big") for fields in frames if fields[0] == 4]
    assert got == list(range(200 - len(got), 200))
    assert [fields[1] for fields in frames if fields[0] == 12] == list(range(0, 200, 20))
    assert frames[-1] == [7, 5, {"delivered": len(got), "dropped": 200 - len(got)}]
    assert world.broker.ledger.dropped_oldest == 200 - len(got)
    assert world.broker.ledger.used == 0


def test_what_was_counted_in_an_answer_is_not_dropped_afterwards() -> None:
    world = World(outbox_bytes_max=OUTBOX)
    slow, publisher = stalled(world, "drop_oldest"), world.connect()
    slow.say(6, None, 2, "b")
    publisher.send(numbered(30))
    slow.say(8, 5, 1)  # its OK says 30, so 30 it must be
    publisher.send(numbered(100, "b"))
    slow.read_all()
    frames = slow.frames()
    assert sum(fields[:2] == [4, 1] for fields in frames) == 30
    assert [7, 5, {"delivered": 30, "dropped": 0}] in frames
    rest = sum(fields[:2] == [4, 2] for fields in frames)
    slow.say(8, 6, 2)
    assert slow.frames() == [[7, 6, {"delivered": rest, "dropped": 100 - rest}]]


def test_a_message_larger_than_the_outbox_pushes_nothing_out() -> None:
    world = World(outbox_bytes_max=OUTBOX)
    slow, publisher = stalled(world, "drop_oldest"), world.connect()
    publisher.send(numbered(10) + publish("a", bytes(OUTBOX)))
    assert slow.protocol.outbox.messages == 10
    assert world.broker.ledger.dropped_newest == 1


def test_disconnect_says_goodbye_in_place_of_what_was_not_read() -> None:
    world = World(outbox_bytes_max=OUTBOX)
    slow, publisher = stalled(world, "disconnect"), world.connect()
    publisher.send(numbered(200) + frame(11, 1))
    assert publisher.frames() == [[12, 1]]
    assert slow.protocol.outbox.size < 200
    publisher.send(publish("a", request=1))
    assert publisher.frames() == [[5, 1, 0]]
    slow.read_all()
    (goodbye,) = slow.frames()
    assert goodbye[:2] == [14, "slow_consumer"]
    assert slow.gone
    assert world.broker.ledger.dropped_disconnect + world.broker.ledger.unroutable == 201  # what came behind it too
    assert world.broker.flow.slow_consumers_disconnected == 1
    assert world.broker.ledger.used == 0


def test_pause_holds_the_publisher_back_and_loses_nothing() -> None:
    world = World(outbox_bytes_max=OUTBOX)
    slow, publisher = stalled(world, "pause"), world.connect()
    publisher.send(numbered(200), numbered(200, start=200), frame(11, 1))
    assert publisher.held_back
    assert publisher.frames() == []
    assert slow.protocol.outbox.size <= OUTBOX + SIZE + 100
    assert world.broker.flow.publishers_paused == 1
    slow.read_all()
    assert numbers(slow) == list(range(400))
    assert publisher.frames() == [[12, 1]]
    assert world.broker.ledger.used == 0
    assert world.broker.ledger.pausing == 0
    assert world.broker.ledger.dropped_newest == 0


def test_a_publisher_is_told_that_it_is_held_and_for_how_long() -> None:
    world = World(outbox_bytes_max=OUTBOX)
    slow, publisher = stalled(world, "pause"), world.connect()
    publisher.send(numbered(70))
    assert publisher.frames() == []
    assert publisher.notices == [[HELD, True]]
    world.pass_time(0.5)
    slow.read_all()
    assert publisher.frames() == []
    assert publisher.notices == [[HELD, True], [HELD, False, 0.5]]


def test_a_publisher_that_reads_nothing_is_not_choked_by_what_it_is_told() -> None:
    world = World(outbox_bytes_max=OUTBOX, control_bytes_max=4 * KIB, pause_seconds_max=3_600)
    slow, publisher = stalled(world, "pause"), world.connect()
    publisher.reads = False
    for _ in range(300):
        publisher.send(numbered(70))
        slow.read_all()
        slow.reads = False
        slow.frames()
    assert world.broker.flow.publishers_paused >= 300
    assert publisher.protocol.outbox.size < 1_100
    publisher.read_all()
    assert publisher.frames() == []
    assert [held for _, held, *_ in publisher.notices[:2]] == [True, False]
    assert not publisher.notices[-1][1]


def test_only_those_who_publish_to_the_slow_one_are_held_back() -> None:
    world = World(outbox_bytes_max=OUTBOX)
    slow, publisher, other = stalled(world, "pause"), world.connect(), world.connect()
    publisher.send(numbered(200))
    other.say(6, None, 1, "b")
    other.send(numbered(200, "b") + publish("a", b"", request=1), frame(11, 1))
    assert numbers(other) == list(range(200))  # until it publishes to the slow one, too
    assert other.held_back
    slow.read_all()
    assert other.frames() == [[5, 1, 1], [12, 1]]


def test_a_consumer_that_holds_others_back_for_too_long_is_cut_off() -> None:
    world = World(outbox_bytes_max=OUTBOX, pause_seconds_max=10)
    slow, quick, publisher = stalled(world, "pause"), world.connect(), world.connect()
    quick.say(6, None, 1, "a")
    publisher.send(numbered(200), frame(11, 1))
    world.pass_time(9.9)
    assert publisher.held_back
    assert not slow.gone
    world.pass_time(0.2)
    assert publisher.frames() == [[12, 1]]
    assert numbers(quick) == list(range(200))
    slow.read_all()
    (goodbye,) = slow.frames()
    assert goodbye[:2] == [14, "slow_consumer"]
    assert slow.gone
    assert world.broker.flow.slow_consumers_disconnected == 1
    assert world.broker.ledger.used == 0


def test_a_consumer_whose_publisher_has_left_may_take_its_time() -> None:
    world = World(outbox_bytes_max=OUTBOX, pause_seconds_max=10)
    slow, publisher = stalled(world, "pause"), world.connect()
    publisher.send(numbered(200))
    publisher.vanish()
    world.pass_time(60)
    assert not slow.protocol.outbox.closed
    slow.read_all()
    got = numbers(slow)
    assert got == list(range(len(got)))
    assert len(got) > 60
    world.connect().send(publish("a", b"\0\0\0\1"))
    assert numbers(slow) == [1]


def test_a_publisher_is_let_go_when_the_slow_one_breaks() -> None:
    world = World(outbox_bytes_max=OUTBOX)
    slow, publisher = stalled(world, "pause"), world.connect()
    publisher.send(numbered(200), frame(11, 1))
    slow.vanish()
    assert publisher.frames() == [[12, 1]]
    assert world.broker.ledger.pausing == 0
    assert world.broker.ledger.used == 0


def test_the_time_that_a_publisher_was_held_back_is_not_its_silence() -> None:
    world = World(outbox_bytes_max=OUTBOX, pause_seconds_max=3_600, idle_seconds_max=10)
    slow, publisher = stalled(world, "pause"), world.connect()
    publisher.send(numbered(200))
    for _ in range(5):
        slow.say(12)
        world.pass_time(4)
    slow.say(12)
    slow.read_all()
    world.pass_time(1)
    assert not publisher.gone
    assert publisher.frames() == []


def test_a_publisher_that_gets_its_own_messages_may_block_on_itself() -> None:
    world = World(outbox_bytes_max=OUTBOX, pause_seconds_max=10)
    peer = stalled(world, "pause")
    peer.send(numbered(200), frame(11, 1))
    assert peer.held_back
    world.pass_time(5)
    peer.read_all()
    frames = peer.frames()
    assert len(messages(frames)) == 200
    assert frames[-1] == [12, 1]
    peer.reads = False
    peer.send(numbered(200))
    world.pass_time(10)
    peer.read_all()
    assert [fields[:2] for fields in peer.frames()] == [[14, "slow_consumer"]]
    assert peer.gone
    assert world.broker.ledger.used == 0


@pytest.mark.parametrize("policy", ["drop_newest", "drop_oldest", "disconnect", "pause"])
def test_who_asks_without_reading_the_answers_is_not_read_from(policy: str) -> None:
    world = World(control_bytes_max=4 * KIB, pause_seconds_max=10)
    peer = world.connect(slow_policy=policy)
    peer.reads = False
    peer.send(*[frame(11, n) for n in range(3_000)])
    assert peer.held_back
    assert peer.protocol.outbox.control_size < 4 * KIB + 100
    peer.read_all()
    assert peer.frames() == [[12, n] for n in range(3_000)]
    peer.reads = False
    peer.send(b"".join(publish("x", request=n) for n in range(3_000)))
    assert peer.held_back
    assert peer.protocol.outbox.control_size < 4 * KIB + 100
    peer.read_all()
    assert peer.frames() == [[5, n, 0] for n in range(3_000)]
    peer.reads = False
    peer.send(*[frame(11, n) for n in range(3_000)])
    world.pass_time(10)
    peer.read_all()
    assert [fields[:2] for fields in peer.frames()] == [[14, "slow_consumer"]]
    assert world.broker.ledger.used == 0


def test_a_connection_that_waits_does_not_lose_what_a_transport_had_in_hand() -> None:
    world = World(outbox_bytes_max=OUTBOX)
    slow, publisher, other = stalled(world, "pause"), world.connect(), world.connect()
    publisher.send(numbered(100))
    assert publisher.held_back
    for n in range(100, 110):
        publisher.resume_reading()
        publisher.send(numbered(1, start=n))
        other.say(11, n)  # uses the same receive buffer
    slow.read_all()
    assert numbers(slow) == list(range(110))
    assert world.broker.flow.publishers_paused == 1


def test_one_message_does_not_fill_an_outbox_by_its_many_copies() -> None:
    world = World(outbox_bytes_max=OUTBOX)
    slow, publisher = world.connect(slow_policy="pause"), world.connect()
    for number in range(400):
        slow.say(6, None, number, "a")
    slow.reads = False
    publisher.send(publish("a", bytes(SIZE), request=1), frame(11, 1))
    assert slow.protocol.outbox.size <= 2 * OUTBOX
    assert publisher.frames() == [[5, 1, 400], [12, 1]]
    dropped = world.broker.ledger.dropped_newest
    slow.read_all()
    assert len(slow.frames()) == 400 - dropped > 100


def test_a_few_copies_of_a_large_message_are_let_in_whatever_the_limit() -> None:
    world = World(outbox_bytes_max=OUTBOX)
    slow, publisher = world.connect(slow_policy="pause"), world.connect()
    for number in range(5):
        slow.say(6, None, number, "a")
    slow.reads = False
    publisher.send(publish("a", bytes(4 * OUTBOX)))
    slow.read_all()
    assert len(slow.frames()) == 5


def test_messages_that_wait_for_credit_do_not_hold_publishers_back_for_ever() -> None:
    """Memory is short, one subscriber without credit has much of it: that blocks nobody."""
    world = World(outboxes_bytes_max=1024 * KIB, pending_messages_max=1_000_000)
    poor, publisher = world.connect(slow_policy="pause"), world.connect()
    poor.say(6, None, 1, "a", {"credit": 0})
    publisher.send(numbered(2_000))
    publisher.send(frame(11, 1))
    assert publisher.frames() == [[12, 1]]
    assert world.broker.ledger.dropped_credit > 0
    assert world.broker.ledger.used <= 1024 * KIB + 2_000


def test_credit_is_given_out_in_order_even_when_the_outbox_is_full() -> None:
    world = World(outbox_bytes_max=OUTBOX, pending_messages_max=1_000)
    peer, publisher = world.connect(slow_policy="drop_newest"), world.connect()
    peer.say(6, None, 1, "a", {"credit": 0})
    publisher.send(numbered(200))
    held = peer.protocol.outbox.awaiting_credit
    assert 0 < held <= OUTBOX
    peer.reads = False
    peer.say(10, 1, 1_000)
    assert peer.protocol.outbox.awaiting_credit == 0
    peer.read_all()
    got = numbers(peer)
    assert got == list(range(len(got)))
    assert world.broker.ledger.dropped_credit == 200 - len(got)


def test_a_flood_of_endings_is_over_in_no_time() -> None:
    """Once, each ending looked at every unsent frame of its connection."""
    world = World(outbox_bytes_max=64 * 1024 * KIB)
    peer, publisher = world.connect(), world.connect()
    peer.send(b"".join(frame(6, None, number, "a", {"after": 1}) for number in range(10_000)))
    peer.reads = False
    publisher.send(publish("a"))
    peer.read_all()
    frames = peer.frames()
    assert [fields[0] for fields in frames] == [4] * 10_000 + [9] * 10_000
    assert len(world.broker.router) == 0
