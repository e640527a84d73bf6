"""What is stored before it is acknowledged (MQTT 5, 4.3): one call of the store, whatever the QoS and the lane."""

from collections.abc import Callable

import pytest

from broker.protocols.mqtt.packets import PubAck, PubComp, PubRec, PubRel
from broker.protocols.mqtt.reason_codes import ReasonCode
from broker.protocols.mqtt.version import V3, V5, Version
from broker.wire.fanout import Route
from broker.wire.outbox import Outbox
from tests.broker.protocols.mqtt.world import World


class SlowStore:
    """Stores when the test says so, in order."""

    durable = True

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def commit(self, then: Callable[[], None]) -> None:
        self.waiting.append(then)

    def blocker(self, route: Route) -> Outbox | None:
        return None

    def flush(self) -> None:
        waiting, self.waiting = self.waiting, []
        for then in waiting:
            then()


@pytest.mark.parametrize("version", [V3, V5])
def test_no_acknowledgement_before_the_store_has_what_it_acknowledges(version: Version) -> None:
    world = World()
    world.broker.publishing.store = store = SlowStore()
    listener, peer = world.connect("s", version), world.connect("p", version)
    listener.subscribe("a", qos=2)
    for qos, answer in ((1, PubAck), (2, PubRec), (1, PubAck)):  # the last on a route that is known
        assert peer.publish("a", b"x", qos) == []
        assert len(store.waiting) == 1
        store.flush()
        world.turn()
        (acknowledged,) = peer.packets()
        assert isinstance(acknowledged, answer)
        assert acknowledged.reason_code is ReasonCode.SUCCESS
    peer.say(PubRel(2))
    assert peer.packets() == []
    store.flush()
    world.turn()
    assert isinstance(peer.next(), PubComp)
    assert [message.qos for message in listener.messages()] == [1, 2, 1]


def test_a_refusal_waits_its_turn_behind_what_was_accepted() -> None:
    world = World()
    world.broker.publishing.store = store = SlowStore()
    peer = world.connect("p")
    assert peer.publish("a", b"x", 1, packet_id=1) == []
    assert peer.publish("$SYS/x", b"x", 1, packet_id=2) == []
    store.flush()
    world.turn()
    first, second = peer.packets()
    assert isinstance(first, PubAck)
    assert isinstance(second, PubAck)
    assert (first.packet_id, first.reason_code) == (1, ReasonCode.NO_MATCHING_SUBSCRIBERS)
    assert (second.packet_id, second.reason_code) == (2, ReasonCode.NOT_AUTHORIZED)
