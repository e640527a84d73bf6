"""A queue group that ends is dropped in slices. A kill between two of them brings nothing of it back, and loses nothing
of what its members had in flight.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fanlight_broker.core.draining import Draining
from fanlight_broker.core.turns import Turns
from fanlight_broker.storage.stored_backlog import StoredBacklog
from fanlight_broker.wire.queue import Queue
from tests.broker.core.sessions import Peer
from tests.broker.storage.stored_world import StoredWorld

COUNT, IN_FLIGHT = 2_000, 10
TOPIC = "t/1"


class Group:
    """A member whose client has IN_FLIGHT of COUNT messages, and what is to be called for the rest of a group that has
    ended.
    """

    def __init__(self, folder: Path) -> None:
        self.world = world = StoredWorld(folder, queue_messages_max=COUNT)
        self.peer = world.connect("s", expiry=60.0, clean_start=False, receive_max=IN_FLIGHT)
        self.subscribe()
        for number in range(COUNT):
            world.publish(TOPIC, f"x{number}", 1)
        world.turn()
        self.later: list[Callable[[], Any]] = []
        world.broker.subscribing._draining = Draining(Turns(world.broker.ledger, self.later.append))

    @property
    def queue(self) -> Queue | None:
        return self.world.broker.router.group_queue("g", TOPIC.encode(), "mqtt")

    @property
    def live(self) -> int:
        return sum(lot.live for lot in self.world.log.lots)

    def subscribe(self) -> None:
        self.peer.subscribe(TOPIC, qos=1, group="g")

    def unsubscribe(self) -> Queue:
        queue = self.queue
        assert queue is not None
        self.world.broker.sessions.unsubscribe(self.peer.session, TOPIC.encode(), "g")
        return queue

    def come_back(self) -> Peer:
        return self.world.connect("s", expiry=60.0, clean_start=False, receive_max=IN_FLIGHT)


@pytest.fixture
def group(tmp_path: Path) -> Group:
    return Group(tmp_path)


def payloads(peer: Peer) -> list[str]:
    return [line.split()[1] for line in peer.got()]


@pytest.mark.parametrize("rounds", [0, 1])
def test_a_kill_while_a_group_that_ended_is_dropped_brings_nothing_of_it_back(group: Group, rounds: int) -> None:
    world = group.world
    ended = group.unsubscribe()
    world.turn()
    assert group.queue is None
    assert COUNT // 2 < len(ended) < COUNT - IN_FLIGHT
    assert group.later
    for _ in range(rounds):
        world.round()
    world.crash()
    assert world.recovered.messages == IN_FLIGHT
    assert group.queue is None
    world.turn()
    assert group.live == IN_FLIGHT  # so the files of the others can be given back
    again = group.come_back()
    assert payloads(again) == [f"x{number}" for number in range(IN_FLIGHT)]
    again.acknowledge()
    world.turn()
    assert group.live == 0


def test_a_group_that_begins_again_while_the_old_one_is_dropped_has_what_came_since_after_a_kill(group: Group) -> None:
    world = group.world
    group.unsubscribe()
    group.subscribe()
    world.publish(TOPIC, "new", 1)
    world.turn()
    world.crash()
    queue = group.queue
    assert queue is not None
    assert world.waiting(queue) == [b"new"]
    assert world.recovered.messages == IN_FLIGHT + 1


def test_a_group_that_ended_is_dropped_with_what_was_being_read_for_it(group: Group) -> None:
    world = group.world
    group.peer.acknowledge()
    ended = group.unsubscribe()
    backlog = ended.backlog
    assert isinstance(backlog, StoredBacklog)
    backlog.fetch()
    world.turn()
    assert ended.waiting()
    while group.later:
        group.later.pop(0)()
        world.turn()
    group.peer.acknowledge()
    world.turn()
    assert (len(ended), ended.backlog) == (0, None)
    assert (world.store.records.backlog, world.store.records.backlog_bytes) == (0, 0)
    assert (world.broker.ledger.stored_messages, group.live) == (0, 0)
