"""Enhanced authentication (4.12) by a method that is plugged in, and AUTH packets where there is none."""

from typing import Any

import pytest

from fanlight_broker.core import errors
from fanlight_broker.protocols.mqtt.options import MqttOptions
from fanlight_broker.protocols.mqtt.packets import (
    Auth,
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PingResp,
    Publish,
)
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5
from tests.broker.protocols.mqtt.world import Peer, World, connect
from tests.conformance.clients import assert_closed, lasting, present

METHOD = "RIDDLE"


class Riddle:
    """Asks one question, and knows a user by the answer."""

    def __init__(self, user: str | None, address: str) -> None:
        self.asked = False

    def step(self, data: bytes | None) -> tuple[bytes | None, str | None]:
        if not self.asked:
            self.asked = True
            return b"who? " + (data or b""), None
        if data not in (b"ann", b"bob"):
            raise errors.AuthenticationFailed("nobody answers so")
        return b"hello", data.decode()


def riddles() -> World:
    return World(options=MqttOptions(methods={METHOD: Riddle, "OTHER": Riddle}))


def auth(reason: ReasonCode, data: bytes | None = None, method: str | None = METHOD) -> Auth:
    return Auth(reason, Properties(authentication_method=method, authentication_data=data))


def asked(world: World, client_id: str = "a", **fields: Any) -> Peer:
    """A client that has got the question."""
    peer = world.open()
    peer.say(connect(client_id, authentication_method=METHOD, authentication_data=b"hi", **fields))
    assert peer.next() == auth(ReasonCode.CONTINUE_AUTHENTICATION, b"who? hi")
    return peer


def known(world: World, client_id: str = "a", name: bytes = b"ann", **fields: Any) -> Peer:
    """A client that has given the answer."""
    peer = asked(world, client_id, **fields)
    peer.say(auth(ReasonCode.CONTINUE_AUTHENTICATION, name))
    answer = peer.next()
    assert isinstance(answer, ConnAck)
    assert answer.reason_code == 0
    peer.connack = answer
    return peer


@pytest.mark.mqtt("MQTT-4.12.0-2", version=5)
@pytest.mark.mqtt("MQTT-4.12.0-5", version=5)
@pytest.mark.mqtt("MQTT-3.2.0-1", version=5)
def test_a_client_is_let_in_at_the_end_of_the_exchange() -> None:
    world = riddles()
    peer = asked(world)
    assert not len(world.broker.sessions)
    peer.say(auth(ReasonCode.CONTINUE_AUTHENTICATION, b"ann"))
    answer = peer.next()
    assert isinstance(answer, ConnAck)
    assert answer.reason_code == 0
    assert answer.properties.authentication_method == METHOD
    assert answer.properties.authentication_data == b"hello"
    assert peer.credentials == []
    (session,) = world.broker.sessions
    assert session.subscriber.user == "ann"


@pytest.mark.mqtt("MQTT-4.12.0-1", version=5)
def test_an_unknown_method_closes_the_connection() -> None:
    peer = riddles().open()
    peer.say(connect("a", authentication_method="SCRAM-SHA-1"), PingReq())
    answer = peer.next()
    assert isinstance(answer, ConnAck)
    assert answer.reason_code == ReasonCode.BAD_AUTHENTICATION_METHOD
    assert peer.gone


@pytest.mark.mqtt("MQTT-4.12.0-4", version=5)
@pytest.mark.mqtt("MQTT-3.1.4-2", version=5)
def test_an_authentication_that_is_rejected_closes_the_connection() -> None:
    world = riddles()
    peer = asked(world)
    peer.say(auth(ReasonCode.CONTINUE_AUTHENTICATION, b"eve"), auth(ReasonCode.CONTINUE_AUTHENTICATION, b"ann"))
    answer = peer.next()
    assert isinstance(answer, ConnAck)
    assert answer.reason_code == ReasonCode.BAD_USER_NAME_OR_PASSWORD
    assert peer.gone
    assert not len(world.broker.sessions)


@pytest.mark.mqtt("MQTT-3.1.2-30", version=5)
@pytest.mark.mqtt("MQTT-3.1.4-6", version=5)
@pytest.mark.parametrize("packet", [PingReq(), Publish("a"), Connect("a", V5)], ids=["PINGREQ", "PUBLISH", "CONNECT"])
def test_before_connack_there_is_nothing_but_auth_and_disconnect(packet: Packet) -> None:
    peer = asked(riddles())
    peer.say(packet)
    answer = peer.next()
    assert isinstance(answer, ConnAck)
    assert answer.reason_code == ReasonCode.PROTOCOL_ERROR
    assert peer.gone


@pytest.mark.mqtt("MQTT-3.14.0-1", version=5)
def test_a_client_may_say_goodbye_in_the_middle_of_it() -> None:
    world = riddles()
    peer = asked(world)
    peer.say(Disconnect())
    assert peer.gone
    assert peer.received == b""
    assert not len(world.broker.sessions)


@pytest.mark.mqtt("MQTT-4.12.0-5", version=5)
@pytest.mark.parametrize(
    "packet",
    [auth(ReasonCode.CONTINUE_AUTHENTICATION, b"ann", "OTHER"), auth(ReasonCode.RE_AUTHENTICATE, b"ann")],
    ids=["another method", "re-authentication"],
)
def test_the_exchange_goes_on_by_the_method_it_began_with(packet: Auth) -> None:
    peer = asked(riddles())
    peer.say(packet)
    answer = peer.next()
    assert isinstance(answer, ConnAck)
    assert answer.reason_code >= 0x80
    assert peer.gone


@pytest.mark.mqtt("MQTT-3.15.2-1", version=5)
def test_an_auth_of_a_client_does_not_say_success() -> None:
    peer = asked(riddles())
    peer.send(bytes.fromhex("f000"))
    assert peer.gone
    assert peer.packets() != []


# -- while connected ---------------------------------------------------------------------------------------------------


@pytest.mark.mqtt("MQTT-4.12.0-5", version=5)
@pytest.mark.mqtt("MQTT-4.12.0-2", version=5)
def test_a_client_authenticates_again_while_everything_goes_on() -> None:
    world = riddles()
    peer = known(world)
    peer.subscribe("a")
    for _ in range(2):
        peer.say(auth(ReasonCode.RE_AUTHENTICATE, b"again"))
        assert peer.next() == auth(ReasonCode.CONTINUE_AUTHENTICATION, b"who? again")
        peer.say(Publish("a", b"meanwhile"))
        assert [message.payload for message in peer.messages()] == [b"meanwhile"]
        peer.say(auth(ReasonCode.CONTINUE_AUTHENTICATION, b"ann"))
        assert peer.next() == auth(ReasonCode.SUCCESS, b"hello")
    peer.say(PingReq())
    assert peer.next() == PingResp()


@pytest.mark.mqtt("MQTT-4.12.1-2", version=5)
@pytest.mark.parametrize("name", [b"eve", b"bob"], ids=["nobody", "another user"])
def test_a_re_authentication_that_fails_closes_the_connection(name: bytes) -> None:
    world = riddles()
    peer = known(world, **lasting(V5))
    peer.say(auth(ReasonCode.RE_AUTHENTICATE))
    peer.packets()
    peer.say(auth(ReasonCode.CONTINUE_AUTHENTICATION, name))
    assert_closed(peer, ReasonCode.NOT_AUTHORIZED)
    assert present(known(world, **lasting(V5)))  # the session is still ann's


@pytest.mark.mqtt("MQTT-4.12.1-1", version=5)
@pytest.mark.mqtt("MQTT-4.12.0-5", version=5)
def test_a_re_authentication_by_another_method_closes_the_connection() -> None:
    peer = known(riddles())
    peer.say(auth(ReasonCode.RE_AUTHENTICATE, b"x", "OTHER"))
    assert peer.gone
    (goodbye,) = peer.packets()
    assert isinstance(goodbye, Disconnect)
    assert goodbye.reason_code in (ReasonCode.PROTOCOL_ERROR, ReasonCode.BAD_AUTHENTICATION_METHOD)


@pytest.mark.parametrize("reason", [ReasonCode.CONTINUE_AUTHENTICATION, ReasonCode.SUCCESS])
def test_an_auth_out_of_order_is_a_protocol_error(reason: ReasonCode) -> None:
    peer = known(riddles())
    peer.say(auth(reason, b"x"))
    assert_closed(peer, ReasonCode.PROTOCOL_ERROR)


@pytest.mark.mqtt("MQTT-4.12.0-6", version=5)
@pytest.mark.mqtt("MQTT-4.12.0-7", version=5)
def test_without_a_method_there_is_no_auth() -> None:
    world = riddles()
    peer = world.connect("a")
    assert peer.connack is not None
    assert peer.connack.properties.authentication_method is None
    assert peer.connack.properties.authentication_data is None
    peer.say(auth(ReasonCode.RE_AUTHENTICATE, b"x"))
    assert_closed(peer, ReasonCode.PROTOCOL_ERROR)


def test_3_1_1_has_no_auth() -> None:
    peer = riddles().connect("a", V3)
    peer.send(bytes.fromhex("f000"))
    assert peer.gone
    assert peer.received == b""


def test_a_session_is_resumed_at_the_end_of_the_exchange() -> None:
    world = riddles()
    peer = known(world, **lasting(V5))
    peer.subscribe("a", qos=1)
    peer.vanish()
    world.connect("p").publish("a", b"x", 1)
    again = asked(world, **lasting(V5))
    again.say(auth(ReasonCode.CONTINUE_AUTHENTICATION, b"ann"))
    assert [type(packet) for packet in again.packets()] == [ConnAck, Publish]


def test_a_session_of_another_user_is_not_resumed() -> None:
    world = riddles()
    known(world, **lasting(V5)).vanish()
    peer = asked(world, **lasting(V5))
    peer.say(auth(ReasonCode.CONTINUE_AUTHENTICATION, b"bob"))
    answer = peer.next()
    assert isinstance(answer, ConnAck)
    assert answer.reason_code == ReasonCode.NOT_AUTHORIZED
    assert peer.gone
