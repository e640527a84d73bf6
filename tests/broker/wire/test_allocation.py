"""Each allocation of an operation fails once: whoever it is for notices, nobody else does, and nothing is leaked.

The memory is that of wire's own allocator: outboxes, templates, batches, tables. `every_failure` repeats an operation
and lets its first, second, third, ... allocation fail, until none is left to fail.
"""

import gc
from collections.abc import Callable, Iterator
from sys import getrefcount
from typing import TypeVar

import pytest

from fanlight_broker.protocols.mqtt.format import MQTT_3_1_1
from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.wire.allocator import blocks_in_use, fail_after, refusals
from fanlight_broker.wire.archive_tap import ArchiveTap
from fanlight_broker.wire.fanout import publish
from fanlight_broker.wire.group import QueueGroup
from fanlight_broker.wire.ledger import Ledger, Pot
from fanlight_broker.wire.message import Message, Variant, Variants
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.routes import RouteCache
from fanlight_broker.wire.subscriptions import Subscriptions
from fanlight_broker.wire.tag_set import TagSet
from fanlight_broker.wire.target import Target
from tests.broker.wire import publisher
from tests.broker.wire.publisher import Publisher, native_target

World = TypeVar("World")
MANY = 10_000  # failures one after the other: no more memory at all


def settled_blocks() -> int:
    """Blocks in use when a further collection frees none: what is freed may make other things garbage."""
    gc.collect()
    blocks = blocks_in_use()
    while gc.collect() and blocks_in_use() < blocks:
        blocks = blocks_in_use()
    return blocks_in_use()


@pytest.fixture(autouse=True)
def nothing_is_leaked() -> Iterator[None]:
    before = settled_blocks()
    yield
    fail_after(-1)
    # Fewer: what an earlier test of this process left to a weak reference or a loop was freed meanwhile.
    assert settled_blocks() <= before


def every_failure(
    make: Callable[[], World], operate: Callable[[World], object], check: Callable[[World, int], None],
    failures: int = 1, least: int = 1,
) -> None:  # fmt: skip
    """`check` is called with the world after each attempt, and with how many allocations have failed in it."""
    allocations = 0
    while True:
        world = make()
        fail_after(allocations, failures)
        try:
            operate(world)
        finally:
            failed = refusals()
            fail_after(-1)
        check(world, failed)
        if not failed:
            break
        allocations += 1
    assert allocations >= least, "the operation allocates less than it was thought to"


class Floor:
    """Five targets: native ones, two of MQTT that share a template, and one with a large head."""

    def __init__(self) -> None:
        self.ledger = Ledger(1 << 30, lambda: None)
        self.publisher = Publisher(self.ledger)
        self.variants = Variants()
        self.outboxes = [Outbox(self.ledger, 1 << 20, "drop_newest") for _ in range(5)]
        shared = self.variants.of(MQTT_3_1_1)
        self.targets = [
            native_target(self.outboxes[0], 1), Target(self.outboxes[1], shared, 2),
            Target(self.outboxes[2], shared, 3), native_target(self.outboxes[3], 1), native_target(self.outboxes[4], 1),
        ]
        self.route = self.publisher.route(b"t", self.targets)

    def received(self, *payloads: bytes) -> "Floor":
        """Messages of the publisher have been read. No memory for that would be its own misfortune."""
        self.publisher.inbox.feed(b"".join(publisher.publish(b"t", payload) for payload in payloads))
        return self

    def agrees(self, published: int, failed: int, failures: int = 1) -> None:
        """Who was served has all, in order; who was not has a fault; the counts and the bytes agree."""
        faults = self.ledger.pop_faults()
        assert bool(faults) <= bool(failed)
        assert failures > 1 or len(faults) <= 1
        for target, outbox in zip(self.targets, self.outboxes, strict=True):
            assert (outbox.fault is not None) == (outbox in faults)
            assert isinstance(outbox.fault, MemoryError | None)
            assert target.delivered == published or outbox.fault is not None
            assert outbox.messages == target.delivered
        assert self.ledger.messages_in == published
        assert self.ledger.used == sum(outbox.size for outbox in self.outboxes) + self.publisher.outbox.size
        native = [self.outboxes[at] for at in (0, 3, 4) if self.outboxes[at] not in faults]
        assert len({outbox.read(1 << 30) for outbox in native}) <= 1
        for outbox in self.outboxes:
            outbox.discard()
        self.publisher.outbox.discard()
        assert self.ledger.used == 0


@pytest.mark.parametrize("failures", [1, MANY])
def test_a_message_gets_to_all_targets_but_the_one_that_there_was_no_memory_for(failures: int) -> None:
    every_failure(
        lambda: Floor().received(b"one"),
        lambda floor: floor.publisher.lane.advance(),
        lambda floor, failed: floor.agrees(1, failed, failures),
        failures, least=10,
    )  # fmt: skip


@pytest.mark.parametrize("failures", [1, MANY])
def test_messages_that_are_joined_get_to_all_other_targets(failures: int) -> None:
    payloads = [b"%d" % number for number in range(200)]
    every_failure(
        lambda: Floor().received(*payloads),
        lambda floor: floor.publisher.lane.advance(),
        lambda floor, failed: floor.agrees(200, failed, failures),
        failures, least=10,
    )  # fmt: skip


def test_a_queue_group_gives_the_message_to_a_member_that_there_is_memory_for() -> None:
    def make() -> Floor:
        floor = Floor()
        group = QueueGroup("g")
        for target in floor.targets:
            group.add(target)
        floor.publisher.routes.discard(floor.route)
        floor.publisher.route(b"t", [], [group])
        return floor.received(b"one")

    def check(floor: Floor, failed: int) -> None:
        assert sum(target.delivered for target in floor.targets) == 1
        assert len(floor.ledger.pop_faults()) == failed
        for target in floor.targets:  # a group and its members refer to each other until these leave
            target.group.remove(target)

    every_failure(make, lambda floor: floor.publisher.lane.advance(), check, least=2)


def test_a_message_that_the_archive_has_no_memory_for_goes_to_nobody_and_the_next_one_to_all() -> None:
    """Its publisher is the one that notices: it is told nothing that is not so, and may send the message again."""

    class Archived(Floor):
        def __init__(self) -> None:
            super().__init__()
            self.tap = ArchiveTap(
                rows_max=10, bytes_max=1 << 20, batch_bytes_max=1 << 20, begun=lambda: None, full=lambda batch: None
            )
            self.other = Route(RouteCache.key_of(0, b"a"), self.targets, [])
            self.other.tap = self.tap
            self.raised = False

        def send(self) -> int:
            return publish(self.other, self.ledger, None, Message(FORMAT, b"a", 0, b"x" * 300))

        def attempt(self) -> None:
            try:
                self.send()
            except MemoryError:
                self.raised = True

    def check(floor: Archived, failed: int) -> None:
        before = [target.delivered for target in floor.targets]
        if floor.raised:
            assert failed
            assert set(before) == {0}
        assert floor.send() == 5
        assert floor.tap.batch is not None
        assert floor.tap.batch.rows == (1 if floor.raised else 2)
        assert sum(target.delivered for target in floor.targets) >= sum(before) + 5

    every_failure(Archived, Archived.attempt, check, least=12)


def test_a_subscription_is_removed_without_memory_for_a_smaller_table() -> None:
    """The table keeps its size, and nothing of what was removed."""
    outbox = Outbox(Ledger(1 << 30, lambda: None), 1 << 20, "drop_newest")
    targets = [Target(outbox, Variant(FORMAT), number, b"%d" % number) for number in range(100)]
    (count,) = {getrefcount(target) for target in targets}  # without a table

    def filled() -> Subscriptions:
        table = Subscriptions(False)
        for target in targets:
            table.add(target)
        return table

    def empty(table: Subscriptions) -> None:
        for target in targets:
            table.remove(target)

    def check(table: Subscriptions, failed: int) -> None:
        assert not table
        assert {getrefcount(target) for target in targets} == {count}
        table.add(targets[0])
        assert table.numbered(0) is targets[0]
        assert table.numbered(1) is None

    every_failure(filled, empty, check, least=2)
    every_failure(filled, empty, check, MANY, least=1)


def test_a_table_without_memory_refuses_the_new_one_and_keeps_the_others() -> None:
    """`failed` tables are as they were: what could not be added is added afterwards."""

    class Tables:
        def __init__(self) -> None:
            self.ledger = Ledger(1 << 30, lambda: None)
            self.outbox = Outbox(self.ledger, 1 << 20, "drop_newest")
            self.routes = RouteCache(1_000)
            self.tags = TagSet(Pot("tags", 1 << 20))
            self.subscriptions = Subscriptions(False)
            self.topics = [b"%d" % number for number in range(100)]
            variant = Variant(FORMAT)
            self.made = [Target(self.outbox, variant, number, topic) for number, topic in enumerate(self.topics)]

        def add(self, number: int) -> None:
            if self.routes.get(RouteCache.key_of(0, self.topics[number])) is None:
                self.routes.add(Route(RouteCache.key_of(0, self.topics[number]), [], []))
            self.tags.add(600 * number + 1)
            if self.made[number] not in self.subscriptions:
                self.subscriptions.add(self.made[number])

        def fill(self) -> None:
            for number in range(100):
                try:
                    self.add(number)
                except MemoryError:
                    self.add(number)

    def check(tables: Tables, failed: int) -> None:
        assert all(tables.routes.lookup(0, topic) is not None for topic in tables.topics)
        assert len(tables.tags) == len(tables.subscriptions) == len(tables.routes) == 100
        assert all(600 * number + 1 in tables.tags for number in range(100))
        assert all(tables.subscriptions.numbered(number) is tables.made[number] for number in range(100))

    every_failure(Tables, Tables.fill, check, least=20)
