"""The setting mqtt_filter_suffix: what is behind the `?` of a filter is a selector, as EMQX spells it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.options import MqttOptions
from fanlight_broker.protocols.mqtt.packets import (
    Disconnect,
    PubAck,
    Publish,
    SubAck,
    Subscribe,
    Subscription,
    UnsubAck,
    Unsubscribe,
)
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.core.parts import explained
from tests.broker.protocols.mqtt.world import Peer, World, connect
from tests.captured_logs import capture_logs

VERSIONS = pytest.mark.parametrize("version", [V3, V5], ids=["3.1.1", "5.0"])
QUALITIES = pytest.mark.parametrize("qos", [0, 1, 2])
FILTER = "sensor/+/t?location=roomA&value>25"


def world_with_suffixes() -> World:
    return World(options=MqttOptions(filter_suffix=True))


def publish(peer: Peer, payload: str, topic: str = "sensor/1/t", qos: int = 0, **headers: str) -> int | None:
    """The reason code of the answer, if there is one."""
    answers = peer.publish(topic, payload.encode(), qos, user_properties=tuple(headers.items()))
    return answers[0].reason_code if answers else None  # type: ignore[union-attr]


def payloads(peer: Peer) -> list[str]:
    return [message.payload.decode() for message in peer.messages()]


def publish_four(peer: Peer, qos: int = 0) -> None:
    publish(peer, "hot", location="roomA", value="26.5", qos=qos)
    publish(peer, "cold", location="roomA", value="25", qos=qos)
    publish(peer, "elsewhere", location="roomB", value="30", qos=qos)
    publish(peer, "silent", location="roomA", qos=qos)


@VERSIONS
@QUALITIES
def test_only_what_the_suffix_is_true_of_is_delivered(version: Version, qos: int) -> None:
    world = world_with_suffixes()
    listener, publisher = world.connect("s", version), world.connect("p")
    assert listener.subscribe(FILTER, qos=qos) == (qos,)
    publish_four(publisher, qos)
    assert payloads(listener) == ["hot"]
    assert world.broker.ledger.filtered == 3


@VERSIONS
def test_without_the_setting_a_question_mark_is_a_character(version: Version) -> None:
    world = World()
    listener, publisher = world.connect("s", version), world.connect("p")
    listener.subscribe("sensor/1/t?value>25")
    publish(publisher, "hot", value="26")
    publish(publisher, "odd", topic="sensor/1/t?value>25")
    assert payloads(listener) == ["odd"]


@VERSIONS
def test_the_filter_ends_where_the_suffix_begins(version: Version) -> None:
    """Wildcards may stand in front of it, and anything behind it."""
    world = world_with_suffixes()
    listener, publisher = world.connect("s", version), world.connect("p")
    assert listener.subscribe("sensor/#?a=x/+/#?", "+/+/t? b = é & c<=1 ") == (0, 0)
    publish(publisher, "first", topic="sensor", a="x/+/#?")
    publish(publisher, "second", b="é", c="-1e3")
    publish(publisher, "neither", b="e", a="x", c="2")
    assert payloads(listener) == ["first", "second"]


@VERSIONS
@pytest.mark.parametrize("text", [FILTER, "sensor/+/t", "sensor/+/t?", "sensor/+/t?other=1"])
def test_unsubscribe_looks_at_the_filter_alone(version: Version, text: str) -> None:
    world = world_with_suffixes()
    listener = world.connect("s", version)
    listener.subscribe(FILTER)
    listener.say(Unsubscribe(7, (text, "sensor/#?a=1")))
    unsuback = listener.next()
    assert isinstance(unsuback, UnsubAck)
    if version is V5:
        assert unsuback.reason_codes == (ReasonCode.SUCCESS, ReasonCode.NO_SUBSCRIPTION_EXISTED)
    assert (len(world.broker.router), len(world.broker.router.screens)) == (0, 0)


@VERSIONS
def test_another_suffix_of_the_same_filter_takes_the_place_of_the_first(version: Version) -> None:
    world = world_with_suffixes()
    listener, publisher = world.connect("s", version), world.connect("p")
    wanted = {"a?x>1": ["2"], "a? x > 1": ["2"], "a?x<1": ["0"], "a": ["0", "2"], "a?x=2": ["2"]}
    for text, expected in wanted.items():
        listener.subscribe(text)
        assert len(world.broker.router) == 1
        for value in ("0", "2"):
            publish(publisher, value, topic="a", x=value)
        assert payloads(listener) == expected


@VERSIONS
@QUALITIES
def test_shared_subscriptions_with_one_suffix_are_a_group(version: Version, qos: int) -> None:
    world = world_with_suffixes()
    workers, publisher = [world.connect(f"w{n}", version) for n in range(3)], world.connect("p")
    for worker in workers:
        worker.subscribe(f"$share/g/{FILTER}", qos=qos)
    for number in range(20, 30):
        publish(publisher, str(number), location="roomA", value=str(number), qos=qos)
    got = [payloads(worker) for worker in workers]
    assert sorted([*got[0], *got[1], *got[2]]) == ["26", "27", "28", "29"]
    assert all(got)
    for worker in workers:
        worker.say(Unsubscribe(9, (f"$share/g/{FILTER}",)))
        assert isinstance(worker.next(), UnsubAck)
    assert len(world.broker.router) == 0


def test_suffix_and_user_property_must_both_be_true() -> None:
    world = world_with_suffixes()
    listener, publisher = world.connect("s"), world.connect("p")
    where = (("where", "$bytes > 4 OR urgent IS NOT NULL"),)
    assert listener.subscribe(FILTER, "b", user_properties=where) == (0, 0)
    publish(publisher, "hot", location="roomA", value="26")
    publish(publisher, "hotter", location="roomA", value="27")
    publish(publisher, "ice", location="roomA", value="26", urgent="")
    publish(publisher, "colder", location="roomA", value="2")
    publish(publisher, "not filtered by the suffix of another", topic="b")
    assert payloads(listener) == ["hotter", "ice", "not filtered by the suffix of another"]
    assert {str(each.condition) for each in listener.protocol.session.subscriptions} == {
        "($bytes > 4 OR urgent IS NOT NULL) AND location = 'roomA' AND value > 25", "$bytes > 4 OR urgent IS NOT NULL",
    }


REFUSED = [
    ("a?", 0), ("a?location", 8), ("a?=roomA", 0), ("a?location=", 9), ("a?location=roomA&", 15), ("a?x=1&&y=2", 4),
    ("a?value>abc", 6), ("a?value=1=2", 7), ("a?x!=1", 1), ("$share/g/a?x>y", 2), ("a?x=1&y>9e999", 6),
]  # fmt: skip


@pytest.mark.parametrize(("text", "position"), REFUSED)
def test_a_malformed_suffix_is_refused_with_its_byte(text: str, position: int) -> None:
    world = world_with_suffixes()
    peer = world.connect("s")
    peer.subscribe("a?x=1", qos=1)
    with capture_logs() as logs:
        peer.say(Subscribe(9, (Subscription("b"), Subscription(text, 2), Subscription("c?x=1", 1))))
    suback = peer.next()
    assert isinstance(suback, SubAck)
    assert suback.reason_codes == (0, ReasonCode.TOPIC_FILTER_INVALID, 1)
    assert f"byte {position} " in (suback.properties.reason_string or "")
    assert [entry["event"] for entry in logs] == ["request_refused"]
    assert f"byte {position} " in logs[0]["text"]
    # What was there stays in force.
    assert {each.filter: str(each.condition) for each in peer.protocol.session.subscriptions} == {
        b"a": "x = '1'", b"b": "None", b"c": "x = '1'",
    }


@pytest.mark.parametrize(("text", "position"), REFUSED)
def test_in_3_1_1_a_malformed_suffix_is_a_failure_code(text: str, position: int) -> None:
    peer = world_with_suffixes().connect("s", V3)
    peer.say(Subscribe(9, (Subscription("b"), Subscription(text, 2))))
    suback = peer.next()
    assert isinstance(suback, SubAck)
    assert suback.reason_codes == (0, 0x80)


def test_both_together_have_the_limits_of_one() -> None:
    peer = world_with_suffixes().connect("s")
    where = " AND ".join(f"x{n} = 1" for n in range(64))
    peer.say(Subscribe(9, (Subscription("a?x=1"),), Properties(user_properties=(("where", where),))))
    suback = peer.next()
    assert isinstance(suback, SubAck)
    assert suback.reason_codes == (ReasonCode.TOPIC_FILTER_INVALID,)
    assert "65 tests" in (suback.properties.reason_string or "")


@pytest.mark.parametrize("text", ["?x=1", "a#?x=1", "a/#/b?x=1", "$share/g?x=a/b", "$share/?/a", "$share/+/a?x=1"])
def test_what_is_before_it_must_be_a_filter(text: str) -> None:
    for packet in (Subscribe(9, (Subscription(text),)), Unsubscribe(9, (text,))):
        peer = world_with_suffixes().connect("s")
        peer.say(packet)
        goodbye = peer.next()
        assert isinstance(goodbye, Disconnect)
        assert goodbye.reason_code is ReasonCode.TOPIC_FILTER_INVALID


def test_a_session_that_is_resumed_has_it() -> None:
    world = world_with_suffixes()
    listener, publisher = world.connect("s", session_expiry_interval=1_000), world.connect("p")
    listener.subscribe(FILTER, qos=1)
    listener.vanish()
    publish_four(publisher, 1)
    again = world.open()
    again.say(connect("s", clean_start=False, session_expiry_interval=1_000))
    publish_four(publisher, 1)
    assert [packet.payload for packet in again.packets() if isinstance(packet, Publish)] == [b"hot", b"hot"]


@VERSIONS
def test_retained_messages_are_those_that_it_is_true_of(version: Version) -> None:
    world = world_with_suffixes()
    publisher = world.connect("p")
    for topic, value in (("sensor/1/t", "30"), ("sensor/2/t", "20")):
        headers = (("location", "roomA"), ("value", value))
        publisher.publish(topic, value.encode(), retain=True, user_properties=headers)
    listener = world.connect("s", version)
    listener.subscribe(FILTER)
    assert payloads(listener) == ["30"]


def test_the_views_show_filter_and_selector() -> None:
    world = world_with_suffixes()
    listener = world.connect("s")
    listener.subscribe(FILTER)
    view = explained(world.broker, b"sensor/1/t", "mqtt", None, 10, {"location": "roomA", "value": 20})
    (row,) = view["filtered"]
    assert (row["filter"], row["where"]) == ("sensor/+/t", "location = 'roomA' AND value > 25")
    assert row["reason"] == "value is 20; the selector wants > 25"


def test_a_publisher_gets_the_answer_for_no_subscriber() -> None:
    world = world_with_suffixes()
    listener, publisher = world.connect("s"), world.connect("p")
    listener.subscribe(FILTER)
    for value, code in (("20", ReasonCode.NO_MATCHING_SUBSCRIBERS), ("26", ReasonCode.SUCCESS)):
        (answer,) = publisher.publish(
            "sensor/1/t", b"", 1, user_properties=(("location", "roomA"), ("value", value))
        )
        assert isinstance(answer, PubAck)
        assert answer.reason_code == code
    assert (world.broker.ledger.filtered, world.broker.ledger.unroutable) == (1, 0)


PIECES = st.sampled_from(["a", "/", "+", "#", "?", "=", ">", "&", "1", "$share/", "é", "\U0001f600", " "])


@VERSIONS
@given(texts=st.lists(st.lists(PIECES, min_size=1, max_size=12).map("".join), min_size=1, max_size=3))
def test_any_filter_is_answered_or_the_connection_is_closed(version: Version, texts: list[str]) -> None:
    """Whole and byte by byte the same; what it leaves behind can be unsubscribed."""
    answers = []
    for size in (1 << 20, 1):
        world = world_with_suffixes()
        peer = world.connect("s", version)
        octets = encode(Subscribe(9, tuple(map(Subscription, texts))), version)
        for at in range(0, len(octets), size):
            peer.send(octets[at : at + size])
        answers.append(peer.received)
        peer.packets()
        in_force = [subscription.filter for subscription in peer.protocol.session.subscriptions]
        assert b"?" not in b"".join(in_force)
        if in_force:
            peer.say(Unsubscribe(10, tuple(texts)))
            assert len(world.broker.router) == 0
    assert answers[0] == answers[1]
