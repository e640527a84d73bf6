"""Delayed messages with a store: in memory is when they are due, and on the disk what they say."""

from pathlib import Path
from typing import Any

import pytest

from fanlight_broker.core.delayed import PLACE_BYTES, PUBLISHER_BYTES, READ_AT_ONCE
from fanlight_broker.core.work_queue import QueueOptions
from fanlight_broker.storage.checking import check
from fanlight_broker.storage.repair import plan, repair
from tests.broker.core.delaying import delay
from tests.broker.core.sessions import Peer
from tests.broker.storage.stored_world import StoredWorld
from tests.broker.wire.formats import LineFormat

FORMATS = {"lines": LineFormat("lines")}
SEGMENT = 64 << 10


class Delaying(StoredWorld):
    """A world with a publisher and a subscriber, who are connected again after a crash."""

    def __init__(self, folder: Path, **limits: Any) -> None:
        super().__init__(folder, **limits)
        self.publisher, self.reader = self.both()

    def both(self) -> tuple[Peer, Peer]:
        publisher, reader = (self.connect(name, expiry=1e6, clean_start=False) for name in ("p", "r"))
        reader.subscribe("#")
        self.turn()
        return publisher, reader

    def crash(self, *, stopped: float = 0.0) -> None:
        super().crash(stopped=stopped)
        self.publisher, self.reader = self.both()

    def delay(self, payload: str, seconds: float = 60.0, **options: Any) -> int:
        """Returns its id."""
        outcome = delay(self, self.publisher, "t", payload, seconds, 1, **options)
        return int(outcome.id)  # type: ignore[union-attr]

    def due(self) -> list[str]:
        """The payloads of what comes when all is due."""
        self.later(60.0)
        self.settle()
        return [line.split()[1] for line in self.reader.got()]

    @property
    def in_memory(self) -> int:
        return int(self.broker.delayed.gauges(self.now)["delayed_in_memory"])


@pytest.fixture
def world(tmp_path: Path) -> Delaying:
    return Delaying(tmp_path)


def test_what_is_not_due_soon_takes_a_place_in_memory_and_no_message(world: Delaying) -> None:
    before = world.broker.ledger.stored
    for number in range(1_000):
        world.delay(f"n{number}" * 50)
    world.turn()
    assert world.broker.ledger.stored - before == 1_000 * PLACE_BYTES + PUBLISHER_BYTES
    assert (world.in_memory, world.broker.ledger.stored_messages) == (0, 0)
    world.crash()
    assert (len(world.broker.delayed), world.in_memory, world.broker.ledger.stored_messages) == (1_000, 0, 0)
    assert world.broker.ledger.stored == 1_000 * PLACE_BYTES + PUBLISHER_BYTES


def test_many_that_are_due_at_once_are_read_in_parts_and_keep_their_order(world: Delaying) -> None:
    count = 3 * READ_AT_ONCE
    for number in range(count):
        world.delay(f"n{number}", 60.0 - number % 2)  # the odd ones are first
    world.turn()
    world.later(60.0)
    most = 0
    while world.reads:
        world.reads.popleft()()
        most = max(most, world.in_memory)
    assert most <= READ_AT_ONCE
    got = [line.split()[1] for line in world.reader.got()]
    assert got == [f"n{number}" for number in [*range(1, count, 2), *range(0, count, 2)]]
    world.turn()
    assert (world.broker.ledger.stored_messages, len(world.broker.delayed)) == (0, 0)


def test_what_is_due_soon_is_in_memory_and_need_not_be_synced(world: Delaying) -> None:
    world.delay("near", 1.0)
    assert world.in_memory == 1
    world.later(1.0)
    assert world.reader.outbox.size > 0, "nothing was read"


def test_those_that_are_due_soon_are_read_before_their_time(world: Delaying) -> None:
    world.delay("far", 60.0)
    world.turn()
    world.later(59.5)
    world.settle()
    assert world.in_memory == 1
    assert world.reader.got() == []
    world.later(0.5)
    assert world.reader.outbox.size > 0, "it was there"


def test_one_that_is_not_synced_when_it_is_due_is_read_later(world: Delaying) -> None:
    world.delay("far", 60.0)
    world.turn(synced=False)
    assert world.due() == []
    world.turn()
    assert [line.split()[1] for line in world.reader.got()] == ["far"]


def test_one_that_is_cancelled_is_not_routed_nor_there_after_a_crash(world: Delaying) -> None:
    first, second, third = (world.delay(payload) for payload in ("a", "b", "c"))
    assert first < second < third
    world.turn()
    world.broker.delayed.cancel(second)
    world.turn()
    world.crash()
    assert [each.id for each in world.broker.delayed.page(0, 9)] == [first, third]
    world.broker.delayed.cancel(first)
    assert world.due() == ["c"]
    assert world.broker.delayed.counters()["delayed_cancelled"] == 1


def test_one_that_is_cancelled_while_it_is_read_is_not_routed(world: Delaying) -> None:
    first, second = world.delay("a"), world.delay("b")
    world.turn()
    world.later(60.0)
    assert world.in_memory == 0
    world.broker.delayed.cancel(first)
    world.settle()
    assert [line.split()[1] for line in world.reader.got()] == ["b"]
    assert world.broker.delayed.find(second) is None
    assert world.broker.ledger.stored_messages == 0


def test_its_file_is_compacted_for_it_and_is_not_kept_after_it(tmp_path: Path) -> None:
    world = Delaying(tmp_path, garbage_bytes=200_000)
    peer = world.connect("c", expiry=60.0)
    peer.subscribe("g", qos=1)
    for n in range(400):
        if n % 6 == 0:
            world.delay(f"n{n}")  # about one in each file
        for _ in range(10):
            world.publish("g", "x" * 1_000, 1)
        world.turn()
        peer.got()
        peer.acknowledge()
        world.reader.got()
        world.slices()
        world.turn()
        world.log.prepare()
    assert (world.log.compactions > 1, world.log.compactions_given_up) == (True, 0)
    assert world.log.body_segments > 0
    world.crash()
    assert world.due() == [f"n{n}" for n in range(0, 400, 6)]
    world.turn()
    assert [lot.live for lot in world.log.lots if lot.live] == [], "no file is kept any more"


def test_a_message_that_the_disk_has_lost_is_counted_and_the_others_come(tmp_path: Path) -> None:
    world = Delaying(tmp_path)
    for number in range(3):
        world.delay(f"payload{number}")
        world.turn()
    (path,) = [each for each in (tmp_path / "0").iterdir() if b"payload1" in each.read_bytes()]
    path.write_bytes(path.read_bytes().replace(b"payload1", b"payloadX"))
    assert world.due() == ["payload0", "payload2"]
    assert (world.broker.delayed.lost, len(world.broker.delayed)) == (1, 0)


def test_a_check_counts_them_names_what_is_lost_and_a_repair_gives_it_up(tmp_path: Path) -> None:
    world = Delaying(tmp_path)
    for number in range(3):
        world.delay(f"payload{number}")
        world.turn()
    world.round()
    world.log.close()
    folder = world.log.folder
    found = check(folder, FORMATS)
    assert (found.delayed, found.sound) == (3, True)
    (path,) = [each for each in folder.iterdir() if b"payload1" in each.read_bytes()]
    path.write_bytes(path.read_bytes().replace(b"payload1", b"payloadX"))
    found = check(folder, FORMATS)
    assert any("of no queue, which is delayed" in str(problem) for problem in found.problems)
    assert any("1 copy of messages" in line for line in plan(found))
    repair(found, segment_bytes=SEGMENT)
    found = check(folder, FORMATS)
    assert (found.delayed, [str(problem) for problem in found.problems]) == (2, [])


def test_what_a_full_queue_refuses_is_not_gathered_in_memory(world: Delaying, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fanlight_broker.core.delayed.SOON_BYTES", 10_000)
    world.broker.queues.declare(
        world.publisher.client, "q", ((b"t", "mqtt"),), QueueOptions(messages_max=1), world.now
    )
    count, most = 3 * READ_AT_ONCE, 0
    for number in range(count):
        world.delay(f"n{number:04}" * 10)
    world.turn()
    world.later(60.0)
    while world.reads:
        world.reads.popleft()()
        most = max(most, world.in_memory)
    assert (len(world.broker.delayed), world.broker.delayed.put_off) == (count - 1, count - 1)
    assert most < READ_AT_ONCE + 50
