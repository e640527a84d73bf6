"""Clients that subscribe and unsubscribe without pause, beside one that publishes: their part of a crowded loop.

The loop is the test's (test_login_turns.py): a round takes a millisecond, and each subscription that begins or ends
CHANGE_SECONDS more, by the broker's clock as well.
"""

import pytest

from fanlight_broker.core.principal_rates import BURST_SECONDS, WHOLE_REQUEST
from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.packets import Subscribe, Subscription, Unsubscribe
from fanlight_broker.protocols.mqtt.version import V3
from fanlight_broker.protocols.native.frames import Type
from tests.broker.protocols.native import world as native
from tests.broker.protocols.test_login_turns import GREEDY, MODEST, Loop
from tests.broker.protocols.world import Peer

CHANGE_SECONDS = 0.000_05
PERCENT = 5
ASKED = {
    "mqtt": encode(Subscribe(1, (Subscription("x/+", 0),)), V3) + encode(Unsubscribe(2, ("x/+",)), V3),
    "native": native.frame(Type.SUBSCRIBE, 1, 1, "x.*") + native.frame(Type.UNSUBSCRIBE, 2, 1),
}


class SubscribingLoop(Loop):
    """With a client that has as much to ask as the broker reads, if its own round is not over."""

    def __init__(self, dialect: str, *, busy: bool = True, percent: int = PERCENT, address: str = GREEDY) -> None:
        super().__init__(busy=busy, subscribing_percent=percent)
        self.in_now = 0  # of the changes, those whose time is in `world.now`
        self.world.broker.ledger.clock = lambda: self.world.now + CHANGE_SECONDS * (self.changes - self.in_now)
        self.world.plain = False  # type: ignore[attr-defined]  # for the native client: everything is permitted
        self.asked = ASKED[dialect] * 10
        self.greedy: Peer = self.world.open(V3) if dialect == "mqtt" else native.Peer(self.world)  # type: ignore[arg-type]
        self.greedy.address = address
        if dialect == "mqtt":
            self.greedy._sent.append(b"\x10\x0d\0\4MQTT\4\2\0\0\0\1g")
        else:
            self.greedy._sent.append(native.frame(Type.HELLO, 1, {}))
        self.run(0.01)

    @property
    def changes(self) -> int:
        return self.world.broker.subscribing.begun + self.world.broker.subscribing.ended

    def round(self) -> None:
        if not self.greedy._sent:
            self.greedy._sent.append(self.asked)
        super().round()
        self.world.now += CHANGE_SECONDS * (self.changes - self.in_now)
        self.in_now = self.changes
        self.world.broker.sweep(self.world.now)

    def part(self, seconds: float) -> float:
        before, began = self.changes, self.world.now
        self.run(seconds)
        return CHANGE_SECONDS * (self.changes - before) / (self.world.now - began)


@pytest.mark.parametrize("dialect", ASKED)
def test_one_user_gets_its_part_of_a_crowded_loop_and_no_more(dialect: str) -> None:
    loop = SubscribingLoop(dialect)
    assert loop.part(0.1) > 0.4  # what it has saved
    loop.run(2 * BURST_SECONDS * PERCENT / 100)
    # What is done for a request is half of what it costs, and all of that is charged.
    assert 0.6 * PERCENT / 100 < WHOLE_REQUEST * loop.part(1.0) <= 1.2 * PERCENT / 100
    assert loop.world.broker.paces.subscribing.held
    assert not loop.modest.held_back


@pytest.mark.parametrize(
    ("busy", "percent", "address"), [(False, PERCENT, GREEDY), (True, 100, GREEDY), (True, PERCENT, MODEST)],
    ids=["nothing else is under way", "by the setting", "nobody else is there"],
)  # fmt: skip
def test_a_client_does_not_wait_where_it_is_in_nobodys_way(busy: bool, percent: int, address: str) -> None:
    loop = SubscribingLoop("mqtt", busy=busy, percent=percent, address=address)
    assert loop.part(0.3) > 0.4
    assert not loop.world.broker.paces.subscribing.held
