"""CONNECT and CONNACK (3.1, 3.2): who is let in, under which name, and what a refusal is."""

import string
from dataclasses import replace

import pytest

from fanlight_broker.core import errors
from fanlight_broker.core.identity import ANONYMOUS, Identity
from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.options import MqttOptions
from fanlight_broker.protocols.mqtt.packets import (
    ConnAck,
    Disconnect,
    PingReq,
    PingResp,
    PubAck,
    Publish,
    Subscribe,
    Subscription,
    WillFields,
)  # fmt: skip
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.broker.protocols.mqtt.world import World, connect
from tests.conformance.clients import assert_closed, back, lasting, present, versions

CONNECT = {
    V3: bytes.fromhex("100c 0004 4d515454 04 02 0000 0000"),
    V5: bytes.fromhex("100d 0004 4d515454 05 02 0000 00 0000"),
}
WRONG_PASSWORD = errors.AuthenticationFailed("unknown user or wrong password")


@versions
@pytest.mark.mqtt("MQTT-3.1.4-4", version=3)
@pytest.mark.mqtt("MQTT-3.1.4-5", version=5)
@pytest.mark.mqtt("MQTT-3.2.2-1", version=5)
def test_a_connect_in_order_is_answered_with_success(version: Version) -> None:
    peer = World().open(version)
    peer.send(CONNECT[version])
    octets = peer.received
    assert octets[2:4] == b"\x00\x00"  # acknowledge flags, and the code
    assert octets == b"\x20\x02\x00\x00" if version is V3 else octets[0] == 0x20
    assert not peer.gone


@versions
@pytest.mark.mqtt("MQTT-3.1.0-1")
@pytest.mark.mqtt("MQTT-3.14.0-1", version=5)
@pytest.mark.parametrize("octets", ["c000", "e000", "3003000161", "82060001000161 00", "20020000", "f000"])
def test_another_first_packet_closes_the_connection_without_an_answer(version: Version, octets: str) -> None:
    peer = World().open(version)
    peer.send(bytes.fromhex(octets) + CONNECT[version])
    assert peer.gone
    assert peer.received == b""


@versions
@pytest.mark.mqtt("MQTT-3.1.0-2")
@pytest.mark.mqtt("MQTT-3.2.0-2", version=5)
def test_a_second_connect_closes_the_connection(version: Version) -> None:
    peer = World().connect("a", version)
    peer.send(CONNECT[version])
    assert_closed(peer, ReasonCode.PROTOCOL_ERROR)


@pytest.mark.mqtt("MQTT-3.1.2-2", version=3)
@pytest.mark.mqtt("MQTT-3.1.2-2", version=5)
@pytest.mark.mqtt("MQTT-3.1.2-1", version=5)
@pytest.mark.parametrize(
    ("octets", "answer"),
    [
        pytest.param("100e 0006 4d5149736470 03 02 0000 0000", "20020001", id="3.1"),
        pytest.param("100c 0004 4d515454 03 02 0000 0000", "20020001", id="level 3"),
        pytest.param("100c 0004 4d515454 00 02 0000 0000", "20020001", id="level 0"),
        pytest.param("100c 0004 4d515454 84 02 0000 0000", "20020001", id="a bridge"),
    ],
)
def test_a_version_that_is_not_spoken_is_answered_and_closed(octets: str, answer: str) -> None:
    world = World()
    peer = world.open()
    peer.send(bytes.fromhex(octets))
    assert peer.received == bytes.fromhex(answer)
    assert peer.gone
    assert not len(world.broker.sessions)


@pytest.mark.mqtt("MQTT-3.1.2-2", version=5)
def test_a_later_version_is_answered_as_5_would_be() -> None:
    peer = World().open()
    peer.send(bytes.fromhex("100d 0004 4d515454 06 02 0000 00 0000"))
    answer = peer.next()
    assert isinstance(answer, ConnAck)
    assert answer.reason_code == ReasonCode.UNSUPPORTED_PROTOCOL_VERSION
    assert peer.gone


@pytest.mark.mqtt("MQTT-3.1.2-1")
def test_another_protocol_is_closed() -> None:
    peer = World().open()
    peer.send(bytes.fromhex("100c 0004 4d515458 04 02 0000 0000"))
    assert peer.gone
    assert peer.received == b""


@pytest.mark.mqtt("MQTT-3.1.2-3", version=3)
@pytest.mark.mqtt("MQTT-3.1.4-1", version=3)
@pytest.mark.mqtt("MQTT-3.2.2-6", version=3)
@pytest.mark.parametrize(
    "octets",
    [
        pytest.param("100c 0004 4d515454 04 03 0000 0000", id="reserved flag"),
        pytest.param("100c 0004 4d515454 04 42 0000 0000", id="password without user name"),
        pytest.param("100c 0004 4d515454 04 1a 0000 0000", id="will QoS without will"),
        pytest.param("100c 0004 4d515454 04 1e 0000 0000", id="will QoS 3"),
        pytest.param("100d 0004 4d515454 04 02 0000 0000 00", id="a byte too many"),
        pytest.param("100b 0004 4d515454 04 02 0000 00", id="a byte too few"),
        pytest.param("100e 0004 4d515454 04 02 0000 0002 c328", id="no UTF-8"),
        pytest.param("110c 0004 4d515454 04 02 0000 0000", id="flags of the header"),
    ],
)
def test_a_3_1_1_connect_that_is_out_of_order_is_closed_without_a_word(octets: str) -> None:
    world = World()
    peer = world.open(V3)
    peer.send(bytes.fromhex(octets))
    assert peer.gone
    assert peer.received == b""
    assert not len(world.broker.sessions)


@pytest.mark.mqtt("MQTT-3.1.4-1", version=5)
@pytest.mark.mqtt("MQTT-3.1.2-3", version=5)
@pytest.mark.mqtt("MQTT-3.2.2-7", version=5)
@pytest.mark.mqtt("MQTT-3.2.2-6", version=5)
@pytest.mark.mqtt("MQTT-4.13.2-1", version=5)
@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        pytest.param("100d 0004 4d515454 05 03 0000 00 0000", 0x81, id="reserved flag"),
        pytest.param("100d 0004 4d515454 05 1a 0000 00 0000", 0x81, id="will QoS without will"),
        pytest.param("100e 0004 4d515454 05 02 0000 01 01 0000", 0x81, id="a property of others"),
        pytest.param("1010 0004 4d515454 05 02 0000 03 210000 0000", 0x82, id="receive maximum 0"),
        pytest.param("1012 0004 4d515454 05 02 0000 05 2700000000 0000", 0x82, id="packet size 0"),
        pytest.param("1010 0004 4d515454 05 02 0000 03 160000 0000", 0x82, id="data without a method"),
    ],
)
def test_a_5_connect_that_is_out_of_order_is_told_why_and_closed(octets: str, reason: int) -> None:
    world = World()
    peer = world.open()
    peer.send(bytes.fromhex(octets) + encode(PingReq(), V5))
    answer = peer.next()
    assert isinstance(answer, ConnAck)
    assert (answer.reason_code, answer.session_present) == (reason, False)
    assert peer.gone
    assert not len(world.broker.sessions)


# -- who ---------------------------------------------------------------------------------------------------------------


@versions
@pytest.mark.mqtt("MQTT-3.1.3-5")
def test_identifiers_of_letters_and_digits_are_accepted(version: Version) -> None:
    world = World()
    alphabet = string.digits + string.ascii_letters
    for identifier in (*alphabet, alphabet[:23], alphabet[23:46], alphabet[-23:]):
        world.connect(identifier, version)
        assert world.broker.sessions.get(identifier) is not None


@versions
@pytest.mark.mqtt("MQTT-3.1.3-6")
@pytest.mark.mqtt("MQTT-3.1.3-7", version=5)
@pytest.mark.mqtt("MQTT-3.2.2-16", version=5)
def test_a_client_without_an_identifier_is_given_one(version: Version) -> None:
    world = World()
    first, second = world.connect("", version), world.connect("", version)
    names = [session.name for session in world.broker.sessions]
    assert len(set(names)) == 2
    assert all(names)
    assert not first.gone
    assert not second.gone
    if version is V5:
        told = [peer.connack.properties.assigned_client_identifier for peer in (first, second) if peer.connack]
        assert told == names


@pytest.mark.mqtt("MQTT-3.1.3-7", version=5)
@pytest.mark.mqtt("MQTT-3.1.3-2", version=5)
def test_an_identifier_that_was_given_names_the_session() -> None:
    world = World()
    peer = world.connect("", **lasting(V5))
    assert peer.connack is not None
    name = peer.connack.properties.assigned_client_identifier
    assert name
    peer.subscribe("a", qos=1)
    peer.vanish()
    again, _ = back(world, name, V5)
    assert present(again)
    assert again.connack is not None
    assert again.connack.properties.assigned_client_identifier is None


@pytest.mark.mqtt("MQTT-3.1.3-8", version=3)
@pytest.mark.mqtt("MQTT-3.1.3-9", version=3)
@pytest.mark.mqtt("MQTT-3.2.2-5", version=3)
def test_neither_identifier_nor_clean_session_is_rejected() -> None:
    peer = World().open(V3)
    peer.send(bytes.fromhex("100c 0004 4d515454 04 00 0000 0000") + bytes.fromhex("c000"))
    assert peer.received == b"\x20\x02\x00\x02"
    assert peer.gone


@pytest.mark.mqtt("MQTT-3.1.3-8", version=5)
@pytest.mark.mqtt("MQTT-3.1.4-2", version=5)
def test_an_identifier_that_is_another_users_is_rejected() -> None:
    world = World()
    mine = world.open()
    mine.log_in = False
    mine.say(connect("shared", **lasting(V5)))
    mine.protocol.authenticated(Identity("ann"), world.now)
    world.turn()
    theirs = world.open()
    theirs.say(connect("shared"))
    answer = theirs.next()
    assert isinstance(answer, ConnAck)
    assert (answer.reason_code, answer.session_present) == (ReasonCode.NOT_AUTHORIZED, False)
    assert theirs.gone
    assert not mine.gone


@versions
@pytest.mark.mqtt("MQTT-3.1.4-2", version=3)
@pytest.mark.mqtt("MQTT-3.1.4-3", version=5)
def test_a_connection_is_closed_when_its_identifier_connects_anew(version: Version) -> None:
    world = World()
    old = world.connect("same", version)
    new = world.connect("same", version)
    assert_closed(old, ReasonCode.SESSION_TAKEN_OVER)
    new.say(PingReq())
    assert new.next() == PingResp()


@pytest.mark.mqtt("MQTT-3.1.4-3", version=5)
@pytest.mark.mqtt("MQTT-3.1.4-2", version=3)
def test_the_two_connections_need_not_be_of_one_version() -> None:
    world = World()
    old = world.connect("same", V5, **lasting(V5))
    old.subscribe("a", qos=1)
    new, _ = back(world, "same", V3)
    assert_closed(old, ReasonCode.SESSION_TAKEN_OVER)
    assert present(new)
    world.connect("p", V5).publish("a", b"x", 1, content_type="text/plain")
    (message,) = new.messages()
    assert (message.payload, message.qos) == (b"x", 1)


# -- user name and password --------------------------------------------------------------------------------------------


@versions
@pytest.mark.mqtt("MQTT-3.1.4-5", version=3)
@pytest.mark.mqtt("MQTT-3.2.2-5", version=3)
@pytest.mark.mqtt("MQTT-3.1.4-6", version=5)
@pytest.mark.mqtt("MQTT-3.2.2-7", version=5)
def test_what_came_behind_a_connect_that_is_rejected_is_not_processed(version: Version) -> None:
    world = World()
    peer = world.open(version)
    peer.log_in = False
    behind = Publish("door", b"open", retain=True)
    peer.say(connect("a", version, user_name="ann", password=b"wrong"), behind, PingReq())
    assert peer.credentials == [("ann", "wrong")]
    assert peer.received == b""
    peer.refuse(WRONG_PASSWORD)
    answer = peer.next()
    assert isinstance(answer, ConnAck)
    assert answer.reason_code == ReasonCode.BAD_USER_NAME_OR_PASSWORD
    assert peer.gone
    assert len(world.broker.retained) == 0
    assert not len(world.broker.sessions)


def test_the_return_code_of_a_wrong_password_is_4_in_3_1_1() -> None:
    peer = World().open(V3)
    peer.log_in = False
    peer.say(connect("a", V3, user_name="ann", password=b"wrong"))
    peer.refuse(WRONG_PASSWORD)
    assert peer.received == b"\x20\x02\x00\x04"


def test_a_password_without_a_user_name_is_one_in_5() -> None:
    peer = World().open()
    peer.send(bytes.fromhex("1011 0004 4d515454 05 42 0000 00 0000 0002 7077"))
    assert peer.credentials == [(None, "pw")]
    assert isinstance(peer.next(), ConnAck)


@pytest.mark.mqtt("MQTT-3.1.2-29", version=5)
@pytest.mark.mqtt("MQTT-3.2.2-19", version=5)
@pytest.mark.parametrize(("maximum", "has_reason"), [(None, True), (6, False)])
def test_a_refusal_says_why_as_far_as_there_is_room(maximum: int | None, has_reason: bool) -> None:
    peer = World().open()
    peer.log_in = False
    fields = {"request_problem_information": False} | ({} if maximum is None else {"maximum_packet_size": maximum})
    peer.say(connect("a", user_name="ann", password=b"wrong", **fields))
    peer.refuse(WRONG_PASSWORD)
    answer = peer.next()
    assert isinstance(answer, ConnAck)
    assert (answer.properties.reason_string is not None) == has_reason


@versions
@pytest.mark.parametrize("size", [50_000, 64 * 1024 - 100, 64 * 1024])
def test_a_connect_may_hold_a_large_will_or_password_up_to_its_limit(version: Version, size: int) -> None:
    for packet in (
        connect("a", version, will=WillFields("will", b"x" * size)),
        connect("a", version, user_name="u", password=b"x" * size),
    ):
        if size > 0xFFFF:  # no field is so long (1.5.6): a will and a password together
            packet = replace(packet, will=WillFields("will", b"x" * 40_000), user_name="u", password=b"x" * 40_000)
        world = World()
        peer = world.open(version)
        peer.say(packet)
        assert peer.gone == (size > 0xFFFF)
        assert len(world.broker.sessions) == (not peer.gone)


# -- CONNACK -----------------------------------------------------------------------------------------------------------


@versions
@pytest.mark.mqtt("MQTT-3.2.0-1")
@pytest.mark.mqtt("MQTT-3.2.0-2", version=5)
def test_connack_comes_before_all_else_also_for_a_client_that_does_not_wait(version: Version) -> None:
    world = World()
    peer = world.open(version)
    subscribe = Subscribe(1, (Subscription("a"),))
    peer.say(connect("a", version), PingReq(), subscribe, Publish("a", b"x", 1, packet_id=2))
    kinds = [type(packet).__name__ for packet in peer.packets()]
    assert kinds[:3] == ["ConnAck", "PingResp", "SubAck"]
    assert sorted(kinds[3:]) == ["PubAck", "Publish"]


@versions
@pytest.mark.mqtt("MQTT-3.2.0-1")
def test_connack_comes_before_what_waits_in_the_session(version: Version) -> None:
    world = World()
    away = world.connect("away", version, **lasting(version))
    away.subscribe("a", qos=1)
    away.vanish()
    publisher = world.connect("p", version)
    assert isinstance(publisher.publish("a", b"x", 1)[0], PubAck)
    peer = world.open(version)
    peer.log_in = False
    peer.say(connect("away", version, **lasting(version)))
    publisher.publish("a", b"y", 1)
    assert peer.received == b""
    peer.protocol.authenticated(ANONYMOUS, world.now)
    world.turn()
    assert [type(packet).__name__ for packet in peer.packets()] == ["ConnAck", "Publish", "Publish"]


@pytest.mark.mqtt("MQTT-3.2.2-22", version=5)
@pytest.mark.parametrize(("asked", "told"), [(20, None), (30, None), (31, 30), (0, 30)])
def test_a_server_keep_alive_is_told_where_it_is_not_the_clients_own(asked: int, told: int | None) -> None:
    world = World(options=MqttOptions(keep_alive_max=30))
    peer = world.connect("a", keep_alive=asked)
    assert peer.connack is not None
    assert peer.connack.properties.server_keep_alive == told
    most = 1.5 * (told or asked)
    world.pass_time(most - 0.25)
    assert not peer.gone
    world.pass_time(0.25)
    assert_closed(peer, ReasonCode.KEEP_ALIVE_TIMEOUT)


@versions
@pytest.mark.mqtt("MQTT-3.1.2-24", version=3)
@pytest.mark.mqtt("MQTT-3.1.2-22", version=5)
@pytest.mark.mqtt("MQTT-3.2.2-22", version=5)
def test_one_and_a_half_intervals_of_silence_close_the_connection(version: Version) -> None:
    world = World()
    silent, lively = (world.connect(name, version, keep_alive=10) for name in ("silent", "lively"))
    forever = world.connect("forever", version, keep_alive=0)
    world.pass_time(14.75)
    assert not silent.gone
    lively.say(PingReq())
    assert lively.next() == PingResp()
    world.pass_time(0.25)
    assert_closed(silent, ReasonCode.KEEP_ALIVE_TIMEOUT)
    world.pass_time(14.5)
    assert not lively.gone
    world.pass_time(0.25)
    assert lively.gone
    world.pass_time(1_000_000)
    assert not forever.gone


@versions
@pytest.mark.mqtt("MQTT-3.1.2-24", version=3)
@pytest.mark.mqtt("MQTT-3.1.2-22", version=5)
def test_half_a_packet_does_not_keep_a_connection_alive(version: Version) -> None:
    world = World()
    peer = world.connect("a", version, keep_alive=10)
    octets = encode(Publish("a", b"x" * 10), version)
    world.pass_time(10)
    peer.send(octets[:3])
    world.pass_time(4)
    peer.send(octets[3:])  # now it is a packet
    world.pass_time(14)
    peer.send(octets[:3])
    assert not peer.gone
    world.pass_time(1)
    assert_closed(peer, ReasonCode.KEEP_ALIVE_TIMEOUT)


@pytest.mark.mqtt("MQTT-3.1.2-28", version=5)
@pytest.mark.parametrize("wanted", [None, False, True])
def test_response_information_is_given_to_who_asks_for_it(wanted: bool | None) -> None:
    world = World()
    fields = {} if wanted is None else {"request_response_information": wanted}
    peers = [world.connect(name, **fields) for name in ("a", "b")]
    told = [peer.connack.properties.response_information for peer in peers if peer.connack]
    assert all(told) if wanted else told == [None, None]
    if wanted:
        first, second = told
        assert first != second
        peers[0].subscribe(f"{first}/#")
        peers[1].publish(f"{first}/1", b"the answer")
        assert [message.payload for message in peers[0].messages()] == [b"the answer"]


@pytest.mark.mqtt("MQTT-3.1.2-29", version=5)
@pytest.mark.parametrize("wanted", [False, True])
def test_without_problem_information_only_connack_publish_and_disconnect_say_more(wanted: bool) -> None:
    world = World()
    peer = world.connect("a", request_problem_information=wanted)
    peer.subscribe("a")
    world.connect("p").publish("a", b"x", user_properties=(("k", "v"),))
    (message,) = peer.messages()
    assert message.properties.user_properties == (("k", "v"),)
    (refused,) = peer.publish("$SYS/mine", b"x", 1)
    assert isinstance(refused, PubAck)
    assert refused.reason_code == ReasonCode.NOT_AUTHORIZED
    if not wanted:
        assert refused.properties.reason_string is None
        assert refused.properties.user_properties == ()
    peer.send(b"\x00\x00")
    goodbye = peer.next()
    assert isinstance(goodbye, Disconnect)
    assert goodbye.properties.reason_string


@pytest.mark.mqtt("MQTT-4.8.0-2", version=3)
def test_a_connect_that_finds_no_room_now_is_closed() -> None:
    world = World(sessions_max=1)
    world.connect("a", V3)
    peer = world.open(V3)
    peer.say(connect("b", V3))
    assert peer.received == b"\x20\x02\x00\x03"
    assert peer.gone
