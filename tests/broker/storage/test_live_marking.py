"""Compaction keeps every message that waits or is in flight, whatever moves while it is found out which do.

Random steps over sessions, a group and a named queue, whose segments are so small that compaction always has something
to do; the model is a set of payloads for each of them.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.core.work_queue import QueueConsumer
from fanlight_broker.storage import live_marking
from fanlight_broker.storage.disk import Disk
from fanlight_broker.storage.live_marking import LiveMarking
from fanlight_broker.wire.window import Window
from tests.broker.core.sessions import Peer
from tests.broker.storage.stored_world import StoredWorld
from tests.broker.storage.test_stored_queues import consume, declare, in_flight

SEGMENT = 8192  # a header, and about ten messages
FILLING = "x" * 330
TOPICS = {"t": "t/1", "s": "s", "w": "w"}  # for two sessions, a group and a named queue
ACTIONS = [
    "publish", "publish", "publish", "acknowledge", "acknowledge", "acknowledge", "acknowledge", "leave", "leave",
    "back", "round", "slice", "mark", "mark", "mark", "mark", "copy", "restart",
]  # fmt: skip
STEP = st.tuples(st.sampled_from(ACTIONS), st.integers(0, 3), st.integers(0, 6))


class Run:
    """Three sessions, the last of which is not kept, and a worker. What the folder has is there already."""

    def __init__(self, folder: Path, *, disk: Disk | None = None, published: int = 0) -> None:
        self.world = StoredWorld(
            folder, segment_bytes=SEGMENT, garbage_bytes=2048, disk=disk, queue_messages_max=100_000
        )
        self.published, self.compactions = published, 0
        self.peers: dict[int, Peer] = {}
        self.expected: dict[str, set[bytes]] = {name: set() for name in ("c0", "c1", "s", "w")}
        if self.world.recovered.queues:
            self.expected = self.found()
            self.connect_all()
        else:
            declare(self.world, filter=b"w")
            self.connect_all()
            self.peers[0].subscribe("t/#", qos=1)
            self.peers[1].subscribe("t/+", qos=1)
        self.world.turn()

    def connect_all(self) -> None:
        for who in range(3):
            self.connect(who)
        self.worker: QueueConsumer = consume(self.world)

    def connect(self, who: int) -> None:
        self.peers[who] = self.world.connect(
            f"c{who}", expiry=1e6 if who < 2 else 0.0, clean_start=False, receive_max=2 + 10 * who
        )
        self.peers[who].subscribe("s", qos=1, group="g")

    def act(self, what: str, who: int, count: int) -> None:
        world = self.world
        match what:
            case "publish":
                self.publish("tssw"[who], 1 + 3 * count)
            case "acknowledge":
                self.acknowledge(who, count)
            case "leave" if self.connected(min(who, 2)):
                self.peers[min(who, 2)].leave()
            case "leave":
                self.connect(min(who, 2))
            case "back":
                self.back(count)
            case "round":
                if not world.checkpoint.running:
                    world.checkpoint.begin()
                world.checkpoint.step()
            case "slice" if not world.checkpoint.running:
                world.checkpoint.begin()
            case "slice":
                world.checkpoint.step(1 + 3 * count)
            case "mark":
                world.marking.step(1 + count // 3)
            case "copy":
                world.log.prepare()
            case "restart" if count < 2:
                self.restart()
        world.steps.clear()  # slices: it is these actions that go on with them
        world.turn()

    def connected(self, who: int) -> bool:
        return self.peers[who].session.client is self.peers[who].client

    def publish(self, kind: str, count: int) -> None:
        for _ in range(count):
            self.published += 1
            payload = f"{kind}{self.published}{FILLING}"
            self.world.publish(TOPICS[kind], payload, 1)
            for name in ("c0", "c1") if kind == "t" else kind:
                self.expected[name].add(payload.encode())

    def windows(self) -> Iterator[tuple[str, Window]]:
        for who, peer in self.peers.items():
            if not peer.session.ended:
                yield f"c{who}", peer.session.window
        yield "w", self.worker.window

    def acknowledge(self, who: int, count: int) -> None:
        """All that is in flight somewhere, but one in eight messages only now and then: so segments become sparse."""
        for name, window in list(self.windows())[who:][:1]:
            sent = [(flight.tag, flight.message.payload) for flight in window.flights() if flight.message is not None]
            for tag, payload in sent:
                kind, number = chr(payload[0]), int(payload[1:].rstrip(b"x"))
                if number % 8 or count == 0:
                    assert window.acknowledge(tag, self.world.now)
                    self.expected[name if kind == "t" else kind].remove(payload)

    def back(self, count: int) -> None:
        """A worker refuses something, for now or with a delay, or leaves and comes again."""
        queue, flights = self.worker.queue, self.worker.window.flights()
        if count < 2:
            self.world.broker.queues.leave(self.worker, self.world.now)
            self.worker = consume(self.world)
        elif flights:
            delay = 0.0 if count < 4 else 5.0 * count
            assert queue.inside.refuse(self.worker.window, flights[count % len(flights)].tag, delay, self.world.now)

    def restart(self) -> None:
        self.world.turn()
        self.world.turn()
        self.compactions += self.world.log.compactions
        self.world.crash()
        assert not self.world.log.damage
        found = self.found()
        lost = {name: sorted(each[:6] for each in self.expected[name] - found[name]) for name in found}
        assert found == self.expected, f"lost: {lost}"
        self.connect_all()

    def found(self) -> dict[str, set[bytes]]:
        """After a restart: what is in flight was read from the log, like what waits."""
        world = self.world
        found: dict[str, set[bytes]] = {name: set() for name in self.expected}
        for session in world.broker.sessions:
            payloads = [each.message.payload for each in session.window.flights() if each.message is not None]
            found[session.name] |= {payload for payload in payloads if payload[:1] == b"t"}
            found[session.name] |= set(world.waiting(session.window.queue))
            found["s"] |= {payload for payload in payloads if payload[:1] == b"s"}
            for subscription in session.subscriptions:
                if subscription.group is not None and subscription.group.queue is not None:
                    found["s"] |= set(world.waiting(subscription.group.queue))
        worker = consume(world, prefetch=10_000)
        while worker.queue.inside.queue.apart:  # what was refused with a delay
            world.later(100.0)
            world.turn()
            world.turn()
        found["w"] = {payload for payload, _ in in_flight(worker)}
        world.broker.queues.leave(worker, world.now)
        return found


def run(folder: Path, steps: list[tuple[str, int, int]]) -> int:
    """Returns how many compactions there were."""
    one = Run(folder)
    for step in steps:
        one.act(*step)
    one.restart()
    one.world.log.close()
    return one.compactions


@settings(max_examples=40, deadline=None)
@given(st.lists(STEP, max_size=120))
def test_nothing_that_is_live_is_lost_by_compaction(steps: list[tuple[str, int, int]]) -> None:
    with TemporaryDirectory() as folder:
        run(Path(folder), steps)


def many_steps(seed: int, count: int = 300) -> list[tuple[str, int, int]]:
    random = Random(seed)
    return [(random.choice(ACTIONS), random.randrange(4), random.randrange(7)) for _ in range(count)]


@pytest.mark.parametrize("seed", range(4))
def test_nor_by_many(seed: int, tmp_path: Path) -> None:
    assert run(tmp_path, many_steps(seed)) >= 1


def noticed(folder: Path) -> bool:
    """Does one of the first seeds notice that messages are lost?"""
    for seed in range(80):
        try:
            run(folder / str(seed), many_steps(seed))
        except (AssertionError, KeyError):  # messages are missing, or a number that waits has no message
            return True
    return False


@pytest.mark.parametrize("left_out", ["mark_waiting", "mark_flights", "mark_named"])
def test_it_notices_what_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, left_out: str) -> None:
    monkeypatch.setattr(live_marking, left_out, lambda live, place: None)
    assert noticed(tmp_path)


def test_it_notices_that_moves_are_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    progress = LiveMarking.progress

    def unmarked(self: LiveMarking, rounds: int) -> None:
        progress(self, rounds)
        self._store.records.marking = None

    monkeypatch.setattr(LiveMarking, "progress", unmarked)
    assert noticed(tmp_path)
