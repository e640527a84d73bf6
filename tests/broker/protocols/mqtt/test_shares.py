"""A client that has used up its share of a pot: what it hears, in both versions, and that others are served."""

from typing import Any

import pytest

from fanlight_broker.core.inspection import BrokerInspection
from fanlight_broker.core.shares import SharedPot
from fanlight_broker.protocols.mqtt.packets import ConnAck, Disconnect, Publish, PubRec, WillFields
from fanlight_broker.protocols.mqtt.packets import Subscription as Wanted
from fanlight_broker.protocols.mqtt.properties import NONE, Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode as R
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt.world import Peer, World, connect
from tests.captured_logs import capture_logs

KIB, MIB = 1024, 1024 * 1024
ATTACKER, VICTIM = "192.0.2.66", "192.0.2.1"
VERSIONS = pytest.mark.parametrize("version", [V3, V5])


def hello(world: World, client_id: str, version: Version, *, address: str = ATTACKER, will: int = 0) -> Peer:
    """A client that has sent CONNECT, for a session that is kept, with a will of so many bytes."""
    peer = world.open(version)
    peer.address = address
    fields: dict[str, Any] = {"clean_start": version is V5}
    if version is V5:
        fields["session_expiry_interval"] = 1_000
    if will:  # in 5.0 with a delay, so that it is kept when its client has gone
        delay = Properties(will_delay_interval=1_000) if version is V5 else NONE
        fields["will"] = WillFields("will", b"w" * will, properties=delay)
    peer.say(connect(client_id, version, **fields))
    return peer


def code_of(peer: Peer) -> int:
    """Of the CONNACK that came, and of a refused client nothing else: it is closed."""
    connack = peer.next()
    assert isinstance(connack, ConnAck)
    assert peer.protocol.closed == (connack.reason_code != 0)
    return connack.reason_code


def fill(world: World, version: Version, will: int, most: int = 1_000) -> tuple[list[Peer], Peer]:
    """Clients of the attacker that got in, and the first that did not."""
    inside: list[Peer] = []
    for number in range(most):
        peer = hello(world, f"a{number}", version, will=will)
        if peer.protocol.closed:
            return inside, peer
        assert code_of(peer) == 0
        inside.append(peer)
    raise AssertionError(f"{most} clients got in")


def refusals(world: World, pot: SharedPot) -> int:
    """As /metrics counts them."""
    counters = BrokerInspection(world.broker, lambda: world.now, dict, lambda: True).counters()
    return counters[f"share_refused_{pot}"]


def served(world: World, version: Version) -> None:
    """A client of another address gets in, subscribes, and gets what it publishes."""
    victim = hello(world, "victim", version, address=VICTIM, will=1_000)
    assert code_of(victim) == 0
    assert victim.subscribe("v/#", qos=1) == (1,)
    assert any(isinstance(packet, Publish) for packet in victim.publish("v/1", b"x", 1))


def told(logs: list[Any]) -> list[tuple[str, str]]:
    return [(entry["principal"], entry["pot"]) for entry in logs if entry["event"] == "share_used_up"]


# -- bytes of sessions -----------------------------------------------------------------------------------------------


@VERSIONS
def test_a_client_that_has_used_up_the_bytes_of_sessions_is_refused_and_others_get_in(version: Version) -> None:
    world = World(sessions_bytes_max=2 * MIB)
    with capture_logs() as logs:
        inside, refused = fill(world, version, 60_000)
        again = hello(world, "again", version, will=60_000)
    assert 20 <= len(inside) < 26
    if version is V3:
        assert refused.received == bytes.fromhex("20 02 00 03")  # CONNACK, Server unavailable
    connack = refused.next()
    assert isinstance(connack, ConnAck)
    if version is V5:
        assert connack.reason_code == R.QUOTA_EXCEEDED
        assert connack.properties.reason_string is not None
        assert connack.properties.reason_string.startswith("address 192.0.2.66 has used up its share of sessions_bytes")
    assert code_of(again) == connack.reason_code
    assert refusals(world, SharedPot.SESSIONS_BYTES) == 2
    assert told(logs) == [("address 192.0.2.66", "sessions_bytes")]
    assert not any(peer.protocol.closed for peer in inside)
    served(world, version)


def test_a_will_that_does_not_fit_into_a_share_ends_none_of_its_sessions_that_are_away() -> None:
    """All of them had ended, and with them what waited for their clients, and then the client was refused."""
    world = World(sessions_bytes_max=MIB)
    for number in range(10):
        away = hello(world, f"away-{number}", V5)
        code_of(away)
        away.subscribe("t", qos=1)
        away.vanish()
    inside, _ = fill(world, V5, 60_000)  # the first that does not get in although all that are away would end
    world.connect("publisher").publish("t", b"kept", 1)
    found = [world.broker.sessions.get(f"away-{number}") for number in range(10)]
    before = [session for session in found if session is not None]
    assert before
    for number in range(5):
        assert code_of(hello(world, f"b{number}", V5, will=60_000)) == R.QUOTA_EXCEEDED
    assert not any(session.ended for session in before)
    assert {len(session.window.queue) for session in before} == {1}
    back = world.open(V5)
    back.say(connect(before[0].name, clean_start=False, session_expiry_interval=1_000))
    connack, message = back.packets()
    assert isinstance(connack, ConnAck)
    assert connack.session_present
    assert isinstance(message, Publish)
    assert message.payload == b"kept"
    assert not any(peer.protocol.closed for peer in inside)


@VERSIONS
def test_a_client_whose_share_is_full_gets_in_when_a_session_of_its_own_is_away(version: Version) -> None:
    world = World(sessions_bytes_max=MIB)
    inside, _ = fill(world, version, 60_000)
    inside[0].vanish()
    inside[1].vanish()
    small = hello(world, "small", version)
    assert code_of(small) == 0
    served(world, version)


# -- subscriptions ---------------------------------------------------------------------------------------------------


def filters(count: int, size: int) -> list[str]:
    return [f"{number}/" + "f" * size for number in range(count)]


def failure(version: Version) -> int:
    """What SUBACK says of a filter that its client's share has no room for."""
    return R.QUOTA_EXCEEDED if version is V5 else 0x80


def subscribed(peer: Peer, names: list[str]) -> tuple[int, ...]:
    """SUBACK's codes for one packet with all of them."""
    return peer.subscribe(*(Wanted(name, 1) for name in names))


@VERSIONS
def test_filters_that_a_share_of_the_bytes_has_no_room_for_are_refused_one_by_one(version: Version) -> None:
    world = World(subscriptions_bytes_max=MIB)
    with capture_logs() as logs:
        attacker = hello(world, "a", version)
        code_of(attacker)
        codes = [*subscribed(attacker, filters(20, 10_000)), *subscribed(attacker, [*filters(60, 10_000), "small"])]
    granted = codes.count(1)
    assert 30 <= granted < 60
    # The filters it has already stay granted, one that is small still fits, each other one is refused by itself.
    assert set(codes) == {1, failure(version)}
    assert codes[:40] == [1] * 40
    assert codes[-2:] == [failure(version), 1]
    assert not attacker.protocol.closed
    assert refusals(world, SharedPot.SUBSCRIPTIONS_BYTES) == codes.count(failure(version))
    assert told(logs) == [("address 192.0.2.66", "subscriptions_bytes")]
    assert [entry["event"] for entry in logs].count("request_refused") == 1
    served(world, version)
    assert any(isinstance(packet, Publish) for packet in attacker.publish("0/" + "f" * 10_000, b"x", 1))


@VERSIONS
def test_the_sessions_of_one_address_share_the_bytes_of_their_filters(version: Version) -> None:
    world = World(subscriptions_bytes_max=MIB)
    codes: list[int] = []
    for number in range(10):
        peer = hello(world, f"a{number}", version)
        code_of(peer)
        codes += subscribed(peer, [f"{number}/{name}" for name in filters(10, 10_000)])
        peer.vanish()  # what a session that is away holds counts on
    assert codes.count(failure(version)) == refusals(world, SharedPot.SUBSCRIPTIONS_BYTES) > 40
    served(world, version)


# -- identifiers of QoS 2 --------------------------------------------------------------------------------------------


@VERSIONS
def test_a_client_whose_identifiers_have_used_up_its_share_is_closed(version: Version) -> None:
    world = World(sessions_bytes_max=MIB)
    inside, _ = fill(world, version, 0)
    last = inside[-1]
    for page in range(32):
        if not last.protocol.closed:
            last.say(Publish("t", b"", 2, packet_id=1 + page * 2_048))
    packets = last.packets()
    assert last.protocol.closed
    if version is V5:
        end = packets.pop()
        assert isinstance(end, Disconnect)
        assert end.reason_code == R.QUOTA_EXCEEDED
    assert all(isinstance(packet, PubRec) and packet.reason_code < 0x80 for packet in packets)
    served(world, version)


# -- retained messages that are still to be sent ---------------------------------------------------------------------


@VERSIONS
def test_filters_whose_retained_messages_a_share_has_no_room_for_are_refused_one_by_one(version: Version) -> None:
    """What was still to be sent was counted nowhere: some 500 bytes for each filter, and 32 KiB for each session."""
    world = World(sessions_bytes_max=MIB)
    topic = "/".join("abcdefghijkl")
    world.connect("publisher").publish(topic, b"x", retain=True)
    attacker = hello(world, "a", version)
    code_of(attacker)
    words = topic.split("/")
    names = ["/".join("+" if number >> at & 1 else word for at, word in enumerate(words)) for number in range(4_000)]
    codes = attacker.subscribe(*(Wanted(name, 0) for name in names))
    granted = codes.count(0)
    assert 2_000 < granted < 4_000
    assert codes == (0,) * granted + (failure(version),) * (4_000 - granted)
    assert len(attacker.protocol.session.subscriptions) == granted
    assert refusals(world, SharedPot.SESSIONS_BYTES) == 4_000 - granted
    assert sum(isinstance(packet, Publish) for packet in attacker.packets()) == granted
    served(world, version)
    assert attacker.subscribe(names[-1]) == (0,)
    assert isinstance(attacker.next(), Publish)
