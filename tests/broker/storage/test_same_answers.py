"""One selector says the same of a message as it is published, as it is retained, and as it is replayed."""

from collections.abc import Callable
from typing import Any, Final

import msgpack  # type: ignore[import-untyped]
import pytest

from fanlight_broker.core.payload_formats import PayloadFormats
from fanlight_broker.protocols.mqtt.packets import Publish
from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.wire.message import Message
from tests.broker.protocols.mqtt.world import World
from tests.broker.protocols.native import world as native
from tests.broker.storage.archived import Archived

JSON, MSGPACK = "application/json", "application/msgpack"
FORMATS: Final = "mqtt:typed/json/#=json, mqtt:typed/msgpack/#=msgpack"
TWICE: Final = {JSON: b'{"a": 1, "a": 2}', MSGPACK: b"\x82\xa1a\x01\xa1a\x02"}  # of one name the first value counts
NIL_FIRST: Final = {JSON: b'{"a": null, "a": 2}', MSGPACK: b"\x82\xa1a\xc0\xa1a\x02"}


class BothWorlds(World):
    """MQTT connections, and native ones to the same broker."""

    plain = False


Build = Callable[..., Archived]
Headers = list[tuple[str, Any]]
Properties = list[tuple[str, str]]


class Asked:
    """A broker with an archive. Each message is on a topic of its own, retained."""

    def __init__(self, build: Build) -> None:
        self.archived = build(world=BothWorlds, body_formats=FORMATS)
        self.world = self.archived.world
        self.broker = self.world.broker
        self.broker.router.read_bodies_as(PayloadFormats(FORMATS).of)
        self.publisher = self.world.connect("alice")
        self.speaker = self.native_peer()

    def publish(self, topic: str, body: bytes, properties: Properties, content_type: str | None = None) -> None:
        self.publisher.publish(
            topic, body or b"-", retain=True, user_properties=tuple(properties), content_type=content_type
        )

    def say(self, topic: str, body: bytes, headers: Headers, content_type: str | None = None) -> None:
        """Names may come several times. The native protocol has no flag that retains: the broker's own store does."""
        pairs = [*headers, *([("content-type", content_type)] if content_type is not None else [])]
        packed = msgpack.Packer().pack_map_header(len(pairs)) + b"".join(
            msgpack.packb(each) for pair in pairs for each in pair
        )
        fields = msgpack.packb(topic) + msgpack.packb(body or b"-") + packed + b"\x01"
        frame = b"\x96\x03\xc0" + fields
        self.speaker.send(len(frame).to_bytes(4, "big") + frame)
        message = Message(FORMAT, topic.encode(), 1, body or b"-", fields=fields, format_data=6)
        assert self.broker.retained.put(message, self.world.now)

    def native_peer(self) -> native.Peer:
        peer = native.Peer(self.world)
        peer.send(native.frame(1, 1, {}))
        assert peer.next()[0] == 2
        return peer

    def answers(self, where: str, publish: Callable[[], None]) -> list[set[str]]:
        """The topics of the messages that come: live, retained, replayed."""
        properties = {"user_properties": (("where", where),)}
        live = self.world.connect("live")
        assert live.subscribe("#", **properties) == (0,)
        publish()
        first = {packet.topic for packet in live.messages()}
        late = self.world.connect("late")
        assert late.subscribe("#", **properties) == (0,)
        retained = [packet for packet in late.packets() if isinstance(packet, Publish)]
        self.archived.settled()
        peer = self.native_peer()
        peer.say(48, 1, 7, "#", {"where": where, "syntax": 1})
        found: list[list[Any]] = []

        def ended() -> bool:
            self.world.turn()
            found.extend(peer.frames())
            return any(fields[0] == 49 for fields in found)

        self.archived.loop.run_until(ended)
        replayed = {fields[2] for fields in found if fields[0] == 4}
        return [first, {packet.topic for packet in retained}, replayed]


@pytest.fixture
def asked(build: Build) -> Asked:
    return Asked(build)


def agree(asked: Asked, where: str, publish: Callable[[], None], expected: set[str]) -> None:
    assert asked.answers(where, publish) == [expected] * 3


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("n > 5", {"mqtt/7", "native/7"}),
        ("n <> 7 AND n IS NOT NULL", {"mqtt/5", "native/5"}),
        ("twice = 1", {"mqtt/7", "native/7"}),
        ("twice = 2", {"mqtt/5", "native/5"}),
        ("flag", {"mqtt/7", "native/7"}),
        ("gone IS NULL AND n = 7", {"mqtt/7", "native/7"}),
        ("octets IS NOT NULL AND octets IS NOT NULL", {"native/7"}),
        ("$client = 'alice'", {"mqtt/5", "mqtt/7"}),
        ("$word[1] = 'native' AND $words = 2 AND $bytes = 1 AND $qos = 0", {"native/5", "native/7"}),
    ],
)
def test_headers(asked: Asked, where: str, expected: set[str]) -> None:
    def publish() -> None:
        asked.publish("mqtt/7", b"", [("n", "7"), ("twice", "1"), ("twice", "2"), ("flag", "true")])
        asked.publish("mqtt/5", b"", [("n", "5"), ("twice", "2"), ("twice", "1")])
        asked.say("native/7", b"", [
            ("n", 7), ("twice", 1), ("twice", 2), ("flag", True), ("gone", None), ("octets", b"\xff"),
        ])  # fmt: skip
        asked.say("native/5", b"", [("n", 5), ("twice", None), ("twice", 2)])

    if "$client" in where:  # of a retained message it is not known
        first, retained, replayed = asked.answers(where, publish)
        assert (first, retained, replayed) == (expected, set(), expected)
    else:
        agree(asked, where, publish, expected)


@pytest.mark.parametrize("content_type", [JSON, MSGPACK])
def test_bodies(asked: Asked, content_type: str) -> None:
    def publish() -> None:
        for name, body in (("twice", TWICE[content_type]), ("nil", NIL_FIRST[content_type]), ("cut", b"\x82"),
                           ("other", b"[1]" if content_type == JSON else b"\x91\x01")):  # fmt: skip
            asked.publish(f"mqtt/{name}", body, [], content_type)
            asked.say(f"native/{name}", body, [], content_type)
            asked.publish(f"typed/{content_type[12:]}/{name}", body, [])  # as `payload_format` says
            asked.publish(f"untyped/{name}", body, [])

    places = ["mqtt", "native", f"typed/{content_type[12:]}"]
    agree(asked, "payload.a = 1", publish, {f"{place}/twice" for place in places})
    counted = asked.broker.router.screens.bodies
    # Live, retained and replayed, of each of the three places: what is cut short, and what is no map.
    assert (counted.malformed, counted.too_large) == (3 * 3 * 2, 0)


@pytest.mark.parametrize("content_type", [JSON, MSGPACK])
def test_a_value_behind_a_nil_of_the_same_name_counts(asked: Asked, content_type: str) -> None:
    def publish() -> None:
        for name, body in (("twice", TWICE[content_type]), ("nil", NIL_FIRST[content_type])):
            asked.publish(f"mqtt/{name}", body, [], content_type)
            asked.say(f"native/{name}", body, [], content_type)

    agree(asked, "payload.a = 2", publish, {"mqtt/nil", "native/nil"})


def test_the_time_of_an_archived_message_is_known_and_that_of_a_retained_one_is_not(asked: Asked) -> None:
    def publish() -> None:
        asked.publish("mqtt/a", b"", [])

    # The broker of this test has no clock of the wall: live messages have no time.
    assert asked.answers("$time > 0 AND $user IS NULL", publish) == [set(), set(), {"mqtt/a"}]


@pytest.mark.parametrize("body", [b"x" * 65_537, b'{"a":' * 9 + b"1" + b"}" * 9], ids=["large", "deep"])
def test_too_much_is_counted_apart(asked: Asked, body: bytes) -> None:
    def publish() -> None:
        asked.publish("mqtt/a", body, [], JSON)

    agree(asked, "payload.a = 1", publish, set())
    assert (asked.broker.router.screens.bodies.malformed, asked.broker.router.screens.bodies.too_large) == (0, 3)
