"""Durable named queues after a restart: what was not acknowledged is there, in its place, as often as it was delivered,
and time has gone on meanwhile.
"""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from fanlight_broker.core.draining import Draining
from fanlight_broker.core.queue_views import age_of
from fanlight_broker.core.subscriber import Session
from fanlight_broker.core.turns import Turns
from fanlight_broker.core.work_queue import Overflow, QueueConsumer, QueueOptions, WorkQueue
from fanlight_broker.protocols.native.format import DELIVERY_FORMAT
from fanlight_broker.storage.stored_backlog import StoredBacklog
from tests.broker.core.sessions import Peer
from tests.broker.storage.stored_world import StoredWorld

DEAD = (b"dead", "mqtt")
GRAVEYARD = b"<dead>"  # as LineFormat writes the topic


def declare(world: StoredWorld, *, name: str = "work", filter: bytes = b"t/#", **options: Any) -> WorkQueue:
    client = world.connect("maker").client
    return world.broker.queues.declare(client, name, ((filter, "mqtt"),), QueueOptions(**options), world.now)


def consume(world: StoredWorld, peer: Peer | None = None, *, name: str = "work", prefetch: int = 10) -> QueueConsumer:
    queue, client = world.broker.queues.find(name), (peer or world.connect("worker")).client
    variant = world.broker.variants.of(DELIVERY_FORMAT)
    consumer = world.broker.queues.consume(client, 1, queue, variant, prefetch, 60.0, lambda reason: None)
    queue.inside.begin(consumer.window, world.now)
    world.turn()
    return consumer


def in_flight(consumer: QueueConsumer) -> list[tuple[bytes, int]]:
    """(payload, attempt) of each delivery."""
    return [
        (flight.message.payload, flight.attempt) for flight in consumer.window.flights() if flight.message is not None
    ]


def refuse(world: StoredWorld, consumer: QueueConsumer, payload: bytes, delay: float = 0.0) -> None:
    (tag,) = [
        each.tag for each in consumer.window.flights() if each.message is not None and each.message.payload == payload
    ]
    assert consumer.queue.inside.refuse(consumer.window, tag, delay, world.now)


def acknowledge(world: StoredWorld, consumer: QueueConsumer, payload: bytes) -> None:
    (tag,) = [
        each.tag for each in consumer.window.flights() if each.message is not None and each.message.payload == payload
    ]
    assert consumer.window.acknowledge(tag, world.now)


def publish(world: StoredWorld, *payloads: str, topic: str = "t/1") -> None:
    for payload in payloads:
        world.publish(topic, payload, 1)


def test_a_durable_queue_is_there_after_a_crash_with_what_was_not_acknowledged(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    options = QueueOptions(
        messages_max=50, bytes_max=1 << 20, message_seconds=900.0, unused_seconds=800.0, overflow=Overflow.DROP_OLDEST,
        deliveries_max=7, dead_letter=DEAD, single_active=True, priorities=3, in_order=True,
        by_bodies=True,
    )
    left_out = {field.name for field in fields(options) if getattr(options, field.name) == field.default}
    assert left_out == {"durable", "stream"}, "each option is to survive; streams: tests/interop/test_streams.py"
    filters = ((b"t/#", "mqtt"), (b"u.*", "amqp"))
    maker = world.connect("maker").client
    world.broker.queues.declare(maker, "work", filters, options, world.now)
    publish(world, "x0", "x1", "x2", "x3")
    consumer = consume(world)
    acknowledge(world, consumer, b"x1")
    world.turn()
    for life in (2, 3):
        world.crash()
        found = world.broker.queues.find("work")
        assert (found.options, found.filters) == (options, filters)
        assert (found.inside.unacknowledged, len(found.inside)) == (0, life + 1)
        publish(world, f"y{life}")
        consumer = consume(world)
        assert in_flight(consumer)[:3] == [(b"x0", life), (b"x2", life), (b"x3", life)]
        world.turn()
    assert in_flight(consumer)[3:] == [(b"y2", 2), (b"y3", 1)]


def test_filters_that_were_added_and_removed_are_so_after_a_crash(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    queue = declare(world)
    world.broker.queues.bind(world.connect("maker").client, queue, b"u.*", "amqp")
    world.broker.queues.unbind(queue, b"t/#", "mqtt")
    world.turn()
    world.crash()
    found = world.broker.queues.find("work")
    assert found.filters == ((b"u.*", "amqp"),)
    publish(world, "x", topic="t/1")
    publish(world, "y", topic="u/1")
    assert len(found.inside) == 1


def test_a_queue_that_is_not_durable_is_gone_and_so_is_one_that_has_ended(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    declare(world, name="brief", durable=False, unused_seconds=60.0)
    ended = declare(world, name="ended")
    publish(world, "x")
    world.broker.queues.end(ended)
    world.turn()
    world.crash()
    assert list(world.broker.queues) == []
    assert world.recovered.messages == 0
    assert world.broker.ledger.stored_messages == 0


def test_a_message_in_two_queues_and_a_session_is_one_message(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    declare(world, name="one")
    declare(world, name="two")
    peer = world.connect("c", expiry=60.0, clean_start=False)
    peer.subscribe("t/1", qos=1)
    peer.leave()
    publish(world, "x")
    world.turn()
    assert world.store.records.messages == 1
    world.crash()
    assert world.recovered.messages == 3  # copies of it
    assert in_flight(consume(world, name="one")) == in_flight(consume(world, name="two")) == [(b"x", 1)]
    assert world.connect("c", expiry=60.0, clean_start=False).got() == ["t/1 x 1"]


def test_what_was_refused_with_a_delay_waits_for_the_rest_of_it(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    declare(world)
    publish(world, "x0", "x1", "x2")
    consumer = consume(world)
    refuse(world, consumer, b"x0", 30.0)
    refuse(world, consumer, b"x1", 5.0)
    world.turn()
    world.crash(stopped=10.0)  # x1 is due by now
    queue = world.broker.queues.find("work").inside.queue
    assert (len(queue), queue.apart) == (2, 1)
    consumer = consume(world)
    assert in_flight(consumer) == [(b"x1", 2), (b"x2", 2)]
    world.later(19.0)
    assert len(in_flight(consumer)) == 2
    world.later(1.5)
    assert in_flight(consumer)[2:] == [(b"x0", 2)]
    world.turn()
    world.crash()
    assert world.broker.queues.find("work").inside.queue.apart == 0, "its delay is over"


def test_messages_expire_by_the_time_at_which_they_came(tmp_path: Path) -> None:
    """Also those that waited in the backlog before the crash, or are read from it."""
    world = StoredWorld(tmp_path)
    declare(world, message_seconds=100.0)
    publish(world, "old")
    world.later(60.0)
    publish(world, "new")
    world.turn()
    world.crash(stopped=30.0)
    world.later(20.0)  # `old` is 110 s old
    consumer = consume(world)
    assert in_flight(consumer) == [(b"new", 1)]
    refuse(world, consumer, b"new")  # comes back to the same consumer
    assert in_flight(consumer) == [(b"new", 2)]
    world.turn()
    world.crash(stopped=60.0)
    world.later(1.0)
    assert in_flight(consume(world)) == []
    assert len(world.broker.queues.find("work").inside) == 0


def test_a_queue_that_nobody_uses_ends_by_wall_clock_time(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    for name in ("unused", "used"):
        declare(world, name=name, unused_seconds=100.0)
    consume(world, name="used")
    world.later(50.0)
    world.turn()
    world.crash(stopped=49.0)
    world.later(0.5)
    assert [each.name for each in world.broker.queues] == ["unused", "used"]
    world.later(1.0)
    assert [each.name for each in world.broker.queues] == ["used"], "it was used when the broker stopped"
    world.turn()
    world.crash(stopped=98.0)  # a second stop does not begin its time anew
    world.later(0.1)
    assert [each.name for each in world.broker.queues] == ["used"]
    world.later(1.0)
    assert [each.name for each in world.broker.queues] == []


def test_a_queue_that_was_left_counts_from_then_on(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    declare(world, unused_seconds=100.0)
    consumer = consume(world)
    world.later(500.0)
    world.broker.queues.leave(consumer, world.now)
    world.turn()
    world.crash(stopped=99.0)
    world.later(0.5)
    assert len(world.broker.queues) == 1
    world.later(1.0)
    assert len(world.broker.queues) == 0


def test_deliveries_count_over_a_crash_and_the_last_one_is_a_dead_letter(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    declare(world, deliveries_max=2, dead_letter=DEAD)
    declare(world, name="graveyard", filter=GRAVEYARD)
    publish(world, "x")
    consumer = consume(world)
    refuse(world, consumer, b"x")
    assert in_flight(consumer) == [(b"x", 2)]
    world.turn()
    world.crash()  # it comes back for the second time
    world.turn()
    assert len(world.broker.queues.find("work").inside) == 0
    assert in_flight(consume(world, name="graveyard")) == [(b"x", 1)]


@pytest.mark.parametrize("synced", [False, True])
def test_a_dead_letter_is_there_once_whenever_the_broker_stops(tmp_path: Path, *, synced: bool) -> None:
    world = StoredWorld(tmp_path)
    declare(world, dead_letter=DEAD)
    declare(world, name="graveyard", filter=GRAVEYARD)
    publish(world, "x")
    consumer = consume(world)
    inside = consumer.queue.inside
    inside.reject(consumer.window, 1, world.now)
    world.store.seal()  # a turn that ends before it is published
    while world.log.write_group():
        pass
    if synced:
        world.turn()
    world.crash()
    world.turn()
    left = len(world.broker.queues.find("work").inside), len(world.broker.queues.find("graveyard").inside)
    assert left == ((0, 1) if synced else (1, 0))


def test_an_expired_message_of_the_backlog_is_a_dead_letter(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    queue = declare(world, message_seconds=10.0, dead_letter=DEAD)
    declare(world, name="graveyard", filter=GRAVEYARD)
    publish(world, *(f"x{number}" for number in range(600)))
    world.turn()
    assert queue.inside.queue.waiting() == [], "nobody takes from it: all of it is on the disk"
    world.later(11.0)
    world.turn()
    for _ in range(600 // 64 + 1):
        world.turn()
    assert len(queue.inside) == 0
    assert len(world.broker.queues.find("graveyard").inside) == 600


def test_what_waits_is_on_the_disk_and_in_its_place(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    declare(world)
    payloads = [f"x{number:03}" for number in range(700)]
    publish(world, *payloads[:300])
    world.turn()
    consumer = consume(world, prefetch=3)
    publish(world, *payloads[300:])
    world.turn()
    assert len(consumer.queue.inside.queue.waiting()) < 300
    refuse(world, consumer, b"x001", 1_000.0)
    world.turn()
    world.crash()
    queue = world.broker.queues.find("work").inside
    assert queue.queue.waiting() == []
    assert (len(queue), queue.queue.apart) == (700, 1)
    consumer = consume(world, prefetch=1000)
    for _ in range(4):
        world.turn()
    found = in_flight(consumer)
    assert [payload.decode() for payload, _ in found] == [payloads[0], *payloads[2:]]
    assert [attempt for _, attempt in found] == [2, 2, 2, *[1] * 696]


def test_a_purged_queue_is_empty_after_a_crash_and_counts_what_it_discarded(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    queue = declare(world)
    publish(world, "x0", "x1", "x2")
    consumer = consume(world, prefetch=1)
    refuse(world, consumer, b"x0", 30.0)
    world.turn()
    assert queue.inside.purge() == 2  # x1 is in flight
    assert queue.inside.discards == 2
    world.turn()
    world.crash()
    assert in_flight(consume(world)) == [(b"x1", 2)]


def test_what_is_confirmed_is_synced_whether_or_not_it_was_sealed(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    declare(world)
    publish(world, "x0", "x1")
    consumer = consume(world)
    world.turn()
    confirmed: list[str] = []

    def confirm(what: str) -> None:
        world.broker.queues.confirm(lambda: confirmed.append(what))

    confirm("nothing")
    assert confirmed == ["nothing"]
    acknowledge(world, consumer, b"x0")
    confirm("not sealed yet")
    world.turn(synced=False)
    assert len(confirmed) == 1
    world.turn()
    assert len(confirmed) == 2
    acknowledge(world, consumer, b"x1")
    world.turn(synced=False)
    confirm("sealed")
    assert len(confirmed) == 2
    world.turn()
    assert confirmed[2:] == ["sealed"]


def test_a_kill_while_a_queue_that_ended_is_dropped_brings_nothing_of_it_back(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    ended = declare(world)
    publish(world, *(f"x{number}" for number in range(2_000)))
    world.turn()
    later: list[Callable[[], Any]] = []
    world.broker.queues._draining = Draining(Turns(world.broker.ledger, later.append))
    assert world.broker.queues.end(ended) == 2_000
    declare(world)
    publish(world, "new")
    world.turn()
    assert 1_000 < len(ended.inside) < 2_000
    assert later
    world.crash()
    assert world.waiting(world.broker.queues.find("work").inside.queue) == [b"new"]
    assert world.recovered.messages == 1


def draining_later(folder: Path) -> tuple[StoredWorld, Session, list[Callable[[], Any]]]:
    """A session for which 2,000 messages wait, and what is to be called for the rest once it has ended."""
    world = StoredWorld(folder, queue_messages_max=10_000)
    peer = world.connect("s", expiry=60.0)
    peer.subscribe("t/1", qos=1)
    peer.leave()
    publish(world, *(f"x{number}" for number in range(2_000)))
    world.turn()
    later: list[Callable[[], Any]] = []
    world.broker.sessions._draining = Draining(Turns(world.broker.ledger, later.append))
    return world, peer.session, later


@pytest.mark.parametrize("read", [False, True])
def test_a_kill_while_a_session_that_ended_is_dropped_brings_nothing_of_it_back(tmp_path: Path, read: bool) -> None:
    world, ended, _ = draining_later(tmp_path)
    window = ended.window
    if read:
        window.queue.backlog.fetch()  # it is being read when its session ends
    new = world.connect("s", expiry=60.0, clean_start=True)
    new.subscribe("t/1", qos=1)
    new.leave()
    publish(world, "new")
    world.turn()
    assert 1_000 < len(window.queue) < 2_000
    world.round()
    world.crash()
    session = world.broker.sessions.get("s")
    assert session is not None
    assert world.waiting(session.window.queue) == [b"new"]
    assert world.recovered.messages == 1


def test_a_session_that_ended_is_dropped_with_what_was_being_read_for_it(tmp_path: Path) -> None:
    world, session, later = draining_later(tmp_path)
    queue = session.window.queue
    queue.backlog.fetch()
    world.broker.sessions.end(session, world.now)
    world.turn()
    assert queue.waiting()
    while later:
        later.pop(0)()
        world.turn()
    assert (len(queue), queue.backlog) == (0, None)
    assert (world.store.records.backlog, world.store.records.backlog_bytes) == (0, 0)
    assert world.broker.ledger.stored_messages == 0
    assert sum(lot.live for lot in world.log.lots) == 0


def age(world: StoredWorld) -> float | None:
    found = age_of(world.broker.queues.find("work"), world.now)
    world.settle()
    return found


def test_the_age_of_what_is_on_the_disk_only_is_known_also_after_a_restart(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    queue = declare(world, overflow=Overflow.DROP_OLDEST, messages_max=3)
    assert age(world) is None
    publish(world, "x0")
    world.later(10.0)
    publish(world, "x1", "x2")
    world.turn()
    assert (age(world), queue.inside.queue.waiting()) == (10.0, [])
    world.crash(stopped=5.0)
    world.turn()
    assert age(world) == pytest.approx(15.0, abs=0.01)
    publish(world, "x3")  # which drops x0
    world.turn()
    assert age(world) == pytest.approx(15.0, abs=0.01)  # at most; it is being read
    assert age(world) == pytest.approx(5.0, abs=0.01)
    consumer = consume(world, prefetch=1)
    assert age(world) == pytest.approx(5.0, abs=0.01)
    acknowledge(world, consumer, b"x1")
    assert age(world) == 0.0
    acknowledge(world, consumer, b"x2")
    assert age(world) is None


def test_the_age_of_a_message_that_the_disk_has_lost_is_at_most_that_of_one_before(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    queue = declare(world)
    publish(world, "x0")
    world.turn()
    backlog = queue.inside.queue.backlog
    assert isinstance(backlog, StoredBacklog)
    backlog.came(backlog.first - 1, world.now - 7)
    backlog.came(backlog.first, None)
    assert age(world) == 7.0
    assert not world.reads
