"""Messages as PUBLISH packets of both versions, and to and from what they say (3.3; docs/decisions/0008-mqtt.md)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.core.content import Content
from fanlight_broker.protocols.mqtt.format import FORMATS, MQTT_3_1_1, MQTT_5_0
from fanlight_broker.protocols.mqtt.properties import Properties, PropertyPlace, encode_properties
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from fanlight_broker.protocols.native.format import FORMAT as NATIVE
from fanlight_broker.wire.message import RETAIN_AS_PUBLISHED, RETAIN_CLEAR, RETAIN_SET, Message, Variant
from fanlight_broker.wire.publication import frame_of
from tests.broker.protocols.mqtt.laned import Client

USER = b"\x26\0\1k\0\1v"
EXPIRY = b"\x02\0\0\0\x3c"
BOTH = st.sampled_from([MQTT_3_1_1, MQTT_5_0])


def message(payload: bytes = b"p", fields: bytes = b"", **options: float) -> Message:
    return Message(MQTT_5_0, b"a/b", 1, payload, fields=fields, **options)  # type: ignore[arg-type]


def written(one: Message, version: Version = V5, qos: int = 0, retain: int = RETAIN_CLEAR, identifiers: bytes = b"",
            **options: float) -> bytes | None:  # fmt: skip
    return frame_of(Variant(FORMATS[version], qos, retain, identifiers), one, **options)  # type: ignore[arg-type]


def test_a_publish_of_3_1_1_has_no_properties() -> None:
    assert written(message(fields=USER), V3) == b"\x30\x06\0\3a/bp"
    assert written(message(fields=USER, qos=1), V3, 2, number=0x1234) == b"\x32\x08\0\3a/b\x12\x34p"


def test_a_publish_of_5_0_has_those_of_its_publisher_and_the_subscriptions_identifiers() -> None:
    """3.3.2.3; [MQTT-3.3.2-17], [MQTT-3.3.4-3]."""
    assert written(message(), V5) == b"\x30\x07\0\3a/b\0p"
    assert written(message(fields=USER, qos=2), V5, 2, identifiers=b"\x0b\5", number=1) == (
        b"\x34\x12\0\3a/b\0\1\x09\x0b\5" + USER + b"p"
    )


@pytest.mark.parametrize(
    ("retained", "rule", "bit"),
    [(True, RETAIN_CLEAR, 0), (True, RETAIN_AS_PUBLISHED, 1), (False, RETAIN_AS_PUBLISHED, 0), (False, RETAIN_SET, 1)],
)
def test_the_retain_bit_follows_the_subscription(retained: bool, rule: int, bit: int) -> None:
    """[MQTT-3.3.1-12], [MQTT-3.3.1-13]."""
    for version in Version:
        frame = written(message(retain=retained), version, retain=rule)
        assert frame is not None
        assert frame[0] == 0x30 | bit


def test_a_message_sent_again_is_a_duplicate_unless_its_qos_is_0() -> None:
    """[MQTT-3.3.1-1], [MQTT-3.3.1-2]."""
    for qos, first in ((0, 0x30), (1, 0x3A), (2, 0x3C)):
        frame = written(message(qos=2), V5, qos, again=True)
        assert frame is not None
        assert frame[0] == first


@pytest.mark.mqtt("MQTT-3.3.2-6", version=5)
@pytest.mark.parametrize(("now", "left"), [(0.0, 60), (100.0, 60), (100.5, 60), (101.0, 59), (159.5, 1), (170.0, 0)])
def test_the_expiry_that_is_sent_is_what_is_left_of_it(now: float, left: int) -> None:
    """Whole seconds, begun ones counting; as it came when it is sent at once."""
    one = message(fields=USER + EXPIRY, expiry_hole=len(USER) + 1, expires_at=160.0)
    expected = b"\x02" + left.to_bytes(4, "big")
    assert written(one, V5, now=now) == b"\x30\x13\0\3a/b\x0c" + USER + expected + b"p"
    assert one.fields == USER + EXPIRY


@pytest.mark.parametrize("size", [0, 120, 121, 16_376, 16_377, 16_384, 70_000, 2_097_152])
def test_lengths_of_every_size_are_right(size: int) -> None:
    """1.5.5; large payloads are shared, not copied."""
    for fields in (b"", USER * 20, USER * 3_000):
        frame = written(message(bytes(size), fields), V5)
        assert frame is not None
        client = Client(V5, packet_max=len(frame))
        client.inbox.feed(frame)
        client.lane.advance(0.0)
        again = client.lane.message
        assert (again.topic, again.payload, again.fields) == (b"a/b", bytes(size), fields)


def test_what_no_remaining_length_can_say_has_no_form() -> None:
    assert written(message(bytes(268_435_455)), V3) is None
    assert written(Message(MQTT_5_0, b"t" * 65_536, 1, b""), V3) is None


@pytest.mark.mqtt("MQTT-3.1.2-24", version=5)
@pytest.mark.mqtt("MQTT-3.1.2-25", version=5)
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_packet_above_the_maximum_of_the_client_is_not_sent_and_counts_as_delivered(qos: int) -> None:
    publisher, subscriber = Client(V5), Client(V5)
    subscriber.outbox.frame_max = 20
    target = subscriber.target(qos)
    publisher.route(b"t", target)
    for size in (20, 21):
        octets = b"\x35" + bytes((size - 2,)) + b"\0\1t\0\1\0" + b"p" * (size - 8)
        if not qos:
            octets = b"\x31" + bytes((size - 2,)) + b"\0\1t\0" + b"p" * (size - 6)
        publisher.send(octets)
    assert len(subscriber.got()) == 20
    assert subscriber.window.in_flight == (1 if qos else 0)
    assert subscriber.ledger.dropped_too_large == 1
    assert len(subscriber.window.queue) == 0


def test_pubrel_carries_the_identifier() -> None:
    assert MQTT_3_1_1.tag_frame(0x102) == MQTT_5_0.tag_frame(0x102) == b"\x62\x02\1\2"


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0+#"), min_size=1, max_size=5)
CONTENTS = st.builds(
    Content,
    topic=NAMES.map(str.encode),
    syntax=st.just(1),
    payload=st.binary(max_size=8),
    headers=st.lists(st.tuples(TEXT, TEXT), max_size=4).map(tuple),
    content_type=st.none() | TEXT,
    correlation=st.none() | st.binary(max_size=4),
    reply=st.none() | NAMES.map(str.encode),
    is_text=st.none() | st.booleans(),
)


@given(CONTENTS, BOTH)
def test_what_a_message_says_survives_the_way_there_and_back(content: Content, format: object) -> None:
    one = MQTT_5_0.write(content)
    assert one is not None
    assert MQTT_5_0.read(one) == MQTT_3_1_1.read(one) == content


def test_a_message_without_properties_says_its_topic_and_payload() -> None:
    assert MQTT_3_1_1.read(message()) == Content(b"a/b", 1, b"p")


def test_headers_become_user_properties_in_their_order_and_numbers_text() -> None:
    one = MQTT_5_0.write(
        Content(b"a.b", 0, b"p", (("n", 1), ("f", 2.5), ("n", True), ("z", None), ("b", b"\xc3\xa9")), reply=b"x.y/z")
    )
    assert one is not None
    assert one.topic == b"a/b"
    assert one.syntax == 1
    pairs = (("n", "1"), ("f", "2.5"), ("n", "true"), ("z", ""), ("b", "é"))
    octets = encode_properties(Properties(user_properties=pairs, response_topic="x/y%2Fz"), PropertyPlace.PUBLISH)
    assert one.fields == octets[1:]


@pytest.mark.parametrize(
    "content",
    [
        Content(b"t", 0, b"", (("k", b"\xff"),)), Content(b"t", 0, b"", (("k", "\0"),)),
        Content(b"t", 0, b"", (("\0", 1),)), Content(b"t", 0, b"", (("k", "x" * 65_536),)),
        Content(b"t", 0, b"", reply=b"\xff"), Content(b"t", 1, b"", reply=b"a/#"),
        Content(b"t", 0, b"", content_type="\0"), Content(b"t", 0, b"", correlation=bytes(65_536)),
    ],
)  # fmt: skip
def test_what_mqtt_cannot_say_is_left_out_and_counted(content: Content) -> None:
    before = MQTT_5_0.left_out
    one = MQTT_5_0.write(content)
    assert one is not None
    assert one.fields == b""
    assert MQTT_5_0.left_out == before + 1


@pytest.mark.parametrize(("topic", "syntax"), [(b"\xff", 0), (b"", 0), (b"\xff", 1), (b"a\0", 1), (b"t" * 65_536, 1)])
def test_a_topic_without_a_spelling_makes_the_message_unsayable(topic: bytes, syntax: int) -> None:
    assert MQTT_5_0.write(Content(topic, syntax, b"")) is None


def test_a_native_message_reaches_both_versions_and_theirs_a_native_subscriber() -> None:
    content = Content(b"a.b", 0, b"p", (("k", "v"),))
    native = NATIVE.write(content)
    assert native is not None
    assert written(native, V3) == b"\x30\x06\0\3a/bp"
    assert written(native, V5) == b"\x30\x0e\0\3a/b\x07" + USER + b"p"
    back = frame_of(Variant(NATIVE), message(fields=USER), number=9)
    assert back is not None
    assert b"a/b" in back
    assert back.endswith(b"\x81\xa1k\xa1v\x01")
