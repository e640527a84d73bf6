"""$inbox: replies are their owner's, whatever the protocol; and the other topics that begin with `$`."""

import json
import re
from typing import Any

import pytest

from fanlight_broker.core.inspection import BrokerInspection
from fanlight_broker.protocols.mqtt.packets import PubAck
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from fanlight_broker.protocols.native.connection import NativeConnection
from tests.broker.core.parts import finished
from tests.broker.protocols import world as worlds
from tests.broker.protocols.mqtt.world import World, connect
from tests.broker.protocols.native.world import Peer as NativePeer
from tests.broker.protocols.native.world import publish
from tests.conformance.clients import assert_closed, back, lasting, versions

R = ReasonCode

# Filters that see replies to others, in MQTT's spelling.
FORBIDDEN = ["$inbox", "$inbox/#", "$inbox/+", "$inbox/+/x", "$inbox/+/#", "$inbox/mine", "$inbox/mine/#", "$inbox//x"]


class Native(NativePeer):
    """A native client of a broker that MQTT clients have as well."""

    def __init__(self, world: World) -> None:
        worlds.Peer.__init__(self, world)
        self.notices = []
        self.protocol = NativeConnection(world.broker, self, world.shared, world.now)
        self.say(1, 1, {})
        ((_, _, self.info),) = self.frames()

    @property
    def inbox(self) -> str:
        return str(self.info["inbox"])


@versions
@pytest.mark.parametrize("filter", [*FORBIDDEN, "$share/g/$inbox/#"])
def test_an_mqtt_client_cannot_subscribe_to_what_others_are_replied(version: Version, filter: str) -> None:
    peer = World().connect("s", version)
    assert peer.subscribe("a", filter) == (0, 0x80 if version is V3 else R.NOT_AUTHORIZED)
    assert not peer.gone


@pytest.mark.parametrize("filter", FORBIDDEN)
@pytest.mark.parametrize("syntax", [0, 1])
def test_a_native_client_cannot_either(filter: str, syntax: int) -> None:
    peer = Native(World())
    pattern = filter if syntax else filter.replace("/", ".").replace("+", "*")
    peer.say(6, 1, 1, pattern, {"syntax": syntax})
    (error,) = peer.frames()
    assert error[:3] == [13, 1, "not_permitted"]
    assert "$inbox" in error[3]


def test_the_inbox_of_another_is_refused_like_any_other() -> None:
    world = World()
    one, other = Native(world), Native(world)
    one.say(6, 1, 1, f"{other.inbox}.#")
    (error,) = one.frames()
    assert error[:3] == [13, 1, "not_permitted"]


@pytest.mark.parametrize("pattern", ["{}", "{}.*", "{}.#", "{}.1", "{}.#.x"])
def test_a_native_client_subscribes_to_its_own_inbox(pattern: str) -> None:
    peer = Native(World())
    peer.say(6, 1, 1, pattern.format(peer.inbox))
    assert peer.frames() == [[7, 1]]


def test_replies_reach_their_owner_from_both_protocols_and_nobody_else() -> None:
    world = World()
    asks, spy = Native(world), Native(world)
    asks.say(6, None, 1, f"{asks.inbox}.#")
    spy.say(6, None, 1, "#")
    spy.say(6, None, 2, "*.*.*")
    eavesdropper, answers = world.connect("e"), world.connect("a")
    eavesdropper.subscribe("#", "+/+/+")
    answers.publish(f"{asks.inbox.replace('.', '/')}/1", b"from MQTT", 1)
    spy.send(publish(f"{asks.inbox}.2", b"from native"))
    assert [message[3] for message in asks.frames()] == [b"from MQTT", b"from native"]
    assert spy.frames() == []
    assert eavesdropper.messages() == []


def test_response_information_is_an_inbox_that_stays_the_sessions() -> None:
    world = World()
    peer = world.connect("s", request_response_information=True, **lasting(V5))
    assert peer.connack is not None
    inbox = peer.connack.properties.response_information
    assert inbox is not None
    assert re.fullmatch(r"\$inbox/[0-9a-f]{32}", inbox)
    assert peer.subscribe(f"{inbox}/#", f"{inbox}/1", inbox, qos=1) == (1, 1, 1)
    peer.vanish()
    Native(world).send(publish(f"{inbox}/1", b"while it was away", None, 1))
    peer, rest = back(world, "s", V5, request_response_information=True)
    assert peer.connack is not None
    assert peer.connack.properties.response_information == inbox
    assert rest == []  # a native message is of QoS 0
    assert peer.subscribe(f"{inbox}/2", qos=1) == (1,)
    Native(world).send(publish(f"{inbox}/2", b"now", None, 1))
    assert [message.payload for message in peer.messages()] == [b"now"]


def shown(world: World) -> tuple[BrokerInspection, str]:
    """Every view of a broker in which a topic or filter stands, as one text."""
    inspection = BrokerInspection(world.broker, lambda: world.now, dict, lambda: True)
    found: list[Any] = [
        inspection.subscriptions(offset=0, limit=10), inspection.snapshot(place=0, places=10),
        inspection.hot_topics(limit=10),
        finished(inspection.explain("a", syntax="mqtt", client="s", limit=10)), inspection.sessions(offset=0, limit=10),
        inspection.connections(offset=0, limit=10),
    ]  # fmt: skip
    return inspection, json.dumps(found, default=str)


def test_no_view_shows_the_random_word_of_an_inbox() -> None:
    world = World()
    peer = world.connect("s", request_response_information=True)
    assert peer.connack is not None
    inbox = peer.connack.properties.response_information or ""
    peer.subscribe(f"{inbox}/#")
    world.connect("p").publish(f"{inbox}/7", b"x")
    inspection, text = shown(world)
    word = inbox.rpartition("/")[2]
    assert word not in text
    (row,) = inspection.subscriptions(offset=0, limit=10)
    assert re.fullmatch(r"\$inbox/masked-[0-9a-f]{16}/#", row["filter"])
    (topic,) = inspection.hot_topics(limit=10)
    assert topic["topic"] == row["filter"].replace("#", "7")
    assert inspection.snapshot(place=0, places=10)[0][0]["filter"] == row["filter"]


# -- other topics that begin with $ ------------------------------------------------------------------------------------


@versions
@pytest.mark.mqtt("MQTT-4.7.2-1")
@pytest.mark.parametrize(
    "topic", ["$made/up", "$SYSx", "$SYSx/a", "$inboxes/a", "$streams/a", "$share", "$share/g/a", "$"]
)
def test_a_topic_of_a_clients_own_may_begin_with_a_dollar_and_no_wildcard_sees_it(version: Version, topic: str) -> None:
    world = World()
    wild, named, publisher = world.connect("w", version), world.connect("n", version), world.connect("p", version)
    wild.subscribe("#", "+/#", "+", "+/+")
    own = not topic.startswith("$share")  # there such a filter is a Shared Subscription's
    if own:
        assert named.subscribe(topic) == (0,)
    publisher.publish(topic, b"x", 1)
    assert len(named.messages()) == own
    assert wild.messages() == []


@pytest.mark.parametrize(
    "topic", ["$SYS", "$SYS/", "$SYS/broker/uptime", "$SYS.broker", "$audit/login", "$stream/q/0/x"]
)
def test_the_brokers_own_are_not_for_clients(topic: str) -> None:
    peer = World().connect("p")
    (answer,) = peer.publish(topic, b"x", 1)
    assert isinstance(answer, PubAck)
    assert answer.reason_code == R.NOT_AUTHORIZED


@versions
@pytest.mark.mqtt("MQTT-4.8.2-1", version=5)
@pytest.mark.parametrize("filter", ["$share", "$share/", "$share/g", "$share/g/", "$share//a", "$share/+/a"])
def test_share_in_first_place_marks_a_shared_subscription_and_needs_a_name_and_a_filter(
    version: Version, filter: str
) -> None:
    peer = World().connect("s", version)
    octets = filter.encode()
    body = b"\0\1" + (b"\0" if version is V5 else b"") + len(octets).to_bytes(2, "big") + octets + b"\0"
    peer.send(bytes((0x82, len(body))) + body)
    assert_closed(peer, R.TOPIC_FILTER_INVALID)


@versions
def test_other_filters_that_begin_alike_are_ordinary_ones(version: Version) -> None:
    world = World()
    peer = world.connect("s", version)
    assert peer.subscribe("$shared", "$share2/a") == (0, 0)
    world.connect("p").publish("$shared", b"x")
    assert len(peer.messages()) == 1


# -- Maximum Packet Size -----------------------------------------------------------------------------------------------


@pytest.mark.mqtt("MQTT-3.1.2-24", version=5)
def test_a_client_is_let_in_if_the_shortest_connack_fits_and_gets_nothing_larger() -> None:
    for maximum in range(1, 40):
        world = World()
        peer = world.open()
        peer.say(connect("s", maximum_packet_size=maximum, topic_alias_maximum=5, request_response_information=True))
        assert peer.gone == (maximum < 5)  # 20 03 00 00 00
        assert len(peer.received) <= maximum
        if maximum < 5:
            assert peer.received == b""
            continue
        peer.received = b""
        peer.send(bytes.fromhex("3208 0001 61 0001 00 7878"))
        assert peer.received == bytes.fromhex("4003000110")  # PUBACK, nobody has subscribed
        peer.received = b""
        peer.send(bytes.fromhex("8207 0002 00 0001 61 01"))
        assert peer.received == (bytes.fromhex("9004 0002 00 01") if maximum >= 6 else bytes.fromhex("e00195"))


@pytest.mark.mqtt("MQTT-3.1.2-24", version=5)
def test_a_refusal_fits_as_well_when_the_connect_cannot_be_decoded() -> None:
    peer = World().open()  # Maximum Packet Size 20, and a will topic with a wildcard
    peer.send(bytes.fromhex("10 1d 0004 4d515454 05 06 0000 05 27 00000014 0001 73 00 0003 61 2f 23 0003 627965"))
    assert peer.received == bytes.fromhex("2003009000")
    assert peer.gone
