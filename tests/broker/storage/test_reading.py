"""Messages that wait on the disk are read as they were written; a consumer that has waited gets more at once."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fanlight_broker.net.flush import Flusher
from fanlight_broker.net.poller import Poller
from fanlight_broker.storage.message_reader import MessageReader
from fanlight_broker.storage.message_records import read_message
from fanlight_broker.storage.stored_backlog import StoredBacklog
from fanlight_broker.storage.wanted import Wanted
from fanlight_broker.wire.message import Message
from tests.broker.core.sessions import Peer
from tests.broker.storage.stored_world import StoredWorld


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StoredWorld]:
    made = StoredWorld(tmp_path)
    yield made
    made.log.close()


def absent(world: StoredWorld, name: str) -> Peer:
    peer = world.connect(name, expiry=60.0, clean_start=False)
    peer.subscribe("t", qos=1)
    peer.leave()
    return peer


def said(message: Message) -> tuple[Any, ...]:
    return (
        message.topic, message.payload, message.fields, message.qos, message.retain, message.syntax,
        message.expires_at, message.expiry_hole, message.format_data, message.format, message.nbytes,
    )


@pytest.mark.parametrize("numbers", [range(1, 601), range(1, 601, 97), [600], [3, 4, 5, 300, 599], []])
def test_messages_are_what_their_records_say(world: StoredWorld, numbers: Any) -> None:
    random = Random(1)
    absent(world, "c")
    for n in range(600):
        expiry = {"expires_at": world.now + n} if n % 3 == 0 else {}
        world.publish("t", f"{n:04}" * random.randint(1, 400), 1 + n % 2, **expiry)
        if random.random() < 0.02:
            world.turn()
    world.turn()
    reader, formats = MessageReader(world.log), {"lines": world.format}
    bodies = reader.read(numbers)
    assert reader.damage == []
    found = Wanted(numbers)
    reader.messages(found, formats, world.store.records.wall)
    assert reader.damage == []
    assert list(bodies) == list(numbers)
    for number, body in bodies.items():
        message = found.message(number)
        assert message is not None
        assert said(message) == said(read_message(body, formats, world.store.records.wall))
        assert message.payload.startswith(f"{number - 1:04}".encode())


def test_a_message_of_an_unknown_family_is_named(world: StoredWorld) -> None:
    absent(world, "c")
    for n in range(3):
        world.publish("t", f"{n}", 1)
    world.turn()
    reader = MessageReader(world.log)
    assert read(reader, [1, 3], {}) == set()
    assert [number for number, _ in reader.damage] == [1, 3]
    assert "'lines', which this broker does not speak" in reader.damage[0][1]
    assert read(reader, [2, 4], {"lines": world.format}) == {2}
    assert [number for number, _ in reader.damage] == [4]


def read(reader: MessageReader, numbers: list[int], formats: dict[str, Any]) -> set[int]:
    """Which of these are found."""
    wanted = Wanted(numbers)
    reader.messages(wanted, formats, 0.0)
    return {number for number in numbers if wanted.message(number) is not None}


def test_more_is_read_at_once_for_a_consumer_that_has_waited(world: StoredWorld) -> None:
    absent(world, "c")
    for n in range(3_000):
        world.publish("t", f"{n}", 1)
    world.turn()
    peer = world.connect("c", expiry=60.0, clean_start=False, receive_max=1_000)
    backlog = peer.session.window.queue.backlog
    assert isinstance(backlog, StoredBacklog)
    heads, got = {backlog.head}, []
    while len(got) < 3_000:
        got += [int(line.split()[1]) for line in peer.got()]
        heads.add(backlog.head)
        peer.acknowledge()
        world.turn()
    assert got == list(range(3_000))
    assert max(heads) > 512, "twice as many each time, while one queue is read for"
    assert backlog.head == 256, "nothing waits any more"


def test_a_long_turn_is_several_entries(world: StoredWorld) -> None:
    """So that a message that is read back takes a few KiB. A seal in the middle of a turn is between two frames."""
    absent(world, "c")
    loop = asyncio.new_event_loop()
    flusher = Flusher(world.broker.ledger, lambda outbox, error: None)
    poller = Poller(loop, flusher)
    other = world.connect("other")
    other.subscribe("u")
    try:
        for _ in range(100):
            world.publish("t", "x" * 256, 1)
            world.publish("u")  # something to flush
            poller.turn()
    finally:
        poller.close()
        loop.close()
    sealed = world.log.appended
    assert 2 <= sealed <= 6, "of some 30 KB"
    world.turn()
    assert world.store.position.synced == world.store.position.appended
    world.crash()
    assert [len(session.window.queue) for session in world.broker.sessions] == [100]
