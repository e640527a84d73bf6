"""MQTT publishers, and named queues that native clients consume: priorities, and full queues that refuse publishers."""

from collections.abc import Callable
from typing import Any

import pytest

from fanlight_broker.core import filling
from fanlight_broker.protocols.mqtt.packets import Packet, PubAck, PubComp, Publish, PubRec, PubRel
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5
from tests.broker.protocols.mqtt import world as mqtt
from tests.broker.protocols.native import world as native
from tests.broker.protocols.native.test_queues import ACK, subscribe


class World(mqtt.World):
    """MQTT connections, and native ones to the same broker."""

    plain = False

    def consume(self, **options: Any) -> native.Peer:
        """A native client that takes from the queue `billing`."""
        peer = native.Peer(self)  # type: ignore[arg-type]
        peer.say(1, 1, {})
        assert peer.next()[0] == 2
        subscribe(peer, "orders.#", "billing", **options)
        return peer


def payloads(worker: native.Peer) -> list[bytes]:
    return [fields[5] for fields in worker.frames() if fields[0] == 32]


def code_of(answers: list[Packet]) -> ReasonCode:
    """Of the PUBACK, or of the first and last packets of the handshake of QoS 2."""
    assert all(isinstance(answer, PubAck | PubRec | PubComp) for answer in answers), answers
    return answers[-1].reason_code  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("properties", "first"),
    [
        ({"user_properties": (("priority", "7"),)}, True),
        ({"user_properties": (("a", "b"), ("priority", "7"))}, True),
        ({
            "payload_format_indicator": 1, "message_expiry_interval": 60, "content_type": "text/plain",
            "response_topic": "r", "correlation_data": b"c", "user_properties": (("a", ""), ("priority", "7")),
        }, True),
        ({"user_properties": (("priority", "x"),)}, False),
        ({"user_properties": (("priority", "10"),)}, False),
        ({"user_properties": (("priorities", "7"),)}, False),
        ({"content_type": "priority"}, False),
    ],
)
def test_a_user_property_is_the_priority(properties: dict[str, Any], first: bool) -> None:
    world = World()
    world.consume(queue={"priorities": 10}).vanish()
    publisher = world.connect("publisher")
    publisher.publish("orders/eu", b"low", user_properties=(("priority", "1"),))
    publisher.publish("orders/eu", b"high", **properties)
    assert payloads(world.consume()) == ([b"high", b"low"] if first else [b"low", b"high"])


def test_a_message_of_3_1_1_has_no_priority() -> None:
    world = World()
    world.consume(queue={"priorities": 10}).vanish()
    world.connect("old", V3).publish("orders/eu", b"old")
    world.connect("new").publish("orders/eu", b"new", user_properties=(("priority", "1"),))
    assert payloads(world.consume()) == [b"new", b"old"]


@pytest.mark.parametrize("qos", [1, 2])
def test_a_publisher_of_5_0_is_refused_by_a_full_queue_until_it_has_room(qos: int) -> None:
    world = World()
    worker = world.consume(prefetch=1, queue={"messages_max": 2})
    publisher, other = world.connect("publisher"), world.connect("other")
    other.subscribe("orders/#")
    # One is delivered, two wait.
    for payload in (b"1", b"2", b"3"):
        assert code_of(publisher.publish("orders/eu", payload, qos)) is ReasonCode.SUCCESS
    refused = publisher.publish("orders/eu", b"4", qos)
    assert len(refused) == 1  # a refusal ends the exchange, also that of QoS 2 (4.3.3)
    assert isinstance(refused[0], PubAck if qos == 1 else PubRec)
    assert refused[0].reason_code is ReasonCode.QUOTA_EXCEEDED
    assert not publisher.held_back
    assert [message.payload for message in other.messages()] == [b"1", b"2", b"3"]  # nobody got it
    assert code_of(publisher.publish("elsewhere", b"-", qos)) < 0x80
    worker.say(ACK, 7, 1)
    assert code_of(publisher.publish("orders/eu", b"5", qos)) is ReasonCode.SUCCESS
    for sequence in (2, 3, 4):
        worker.say(ACK, 7, sequence)
    assert payloads(worker) == [b"1", b"2", b"3", b"5"]


@pytest.mark.parametrize("qos", [1, 2])
def test_a_publisher_of_3_1_1_waits_until_a_full_queue_has_room(qos: int) -> None:
    world = World()
    worker = world.consume(prefetch=1, queue={"messages_max": 1})
    publisher = world.connect("publisher", V3)
    for payload in (b"1", b"2"):
        assert publisher.publish("orders/eu", payload, qos)
    assert publisher.publish("orders/eu", b"3", qos) == []
    assert publisher.held_back
    publisher.say(Publish("elsewhere", b"4", qos, packet_id=99))
    assert publisher.packets() == []  # the broker does not read it
    worker.say(ACK, 7, 1)
    world.pass_time(1)
    answers = publisher.packets()
    assert [type(answer) for answer in answers] == [PubAck if qos == 1 else PubRec] * 2
    if qos == 2:
        publisher.say(PubRel(publisher.packet_id), PubRel(99))
    assert not publisher.held_back
    worker.say(ACK, 7, 2)
    assert payloads(worker) == [b"1", b"2", b"3"]


def test_a_publisher_of_3_1_1_that_has_waited_for_too_long_is_disconnected() -> None:
    world = World(unkept_seconds_max=30)
    worker = world.consume(prefetch=1, ack_wait=1_000, queue={"messages_max": 1})
    publisher = world.connect("publisher", V3, keep_alive=0)
    for payload in (b"1", b"2", b"3"):
        publisher.publish("orders/eu", payload, 1)
    assert publisher.held_back
    for _ in range(31):
        world.pass_time(1)
    assert publisher.gone
    worker.say(ACK, 7, 1)
    worker.say(ACK, 7, 2)
    assert payloads(worker) == [b"1", b"2"]


@pytest.mark.parametrize("version", [V3, V5])
def test_a_message_of_qos_0_is_dropped_by_a_full_queue_and_its_publisher_goes_on(version: Any) -> None:
    world = World()
    worker = world.consume(prefetch=1, queue={"messages_max": 1})
    publisher = world.connect("publisher", version)
    for payload in (b"1", b"2", b"3"):
        publisher.publish("orders/eu", payload)
    assert not publisher.held_back
    assert not publisher.gone
    worker.say(ACK, 7, 1)
    worker.say(ACK, 7, 2)
    assert payloads(worker) == [b"1", b"2"]


def test_a_full_queue_of_another_policy_keeps_no_message_from_the_others() -> None:
    world = World()
    worker = world.consume(prefetch=1, queue={"messages_max": 1, "overflow": "drop_newest"})
    publisher, other = world.connect("publisher", V5), world.connect("other")
    other.subscribe("orders/#")
    for payload in (b"1", b"2", b"3"):
        assert code_of(publisher.publish("orders/eu", payload, 1)) is ReasonCode.SUCCESS
    assert [message.payload for message in other.messages()] == [b"1", b"2", b"3"]
    worker.say(ACK, 7, 1)
    assert payloads(worker) == [b"1", b"2"]


def test_properties_are_those_that_the_format_walks_over() -> None:
    # Each property that a PUBLISH may have and that is forwarded: a new one would end the search for the priority.
    forwarded = Properties(
        payload_format_indicator=1, message_expiry_interval=1, content_type="t", response_topic="r",
        correlation_data=b"c", user_properties=(("priority", "9"),),
    )
    world = World()
    world.consume(queue={"priorities": 2}).vanish()
    publisher = world.connect("publisher")
    publisher.say(Publish("orders/a", b"0"), Publish("orders/a", b"1", properties=forwarded))
    assert payloads(world.consume()) == [b"1", b"0"]


# -- a queue that begins with what is retained -----------------------------------------------------------------------


def test_a_queue_begins_with_the_last_of_each_topic() -> None:
    world = World()
    publisher = world.connect("publisher")
    for topic, payload in (("orders/a", b"old"), ("orders/b", b"b"), ("other", b"x"), ("orders/a", b"a"),
                           ("orders/c", b"c"), ("orders/c", b"")):
        publisher.publish(topic, payload, retain=True)
    worker = world.consume(deliver="last")
    assert sorted(payloads(worker)) == [b"a", b"b"]
    publisher.publish("orders/a", b"live")
    assert payloads(worker) == [b"live"]
    assert world.broker.queues.find("billing").filling is None


def test_a_message_that_is_retained_meanwhile_is_there_once_and_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "SLICE", 1)
    world = World()
    later: list[Callable[[], Any]] = []
    monkeypatch.setattr(world.broker.turns, "_soon", later.append)
    publisher = world.connect("publisher")
    for number in range(5):
        publisher.publish(f"orders/{number}", b"%d" % number, retain=True)
    worker = native.Peer(world)  # type: ignore[arg-type]
    worker.say(1, 1, {})
    worker.say(6, 1, 7, "orders.#", {"consumer": "billing", "durable": True, "ack": True, "deliver": "last"})
    later.pop(0)()
    publisher.publish("orders/0", b"0 again", retain=True)
    publisher.publish("orders/3", b"3 again", retain=True)
    publisher.publish("orders/new", b"new")
    while later:
        later.pop(0)()
    world.turn()
    assert payloads(worker) == [b"0", b"1", b"2", b"4", b"0 again", b"3 again", b"new"]


@pytest.mark.parametrize(("bound", "limit"), [({"messages_max": 2}, "messages_max"), ({"bytes_max": 900}, "bytes_max")])
def test_retained_messages_that_do_not_fit_are_an_error_and_there_is_no_queue(
    bound: dict[str, int], limit: str
) -> None:
    world = World()
    publisher = world.connect("publisher")
    for number in range(4):
        publisher.publish(f"orders/{number}", b"", retain=True)
        publisher.publish(f"orders/{number}", b"x", retain=True)
    worker = native.Peer(world)  # type: ignore[arg-type]
    worker.say(1, 1, {})
    worker.frames()
    worker.say(6, 1, 7, "orders.#", {"consumer": "billing", "ack": True, "deliver": "last", "queue": bound})
    answer = worker.next()
    assert answer[:3] == [13, 1, "limit_exceeded"]
    assert answer[4] == {"limit": limit, "value": bound[limit]}
    assert (len(world.broker.queues), len(world.broker.retained)) == (0, 4)
