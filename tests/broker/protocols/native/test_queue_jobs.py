"""What an operator's requests do over many turns, wait for, and read from the disk."""

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from fanlight_broker.core.queue_jobs import QueueJobs
from fanlight_broker.core.turns import Turns
from fanlight_broker.protocols.native.queue_requests import WAITING_MAX
from fanlight_broker.wire.backlog import Backlog
from fanlight_broker.wire.flight import Flight
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.operating import in_memory, peek
from tests.broker.core.held_journal import HeldJournal
from tests.broker.protocols.native.test_queue_requests import DELIVERY, NACK, QUEUE, add, ask, payloads, refused
from tests.broker.protocols.native.world import Peer, World, publish


class Slices:
    """Jobs with turns of about three readings of the clock."""

    def __init__(self, world: World) -> None:
        self.world, self.time = world, 0.0
        self.soon: list[Callable[[], Any]] = []
        broker = world.broker
        self.turns = Turns(broker.ledger, self.soon.append, self.clock)
        self.jobs = QueueJobs(broker.queues, broker.publishing, self.turns, broker.finish)
        broker.queue_jobs = self.jobs
        broker.ledger.turn_ends = 0.0  # the turn that is under way is over

    def clock(self) -> float:
        self.time += 0.001
        return self.time

    def run(self, between: Callable[[], Any] = lambda: None) -> int:
        """Until all is done; returns how many turns it took."""
        count = 0
        while self.soon:
            self.soon.pop(0)()
            self.world.turn()
            between()
            count += 1
        return count


@pytest.fixture
def world() -> World:
    return World(work_queue_messages_max=100_000)


def filled(world: World, count: int) -> Peer:
    operator = world.connect()
    add(operator)
    operator.send(*(publish("orders.eu", b"%d" % n) for n in range(count)))
    return operator


def test_a_large_purge_leaves_the_loop_to_others_and_what_comes_meanwhile_stays(world: World) -> None:
    operator = filled(world, 5_000)
    slices = Slices(world)
    operator.say(QUEUE, 5, "purge", {"name": "billing"})
    assert operator.frames() == []
    assert refused(operator, "purge", name="billing")[0] == "limit_exceeded"
    turns = slices.run(lambda: operator.send(publish("orders.us", b"later")))
    assert turns > 5
    assert operator.next() == [7, 5, {"messages": 5_000}]
    assert payloads(operator) == [b"later"] * turns
    assert len(slices.jobs) == 0


def test_a_purge_does_not_drop_in_place_of_what_a_consumer_takes(world: World) -> None:
    operator, worker = filled(world, 3_000), world.connect()
    slices = Slices(world)
    operator.say(QUEUE, 5, "purge", {"name": "billing"})
    worker.say(6, 1, 7, "orders.#", {"consumer": "billing", "durable": True, "ack": True, "prefetch": 1_000})
    operator.send(*(publish("orders.us", b"later") for _ in range(500)))
    slices.run()
    (queue,) = world.broker.queues
    taken = [each[5] for each in worker.frames() if each[0] == DELIVERY]
    left = [message.payload for message, *_ in peek(queue.inside.queue, 1_000)]
    assert (taken + left).count(b"later") == 500
    assert len(taken) > 100
    (answer,) = operator.frames()
    assert answer[2]["messages"] == 3_500 - len(taken) - len(left)


def test_a_queue_that_ends_ends_its_purge(world: World) -> None:
    operator = filled(world, 3_000)
    slices = Slices(world)
    operator.say(QUEUE, 5, "purge", {"name": "billing"})
    (queue,) = world.broker.queues
    lost = world.broker.queues.end(queue)
    slices.run()
    assert operator.next() == [7, 5, {"messages": 3_000 - lost}]
    assert world.broker.ledger.stored == 0


def test_a_large_queue_is_removed_in_slices_and_its_name_is_free_then(world: World) -> None:
    operator = filled(world, 3_000)
    slices = Slices(world)
    operator.say(QUEUE, 5, "remove", {"name": "billing", "force": True})
    assert slices.run(lambda: operator.send(publish("orders.us", b"later"))) > 3
    (answer,) = operator.frames()
    assert answer[2]["messages"] >= 3_000
    assert world.broker.ledger.stored == 0
    add(operator)
    assert payloads(operator) == []


def test_a_large_move_leaves_the_loop_to_others_and_takes_what_was_there(world: World) -> None:
    operator = filled(world, 200)
    add(operator, "to", "b")
    slices = Slices(world)
    operator.say(QUEUE, 5, "move", {"name": "billing", "to": "to"})
    turns = slices.run(lambda: operator.send(publish("orders.us", b"later")))
    assert turns > 5
    assert operator.next() == [7, 5, {"messages": 200, "stopped": None}]
    assert payloads(operator, "to") == [b"%d" % n for n in range(200)]
    assert payloads(operator) == [b"later"] * turns


@pytest.mark.parametrize("gone", ["billing", "to"])
def test_a_queue_that_ends_stops_a_move_and_nothing_is_lost(world: World, gone: str) -> None:
    operator = filled(world, 100)
    add(operator, "to", "b")
    slices = Slices(world)
    operator.say(QUEUE, 5, "move", {"name": "billing", "to": "to"})
    lost = world.broker.queues.end(world.broker.queues.find(gone))
    slices.run()
    (answer,) = operator.frames()
    assert answer[2]["stopped"] == f"there is no queue {gone!r}"
    left = payloads(operator, "to" if gone == "billing" else "billing")
    assert len(left) == 100 - lost
    assert (answer[2]["messages"] == lost) is (gone == "to")


def test_a_job_goes_on_when_its_client_has_gone(world: World) -> None:
    operator = filled(world, 3_000)
    slices = Slices(world)
    operator.say(QUEUE, 5, "purge", {"name": "billing"})
    operator.vanish()
    slices.run()
    assert payloads(world.connect()) == []


def test_a_move_that_fails_puts_its_message_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    operator = filled(world, 3)

    def fails(*arguments: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(world.broker.publishing, "accept", fails)
        with pytest.raises(MemoryError):
            operator.say(QUEUE, 5, "move", {"name": "billing"})
    assert len(world.broker.queue_jobs) == 0
    assert payloads(world.connect()) == [b"0", b"1", b"2"]


def test_a_connection_has_few_requests_without_an_answer(world: World) -> None:
    operator = world.connect()
    Slices(world)
    for n in range(WAITING_MAX + 1):
        add(operator, f"q{n}", f"a.{n}")
        operator.send(*(publish(f"a.{n}", b"") for _ in range(300)))
    for n in range(WAITING_MAX):
        operator.say(QUEUE, 5, "purge", {"name": f"q{n}"})
        assert operator.frames() == []
    assert refused(operator, "purge", name=f"q{WAITING_MAX}")[0] == "limit_exceeded"
    assert refused(operator, "list")[0] == "limit_exceeded"


# -- what the answer waits for ----------------------------------------------------------------------------------------


def test_the_answer_to_a_change_waits_until_it_is_synced(world: World) -> None:
    journal, operator = HeldJournal(world.broker), world.connect()

    def waits(verb: str, **arguments: Any) -> Any:
        operator.say(QUEUE, 5, verb, arguments)
        assert operator.frames() == []
        journal.sync(now=world.now)
        world.turn()
        answer = operator.next()
        assert answer[:2] == [7, 5]
        return answer[2]

    for name in ("billing", "to"):
        assert waits("add", name=name, filters=["orders.#"])["created"]
    operator.send(publish("orders.eu", b"1"))
    journal.sync(now=world.now)
    assert ask(operator, "peek", name="billing")[2]["waiting"] == 1  # looking waits for nothing
    assert waits("move", name="billing", to="to") == {"messages": 1, "stopped": None}
    assert waits("purge", name="to") == {"messages": 2}
    assert waits("remove", name="to") == {"messages": 0}


def test_what_cannot_be_stored_is_refused_before_anything_is_changed(world: World) -> None:
    journal, operator = HeldJournal(world.broker), world.connect()
    operator.say(QUEUE, 5, "add", {"name": "billing", "filters": ["orders.#"]})
    operator.send(publish("orders.eu", b"1"))
    journal.sync(now=world.now)
    world.turn()
    operator.frames()
    journal.position.refusing = True
    for verb in ("purge", "remove", "move"):
        assert refused(operator, verb, name="billing", force=True)[0] == "limit_exceeded"
    assert refused(operator, "add", name="other", filters=["a"])[0] == "limit_exceeded"
    assert payloads(operator) == [b"1"]


def test_a_move_stops_while_the_store_takes_no_more(world: World) -> None:
    journal, operator = HeldJournal(world.broker), world.connect()
    for name in ("billing", "to"):
        operator.say(QUEUE, 5, "add", {"name": name, "filters": [f"{name}.#"]})
    operator.send(publish("billing.eu", b"1"))
    journal.sync(now=world.now)
    world.turn()
    operator.frames()
    journal.position.full = True
    for arguments in ({"to": "to"}, {}):
        operator.say(QUEUE, 5, "move", {"name": "billing", **arguments})
        journal.sync(now=world.now)
        world.turn()
        (answer,) = operator.frames()
        assert answer[2] == {"messages": 0, "stopped": "the store takes no more for now; move the rest later"}
    assert payloads(operator) == [b"1"]


# -- what waits on the disk -------------------------------------------------------------------------------------------


class Kept(Backlog):
    """A backlog in memory. What is fetched comes when the test says so, four messages at a time."""

    def __init__(self) -> None:
        self.messages: deque[tuple[int, Message, int]] = deque()
        self.head = 4

    def add(self, flight: Flight, octets: int) -> None:
        assert flight.message is not None
        self.messages.append((flight.number, flight.message, octets))
        self.count(1, octets)

    def drop_first(self) -> int:
        _, _, octets = self.messages.popleft()
        self.count(-1, -octets)
        return octets

    def fetch(self) -> None:
        pass

    def expire(self, now: float, most: int) -> tuple[int, int]:
        return 0, 0

    def clear(self) -> None:
        while self.messages:
            self.drop_first()


class OnDisk:
    """The durable queue `billing`, of whose ten messages nothing is in memory."""

    def __init__(self, world: World) -> None:
        self.world = world
        journal = HeldJournal(world.broker)
        self.operator = world.connect()
        self.operator.say(QUEUE, 5, "add", {"name": "billing", "filters": ["orders.#"]})
        (queue,) = world.broker.queues
        self.inside = queue.inside
        self.inside.queue.backlog = self.backlog = Kept()
        self.operator.send(*(publish("orders.eu", b"%d" % n) for n in range(10)))
        journal.sync(now=world.now)
        world.turn()
        self.operator.frames()
        assert (in_memory(self.inside.queue), len(self.inside.queue)) == (0, 10)
        self.journal = journal

    def read(self) -> None:
        """The disk has read."""
        taken = [self.backlog.messages.popleft() for _ in range(min(4, len(self.backlog.messages)))]
        octets = sum(each[2] for each in taken)
        self.backlog.count(-len(taken), -octets)
        self.inside.queue.fetched(
            [(message, None, number, 0, self.world.now) for number, message, _ in taken], len(taken), octets,
            self.world.now,
        )
        self.inside.feed(self.world.now)
        self.journal.sync(now=self.world.now)
        self.world.turn()


def test_a_look_at_what_is_on_the_disk_waits_until_it_is_read(world: World) -> None:
    disk = OnDisk(world)
    disk.operator.say(QUEUE, 5, "peek", {"name": "billing", "count": 3})
    assert disk.operator.frames() == []
    disk.read()
    (answer,) = disk.operator.frames()
    assert [each["payload"] for each in answer[2]["messages"]] == [b"0", b"1", b"2"]
    assert answer[2]["waiting"] == 10


def test_a_purge_drops_what_is_on_the_disk_without_reading_it(world: World) -> None:
    disk = OnDisk(world)
    disk.read()
    disk.operator.say(QUEUE, 5, "purge", {"name": "billing"})
    disk.journal.sync(now=world.now)
    world.turn()
    assert disk.operator.next() == [7, 5, {"messages": 10}]
    assert (len(disk.inside.queue), disk.inside.queue.nbytes, disk.inside.discards) == (0, 0, 10)


def test_a_move_reads_what_is_on_the_disk_and_keeps_the_order(world: World) -> None:
    disk = OnDisk(world)
    disk.operator.say(QUEUE, 5, "add", {"name": "to", "filters": ["b"]})
    disk.journal.sync(now=world.now)
    world.turn()
    disk.operator.frames()
    disk.operator.say(QUEUE, 5, "move", {"name": "billing", "to": "to", "count": 9})
    for _ in range(3):
        assert disk.operator.frames() == []
        disk.read()
    assert disk.operator.next() == [7, 5, {"messages": 9, "stopped": None}]
    assert payloads(disk.operator, "to") == [b"%d" % n for n in range(9)]
    assert payloads(disk.operator) == [b"9"]


def test_a_queue_that_ends_answers_those_who_wait_for_the_disk(world: World) -> None:
    disk = OnDisk(world)
    disk.operator.say(QUEUE, 5, "peek", {"name": "billing"})
    disk.operator.say(QUEUE, 6, "move", {"name": "billing"})
    world.broker.queues.end(world.broker.queues.find("billing"))
    disk.journal.sync(now=world.now)
    world.turn()
    assert disk.operator.frames() == [
        [7, 5, {"messages": [], "waiting": 0}], [7, 6, {"messages": 0, "stopped": "there is no queue 'billing'"}],
    ]


def test_a_message_that_comes_back_during_a_purge_may_stay(world: World) -> None:
    operator, worker = world.connect(), world.connect()
    worker.say(6, 1, 7, "orders.#", {"consumer": "billing", "durable": True, "ack": True, "prefetch": 1})
    operator.send(*(publish("orders.eu", b"%d" % n) for n in range(2_000)))
    worker.frames()
    slices = Slices(world)
    operator.say(QUEUE, 5, "purge", {"name": "billing"})
    worker.say(NACK, 7, 1)
    slices.run()
    (answer,) = operator.frames()
    assert answer[2]["messages"] == 1_998  # a message was delivered meanwhile
