"""Isolation: whatever others take of a pot, and go on taking, each principal gets what its share promises.

For each pot there is one way in which clients really take of it. Two principals take as much as they get, by turns.
Then another one takes its part, while they go on. It must get all of it, and lose nothing of it.
"""

from collections.abc import Callable
from contextlib import suppress
from math import floor
from typing import Any

import pytest

from fanlight_broker.core.errors import LimitExceeded
from fanlight_broker.core.marks import Mark
from fanlight_broker.core.requests import SessionOptions
from fanlight_broker.core.shares import Share, SharedPot
from fanlight_broker.core.work_queue import QueueOptions
from tests.broker.core.sessions import Peer, World

KIB = 1024
LONG = 1e9
ATTACKERS, VICTIM = ("192.0.2.66", "192.0.2.67"), "192.0.2.1"
FRUITLESS = 3  # attempts in a row that get nothing: all of the share is taken


class Principal:
    """Takes of a pot, one unit after another."""

    def __init__(self, world: World, pot: SharedPot, address: str) -> None:
        self.world, self.pot, self.address = world, pot, address
        self.count = 0
        self.peer = self.connect("first", expiry=LONG)
        if pot is SharedPot.STORED_BYTES:
            self.peer.subscribe(f"{address}/#", 1)
            self.peer.leave()

    def connect(self, name: str, **wanted: Any) -> Peer:
        return self.world.connect(f"{self.address} {name}", address=self.address, **wanted)

    @property
    def share(self) -> Share:
        return self.world.broker.shares.of(f"address {self.address}")

    @property
    def used(self) -> int:
        return self.share.used(self.pot)

    def take(self) -> bool:
        """Try to take one more; did it get something?"""
        before = self.used
        self.count += 1
        with suppress(LimitExceeded):
            WAYS[self.pot](self, self.count)
        return self.used > before

    def take_all(self) -> None:
        fruitless = 0
        while fruitless < FRUITLESS:
            fruitless = 0 if self.take() else fruitless + 1


def session(who: Principal, number: int) -> None:
    who.connect(f"{number}")


def large_session(who: Principal, number: int) -> None:
    who.connect(f"{number}", will=who.world.will("will", "w" * 8 * KIB))


def subscription(who: Principal, number: int) -> None:
    who.peer.subscribe(f"{who.address}/{number}")


def large_subscription(who: Principal, number: int) -> None:
    who.peer.subscribe(f"{who.address}/{number}/" + "f" * 8 * KIB)


def searching_filter(who: Principal, number: int) -> None:
    filter = f"#.{who.address.replace('.', '-')}-{number}.#".encode()
    who.world.broker.sessions.subscribe(who.peer.session, filter, "amqp", SessionOptions())


def retained(who: Principal, number: int) -> None:
    who.peer.publish(f"{who.address}/{number}", "x", qos=1, retain=True)


def large_retained(who: Principal, number: int) -> None:
    who.peer.publish(f"{who.address}/{number}", "x" * 8 * KIB, qos=1, retain=True)


def stored(who: Principal, number: int) -> None:
    who.world.publish(f"{who.address}/{number}", "x" * 8 * KIB, 1)


def mark(who: Principal, number: int) -> None:
    who.world.broker.marks.advance(Mark("", f"{who.address} {number}", 0, 0), who.peer.client)


def queue(who: Principal, number: int) -> None:
    broker = who.world.broker
    name = f"{who.address} {number}"
    broker.queues.declare(who.peer.client, name, ((name.encode(), "mqtt"),), QueueOptions(), who.world.now)


def delayed(who: Principal, number: int) -> None:
    _delay(who, "x")


def large_delayed(who: Principal, number: int) -> None:
    _delay(who, "x" * 8 * KIB)


def _delay(who: Principal, payload: str) -> None:
    world, subscriber = who.world, who.peer.client.subscriber
    message = world.message("later", payload)
    world.broker.delayed.check(message, world.now + 3_000, world.now, subscriber.share)
    world.broker.delayed.add(message, world.now + 3_000, world.now, subscriber)


WAYS: dict[SharedPot, Callable[[Principal, int], None]] = {
    SharedPot.SESSIONS: session,
    SharedPot.SESSIONS_BYTES: large_session,
    SharedPot.SUBSCRIPTIONS: subscription,
    SharedPot.SUBSCRIPTIONS_BYTES: large_subscription,
    SharedPot.SEARCHING_FILTERS: searching_filter,
    SharedPot.RETAINED_MESSAGES: retained,
    SharedPot.RETAINED_BYTES: large_retained,
    SharedPot.STORED_BYTES: stored,
    SharedPot.MARKS: mark,
    SharedPot.QUEUES: queue,
    SharedPot.DELAYED_MESSAGES: delayed,
    SharedPot.DELAYED_BYTES: large_delayed,
}
BYTES, COUNT = 2_000 * KIB, 200
RESERVED = {SharedPot.SUBSCRIPTIONS_BYTES: 1 / 8}  # for the steps in which the index grows, which belong to nobody


@pytest.mark.parametrize("pot", list(SharedPot), ids=str)
def test_who_takes_all_it_can_leaves_another_what_its_share_promises(pot: SharedPot) -> None:
    limit, unit = (BYTES, 10 * KIB) if pot.limit.endswith("bytes_max") else (COUNT, 1)
    world = World(**{"queue_bytes_max": BYTES, pot.limit: limit})
    shares = world.broker.shares
    attackers = [Principal(world, pot, address) for address in ATTACKERS]
    victim = Principal(world, pot, VICTIM)
    for attacker in attackers:
        attacker.take_all()
    promised = shares.most(victim.share, pot)
    # A share is 75 % of what the others leave, beside what belongs to nobody.
    assert promised >= floor(0.75 * 0.25 ** len(attackers) * (1 - RESERVED.get(pot, 0)) * limit) - 4 * unit
    while victim.used + unit < promised:
        before = victim.used
        assert victim.take(), f"refused at {before} of {promised}"
        had = victim.used
        for attacker in attackers:
            attacker.take()
        assert victim.used == had
    assert shares.total(pot) <= limit * (1 + RESERVED.get(pot, 0))  # a step of the index is known when it is taken


def test_a_topic_that_is_used_keeps_its_route_while_another_uses_up_all_of_them() -> None:
    world = World(routes_max=64)
    attacker, victim = (world.connect(name, address=name) for name in (ATTACKERS[0], VICTIM))
    reader = world.connect("reader", address=VICTIM)
    reader.subscribe("v/#")
    for number in range(2_000):
        attacker.publish(f"a/{number}")
        victim.publish("v/t", f"{number}")
        assert reader.got() == [f"v/t {number} 0"]
    assert len(world.broker.router.routes) <= 64
    assert world.broker.router.built <= 2_000 + 3  # the attacker's each once; its own when it is new, and not again


def test_outboxes_that_another_fills_take_nothing_from_who_reads() -> None:
    world = World(outboxes_bytes_max=2_000 * KIB, outbox_bytes_max=256 * KIB)
    for number in range(20):  # they read nothing
        world.connect(f"a{number}", address=ATTACKERS[0]).subscribe("a")
    reader = world.connect("reader", address=VICTIM)
    reader.subscribe("v")
    for number in range(200):
        world.publish("a", "x" * 8 * KIB)
        world.publish("v", f"{number}")
        assert reader.got() == [f"v {number} 0"]
