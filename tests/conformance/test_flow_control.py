"""Receive Maximum (4.9, 3.1.2.11.3) and Maximum Packet Size (3.1.2.11.4), both ways."""

import pytest

from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.packets import (
    ConnAck,
    Disconnect,
    PingReq,
    PingResp,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    SubAck,
    Subscribe,
    Subscription,
    UnsubAck,
    Unsubscribe,
)
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V5, Version
from tests.broker.protocols.mqtt.world import World, connect
from tests.conformance.clients import assert_closed, back, lasting, payloads, publishes, versions

pytestmark = pytest.mark.usefixtures("either_lane")

# -- what the client takes at once -------------------------------------------------------------------------------------


@pytest.mark.mqtt("MQTT-3.3.4-9", version=5)
@pytest.mark.mqtt("MQTT-4.9.0-1", version=5)
@pytest.mark.mqtt("MQTT-4.9.0-2", version=5)
@pytest.mark.parametrize("maximum", [1, 3])
def test_no_more_messages_are_under_way_than_the_receive_maximum(maximum: int) -> None:
    world = World()
    peer, publisher = world.connect("s", receive_maximum=maximum), world.connect("p")
    peer.subscribe("a", qos=2)
    for number in range(10):
        publisher.publish("a", str(number).encode(), 1 + number % 2)
    got = publishes(peer.packets())
    assert len(got) == maximum
    while got:
        first = got.pop(0)
        identifier = first.packet_id or 0
        if first.qos == 2:
            peer.say(PubRec(identifier))
            assert peer.packets() == [PubRel(identifier)]  # the quota is as it was
            peer.say(PubComp(identifier))
        else:
            peer.say(PubAck(identifier))
        got += publishes(peer.packets())
        left = 9 - int(first.payload)
        assert len(got) == min(maximum, left)


@pytest.mark.mqtt("MQTT-4.9.0-2", version=5)
@pytest.mark.parametrize("reason", [ReasonCode.SUCCESS, ReasonCode.QUOTA_EXCEEDED])
def test_a_puback_or_a_pubrec_with_an_error_makes_room(reason: ReasonCode) -> None:
    world = World()
    peer, publisher = world.connect("s", receive_maximum=1), world.connect("p")
    peer.subscribe("a", qos=2)
    for number in range(3):
        publisher.publish("a", str(number).encode(), 2)
    (message,) = publishes(peer.packets())
    peer.say(PubRec(message.packet_id or 0, reason))
    packets = peer.packets()
    if reason is ReasonCode.SUCCESS:
        assert packets == [PubRel(message.packet_id or 0)]
    else:
        assert payloads(packets) == [b"1"]


@pytest.mark.mqtt("MQTT-3.3.4-10", version=5)
@pytest.mark.mqtt("MQTT-4.9.0-3", version=5)
def test_all_other_packets_pass_when_the_quota_is_used_up() -> None:
    world = World()
    peer, publisher = world.connect("s", receive_maximum=1), world.connect("p")
    peer.subscribe("a", qos=2)
    for number in range(3):
        publisher.publish("a", str(number).encode(), 2)
    (message,) = publishes(peer.packets())
    publisher.publish("a", b"of QoS 0")
    assert payloads(peer.packets()) == [b"of QoS 0"]
    peer.say(
        PingReq(), Subscribe(50, (Subscription("b"),)), Unsubscribe(51, ("b",)), Publish("c", b"", 1, packet_id=52),
        Publish("c", b"", 2, packet_id=53), PubRel(53),
    )
    assert [type(packet) for packet in peer.packets()] == [PingResp, SubAck, UnsubAck, PubAck, PubRec, PubComp]
    peer.say(PubRec(message.packet_id or 0))
    assert peer.packets() == [PubRel(message.packet_id or 0)]
    publisher.send(b"\xc0\x00")
    assert publisher.packets() == [PingResp()]


@pytest.mark.mqtt("MQTT-4.9.0-1", version=5)
def test_a_new_connection_has_a_receive_maximum_of_its_own() -> None:
    world = World()
    peer, publisher = world.connect("s", receive_maximum=5, **lasting(V5)), world.connect("p")
    peer.subscribe("a", qos=1)
    for number in range(8):
        publisher.publish("a", str(number).encode(), 1)
    assert len(publishes(peer.packets())) == 5
    peer.vanish()
    peer, rest = back(world, "s", V5, receive_maximum=2)
    assert [(packet.payload, packet.dup) for packet in publishes(rest)] == [(b"0", True), (b"1", True)]
    peer.vanish()
    peer, rest = back(world, "s", V5, receive_maximum=20)
    got = [(packet.payload, packet.dup) for packet in publishes(rest)]
    assert got == [(str(number).encode(), number < 5) for number in range(8)]


# -- what the broker takes at once -------------------------------------------------------------------------------------


@pytest.mark.mqtt("MQTT-3.3.4-7", version=5)
def test_a_client_that_exceeds_the_brokers_receive_maximum_is_disconnected() -> None:
    world = World(unreleased_messages_max=3)
    listener, peer = world.connect("l"), world.connect("p")
    listener.subscribe("a", qos=2)
    assert peer.connack is not None
    assert peer.connack.properties.receive_maximum == 3
    peer.say(*(Publish("a", b"", 2, packet_id=number) for number in (1, 2, 3)))
    assert [type(packet) for packet in peer.packets()] == [PubRec] * 3
    peer.say(Publish("a", b"", 2, dup=True, packet_id=2), Publish("a", b"", 1, packet_id=9), PubRel(1))
    assert [type(packet) for packet in peer.packets()] == [PubRec, PubAck, PubComp]
    peer.say(Publish("a", b"", 2, packet_id=4))
    assert peer.packets() == [PubRec(4)]
    peer.say(Publish("a", b"", 2, packet_id=5))
    assert_closed(peer, ReasonCode.RECEIVE_MAXIMUM_EXCEEDED)
    assert len(listener.messages()) == 5


# -- packets too large -------------------------------------------------------------------------------------------------


@versions
@pytest.mark.mqtt("MQTT-3.2.2-15", version=5)
@pytest.mark.parametrize("more", [0, 1])
def test_the_largest_packet_that_the_broker_takes_is_the_one_it_tells(version: Version, more: int) -> None:
    world = World(frame_bytes_max=8192)
    listener, peer = world.connect("l", version), world.connect("p", version)
    listener.subscribe("a")
    if version is V5:
        assert peer.connack is not None
        assert peer.connack.properties.maximum_packet_size == 8192
    overhead = len(encode(Publish("a", b"x" * 8000), version)) - 8000
    peer.say(Publish("a", b"x" * (8192 - overhead + more)))
    if more:
        assert_closed(peer, ReasonCode.PACKET_TOO_LARGE)
    else:
        assert len(listener.messages()) == 1


@pytest.mark.mqtt("MQTT-3.1.2-24", version=5)
@pytest.mark.mqtt("MQTT-3.1.2-25", version=5)
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("how", ["here", "away", "retained"])
def test_a_message_too_large_for_the_client_is_discarded_as_if_it_had_been_sent(qos: int, how: str) -> None:
    world = World()
    maximum = 100
    fields = {"maximum_packet_size": maximum, "receive_maximum": 2} | lasting(V5)
    peer, publisher = world.connect("s", **fields), world.connect("p")
    if how != "retained":
        peer.subscribe("a/#", qos=qos)
    if how == "away":
        peer.vanish()
    overhead = len(encode(Publish("a/0", b"", qos, packet_id=1 if qos else None), V5))
    sizes = [maximum - overhead, maximum - overhead + 1, 5_000, 80_000, 1]  # a large body is not copied into the outbox
    for number, size in enumerate(sizes):
        publisher.publish(f"a/{number}", b"x" * size, qos, retain=how == "retained")
    if how == "away":
        peer, rest = back(world, "s", V5, **fields)
        peer.received = b"".join(encode(packet, V5) for packet in rest)
    elif how == "retained":
        peer.subscribe("a/#", qos=qos)
    got = {message.topic: len(message.payload) for message in peer.messages()}
    assert got == ({} if how == "away" and qos == 0 else {"a/0": sizes[0], "a/4": 1})
    assert peer.protocol.session.window.in_flight == 0
    publisher.publish("a/0", b"more", qos)
    assert [message.payload for message in peer.messages()] == [b"more"]


@pytest.mark.mqtt("MQTT-3.1.2-24", version=5)
def test_a_message_too_large_for_one_client_reaches_the_others() -> None:
    world = World()
    small, large = world.connect("small", maximum_packet_size=60), world.connect("large")
    for peer in (small, large):
        peer.subscribe("a", qos=1)
    world.connect("p").publish("a", b"x" * 100, 1)
    assert small.messages() == []
    assert len(large.messages()) == 1


@pytest.mark.mqtt("MQTT-3.1.2-24", version=5)
def test_a_connack_that_the_client_does_not_take_is_not_sent_and_the_connection_closed() -> None:
    world = World()
    for maximum in (1, 2, 4):  # the shortest CONNACK has 5 bytes
        peer = world.open()
        peer.say(connect("s", maximum_packet_size=maximum), PingReq())
        assert peer.gone
        assert len(peer.received) <= maximum
    assert len(world.broker.clients) == 0
    assert world.counts.oversized > 0


@pytest.mark.mqtt("MQTT-3.1.2-24", version=5)
def test_an_answer_that_the_client_does_not_take_closes_the_connection() -> None:
    world = World()
    peer = world.connect("s", maximum_packet_size=60)
    filters = tuple(Subscription(str(number)) for number in range(100))
    peer.say(Subscribe(1, filters[:50]))
    assert isinstance(peer.next(), SubAck)
    peer.say(Subscribe(2, filters))
    assert len(peer.received) <= 60
    assert_closed(peer, ReasonCode.PACKET_TOO_LARGE)


@pytest.mark.mqtt("MQTT-3.4.2-2", version=5)
@pytest.mark.mqtt("MQTT-3.5.2-2", version=5)
@pytest.mark.mqtt("MQTT-3.9.2-1", version=5)
@pytest.mark.mqtt("MQTT-3.14.2-3", version=5)
@pytest.mark.parametrize("maximum", [None, 30])
def test_reason_strings_are_left_out_where_they_would_make_a_packet_too_large(maximum: int | None) -> None:
    world = World(topic_words_max=8)
    fields = {} if maximum is None else {"maximum_packet_size": maximum}
    peer = world.connect("s", **fields)
    peer.say(Publish("$SYS/mine", b"", 1, packet_id=1), Publish("$SYS/mine", b"", 2, packet_id=2))
    peer.say(Subscribe(3, (Subscription("a"), Subscription("/".join("abcdefghij")))))
    peer.send(b"\x00\x00")
    assert maximum is None or len(peer.received) <= 4 * maximum
    packets = peer.packets()
    assert [type(packet) for packet in packets] == [PubAck, PubRec, SubAck, Disconnect]
    for packet in packets:
        assert isinstance(packet, PubAck | PubRec | SubAck | Disconnect)
        assert (packet.properties.reason_string is not None) == (maximum is None)
        assert maximum is None or len(encode(packet, V5)) <= maximum


def test_the_connack_tells_what_the_broker_takes() -> None:
    peer = World().open()
    peer.say(connect("s"))
    answer = peer.next()
    assert isinstance(answer, ConnAck)
    told = answer.properties
    # Absent: every quality, retained messages, wildcards, identifiers and shared subscriptions are there (3.2.2.3).
    assert told.maximum_qos is None
    assert {told.retain_available, told.wildcard_subscription_available, told.subscription_identifiers_available,
            told.shared_subscription_available} == {None}  # fmt: skip
    assert told.receive_maximum
    assert told.maximum_packet_size
