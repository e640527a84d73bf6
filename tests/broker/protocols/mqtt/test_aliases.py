"""Topic Aliases towards a client: chosen by the broker, never one that the client was not told (MQTT 5, 3.3.2.3.4)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.protocols.mqtt.aliases import AliasFormat
from fanlight_broker.protocols.mqtt.codec import decode, encode
from fanlight_broker.protocols.mqtt.options import MqttOptions
from fanlight_broker.protocols.mqtt.packets import Publish
from fanlight_broker.protocols.mqtt.version import V5
from fanlight_broker.wire.outbox import POLICIES
from tests.broker.protocols.mqtt.laned import Client, split
from tests.broker.protocols.mqtt.world import World

TOPICS = ["first/topic", "second/topic", "third/topic", "t"]
MANY = [f"topic/{number}" for number in range(8)]


def told(octets: bytes, aliases: dict[int, str]) -> list[Publish]:
    """What a client makes of its stream: topics in place of aliases, which it keeps in `aliases`."""
    found = []
    for raw in split(octets):
        packet = decode(*raw, V5)
        assert isinstance(packet, Publish)
        alias = packet.properties.topic_alias
        if alias is not None and packet.topic:
            aliases[alias] = packet.topic
        topic = packet.topic or aliases[alias or 0]  # KeyError: an alias it was not told
        found.append(Publish(topic, packet.payload, packet.qos))
    return found


def pair(alias_max: int, qos: int = 0, packet_max: int | None = None, **options: int | str) -> tuple[Client, Client]:
    """A publisher on TOPICS, and a subscriber that takes aliases."""
    publisher = Client(V5)
    subscriber = Client(V5, ledger=publisher.ledger, **options)  # type: ignore[arg-type]
    target = subscriber.target(qos, format=AliasFormat(alias_max, packet_max))
    for topic in TOPICS + MANY:
        publisher.route(topic.encode(), target)
    return publisher, subscriber


def publish(topic: str, payload: bytes = b"", qos: int = 0) -> bytes:
    return encode(Publish(topic, payload, qos, packet_id=1 if qos else None), V5)


@pytest.mark.mqtt("MQTT-3.1.2-26", version=5)
@pytest.mark.mqtt("MQTT-3.3.2-11", version=5)
def test_the_first_topics_get_an_alias_as_many_as_the_client_allows() -> None:
    publisher, subscriber = pair(2)
    for _ in range(2):
        for topic in TOPICS:
            publisher.send(publish(topic, b"x"))
    packets = [decode(*raw, V5) for raw in split(subscriber.got())]
    assert [(p.topic, p.properties.topic_alias) for p in packets if isinstance(p, Publish)] == [
        ("first/topic", 1), ("second/topic", 2), ("third/topic", None), ("t", None),
        ("", 1), ("", 2), ("third/topic", None), ("t", None),
    ]  # fmt: skip


def test_a_copy_by_its_alias_is_shorter_by_the_topic() -> None:
    publisher, subscriber = pair(1)
    for _ in range(2):
        publisher.send(publish("first/topic"))
    assert subscriber.got() == b"\x30\x11\0\x0bfirst/topic\3\x23\0\1" + b"\x30\x06\0\0\3\x23\0\1"


def test_an_alias_that_would_make_a_packet_too_large_is_not_told() -> None:
    """[MQTT-3.1.2-24]: without it the message can be sent."""
    size = len(publish("first/topic"))
    publisher, subscriber = pair(1, packet_max=size)
    subscriber.outbox.frame_max = size
    for _ in range(2):
        publisher.send(publish("first/topic"))
    assert subscriber.got() == publish("first/topic") * 2


def test_an_alias_of_a_message_that_was_not_sent_is_told_with_the_next_one() -> None:
    publisher, subscriber = pair(1)
    subscriber.outbox.frame_max = 40
    publisher.send(publish("first/topic", bytes(100)), publish("first/topic"))
    assert subscriber.ledger.dropped_too_large == 1
    assert subscriber.got() == b"\x30\x11\0\x0bfirst/topic\3\x23\0\1"


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=100, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["t", *MANY]), st.integers(0, 1), st.integers(0, 5)), min_size=20, max_size=60
    ),
    granted=st.integers(0, 1),
    receive_max=st.integers(1, 3),
)
def test_whatever_is_dropped_or_waits_a_client_knows_every_alias_it_gets(
    policy: str, steps: list[tuple[str, int, int]], granted: int, receive_max: int
) -> None:
    """A small outbox under each policy, and a small window: messages are dropped, evicted and queued, then read."""
    publisher, subscriber = pair(len(MANY), granted, policy=policy, receive_max=receive_max, limit=70)
    aliases: dict[int, str] = {}
    for number, (topic, qos, read) in enumerate(steps):
        publisher.inbox.feed(publish(topic, b"%s %d" % (topic.encode(), number), qos))
        publisher.lane.advance(0.0)
        publisher.inbox.clear()  # what is held back is forgotten
        if read == 0:
            for packet in told(subscriber.got(), aliases):
                assert packet.payload.startswith(packet.topic.encode() + b" ")
            subscriber.outbox.drained()
            for identifier in range(1, 65):
                subscriber.window.acknowledge(identifier, 0.0)
    for packet in told(subscriber.got(), aliases):
        assert packet.payload.startswith(packet.topic.encode() + b" ")
    assert set(aliases) <= set(range(1, len(MANY) + 1))


def test_there_are_65535_aliases() -> None:
    with pytest.raises(ValueError, match="65536"):
        AliasFormat(65_536)


@pytest.mark.mqtt("MQTT-3.1.2-27", version=5)
@pytest.mark.parametrize(("announced", "allowed"), [(None, 64), (0, 64), (3, 0)])
def test_a_client_that_takes_none_gets_none(announced: int | None, allowed: int) -> None:
    world = World(options=MqttOptions(topic_alias_max=allowed))
    client = world.connect("c", topic_alias_maximum=announced)
    client.subscribe("#")
    publisher = world.connect("p")
    for _ in range(2):
        publisher.publish("first/topic")
        (message,) = client.messages()
        assert (message.topic, message.properties.topic_alias) == ("first/topic", None)


@pytest.mark.mqtt("MQTT-3.3.2-7", version=5)
def test_aliases_end_with_their_connection_and_the_session_goes_on_without() -> None:
    world = World()
    publisher = world.connect("p")
    for number, alias_maximum in enumerate((2, None, 2)):
        client = world.connect("c", clean_start=False, session_expiry_interval=100, topic_alias_maximum=alias_maximum)
        if number == 0:
            client.subscribe("#", qos=1)
        topics = []
        for _ in range(2):
            publisher.publish("first/topic", qos=1)
            topics += [(one.topic, one.properties.topic_alias) for one in client.messages()]
        by_alias = [("first/topic", 1), ("", 1)]
        assert topics == (by_alias if alias_maximum else [("first/topic", None)] * 2)
        client.vanish()
