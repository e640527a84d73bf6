"""A PUBLISH through the compiled lane: refused as by the codec, delivered and answered as by the plain way."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fanlight_broker.core.enforcement import UNKNOWN
from fanlight_broker.protocols.mqtt.codec import decode, encode
from fanlight_broker.protocols.mqtt.errors import PacketError
from fanlight_broker.protocols.mqtt.fixed_header import PacketType, encode_variable_byte_integer
from fanlight_broker.protocols.mqtt.from_client import check_from_client
from fanlight_broker.protocols.mqtt.packets import Publish
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode as R
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from fanlight_broker.wire.lane import BLOCKED, FAULT, NEED_MORE, PUBLISH
from fanlight_broker.wire.message import RETAIN_AS_PUBLISHED
from tests.broker.protocols.mqtt.corpus import CORPUS
from tests.broker.protocols.mqtt.laned import Client, cut, split
from tests.broker.protocols.mqtt.packets import packets
from tests.broker.wire.publisher import Publisher
from tests.system.wire import frame

VERSIONS = st.sampled_from([V3, V5])
PUBLISHES = [entry for entry in CORPUS if isinstance(entry.packet, Publish)]


def sound(first: int, body: bytes, version: Version) -> int | None:
    """The reason code that the plain way refuses a PUBLISH with; None if it does not."""
    try:
        packet = decode(first, body, version)
        check_from_client(packet)
    except PacketError as error:
        return error.reason_code
    assert isinstance(packet, Publish)
    alias = packet.properties.topic_alias
    if alias is not None and not packet.topic:
        return R.PROTOCOL_ERROR  # 3.3.2.3.4: nothing was sent with it
    return None


def framed(first: int, body: bytes) -> bytes:
    return bytes((first,)) + encode_variable_byte_integer(len(body)) + body


BODIES = st.builds(
    lambda entry, edits: (entry.octets[0], mutated(entry.octets[2:], edits), entry.version),
    st.sampled_from(PUBLISHES),
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from(["set", "cut", "add"]), st.integers(0, 255)), max_size=3),
)
INTERESTING = [0, 1, 2, 3, 8, 9, 0x0B, 0x23, 0x26, 0x2B, 0x7F, 0x80, 0xC0, 0xED, 0xFF]


def mutated(body: bytes, edits: list[tuple[int, str, int]]) -> bytes:
    for place, what, octet in edits:
        at = place % (len(body) + 1)
        if what == "set":
            body = body[:at] + bytes((octet,)) + body[at + 1 :]
        elif what == "cut":
            body = body[:at] + body[at + 1 :]
        else:
            body = body[:at] + bytes((octet,)) + body[at:]
    return body


def agrees(first: int, body: bytes, version: Version) -> None:
    client = Client(version, alias_max=65_535)
    client.inbox.feed(framed(first, body))
    expected = sound(first, body, version)
    event = client.lane.advance(0.0)
    assert (event == FAULT) == (expected is not None), client.lane.fault
    if expected is not None:
        assert client.lane.fault_reason == expected
        assert client.lane.fault


@settings(max_examples=400, deadline=None)
@given(BODIES)
@example((0x30, b"\0\1t\x02\x23\0", V5))
@example((0x30, b"\0\1t\x03\x23\0\0", V5))
@example((0x30, b"\0\1t\x02\x0b\1", V5))
@example((0x30, b"\0\3\xed\xa0\x80", V3))
@example((0x30, b"\0\x0aaaaaaaaa\xc3\xa9", V3))
@example((0x30, b"\0\x0aaaaaaaaa\xc3+", V3))
@example((0x30, b"\0\x09abcd+fghi", V3))
@example((0x30, b"\0\x08abcd#fgh", V3))
@example((0x30, b"\0\x08ab\0dxfgh", V3))
@example((0x30, b"\0\0", V3))
@example((0x32, b"\0\1t\0\0", V3))
def test_lane_and_codec_agree_on_any_publish(case: tuple[int, bytes, Version]) -> None:
    agrees(*case)


@pytest.mark.parametrize("entry", PUBLISHES, ids=str)
def test_lane_and_codec_agree_on_every_prefix_and_every_interesting_octet(entry: object) -> None:
    octets, version = entry.octets, entry.version  # type: ignore[attr-defined]
    first, body = octets[0], octets[2:]
    for at in range(len(body) + 1):
        agrees(first, body[:at], version)
        for octet in INTERESTING:
            agrees(first, body[:at] + bytes((octet,)) + body[at + 1 :], version)


@settings(max_examples=140, deadline=None)
@given(st.data(), VERSIONS, st.integers(1, 50))
def test_both_lanes_give_everyone_the_same_bytes(data: st.DataObject, version: Version, size: int) -> None:
    """With and without the plain way, whole and in pieces: subscribers of each version and QoS, and the publisher."""
    drawn = data.draw(st.lists(packets(PacketType.PUBLISH, version), min_size=1, max_size=4))
    # The same again is looked at less closely, and may go out in a run.
    sent = [packet for packet in drawn for _ in range(data.draw(st.sampled_from([1, 1, 2, 12])))]
    octets = b"".join(encode(packet, version) for packet in sent)
    topics = {packet.topic.encode() for packet in sent if isinstance(packet, Publish)}
    assert delivered(octets, topics, version, plain=False, size=len(octets)) == delivered(
        octets, topics, version, plain=True, size=size
    )


def delivered(octets: bytes, topics: set[bytes], version: Version, *, plain: bool, size: int) -> list[object]:
    publisher = Client(version, packet_max=1 << 20, plain=plain, alias_max=65_535)
    subscribers = [Client(v, ledger=publisher.ledger) for v in (V3, V5) for _ in range(3)]
    for topic in topics - {b""}:
        publisher.route(topic, *(
            one.target(n % 3, RETAIN_AS_PUBLISHED, b"\x0b\x05" if n > 3 else b"") for n, one in enumerate(subscribers)
        ))  # fmt: skip
    ended = publisher.send(*cut(octets, size))
    return [ended, publisher.got(), [one.got() for one in subscribers], publisher.missed]


@pytest.mark.mqtt("MQTT-3.3.1-3")
@pytest.mark.mqtt("MQTT-3.3.1-12", version=5)
@pytest.mark.mqtt("MQTT-3.3.2-4", version=5)
@pytest.mark.mqtt("MQTT-3.3.2-15", version=5)
@pytest.mark.mqtt("MQTT-3.3.2-16", version=5)
@pytest.mark.mqtt("MQTT-3.3.2-17", version=5)
@pytest.mark.mqtt("MQTT-3.3.2-18", version=5)
@pytest.mark.mqtt("MQTT-3.3.2-20", version=5)
@settings(max_examples=140, deadline=None)
@given(st.data(), VERSIONS, VERSIONS, st.integers(0, 2), st.booleans())
def test_a_subscriber_gets_what_was_published(
    data: st.DataObject, version: Version, wanted: Version, granted: int, identified: bool
) -> None:
    """Topic and payload as they were, the lower QoS, and in 5.0 the properties of the message (3.3.2.3)."""
    packet = data.draw(packets(PacketType.PUBLISH, version))
    assert isinstance(packet, Publish)
    if not packet.topic or packet.properties.subscription_identifiers:
        return
    publisher = Client(version, packet_max=1 << 20, alias_max=65_535)
    subscriber = Client(wanted, ledger=publisher.ledger)
    publisher.route(packet.topic.encode(), subscriber.target(granted, 0, b"\x0b\x80\x01" if identified else b""))
    publisher.send(encode(packet, version))
    [raw] = split(subscriber.got())
    qos = min(packet.qos, granted)
    properties = Properties()
    if wanted is V5:
        kept = packet.properties
        properties = Properties(
            payload_format_indicator=kept.payload_format_indicator,
            message_expiry_interval=kept.message_expiry_interval, content_type=kept.content_type,
            response_topic=kept.response_topic, correlation_data=kept.correlation_data,
            user_properties=kept.user_properties, subscription_identifiers=(128,) if identified else (),
        )  # fmt: skip
    assert decode(*raw, wanted) == Publish(
        packet.topic, packet.payload, qos, False, False, 1 if qos else None, properties
    )


def publish(topic: bytes, payload: bytes = b"", *, packet_id: int = 0, properties: bytes | None = b"",
            first: int | None = None) -> bytes:  # fmt: skip
    """By hand, with properties in the order given; None: 3.1.1."""
    body = len(topic).to_bytes(2, "big") + topic + (packet_id.to_bytes(2, "big") if packet_id else b"")
    if properties is not None:
        body += encode_variable_byte_integer(len(properties)) + properties
    return framed(first or (0x32 if packet_id else 0x30), body + payload)


@pytest.mark.mqtt("MQTT-4.3.2-4", version=5)
def test_a_publish_on_a_known_route_does_not_enter_python() -> None:
    client = Client(V5)
    route = client.route(b"a/b", client.target(1))
    client.inbox.feed(publish(b"a/b", b"x", packet_id=7, properties=b"\x26\0\1k\0\1v"))
    assert client.lane.advance(0.0) == NEED_MORE
    assert route.hits == 1
    assert client.got() == publish(b"a/b", b"x", packet_id=1, properties=b"\x26\0\1k\0\1v") + b"\x40\x02\0\7"


@pytest.mark.parametrize(
    ("first", "properties"),
    [(0x30, b""), (0x33, b""), (0x34, b""), (0x3A, b"\x01\x01")],
    ids=["no route", "retain", "QoS 2", "again"],
)
def test_a_publish_that_needs_a_decision_is_for_python(first: int, properties: bytes) -> None:
    client = Client(V5)
    if first != 0x30:
        client.route(b"t")
        client.lane.badge = UNKNOWN if first == 0x3A else None
    client.inbox.feed(publish(b"t", b"\xff", packet_id=9 if first & 6 else 0, properties=properties, first=first))
    assert client.lane.advance(5.0) == PUBLISH
    message = client.lane.message
    assert (message.topic, message.payload, message.fields) == (b"t", b"\xff", properties)
    assert (message.qos, message.retain) == (first >> 1 & 3, bool(first & 1))
    assert client.lane.packet_id == (9 if first & 6 else None)
    assert client.lane.dup == bool(first & 8)
    assert client.lane.is_text == bool(properties)
    client.lane.done()
    assert client.lane.advance(5.0) == NEED_MORE
    assert client.got() == b""


def test_a_qos_1_publish_that_nobody_gets_is_answered_with_0x10_in_5_0_alone() -> None:
    """3.4.2.1; 3.1.1 has no reason code to say it with."""
    for version, answer in ((V5, b"\x40\x03\x01\x02\x10"), (V3, b"\x40\x02\x01\x02")):
        client = Client(version)
        client.route(b"t")
        client.send(publish(b"t", packet_id=0x102, properties=b"" if version is V5 else None))
        assert client.got() == answer


@pytest.mark.mqtt("MQTT-3.3.2-12", version=5)
def test_an_alias_stands_for_the_topic_it_was_last_sent_with() -> None:
    """3.3.2.3.4; subscribers see nothing of it, wherever among the properties it stood."""
    client = Client(V5)
    client.route(b"a", client.target())
    client.route(b"b", client.target())
    user, expiry = b"\x26\0\1k\0\1v", b"\x02\0\0\0\x09"
    alias = b"\x23\0\x0a"
    client.send(
        publish(b"a", b"1", properties=alias),
        publish(b"", b"2", properties=user + alias + expiry),
        publish(b"b", b"3", properties=user + alias),
        publish(b"", b"4", properties=alias + expiry),
    )
    assert client.got() == (
        publish(b"a", b"1") + publish(b"a", b"2", properties=user + expiry)
        + publish(b"b", b"3", properties=user) + publish(b"b", b"4", properties=expiry)
    )  # fmt: skip


@pytest.mark.mqtt("MQTT-3.3.2-8", version=5)
@pytest.mark.parametrize(
    ("topic", "alias", "reason"),
    [(b"t", 11, R.TOPIC_ALIAS_INVALID), (b"t", 0, R.TOPIC_ALIAS_INVALID), (b"", 3, R.PROTOCOL_ERROR)],
)
def test_an_alias_out_of_range_or_unknown_is_refused(topic: bytes, alias: int, reason: R) -> None:
    _, ended = Client(V5).send(publish(topic, properties=b"\x23" + alias.to_bytes(2, "big")))
    assert ended is not None
    assert ended[0] == reason


def test_the_topics_of_aliases_are_counted_and_given_back() -> None:
    client = Client(V5, packet_max=1 << 20)
    for length in (1_000, 50_000, 10):
        client.send(publish(b"t" * length, properties=b"\x23\0\1"))
        assert length < client.ledger.inboxes.used < length + 200
    ledger = client.ledger
    del client
    assert ledger.inboxes.used == 0


@pytest.mark.parametrize("wrong", [b"\x01\2", b"\x26\0\1a", b"\x03\0\1\xff", b"\x02\0\0\0\1\x02\0\0\0\1"])
def test_properties_behind_the_same_and_behind_others_are_refused_if_they_are_wrong(wrong: bytes) -> None:
    """4.8 and 2.2.2: what was sound in the packet before is not looked at again, and nothing else is taken for it."""
    right = {2: b"\x01\1", 4: b"\x03\0\1a", 10: b"\x26\0\1a\0\4text"}
    for before in (b"", *right.values(), wrong[:-1] + b"\0"):
        client = Client(V5)
        client.route(b"t")
        client.inbox.feed(publish(b"t", properties=before) * 2 + publish(b"t", properties=wrong) * 2)
        assert client.lane.advance(0.0) == FAULT


def test_a_topic_that_another_protocol_publishes_on_is_no_more_utf_8_for_that() -> None:
    """1.5.4-1: a native client may send octets, in MQTT's syntax, too."""
    client, subscriber = Client(V5), Client(V5)
    route = client.route(b"\xff", subscriber.target())
    native = Publisher(client.ledger, client.routes)
    assert native.send(frame(3, None, b"\xff", b"", None, 1))
    assert route.hits == 1
    client.inbox.feed(publish(b"\xff"))
    assert client.lane.advance(0.0) == FAULT
    assert (route.hits, subscriber.got()) == (1, b"")


@pytest.mark.parametrize("indicator", [0, 1])
def test_a_payload_that_is_said_to_be_text_and_is_not_is_for_python_when_asked(indicator: int) -> None:
    """3.3.2.3.2."""
    for payload in ("é".encode(), b"\xff"):
        client = Client(V5)
        client.route(b"t")
        for check in (False, True):
            client.lane.check_text = check
            client.inbox.feed(publish(b"t", payload, properties=b"\x01" + bytes((indicator,))))
            decision = check and indicator == 1 and payload == b"\xff"
            assert client.lane.advance(0.0) == (PUBLISH if decision else NEED_MORE)


def test_a_publish_waits_whole_while_an_outbox_holds_it_back() -> None:
    client = Client(V5)
    slow = Client(V5, ledger=client.ledger)
    client.route(b"t", slow.target())
    big = publish(b"t", bytes(200))
    while (event := client.lane.advance(0.0)) == NEED_MORE:
        client.inbox.feed(big)
    assert event == BLOCKED
    assert client.lane.blocker is slow.outbox
    before = slow.outbox.messages
    slow.got()
    assert slow.outbox.drained()
    client.inbox.resume()
    assert client.lane.advance(0.0) == NEED_MORE
    assert slow.got() == big
    assert before > 1


def test_acknowledgements_of_success_need_no_python() -> None:
    """4.3: QoS 1 and QoS 2 towards a client, from PUBLISH to the end."""
    client = Client(V5)
    client.route(b"t", client.target(2))
    client.send(publish(b"t", b"1", packet_id=1), publish(b"t", b"2", packet_id=2, first=0x34))
    client.got()
    assert client.window.in_flight == 2
    assert client.send(b"\x40\x02\0\1", b"\x50\x02\0\2") == ([], None)
    assert client.got() == b"\x62\x02\0\2"
    assert client.send(b"\x70\x02\0\2", b"\xc0\0") == ([], None)
    assert client.got() == b"\xd0\0"
    assert client.window.in_flight == 0
    assert client.ledger.stored == 0


@pytest.mark.parametrize(
    "octets",
    ["4002 0009", "5002 0009", "7002 0009", "4003 0001 80", "4004 0001 00 00", "6202 0001", "4002 0000", "c001 00"],
)
def test_acknowledgements_that_need_a_decision_are_for_python(octets: str) -> None:
    """Unknown, with a reason code, of a QoS 2 PUBLISH to us, or malformed."""
    client = Client(V5)
    client.route(b"t", client.target(1))
    client.send(publish(b"t", packet_id=1))
    packet = bytes.fromhex(octets)
    assert client.send(packet) == (split(packet), None)
    assert client.window.in_flight == 1
