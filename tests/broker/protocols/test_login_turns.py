"""Clients that do nothing but connect, beside one that publishes: how much of a crowded loop's time they get.

The loop is the test's: a round takes a millisecond, and each login that it does LOGIN_SECONDS more.
"""

from collections.abc import Callable
from typing import Any

import pytest

from fanlight_broker.core.login_turns import LOGIN_SECONDS, LOOK_AT_SECONDS, LOOK_BYTES, LoginTurns
from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.packets import Publish, Subscribe, Subscription
from fanlight_broker.protocols.mqtt.version import V3
from fanlight_broker.wire.ledger import Ledger
from tests.broker.protocols.mqtt.world import Peer, World, connect

ROUND_SECONDS = 0.001
MESSAGES = encode(Publish("t", b"payload"), V3) * 40  # of a round
GREEDY, MODEST, OTHER = "192.0.2.66", "192.0.2.1", "192.0.2.2"


class Loop:
    """A broker, a publisher that is its own subscriber, and rounds one by one."""

    def __init__(self, *, busy: bool, logins_percent: int = 5, slow: float = 0.0, **limits: Any) -> None:
        """slow: seconds of its turn, by the broker's clock; else a login is a part of the round."""
        self.world = World(in_turns=True, logins_percent=logins_percent, **limits)
        self.modest = self.world.connect("modest", V3)
        self.modest.say(Subscribe(1, (Subscription("t", 0),)))
        self.modest.packets()
        self.world.broker.ledger.clock = lambda: self.world.now + slow * len(self.world.broker.clients)
        self.busy, self.messages, self.seconds = busy, MESSAGES, ROUND_SECONDS
        self.login_seconds = 0.0 if slow else LOGIN_SECONDS
        self.begun = self.world.now
        self.logins = 0

    def come(self, address: str, count: int, name: str = "c") -> list[Peer]:
        """As many clients connect, all in the next round."""
        peers = [self.world.open(V3) for _ in range(count)]
        for number, peer in enumerate(peers):
            peer.address, peer.at_once = address, True
            peer._sent.append(encode(connect(f"{name}-{number}", V3), V3))
        return peers

    def round(self) -> None:
        world, before = self.world, len(self.world.broker.clients)
        for outbox in world.broker.ledger.pop_dirty():
            outbox.clean()
            world.peer_of(outbox).flush()
        for _ in range(len(world.soon)):
            world.soon.popleft()()
        if self.busy:
            self.modest._sent.append(self.messages)
        for peer in world.peers:
            peer.deliver()
        logins = len(world.broker.clients) - before
        self.logins += logins
        world.now += self.seconds + logins * self.login_seconds

    def run(self, seconds: float) -> None:
        end = self.world.now + seconds
        while self.world.now < end:
            self.round()


def test_one_address_gets_its_part_of_a_crowded_loop_and_no_more() -> None:
    loop = Loop(busy=True)
    loop.run(0.01)
    loop.come(GREEDY, 1, "first")  # after which the loop is looked at
    loop.run(0.01)
    loop.logins = 0
    loop.come(GREEDY, 300)
    loop.run(0.5)
    assert 0.04 < loop.logins * LOGIN_SECONDS / 0.5 <= 0.05 + LOGIN_SECONDS / 0.5
    assert len(loop.world.broker.login_turns) == 300 - loop.logins
    assert loop.world.broker.login_turns.waited == 300


def test_a_loop_of_many_short_rounds_is_crowded_as_well() -> None:
    """Clients that send one message at a time, with which the loop is as busy."""
    loop = Loop(busy=True, slow=LOGIN_SECONDS / 2)
    loop.messages, loop.seconds = encode(Publish("t", b"payload"), V3) * 4, 0.000_1
    loop.run(0.01)
    loop.come(GREEDY, 1, "first")
    loop.run(0.01)
    loop.logins = 0
    loop.come(GREEDY, 300)
    loop.run(0.5)
    elapsed = 0.5 + loop.logins * LOGIN_SECONDS / 2
    assert 0.04 < loop.logins * LOGIN_SECONDS / elapsed <= 0.05 + LOGIN_SECONDS / elapsed


def test_a_loop_with_few_messages_is_not() -> None:
    loop = Loop(busy=True)
    loop.messages, loop.seconds = encode(Publish("t", b"payload"), V3), 0.000_1
    loop.come(GREEDY, 1, "first")
    loop.run(0.01)
    loop.come(GREEDY, 300)
    loop.run(0.1)
    assert loop.logins == 301


def test_on_a_slow_machine_a_login_counts_for_what_it_takes() -> None:
    loop = Loop(busy=True, slow=0.004)
    loop.come(GREEDY, 1, "first")
    loop.run(0.01)
    loop.logins = 0
    loop.come(GREEDY, 300)
    loop.run(2.0)
    elapsed = 2.0 + 0.004 * loop.logins
    assert 0.03 < loop.logins * 0.008 / elapsed <= 0.05 + 0.008 / elapsed  # accepting and the end take as long again


def test_a_login_of_another_address_waits_for_one_of_each_and_not_for_all() -> None:
    loop = Loop(busy=True)
    loop.come(GREEDY, 1, "first")
    loop.run(0.01)
    loop.come(GREEDY, 300)
    loop.run(0.1)
    other = loop.come(OTHER, 1, "other")[0]
    for _ in range(4):
        loop.round()
    assert other.protocol.client is not None
    assert len(loop.world.broker.login_turns) > 250


def test_nobody_waits_where_nothing_but_logins_is_under_way() -> None:
    loop = Loop(busy=False)
    loop.come(GREEDY, 1_000)
    loop.round()
    assert loop.logins == 1_000
    assert loop.world.broker.login_turns.waited == 0


def test_those_who_wait_come_in_once_the_loop_is_not_crowded_any_more() -> None:
    loop = Loop(busy=True)
    loop.come(GREEDY, 1, "first")
    loop.run(0.01)
    loop.come(GREEDY, 200)
    loop.run(0.05)
    loop.busy = False
    loop.run(0.3)
    assert loop.logins == 201
    assert not loop.world.broker.login_turns.crowded
    loop.round()
    loop.round()
    assert not loop.world.soon  # nothing goes on behind them


def test_a_client_that_leaves_while_it_waits_leaves_nothing_behind() -> None:
    loop = Loop(busy=True)
    loop.come(GREEDY, 1, "first")
    loop.run(0.01)
    waiting = loop.come(GREEDY, 50)
    loop.round()
    assert len(loop.world.broker.login_turns) >= 49
    for peer in waiting:
        peer._lose("gone")
    assert len(loop.world.broker.login_turns) == 0
    before = loop.logins
    loop.run(0.1)
    assert loop.logins == before


def test_a_hundred_percent_lets_nobody_wait() -> None:
    loop = Loop(busy=True, logins_percent=100)
    loop.come(GREEDY, 1, "first")
    loop.run(0.01)
    loop.come(GREEDY, 50)
    loop.round()
    assert loop.logins == 51


def test_a_login_on_a_loop_with_nothing_else_to_do_lets_it_sleep() -> None:
    """Rounds that only ask whether a look is over would take a millisecond of the processor for each login."""
    soon, timers = list[Callable[[], None]](), list[Callable[[float], None]]()
    ledger = Ledger(1_000, lambda: None, 1_000)
    now = 0.0
    ledger.clock = lambda: now
    turns = LoginTurns(ledger, soon.append, 5, lambda seconds, then: timers.append(then))
    assert turns.enter("who", "192.0.2.1", lambda: None)
    rounds = 0
    while soon or timers:  # a timer ends before its time, which a loop with milliseconds for a clock does
        if soon:
            soon.pop()()
        else:
            now += LOOK_AT_SECONDS * 0.6
            timers.pop()(now)
        rounds += 1
    assert rounds == 2
    assert not turns.crowded


def test_messages_that_come_while_it_sleeps_are_seen_and_who_waits_lets_it_sleep() -> None:
    """A round that asks whether somebody's turn is takes 10 µs, and a crowded loop has thousands of them."""
    soon, timers = list[Callable[[], None]](), list[tuple[float, Callable[[float], None]]]()
    ledger = Ledger(1_000, lambda: None, 1_000)
    now = 0.0
    ledger.clock = clock = lambda: now
    turns = LoginTurns(ledger, soon.append, 5, lambda seconds, then: timers.append((seconds, then)))
    turns.enter("who", "192.0.2.1", lambda: None)
    served = list[float]()
    rounds, looks = 0, list[bool]()
    while not served:
        if soon:
            soon.pop()()
        else:
            (seconds, then), *_ = timers
            timers.clear()
            ledger.count_out(LOOK_BYTES)
            now += seconds
            then(now)
        if turns.crowded and not looks:
            assert not turns.enter("next", "192.0.2.1", lambda: served.append(clock()))
        looks += [True] * turns.crowded
        rounds += 1
    assert served == [pytest.approx(LOGIN_SECONDS * 20)]
    assert rounds < 10
