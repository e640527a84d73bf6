"""Rounds: what the log says from a round on is what all of it says, whatever happens while the round is written.

What all of it says is also what the plain image says, from the first entry on.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings

from fanlight_broker.core.declarations import Declarations
from fanlight_broker.core.marks import Mark
from fanlight_broker.storage.image import Image
from fanlight_broker.storage.log import Log
from tests.broker.core.delaying import delay
from tests.broker.storage import plain_image
from tests.broker.storage.stored_world import StoredWorld
from tests.broker.storage.test_store_machine import ACTIONS, STEPS, act, connected
from tests.broker.storage.test_stored_queues import consume, declare, in_flight, publish

Entry = list[tuple[int, bytes]]


def entries(folder: Path) -> Iterator[tuple[int, Entry]]:
    """(sequence, records) of each entry of a log that is closed."""
    opened = Log(folder, lambda: None, threaded=False)
    last, found = 0, []
    for sequence, _, type, body in opened.replay():
        if sequence != last and found:
            yield last, found
            found = []
        last = sequence
        found.append((type, body))
    yield last, found
    opened.close()


def said(image: Any) -> dict[str, Any]:
    """What an image amounts to. Queues that have ended are still in it, as long as nobody minds."""
    return {
        "sessions": {
            id: (
                each.fact, sorted(each.subscriptions.items()), sorted(each.unreleased), each.queue.waiting.items(),
                flights(each.queue),
            )
            for id, each in image.sessions.items()
        },
        "groups": {
            id: (fact, [number for number, _ in image.queues[id].waiting.items()])
            for id, fact in image.groups.items()
        },
        "named": {
            id: (fact, image.queues[id].waiting.items(), sorted(image.queues[id].tried.items()))
            for id, fact in image.named.items()
        },
        "retained": image.retained, "delayed": delayed(image), "marks": list(image.marks.values()),
        "declarations": image.declarations,
        "last": (image.last_number, image.last_queue, image.last_slot, image.last_set),
    }


def delayed(image: Image) -> list[Any]:
    publishers = list(image.delayed_publishers)
    return sorted((id, due, nbytes, publishers[number]) for id, due, nbytes, number in image.delayed)


def flights(queue: Any) -> list[Any]:
    return [(copy, each.slot, each.tag, each.tag_only) for copy, each in queue.flights.items()]


def check_images(folder: Path, rounds: list[tuple[int, int]]) -> None:
    """rounds: (first entry, last entry)"""
    whole, plain = Image(), plain_image.Image()
    parts = {first: Image() for first, _ in rounds}
    ends = dict(rounds)
    for sequence, records in entries(folder):
        for type, body in records:
            whole.apply(type, body)
            plain.apply(type, body)
        assert said(whole) == said(plain), f"entry {sequence}"
        for first, part in parts.items():
            if sequence >= first:
                for type, body in records:
                    part.apply(type, body)
            if sequence >= ends[first]:
                assert said(part) == said(whole), f"entry {sequence}, from the round at {first}"


class Owner:
    """Has declarations by their keys."""

    def __init__(self, declarations: Declarations, name: str = "owner") -> None:
        self.declarations, self.name = declarations, name
        self.bodies = declarations.claim(name, self.restated)

    def restated(self) -> Iterator[tuple[bytes, bytes]]:
        for key in list(self.bodies):
            if key in self.bodies:
                yield key, self.bodies[key]

    def set(self, key: bytes, body: bytes | None) -> None:
        """None: it goes."""
        if body is not None:
            self.bodies[key] = body
            self.declarations.keep(self.name, key, body)
        elif self.bodies.pop(key, None) is not None:
            self.declarations.forget(self.name, key)


def run(folder: Path, steps: list[tuple[str, int, int, int]]) -> int:
    """Returns how many rounds there were."""
    world = StoredWorld(folder, queue_messages_max=6)
    peers = connected(world)
    owner = Owner(world.broker.declarations)
    rounds: list[tuple[int, int]] = []
    for count, (what, who, nth, turn) in enumerate(steps):
        done = world.checkpoint.rounds
        act(world, peers, what, who, nth, count)
        if nth in (5, 6):
            owner.set(f"d{who}".encode(), None if nth == 5 else b"%d" % count)
        if nth == 7:
            world.broker.marks.advance(Mark("u", f"p{who}", 1, count), peers[who].client)
        if turn:
            world.turn(synced=turn > 1)
        if world.checkpoint.rounds > done:
            rounds.append((world.log.floor, world.log.synced))
    world.log.close()
    check_images(world.log.folder, rounds)
    return len(rounds)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_the_image_from_a_round_on_is_that_of_the_whole_log(steps: list[tuple[str, int, int, int]]) -> None:
    with TemporaryDirectory() as folder:
        run(Path(folder), [("round", 0, 0, 2), *steps, ("slice", 0, 1000, 2)])


def many_steps(seed: int, length: int) -> list[tuple[str, int, int, int]]:
    random = Random(seed)
    return [
        (random.choice(ACTIONS), random.randrange(4), random.randrange(9), random.choice([0, 0, 1, *6 * [2]]))
        for _ in range(length)
    ]


@pytest.mark.parametrize("seed", range(4))
def test_of_many_steps(seed: int, tmp_path: Path) -> None:
    assert run(tmp_path, many_steps(seed, 400)) > 1


def test_a_kill_in_the_middle_of_a_round_loses_nothing_that_is_in_flight_to_a_session_that_is_not_kept(
    tmp_path: Path
) -> None:
    """The group's queue was restated without it, and what would have added it was not written any more."""
    world = StoredWorld(tmp_path)
    world.connect("kept", expiry=500.0).subscribe("s", qos=1, group="g")
    brief = world.connect("brief", expiry=0.0)
    brief.subscribe("s", qos=1, group="g")
    for number in range(6):
        world.publish("s", f"x{number}", 1)
    assert len(brief.session.window.flights()) == 3
    world.turn()
    world.checkpoint.begin()
    world.checkpoint.step(1)  # the group, and no session
    world.turn()
    world.crash()
    assert world.recovered.messages == 6
    world.log.close()


def test_delayed_messages_and_named_queues_are_restated(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    peer = world.connect("p", expiry=60.0)
    declare(world, name="work")
    publish(world, "x0", "x1", "x2")
    consumer = consume(world, name="work")
    first = consumer.window.flights()[0]
    world.broker.queues.find("work").inside.refuse(consumer.window, first.tag, 30.0, world.now)
    delay(world, peer, "t/1", "later", 60, 1)
    world.turn()
    for _ in range(2):
        world.round()
        world.crash()
        assert world.recovered.delayed == 1
        assert in_flight(consume(world, name="work")) == [(b"x1", 2), (b"x2", 2)]
        world.crash()
    world.later(31.0)
    assert sorted(payload for payload, _ in in_flight(consume(world, name="work"))) == [b"x0", b"x1", b"x2"]
    world.later(30.0)
    world.settle()
    assert len(world.broker.delayed) == 0


@pytest.mark.parametrize("restart", [False, True])
def test_the_next_round_comes_once_the_log_is_twice_as_long_as_the_last(restart: bool, tmp_path: Path) -> None:
    world = StoredWorld(tmp_path, garbage_bytes=4 << 10)
    for number in range(500):
        world.publish(f"t/{number}", "x" * 100, retain=True)
    world.round()
    written = world.checkpoint.round_bytes
    assert written > 10 * 4 << 10
    world.publish("t/0", "y" * 100, retain=True)
    world.turn()  # the floor is in a header now
    if restart:
        world.crash()
        assert written / 2 < world.recovered.bytes <= written
    for number in range(200):
        world.publish(f"t/{number}", "y" * 100, retain=True)
    world.turn()
    assert not world.checkpoint.running
    for number in range(600):
        world.publish(f"t/{number}", "z" * 100, retain=True)
    world.turn()
    assert world.checkpoint.running
