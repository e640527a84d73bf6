"""Shared subscriptions (4.8.2). 3.1.1 does not know them; here its clients may have them, too."""

import pytest

from fanlight_broker.protocols.mqtt.packets import (
    Disconnect,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    Subscription,
    UnsubAck,
    Unsubscribe,
)  # fmt: skip
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V5, Version
from tests.broker.protocols.mqtt.world import Peer, World
from tests.conformance.clients import back, lasting, payloads, publishes, qualities, versions

pytestmark = pytest.mark.usefixtures("either_lane")

SHARED = "$share/group/a"


def member(world: World, name: str, version: Version, *, qos: int = 2, at_once: int | None = None) -> Peer:
    fields = lasting(version) | ({} if at_once is None else {"receive_maximum": at_once})
    peer = world.connect(name, version, **fields)
    assert peer.subscribe(SHARED, qos=qos) == (qos,)
    return peer


def numbered(publisher: Peer, count: int, qos: int, topic: str = "a") -> list[bytes]:
    sent = [str(number).encode() for number in range(count)]
    for payload in sent:
        publisher.publish(topic, payload, qos)
    return sent


@versions
@qualities
def test_each_message_goes_to_one_member_of_each_group_and_to_all_others(version: Version, qos: int) -> None:
    world = World()
    group = [member(world, f"m{n}", version) for n in range(3)]
    other = world.connect("other group", version)
    other.subscribe("$share/other/+", qos=2)
    plain = world.connect("plain", version)
    plain.subscribe("a", qos=2)
    sent = numbered(world.connect("p", version), 30, qos)
    parts = [[message.payload for message in peer.messages()] for peer in group]
    assert sorted((payload for part in parts for payload in part), key=int) == sent
    assert all(parts)
    assert all(part == sorted(part, key=int) for part in parts)
    assert [message.payload for message in other.messages()] == sent
    assert [message.payload for message in plain.messages()] == sent


@versions
@qualities
@pytest.mark.mqtt("MQTT-4.8.2-3", version=5)
def test_every_member_gets_messages_at_the_qos_it_was_granted(version: Version, qos: int) -> None:
    world = World()
    group = [member(world, f"m{granted}", version, qos=granted) for granted in (0, 1, 2)]
    sent = numbered(world.connect("p", version), 30, qos)
    got = [peer.messages() for peer in group]
    assert sum(len(messages) for messages in got) == len(sent)
    for granted, messages in enumerate(got):
        assert messages
        assert {message.qos for message in messages} == {min(qos, granted)}


@versions
def test_a_client_with_both_kinds_of_subscription_has_a_copy_for_each(version: Version) -> None:
    world = World()
    peer = world.connect("s", version)
    peer.subscribe(SHARED, "a")
    world.connect("p", version).publish("a", b"x")
    assert [message.payload for message in peer.messages()] == [b"x", b"x"]


def test_a_shared_subscription_has_its_identifier() -> None:
    world = World()
    peer = world.connect("s")
    peer.subscribe(SHARED, subscription_identifiers=(5,))
    world.connect("p").publish("a", b"x")
    assert [message.properties.subscription_identifiers for message in peer.messages()] == [(5,)]


@versions
def test_retained_messages_are_not_sent_to_it(version: Version) -> None:
    world = World()
    world.connect("p", version).publish("a", b"x", retain=True)
    member(world, "m", version)
    peer = world.connect("again", version)
    peer.subscribe(SHARED, qos=1)  # 4.8.2: none at the first SUBSCRIBE
    peer.subscribe(SHARED, qos=1)
    assert peer.messages() == []


@versions
def test_it_ends_with_its_own_filter_and_no_other(version: Version) -> None:
    world = World()
    peer, publisher = member(world, "m", version), world.connect("p", version)
    peer.say(Unsubscribe(5, ("a", "$share/other/a")))
    missing = (ReasonCode.NO_SUBSCRIPTION_EXISTED,) * 2
    assert peer.next() == UnsubAck(5, missing if version is V5 else ())
    publisher.publish("a", b"1")
    assert [message.payload for message in peer.messages()] == [b"1"]
    peer.say(Unsubscribe(6, (SHARED,)))
    assert isinstance(peer.next(), UnsubAck)
    publisher.publish("a", b"2")
    assert peer.messages() == []


@pytest.mark.mqtt("MQTT-4.7.2-1")
@versions
def test_its_wildcards_do_not_see_names_that_begin_with_a_dollar(version: Version) -> None:
    world = World()
    peer = world.connect("s", version)
    peer.subscribe("$share/group/#", "$share/group/+/a")
    world.connect("p", version).publish("$mine/a", b"x")
    assert peer.messages() == []


@pytest.mark.mqtt("MQTT-4.8.2-1", version=5)
@pytest.mark.mqtt("MQTT-4.8.2-2", version=5)
@versions
@pytest.mark.parametrize("filter", ["$share", "$share/", "$share//a", "$share/g", "$share/g/", "$share/+/a",
                                    "$share/g#/a"])  # fmt: skip
def test_a_share_name_that_is_none_closes_the_connection(version: Version, filter: str) -> None:
    world = World()
    peer = world.connect("s", version)
    text = filter.encode()
    body = b"\x00\x01" + (b"\x00" if version is V5 else b"") + len(text).to_bytes(2, "big") + text + b"\x01"
    peer.send(bytes([0x82, len(body)]) + body)
    assert peer.gone
    assert len(world.broker.router) == 0


# -- when a member goes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("qos", [1, 2])
def test_unsent_messages_of_a_member_that_is_gone_or_stuck_go_to_another(qos: int) -> None:
    world = World()
    stuck, publisher = member(world, "stuck", V5, at_once=1), world.connect("p")
    sent = numbered(publisher, 5, qos)
    assert payloads(stuck.packets()) == [b"0"]  # and acknowledges nothing
    helper = member(world, "helper", V5)
    publisher.publish("a", b"5", qos)
    assert sorted((message.payload for message in helper.messages()), key=int) == [*sent[1:], b"5"]
    stuck.vanish()
    publisher.publish("a", b"6", qos)
    # QoS 1 in flight goes to another as well, QoS 2 in flight never.
    assert sorted(message.payload for message in helper.messages()) == ([b"0", b"6"] if qos == 1 else [b"6"])


@versions
def test_qos_1_in_flight_goes_to_another_when_the_connection_breaks(version: Version) -> None:
    world = World()
    first = member(world, "first", version)
    second = member(world, "second", version)
    sent = numbered(world.connect("p", version), 10, 1)
    held = payloads(first.packets())
    assert held
    first.vanish()
    assert sorted((message.payload for message in second.messages()), key=int) == sent
    _, rest = back(world, "first", version)
    assert rest == []


@versions
@pytest.mark.mqtt("MQTT-4.8.2-4", version=5)
def test_qos_2_in_flight_is_completed_with_the_same_client(version: Version) -> None:
    world = World()
    first = member(world, "first", version)
    publisher = world.connect("p", version)
    sent = numbered(publisher, 2, 2)
    received, untouched = publishes(first.packets())
    assert [received.payload, untouched.payload] == sent
    second = member(world, "second", version)
    first.say(PubRec(received.packet_id or 0))
    assert first.packets() == [PubRel(received.packet_id or 0)]
    first.vanish()
    world.pass_time(60)
    assert second.messages() == []
    first, rest = back(world, "first", version)
    assert rest[0] == PubRel(received.packet_id or 0)
    (again,) = publishes(rest[1:])
    assert (again.payload, again.packet_id, again.dup) == (untouched.payload, untouched.packet_id, True)
    first.say(PubComp(received.packet_id or 0), PubRec(untouched.packet_id or 0))
    assert first.packets() == [PubRel(untouched.packet_id or 0)]
    first.say(PubComp(untouched.packet_id or 0))
    assert second.messages() == []


@versions
@pytest.mark.mqtt("MQTT-4.8.2-5", version=5)
@pytest.mark.parametrize("how", ["clean start", "expiry"])
def test_qos_2_in_flight_goes_to_nobody_when_the_session_ends(version: Version, how: str) -> None:
    world = World(session_seconds_max=600)
    first = member(world, "first", version)
    numbered(world.connect("p", version), 1, 2)
    assert payloads(first.packets()) == [b"0"]
    second = member(world, "second", version)
    first.vanish()
    if how == "clean start":
        world.connect("first", version)
    else:
        world.pass_time(600)
        assert world.broker.sessions.get("first") is None
    assert second.messages() == []


@pytest.mark.mqtt("MQTT-4.8.2-6", version=5)
@pytest.mark.parametrize(("qos", "answer"), [(1, PubAck), (2, PubRec)])
def test_what_a_member_refuses_is_discarded(qos: int, answer: type[PubAck] | type[PubRec]) -> None:
    world = World()
    first = member(world, "first", V5)
    numbered(world.connect("p"), 1, qos)
    (message,) = publishes(first.packets())
    second = member(world, "second", V5)
    first.say(answer(message.packet_id or 0, ReasonCode.UNSPECIFIED_ERROR))
    assert first.packets() == []
    first.vanish()
    world.pass_time(60)
    assert second.messages() == []
    assert back(world, "first", V5)[1] == []


@versions
@pytest.mark.parametrize("qos", [1, 2])
def test_what_comes_while_all_members_are_away_waits_for_the_first_that_is_back(version: Version, qos: int) -> None:
    world = World()
    for name in ("first", "second"):
        member(world, name, version).say(Disconnect())
    sent = numbered(world.connect("p", version), 4, qos)
    _, rest = back(world, "second", version)
    assert payloads(rest) == sent
    assert not any(packet.dup for packet in publishes(rest))


@versions
def test_several_filters_of_one_group_are_several_subscriptions(version: Version) -> None:
    world = World()
    peer = world.connect("s", version)
    peer.subscribe(Subscription("$share/group/a"), Subscription("$share/group/+"))
    world.connect("p", version).publish("a", b"x")
    got = peer.messages()
    assert {message.payload for message in got} == {b"x"}
    assert all(isinstance(message, Publish) for message in got)
