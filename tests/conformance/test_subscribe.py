"""SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK (3.8 to 3.11) and what topic filters match (4.7)."""

import pytest

from fanlight_broker.core.inspection import BrokerInspection
from fanlight_broker.core.system_topics import SystemTopics
from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.packets import (
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
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt.world import World
from tests.conformance.clients import assert_closed, back, lasting, payloads, present, qualities, versions

TOO_DEEP = "/".join("x" * 200)


@pytest.mark.mqtt("MQTT-3.8.4-1")
@pytest.mark.mqtt("MQTT-3.8.4-2")
@pytest.mark.mqtt("MQTT-2.3.1-7", version=3)
@pytest.mark.mqtt("MQTT-2.2.1-6", version=5)
@pytest.mark.mqtt("MQTT-3.8.4-5", version=3)
@pytest.mark.mqtt("MQTT-3.9.3-1")
@pytest.mark.mqtt("MQTT-3.8.4-6", version=5)
@pytest.mark.mqtt("MQTT-3.8.4-7", version=5)
@pytest.mark.parametrize(
    ("version", "sent", "answer"),
    [
        pytest.param(V3, "820e 1234 000161 02 000162 00 000163 01", "9005 1234 02 00 01", id="3.1.1"),
        pytest.param(V5, "820f 1234 00 000161 02 000162 00 000163 01", "9006 1234 00 02 00 01", id="5.0"),
    ],
)
def test_a_suback_has_the_identifier_and_a_code_for_each_filter_in_their_order(
    version: Version, sent: str, answer: str
) -> None:
    peer = World().connect("s", version)
    peer.send(bytes.fromhex(sent))
    assert peer.received == bytes.fromhex(answer)


@versions
@pytest.mark.mqtt("MQTT-3.8.4-5", version=3)
@pytest.mark.mqtt("MQTT-3.8.4-7", version=5)
@pytest.mark.mqtt("MQTT-3.9.3-1")
def test_a_filter_that_is_refused_fails_alone(version: Version) -> None:
    world = World(topic_words_max=8)
    peer = world.connect("s", version)
    peer.say(Subscribe(1, (Subscription("a", 1), Subscription(TOO_DEEP, 1), Subscription("b", 2))))
    answer = peer.next()
    assert isinstance(answer, SubAck)
    failure = 0x80 if version is V3 else ReasonCode.TOPIC_FILTER_INVALID
    assert answer.reason_codes == (1, failure, 2)
    publisher = world.connect("p", version)
    publisher.publish("a", b"1", 2)
    publisher.publish("b", b"2", 2)
    assert [(message.topic, message.qos) for message in peer.messages()] == [("a", 1), ("b", 2)]


@versions
@pytest.mark.mqtt("MQTT-3.8.4-5", version=3)
@pytest.mark.mqtt("MQTT-3.8.4-7", version=5)
def test_a_subscription_beyond_the_limit_fails_and_one_that_is_there_can_be_changed(version: Version) -> None:
    world = World(subscriptions_per_client_max=2)
    peer = world.connect("s", version)
    failure = 0x80 if version is V3 else ReasonCode.QUOTA_EXCEEDED
    assert peer.subscribe("a", "b", "c", qos=1) == (1, 1, failure)
    assert peer.subscribe("a", qos=2) == (2,)
    world.connect("p", version).publish("c", b"x")
    assert peer.messages() == []


@versions
@pytest.mark.mqtt("MQTT-3.8.4-4", version=3)
@pytest.mark.mqtt("MQTT-3.8.4-5", version=5)
def test_several_filters_are_as_several_subscribes_with_one_suback(version: Version) -> None:
    world = World()
    publisher = world.connect("p", version)
    for topic in "ab":
        publisher.publish(topic, b"kept", 1, retain=True)
    together, apart = world.connect("together", version), world.connect("apart", version)
    filters = (Subscription("a", 1), Subscription("b", 2), Subscription("a", 2))  # the last replaces the first
    assert together.subscribe(*filters) == (1, 2, 2)
    for filter in filters:
        apart.subscribe(filter)
    for topic in "ab":
        publisher.publish(topic, b"live", 2)

    def got(packets: list[Publish]) -> list[tuple[str, bytes, int, bool]]:
        return sorted((packet.topic, packet.payload, packet.qos, packet.retain) for packet in packets)

    live = [("a", b"live", 2, False), ("b", b"live", 2, False)]
    one, other = got(together.messages()), got(apart.messages())
    assert [message for message in one if not message[3]] == live == [message for message in other if not message[3]]
    assert {message[:2] for message in one} == {message[:2] for message in other}


@versions
@qualities
@pytest.mark.parametrize("granted", [0, 1, 2])
@pytest.mark.mqtt("MQTT-3.8.4-6", version=3)
@pytest.mark.mqtt("MQTT-3.8.4-8", version=5)
def test_a_message_has_the_lower_of_its_own_and_the_granted_qos(version: Version, qos: int, granted: int) -> None:
    world = World()
    peer = world.connect("s", version)
    assert peer.subscribe("a", qos=granted) == (granted,)
    world.connect("p", version).publish("a", b"x", qos)
    assert [message.qos for message in peer.messages()] == [min(qos, granted)]


@versions
@pytest.mark.mqtt("MQTT-3.8.4-3")
@pytest.mark.mqtt("MQTT-3.8.4-4", version=5)
def test_the_same_filter_again_replaces_its_subscription_and_loses_nothing(version: Version) -> None:
    world = World()
    publisher = world.connect("p", version)
    publisher.publish("a/b", b"kept", 1, retain=True)
    peer = world.connect("s", version)
    peer.subscribe("a/+", qos=0)
    assert [(message.payload, message.retain) for message in peer.messages()] == [(b"kept", True)]
    publisher.publish("a/b", b"1", 2)
    peer.subscribe("a/+", qos=2)
    publisher.publish("a/b", b"2", 2)
    got = [(message.payload, message.qos, message.retain) for message in peer.messages()]
    assert got == [(b"1", 0, False), (b"kept", 1, True), (b"2", 2, False)]
    assert len(peer.protocol.session.subscriptions) == 1


@pytest.mark.mqtt("MQTT-3.8.4-3", version=5)
def test_the_same_filter_again_has_the_new_options_and_identifier() -> None:
    world = World()
    peer = world.connect("s")
    peer.subscribe("a", qos=1, subscription_identifiers=(1,))
    peer.subscribe(Subscription("a", 0, no_local=True), subscription_identifiers=(2,))
    world.connect("p").publish("a", b"x", 1)
    (message,) = peer.messages()
    assert (message.qos, message.properties.subscription_identifiers) == (0, (2,))
    assert [type(packet) for packet in peer.publish("a", b"mine", 1)] == [PubAck]
    peer.subscribe("a")
    world.connect("q").publish("a", b"x")
    (message,) = peer.messages()
    assert message.properties.subscription_identifiers == ()


@pytest.mark.mqtt("MQTT-3.8.3-3", version=5)
@qualities
@pytest.mark.parametrize("known", [False, True])
def test_a_no_local_subscription_does_not_get_its_clients_own_messages(qos: int, known: bool) -> None:
    world = World()
    peer, other = world.connect("s"), world.connect("other")
    peer.subscribe(Subscription("a", 2, no_local=True))
    other.subscribe("a", qos=2)
    if known:
        other.publish("a", b"theirs", qos)
        assert [message.payload for message in peer.messages()] == [b"theirs"]
    other.packets()
    assert not any(isinstance(packet, Publish) for packet in peer.publish("a", b"mine", qos))
    assert [message.payload for message in other.messages()] == [b"mine"]
    other.say(Publish("a", b"theirs"))
    assert [message.payload for message in peer.messages()] == [b"theirs"]


@pytest.mark.mqtt("MQTT-3.8.3-4", version=5)
def test_no_local_on_a_shared_subscription_is_a_protocol_error() -> None:
    peer = World().connect("s")
    peer.say(Subscribe(1, (Subscription("a", no_local=False),)))
    peer.received = b""
    peer.send(bytes.fromhex("8210 0001 00 000a") + b"$share/g/a" + bytes.fromhex("04"))
    assert_closed(peer, ReasonCode.PROTOCOL_ERROR)


@pytest.mark.mqtt("MQTT-3.8.3-4", version=3)
@pytest.mark.mqtt("MQTT-3.8.3-5", version=5)
@pytest.mark.parametrize(
    ("version", "octets"),
    [
        pytest.param(V3, "8206 0001 000161 03", id="3.1.1, QoS 3"),
        pytest.param(V3, "8206 0001 000161 04", id="3.1.1, reserved"),
        pytest.param(V5, "8207 0001 00 000161 40", id="5.0, reserved"),
        pytest.param(V5, "8207 0001 00 000161 80", id="5.0, reserved too"),
    ],
)
def test_options_that_are_none_close_the_connection(version: Version, octets: str) -> None:
    peer = World().connect("s", version)
    peer.send(bytes.fromhex(octets))
    assert_closed(peer, ReasonCode.MALFORMED_PACKET)


# -- UNSUBSCRIBE -------------------------------------------------------------------------------------------------------


@versions
@pytest.mark.mqtt("MQTT-3.10.4-1")
@pytest.mark.mqtt("MQTT-3.10.4-2")
@pytest.mark.mqtt("MQTT-3.11.3-1", version=5)
@pytest.mark.mqtt("MQTT-3.10.4-6")
def test_unsubscribe_ends_the_subscriptions_whose_filters_are_equal_and_no_others(version: Version) -> None:
    world = World()
    peer, publisher = world.connect("s", version), world.connect("p", version)
    filters = ("a/b", "a/+", "a/#", "A/b", "a/b/", "/a/b", "é", "e\u0301")
    peer.subscribe(*filters)
    peer.say(Unsubscribe(5, ("a/+", "+/b", "é", "a/#")))
    missing = ReasonCode.NO_SUBSCRIPTION_EXISTED
    assert peer.next() == UnsubAck(5, () if version is V3 else (0, missing, 0, 0))
    assert sorted(s.filter.decode() for s in peer.protocol.session.subscriptions) == sorted(
        {*filters} - {"a/+", "é", "a/#"}
    )
    for topic in ("a/b", "a/c", "é", "e\u0301"):
        publisher.publish(topic)
    assert [message.topic for message in peer.messages()] == ["a/b", "e\u0301"]


@pytest.mark.mqtt("MQTT-3.10.4-4")
@pytest.mark.mqtt("MQTT-3.10.4-5")
@pytest.mark.mqtt("MQTT-3.10.4-6")
@pytest.mark.mqtt("MQTT-2.3.1-7", version=3)
@pytest.mark.mqtt("MQTT-2.2.1-6", version=5)
@pytest.mark.parametrize(
    ("version", "sent", "answer"),
    [
        pytest.param(V3, "a208 1234 000161 000162", "b002 1234", id="3.1.1"),
        pytest.param(V5, "a209 1234 00 000161 000162", "b005 1234 00 11 00", id="5.0"),
    ],
)
def test_an_unsuback_comes_even_if_nothing_was_deleted(version: Version, sent: str, answer: str) -> None:
    peer = World().connect("s", version)
    peer.subscribe("b")
    peer.send(bytes.fromhex(sent))
    assert peer.received == bytes.fromhex(answer)
    peer.received = b""
    peer.send(bytes.fromhex(sent))
    assert peer.received == bytes.fromhex(answer.replace("11 00", "11 11"))


@versions
@pytest.mark.mqtt("MQTT-3.10.4-3")
@pytest.mark.mqtt("MQTT-3.10.4-2")
def test_deliveries_that_have_begun_are_completed_after_an_unsubscribe(version: Version) -> None:
    world = World()
    peer = world.connect("s", version, **lasting(version))
    publisher = world.connect("p", version)
    peer.subscribe("a", qos=2)
    publisher.publish("a", b"1", 1)
    publisher.publish("a", b"2", 2)
    first, second = peer.packets()
    assert isinstance(first, Publish)
    assert isinstance(second, Publish)
    peer.say(Unsubscribe(9, ("a",)))
    assert isinstance(peer.next(), UnsubAck)
    publisher.publish("a", b"3", 2)
    assert peer.packets() == []
    # The connection breaks: both come again, and their handshakes go on to the end.
    peer.vanish()
    again, packets = back(world, "s", version)
    assert present(again)
    assert payloads(packets) == [b"1", b"2"]
    again.say(PubAck(first.packet_id or 0), PubRec(second.packet_id or 0))
    assert again.next() == PubRel(second.packet_id or 0)
    again.say(PubComp(second.packet_id or 0))
    assert again.protocol.session.window.in_flight == 0


# -- topic filters -----------------------------------------------------------------------------------------------------


@versions
@pytest.mark.mqtt("MQTT-4.7.2-1")
@pytest.mark.parametrize("filter", ["#", "+/#", "+/a", "+/+"])
def test_a_filter_that_begins_with_a_wildcard_does_not_match_names_that_begin_with_a_dollar(
    version: Version, filter: str
) -> None:
    world = World()
    peer, publisher = world.connect("s", version), world.connect("p", version)
    publisher.publish("$mine/a", b"kept", retain=True)
    peer.subscribe(filter)
    publisher.publish("$mine/a", b"live")
    assert peer.messages() == []
    publisher.publish("mine/a", b"plain")
    assert [message.payload for message in peer.messages()] == [b"plain"]
    peer.subscribe("$mine/#", "$mine/+")
    publisher.publish("$mine/a", b"live")
    assert b"live" in [message.payload for message in peer.messages()]


@versions
@pytest.mark.mqtt("MQTT-4.7.2-1")
def test_what_the_broker_says_of_itself_is_under_sys_and_nowhere_else(version: Version) -> None:
    world = World()
    broker = world.broker
    net: dict[str, int] = {}
    inspection = BrokerInspection(broker, lambda: world.now, lambda: net, lambda: True)
    broker.system_topics = SystemTopics(
        broker.limits, broker.publishing, broker.everybody, lambda: broker.sessions.away, inspection.counters,
        world.now, version="9.9",
    )
    curious, plain = world.connect("curious", version), world.connect("plain", version)
    plain.subscribe("#", "+/broker/#")
    world.pass_time(60)
    curious.subscribe("$SYS/#")
    told = {message.topic: message.payload for message in curious.messages()}
    assert told["$SYS/broker/version"].endswith(b"9.9")
    assert told["$SYS/broker/clients/connected"] == b"2"
    world.connect("another", version)
    world.pass_time(60)
    news = {message.topic: message for message in curious.messages()}
    assert news["$SYS/broker/clients/connected"].payload == b"3"
    assert not news["$SYS/broker/clients/connected"].retain
    assert "$SYS/broker/version" not in news
    assert plain.messages() == []


@versions
@pytest.mark.mqtt("MQTT-4.7.3-4")
def test_matching_changes_nothing(version: Version) -> None:
    world = World()
    peer, publisher = world.connect("s", version), world.connect("p", version)
    names = ["ACCOUNTS", "Accounts", "accounts", "/accounts", "accounts/", "accounts//", "a b", " ", "/", "\u00c5",
             "A\u030a", "\ufeff", "a.b", "a/b", "%2F"]  # fmt: skip
    for number, name in enumerate(names):
        peer.subscribe(name, qos=number % 3)
    for name in names:
        publisher.publish(name, name.encode(), 2)
    got = [(message.topic, message.payload.decode(), message.qos) for message in peer.messages()]
    assert sorted(got) == sorted((name, name, number % 3) for number, name in enumerate(names))


@versions
@pytest.mark.mqtt("MQTT-4.5.0-1")
@pytest.mark.mqtt("MQTT-3.3.2-3")
def test_a_message_is_added_to_the_session_of_every_client_that_matches(version: Version) -> None:
    world = World()
    filters = ["a/b", "a/+", "#", "+/b", "a/b/#", "a/c", "b"]
    here = [world.connect(f"here {n}", version) for n in range(len(filters))]
    away = [world.connect(f"away {n}", version, **lasting(version)) for n in range(len(filters))]
    for peer, filter in (*zip(here, filters, strict=True), *zip(away, filters, strict=True)):
        peer.subscribe(filter, qos=1)
    for peer in away:
        peer.vanish()
    publisher = world.connect("p", version)
    publisher.subscribe("a/b")
    publisher.say(Publish("a/b", b"x", 1, packet_id=1))
    assert b"x" in [packet.payload for packet in publisher.packets() if isinstance(packet, Publish)]
    reached = [bool(peer.messages()) for peer in here]
    assert reached == [True, True, True, True, True, False, False]
    assert [bool(back(world, f"away {n}", version)[1]) for n in range(len(filters))] == reached


@versions
def test_a_filter_may_be_subscribed_to_as_often_as_it_likes_in_one_read(version: Version) -> None:
    world = World()
    peer = world.connect("s", version)
    peer.send(b"".join(encode(Subscribe(n, (Subscription("a", n % 3),)), version) for n in range(1, 50)))
    answers = peer.packets()
    assert [answer.packet_id for answer in answers if isinstance(answer, SubAck)] == [*range(1, 50)]
    world.connect("p", version).publish("a", b"x", 2)
    assert [message.qos for message in peer.messages()] == [49 % 3]
