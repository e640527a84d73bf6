"""Sessions (3.1.2.4, 3.1.2.11.2, 4.1) and what is sent again when one is resumed (4.4)."""

import pytest

from fanlight_broker.protocols.mqtt.packets import Disconnect, PubAck, PubComp, Publish, PubRec, PubRel
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt.world import World
from tests.conformance.clients import assert_closed, back, lasting, payloads, present, publishes, versions


@versions
@pytest.mark.mqtt("MQTT-3.2.2-2", version=3)
@pytest.mark.mqtt("MQTT-3.2.2-3")
@pytest.mark.mqtt("MQTT-3.1.2-4", version=3)
@pytest.mark.mqtt("MQTT-3.1.2-5", version=5)
@pytest.mark.mqtt("MQTT-3.1.2-6", version=5)
@pytest.mark.mqtt("MQTT-3.1.2-23", version=5)
@pytest.mark.mqtt("MQTT-3.1.3-2")
@pytest.mark.mqtt("MQTT-4.1.0-1")
def test_a_session_is_made_then_resumed_by_the_identifier_it_is_kept_under(version: Version) -> None:
    world = World()
    peer, rest = back(world, "mine", version)
    assert not present(peer)
    assert rest == []
    peer.subscribe("a", qos=1)
    peer.vanish()
    publisher = world.connect("p", version)
    publisher.publish("a", b"x", 1)
    stranger, rest = back(world, "Mine", version)  # identifiers are compared as they are
    assert not present(stranger)
    assert rest == []
    again, rest = back(world, "mine", version)
    assert present(again)
    assert payloads(rest) == [b"x"]
    publisher.publish("a", b"y")  # the subscription is in force
    assert [message.payload for message in again.messages()][-1] == b"y"


@versions
@pytest.mark.mqtt("MQTT-3.1.2-6", version=3)
@pytest.mark.mqtt("MQTT-3.1.2-4", version=5)
@pytest.mark.mqtt("MQTT-3.2.2-1", version=3)
@pytest.mark.mqtt("MQTT-3.2.2-2", version=5)
@pytest.mark.mqtt("MQTT-3.1.4-3", version=3)
@pytest.mark.mqtt("MQTT-3.1.4-4", version=5)
def test_a_clean_start_discards_the_session_there_was(version: Version) -> None:
    world = World()
    peer = world.connect("mine", version, **lasting(version))
    peer.subscribe("a", qos=1)
    peer.vanish()
    publisher = world.connect("p", version)
    publisher.publish("a", b"x", 1)
    clean = world.connect("mine", version, clean_start=True)
    assert not present(clean)
    assert clean.packets() == []
    publisher.publish("a", b"y", 1)
    assert clean.messages() == []
    clean.vanish()
    after, rest = back(world, "mine", version)  # the clean one is not used again either
    assert not present(after)
    assert rest == []


@versions
@pytest.mark.mqtt("MQTT-4.1.0-1")
@pytest.mark.mqtt("MQTT-4.1.0-2", version=3)
def test_a_session_lasts_as_long_as_its_connection_whatever_its_expiry_is(version: Version) -> None:
    world = World()
    fields = {"session_expiry_interval": 1} if version is V5 else {}
    peer = world.connect("mine", version, **fields)
    peer.subscribe("a", qos=2)
    world.connect("p", version).publish("a", b"x", 2)
    (message,) = peer.packets()
    assert isinstance(message, Publish)
    world.pass_time(1_000_000)
    peer.say(PubRec(message.packet_id or 0))
    assert peer.next() == PubRel(message.packet_id or 0)
    world.pass_time(1_000_000)
    peer.say(PubComp(message.packet_id or 0))
    world.connect("q", version).publish("a", b"y")
    assert [message.payload for message in peer.messages()] == [b"y"]


@versions
@pytest.mark.mqtt("MQTT-3.1.2-5", version=3)
@pytest.mark.mqtt("MQTT-4.1.0-1")
@pytest.mark.mqtt("MQTT-3.1.2-23", version=5)
def test_messages_of_qos_1_and_2_are_kept_for_a_client_that_is_away(version: Version) -> None:
    world = World()
    peer = world.connect("mine", version, **lasting(version))
    peer.subscribe("a", qos=2)
    peer.say(Disconnect())
    publisher = world.connect("p", version)
    for number in range(1, 7):
        publisher.publish("a", str(number).encode(), number % 3)
    again, rest = back(world, "mine", version)
    got = [(packet.payload, packet.qos, packet.dup) for packet in publishes(rest)]
    assert [one for one in got if one[1]] == [(b"1", 1, False), (b"2", 2, False), (b"4", 1, False), (b"5", 2, False)]
    assert not again.gone


@pytest.mark.mqtt("MQTT-4.1.0-2", version=5)
@pytest.mark.mqtt("MQTT-3.1.2-23", version=5)
@pytest.mark.parametrize(("expiry", "away", "there"), [(60, 59.5, True), (60, 60, False), (0, 0, False),
                                                       (None, 0, False), (0xFFFFFFFF, 100_000_000, True)])  # fmt: skip
def test_a_session_is_discarded_once_it_has_expired(expiry: int | None, away: float, there: bool) -> None:
    world = World()
    fields = {} if expiry is None else {"session_expiry_interval": expiry}
    peer = world.connect("mine", clean_start=False, **fields)
    assert peer.connack is not None
    if expiry != 0xFFFFFFFF:
        assert peer.connack.properties.session_expiry_interval is None  # as it was asked for
    else:  # what is in force is the limit
        assert peer.connack.properties.session_expiry_interval in (None, world.broker.limits.session_seconds_max)
    peer.subscribe("a", qos=1)
    peer.vanish()
    world.pass_time(min(away, world.broker.limits.session_seconds_max - 1))
    again, _ = back(world, "mine", V5)
    assert present(again) == there


@versions
@pytest.mark.mqtt("MQTT-3.1.2-6", version=3)
@pytest.mark.mqtt("MQTT-4.1.0-2", version=5)
def test_a_session_that_ends_with_its_connection_cannot_be_taken_over(version: Version) -> None:
    world = World()
    old = world.connect("mine", version)
    old.subscribe("a", qos=1)
    world.connect("p", version).publish("a", b"x", 1)
    new, rest = back(world, "mine", version)
    assert old.gone
    assert not present(new)
    assert rest == []
    world.connect("q", version).publish("a", b"y", 1)
    assert new.messages() == []


@versions
@pytest.mark.mqtt("MQTT-4.4.0-1")
def test_a_takeover_sends_again_what_the_old_connection_had_not_acknowledged(version: Version) -> None:
    world = World()
    old = world.connect("mine", version, **lasting(version))
    old.subscribe("a", qos=2)
    publisher = world.connect("p", version)
    for number in range(4):
        publisher.publish("a", str(number).encode(), 1 + number % 2)
    ids = [packet.packet_id for packet in publishes(old.packets())]
    new, rest = back(world, "mine", version)
    assert_closed(old, ReasonCode.SESSION_TAKEN_OVER)
    assert present(new)
    assert [(packet.packet_id, packet.dup) for packet in publishes(rest)] == [(each, True) for each in ids]


@pytest.mark.mqtt("MQTT-3.1.2-23", version=5)
def test_an_expiry_above_the_limit_is_cut_and_told() -> None:
    world = World(session_seconds_max=100)
    peer = world.connect("mine", session_expiry_interval=101)
    assert peer.connack is not None
    assert peer.connack.properties.session_expiry_interval == 100


@pytest.mark.mqtt("MQTT-4.1.0-2", version=5)
@pytest.mark.parametrize(("expiry", "there"), [(0, False), (5, False), (100, True)])
def test_a_disconnect_may_give_the_session_another_expiry(expiry: int, there: bool) -> None:
    world = World()
    peer = world.connect("mine", session_expiry_interval=10)
    peer.say(Disconnect(properties=Properties(session_expiry_interval=expiry)))
    assert peer.gone
    world.pass_time(50)
    again, _ = back(world, "mine", V5)
    assert present(again) == there


def test_a_disconnect_may_not_give_an_expiry_to_a_session_that_had_none() -> None:
    world = World()
    peer = world.connect("mine")
    peer.say(Disconnect(properties=Properties(session_expiry_interval=10)))  # 3.14.2.2.2
    assert_closed(peer, ReasonCode.PROTOCOL_ERROR)
    assert not present(back(world, "mine", V5)[0])


# -- sent again --------------------------------------------------------------------------------------------------------


@versions
@pytest.mark.mqtt("MQTT-4.4.0-1")
@pytest.mark.mqtt("MQTT-3.3.1-1")
@pytest.mark.mqtt("MQTT-4.6.0-5")
@pytest.mark.mqtt("MQTT-2.3.1-4", version=3)
def test_what_is_not_acknowledged_comes_again_in_its_order_with_dup_and_then_what_is_new(version: Version) -> None:
    world = World()
    peer = world.connect("s", version, **lasting(version))
    publisher = world.connect("p", version)
    peer.subscribe("a", qos=2)
    for number in range(6):
        publisher.publish("a", str(number).encode(), 1 + number % 2)
    first = publishes(peer.packets())
    assert [packet.dup for packet in first] == [False] * 6
    ids = [packet.packet_id or 0 for packet in first]
    peer.say(PubAck(ids[2]), PubRec(ids[3]), PubRec(ids[1]))  # 0, 4, 5 are not acknowledged
    assert peer.packets() == [PubRel(ids[3]), PubRel(ids[1])]
    world.pass_time(1_000_000 if version is V3 else 100)
    assert peer.packets() == []  # at no other time
    peer.vanish()
    publisher.publish("a", b"6", 1)
    again, rest = back(world, "s", version)
    assert rest[:2] == [PubRel(ids[3]), PubRel(ids[1])]
    repeated = publishes(rest[2:])
    assert [(p.payload, p.packet_id, p.qos, p.dup) for p in repeated[:3]] == [
        (b"0", ids[0], 1, True), (b"4", ids[4], 1, True), (b"5", ids[5], 2, True),
    ]  # fmt: skip
    (new,) = repeated[3:]
    assert (new.payload, new.dup) == (b"6", False)
    assert new.packet_id not in {ids[0], ids[1], ids[3], ids[4], ids[5]}
    assert not again.gone


@versions
@pytest.mark.mqtt("MQTT-4.3.3-1", version=3)
@pytest.mark.mqtt("MQTT-4.3.3-6", version=5)
@pytest.mark.mqtt("MQTT-4.3.3-5", version=5)
def test_after_its_pubrel_a_message_is_not_sent_again_but_the_pubrel_is(version: Version) -> None:
    world = World()
    peer = world.connect("s", version, **lasting(version))
    peer.subscribe("a", qos=2)
    world.connect("p", version).publish("a", b"x", 2)
    (message,) = publishes(peer.packets())
    identifier = message.packet_id or 0
    peer.say(PubRec(identifier))
    for _ in range(3):
        assert peer.packets() == [PubRel(identifier)]
        peer.vanish()
        peer, rest = back(world, "s", version)
        assert rest == [PubRel(identifier)]
        peer.say(PubRec(identifier))  # the client may not have got it
    assert peer.packets() == [PubRel(identifier)]
    peer.say(PubComp(identifier))
    peer.vanish()
    assert back(world, "s", version)[1] == []


@pytest.mark.mqtt("MQTT-4.4.0-2", version=5)
@pytest.mark.parametrize(("qos", "answer"), [(1, PubAck), (2, PubRec)])
def test_what_the_client_refused_is_not_sent_again(qos: int, answer: type[PubAck] | type[PubRec]) -> None:
    world = World()
    peer = world.connect("s", **lasting(V5))
    peer.subscribe("a", qos=2)
    world.connect("p").publish("a", b"x", qos)
    (message,) = publishes(peer.packets())
    peer.say(answer(message.packet_id or 0, ReasonCode.QUOTA_EXCEEDED))
    assert peer.packets() == []
    peer.vanish()
    assert back(world, "s", V5)[1] == []


@versions
@pytest.mark.mqtt("MQTT-4.3.3-10", version=5)
@pytest.mark.mqtt("MQTT-4.3.3-2", version=3)
def test_qos_2_is_exactly_once_also_over_a_new_connection(version: Version) -> None:
    world = World()
    listener = world.connect("l", version)
    listener.subscribe("a", qos=2)
    peer = world.connect("p", version, **lasting(version))
    message = Publish("a", b"once", 2, packet_id=5)
    peer.say(message)
    assert isinstance(peer.next(), PubRec)
    for _ in range(2):
        peer.vanish()
        peer, _rest = back(world, "p", version)
        peer.say(Publish("a", b"once", 2, dup=True, packet_id=5))
        assert peer.next() == PubRec(5)
    peer.say(PubRel(5))
    assert peer.next() == PubComp(5)
    assert [packet.payload for packet in listener.messages()] == [b"once"]
    peer.say(message)  # the identifier is free: this is a new one
    assert [packet.payload for packet in listener.messages()] == [b"once"]


@versions
def test_a_session_goes_on_in_the_other_version(version: Version) -> None:
    world = World()
    other = V5 if version is V3 else V3
    peer = world.connect("s", version, **lasting(version))
    peer.subscribe("a", qos=1)
    publisher = world.connect("p", V5)
    publisher.publish("a", b"1", 1, content_type="text/plain")
    peer.packets()
    peer.vanish()
    publisher.publish("a", b"2", 1, content_type="text/plain")
    again, rest = back(world, "s", other)
    assert present(again)
    assert [(p.payload, p.dup) for p in publishes(rest)] == [(b"1", True), (b"2", False)]
    kind = "text/plain" if other is V5 else None
    assert [packet.properties.content_type for packet in publishes(rest)] == [kind, kind]
