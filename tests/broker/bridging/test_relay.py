"""Messages of one side to the other, acknowledged when the other has: in packets, without a connection."""

from typing import Any

import pytest

from fanlight_broker.bridging.client_state import ClientState, LinkState, Settled
from fanlight_broker.bridging.relay import MARK, WAITING_BYTES_MAX, Relay, RelayCounts, TryLater
from fanlight_broker.bridging.topic_mapping import BridgeRoute, Direction, TopicMapping
from fanlight_broker.protocols.mqtt.codec import decode, encode
from fanlight_broker.protocols.mqtt.framing import PacketDecoder
from fanlight_broker.protocols.mqtt.packets import ConnAck, Connect, Packet, PubAck, Publish
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version


class Side:
    """A ClientState whose server is the test."""

    def __init__(self, version: Version = V5, **said: Any) -> None:
        self.version = version
        self.state = ClientState(Connect("x", version), packet_max=1 << 20)
        self.state.take()
        self.tell(ConnAck(False, properties=Properties(**said)))
        assert self.state.state is LinkState.OPEN

    def tell(self, packet: Packet) -> list[Any]:
        self.state.feed(encode(packet, self.version), 0.0)
        found = []
        while (event := self.state.next_event()) is not None:
            found.append(event)
        return found

    def heard(self) -> list[Packet]:
        decoder = PacketDecoder(1 << 20)
        decoder.feed(self.state.take())
        found = []
        while (raw := decoder.next_packet()) is not None:
            found.append(decode(raw.first_byte, raw.body, self.version))
        return found


class Bridged:
    def __init__(self, *routes: BridgeRoute, near: Side | None = None, far: Side | None = None, **more: Any) -> None:
        self.near, self.far, self.counts = near or Side(), far or Side(), RelayCounts()
        self.relay = Relay(
            self.near.state, self.far.state, TopicMapping(routes or (BridgeRoute("#"),), outward=True), self.counts,
            outward=True, broker="here", **more,
        )

    def take(self, topic: str, payload: bytes = b"", qos: int = 1, packet_id: int = 1, **fields: Any) -> list[Publish]:
        """What is sent on for a message of the near side."""
        retain = fields.pop("retain", False)
        packet = Publish(topic, payload, qos, retain, packet_id=packet_id if qos else None,
                         properties=Properties(**fields))
        for event in self.near.tell(packet):
            self.relay.take(event)
        return [each for each in self.far.heard() if isinstance(each, Publish)]

    def answer(self, packet_id: int, reason: ReasonCode = ReasonCode.SUCCESS) -> list[Packet]:
        """What the near side hears when the far one answers."""
        for event in self.far.tell(PubAck(packet_id, reason)):
            assert isinstance(event, Settled)
            self.relay.settled(event.token, event.reason)
        return self.near.heard()


def test_an_acknowledgement_passes_through() -> None:
    bridged = Bridged()
    assert [each.qos for each in bridged.take("a", b"1", packet_id=70)] == [1]
    assert bridged.near.heard() == []
    assert bridged.answer(1) == [PubAck(70)]
    assert bridged.counts.messages == 1


def test_qos_0_is_sent_at_once_and_dropped_where_nobody_reads() -> None:
    crowded = False
    bridged = Bridged(crowded=lambda: crowded)
    assert len(bridged.take("a", qos=0)) == 1
    crowded = True
    assert bridged.take("a", qos=0) == []
    assert bridged.counts.dropped == 1


def test_messages_wait_for_room_in_their_order() -> None:
    bridged = Bridged(far=Side(receive_maximum=1))
    assert [each.topic for each in bridged.take("a", packet_id=1)] == ["a"]
    assert bridged.take("b", packet_id=2) == bridged.take("c", packet_id=3) == []
    assert len(bridged.relay) == 2
    assert bridged.answer(1) == [PubAck(1)]
    assert [each.topic for each in bridged.far.heard() if isinstance(each, Publish)] == ["b"]


def test_what_waits_for_room_is_bounded_in_bytes() -> None:
    bridged = Bridged(far=Side(receive_maximum=1))
    body = bytes(WAITING_BYTES_MAX // 2)
    for packet_id in (1, 2, 3):
        bridged.take("a", body, packet_id=packet_id)
        assert not bridged.relay.full  # the first is on its way, two halves wait
    bridged.take("a", body, packet_id=4)
    assert bridged.relay.full
    bridged.answer(1)
    assert not bridged.relay.full


def test_the_far_side_cannot_name_a_route_that_its_topic_is_not_of() -> None:
    routes = (BridgeRoute("sensors/#", Direction.IN), BridgeRoute("alarms/#", Direction.IN, local_prefix="far/"))
    mapping = TopicMapping(routes, outward=False)
    assert mapping.of("commands/door", (1,)) == mapping.of("commands/door", (1, 2, 9)) == []
    assert [each.topic for each in mapping.of("sensors/1", (1,))] == ["sensors/1"]
    assert mapping.of("sensors/1", (2,)) == []  # its selector may be why the other one is not named
    assert [each.topic for each in mapping.of("alarms/1", ())] == ["far/alarms/1"]


def test_a_message_of_two_routes_is_acknowledged_when_both_copies_are() -> None:
    bridged = Bridged(BridgeRoute("a/#", remote_prefix="x/"), BridgeRoute("#", qos=0), BridgeRoute("+/1"))
    sent = bridged.take("a/1", subscription_identifiers=(1, 2, 3))
    assert [(each.topic, each.qos) for each in sent] == [("x/a/1", 1), ("a/1", 1)]
    assert bridged.answer(1) == []
    assert bridged.answer(2) == [PubAck(1)]


def test_prefixes_and_properties() -> None:
    bridged = Bridged(BridgeRoute("t/#", local_prefix="in/", remote_prefix="out/", retained=False))
    (sent,) = bridged.take(
        "in/t/1", b"x", retain=True, content_type="a/b", response_topic="r", correlation_data=b"c",
        message_expiry_interval=9, user_properties=(("k", "v"),), subscription_identifiers=(1,),
    )
    assert (sent.topic, sent.retain) == ("out/t/1", False)
    assert sent.properties == Properties(
        content_type="a/b", response_topic="r", correlation_data=b"c", message_expiry_interval=9,
        user_properties=(("k", "v"), (MARK, "here")),
    )
    three = Bridged(BridgeRoute("t/#"), far=Side(V3))
    assert three.take("t/1", content_type="a/b")[0].properties == Properties()


@pytest.mark.parametrize("marks", [("here",), ("a", "here", "b"), ("x",) * 16])
def test_what_has_been_here_is_not_sent_again(marks: tuple[str, ...]) -> None:
    bridged = Bridged()
    assert bridged.take("a", packet_id=4, user_properties=tuple((MARK, each) for each in marks)) == []
    assert bridged.near.heard() == [PubAck(4)]
    assert bridged.counts.looped == 1


def test_a_message_of_no_route_is_acknowledged_and_counted() -> None:
    bridged = Bridged(BridgeRoute("a/#"), BridgeRoute("c/#", Direction.IN))
    for topic in ("b", "c/1"):
        assert bridged.take(topic, packet_id=4) == []
        assert bridged.near.heard() == [PubAck(4)]
    assert bridged.counts.unmatched == 2


def test_what_nobody_wants_is_not_sent_unless_it_is_retained() -> None:
    bridged = Bridged(wanted=lambda topic: topic == "a")
    assert len(bridged.take("a")) == 1
    assert bridged.take("b", packet_id=2) == []
    assert bridged.near.heard() == [PubAck(2)]
    assert len(bridged.take("b", packet_id=3, retain=True)) == 1
    assert bridged.counts.unwanted == 1


def test_a_refusal_for_good_is_counted_and_one_for_now_ends_the_link() -> None:
    bridged = Bridged()
    bridged.take("a", packet_id=1)
    assert bridged.answer(1, ReasonCode.NOT_AUTHORIZED) == [PubAck(1)]
    assert bridged.counts.refused == 1
    assert bridged.relay.refusal == ("", ReasonCode.NOT_AUTHORIZED)
    bridged.take("a", packet_id=2)
    with pytest.raises(TryLater, match="quota_exceeded"):
        bridged.answer(2, ReasonCode.QUOTA_EXCEEDED)
    assert bridged.near.heard() == []  # it is still the near session's


def test_a_message_that_is_too_large_for_the_other_side_is_counted() -> None:
    bridged = Bridged(far=Side(maximum_packet_size=60))
    assert bridged.take("a", bytes(60), packet_id=1) == []
    assert bridged.near.heard() == [PubAck(1)]
    assert bridged.take("a", bytes(60), qos=0) == []
    assert bridged.counts.too_large == 2


def test_a_topic_that_its_prefix_makes_too_long_for_mqtt_is_counted() -> None:
    bridged = Bridged(BridgeRoute("#", remote_prefix="x" * 60_000))
    assert bridged.take("y" * 6_000, packet_id=1) == []
    assert bridged.near.heard() == [PubAck(1)]
    assert bridged.counts.too_large == 1
