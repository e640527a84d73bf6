"""Routing rules and the store: one acknowledgement, when all that was made of a message is synced."""

from typing import Any

import pytest

from fanlight_broker.protocols.mqtt.packets import (
    ConnAck,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    SubAck,
    Subscribe,
    Subscription,
)  # fmt: skip
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.core.held_journal import HeldJournal
from tests.broker.protocols.mqtt.world import Peer, connect
from tests.broker.protocols.native.test_queues import deliveries
from tests.broker.protocols.native.world import publish
from tests.broker.protocols.rule_worlds import RuleWorld, rule


class DurableRules(RuleWorld):
    """A broker whose journal is synced by `sync`; a session that is kept has subscribed to `b`."""

    def __init__(self, rules: str) -> None:
        super().__init__(rules)
        self.journal = HeldJournal(self.broker)
        self.reader = self.synced(self.open(), "connect", session_expiry_interval=1_000)
        self.synced(self.reader, "subscribe")

    def synced(self, peer: Peer, act: str, **fields: Any) -> Peer:
        peer.say(connect("r", **fields) if act == "connect" else Subscribe(1, (Subscription("b", 2),)))
        self.sync()
        assert isinstance(peer.next(), ConnAck | SubAck)
        return peer

    def sync(self) -> None:
        self.journal.sync(None, self.now)
        self.turn()


@pytest.mark.parametrize("version", [V3, V5])
@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("action", [{"to": "b"}, {"replace": "b"}])
def test_an_acknowledgement_waits_until_the_copy_is_synced(version: Version, qos: int, action: dict[str, Any]) -> None:
    world = DurableRules(rule(topic="a", **action))
    publisher = world.connect("p", version)
    assert publisher.publish("a", b"1", qos) == []
    world.sync()
    answer = publisher.next()
    assert isinstance(answer, PubAck if qos == 1 else PubRec)
    assert answer.reason_code is ReasonCode.SUCCESS
    if qos == 2:
        publisher.say(PubRel(answer.packet_id))
        world.sync()
        assert isinstance(publisher.next(), PubComp)
    publisher.publish("a", b"2", qos, packet_id=9)
    publisher.publish("none", b"3", 1, packet_id=10)  # nobody stores it, but acknowledgements keep their order
    assert publisher.packets() == []
    world.sync()
    assert [packet.packet_id for packet in publisher.packets()] == [9, 10]  # type: ignore[union-attr]
    assert [message.payload for message in world.reader.messages()] == [b"1", b"2"]


@pytest.mark.parametrize("action", [{"to": "orders.b"}, {"replace": "orders.b"}])
def test_a_receipt_waits_until_the_copy_in_a_durable_queue_is_synced(action: dict[str, Any]) -> None:
    world = DurableRules(rule(topic="a", **action))
    consumer, publisher = world.native(), world.native()
    consumer.say(6, 1, 7, "orders.#", {"consumer": "billing", "durable": True, "ack": True})
    world.sync()
    assert consumer.next()[:2] == [7, 1]
    publisher.send(publish("a", b"1", request=1), publish("c", b"1", request=2))
    assert publisher.frames() == [[5, 2, 0]]
    world.sync()
    assert publisher.frames() == [[5, 1, 1]]
    assert [payload for _, _, payload in deliveries(consumer)] == [b"1"]


def test_an_acknowledgement_waits_until_a_retained_copy_is_synced() -> None:
    world = DurableRules(rule(topic="a", to="c"))
    client = world.connect("p")
    assert client.publish("a", b"2", 1, retain=True) == []
    world.sync()
    assert isinstance(client.next(), PubAck)
    assert len(world.broker.retained) == 2


def test_a_delayed_message_is_acknowledged_when_it_is_synced() -> None:
    world = DurableRules(rule(topic="a", delay=5))
    publisher = world.connect("p")
    assert publisher.publish("a", b"1", 1) == []
    world.sync()
    assert isinstance(publisher.next(), PubAck)


@pytest.mark.parametrize("action", [{"to": "b"}, {"replace": "b"}, {"delay": 5}])
def test_while_the_store_is_full_nothing_is_published_and_the_publisher_waits(action: dict[str, Any]) -> None:
    world = DurableRules(rule(topic="a", **action))
    seen, publisher = world.connect("s"), world.connect("p")
    seen.subscribe("#")
    world.journal.position.full = True
    publisher.say(Publish("a", b"1", 1, packet_id=1))
    assert publisher.held_back
    assert publisher.packets() == seen.packets() == []
    world.journal.position.full = False
    world.sync()
    assert not publisher.held_back
    world.sync()
    assert isinstance(publisher.next(), PubAck)
    world.pass_time(5)
    expected = {"to": ["a", "b"], "replace": ["b"], "delay": ["a"]}[next(iter(action))]
    assert [message.topic for message in seen.messages()] == expected


@pytest.mark.parametrize("action", [{"to": "b"}, {"replace": "b"}, {"delay": 5}])
def test_while_the_store_refuses_the_message_is_refused_as_a_whole(action: dict[str, Any]) -> None:
    world = DurableRules(rule(topic="a", **action))
    seen, publisher = world.connect("s"), world.connect("p")
    seen.subscribe("#")
    world.journal.position.refusing = True
    (answer,) = publisher.publish("a", b"1", 1)
    assert answer.reason_code is ReasonCode.QUOTA_EXCEEDED  # type: ignore[union-attr]
    world.pass_time(5)
    assert seen.packets() == []
    assert sum(world.rules.hits.values()) == 0
