"""Which packets a client may send when, and what within them only servers say."""

import pytest

from fanlight_broker.core.connection import ConnectionState
from fanlight_broker.protocols.mqtt.errors import ProtocolError
from fanlight_broker.protocols.mqtt.fixed_header import PacketType
from fanlight_broker.protocols.mqtt.from_client import check_from_client
from fanlight_broker.protocols.mqtt.packets import Auth, Disconnect, Packet, Publish
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import CARRIED_BY, CARRIED_BY_CLIENTS
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode as R
from fanlight_broker.protocols.mqtt.state import LEGAL
from tests.broker.protocols.mqtt.corpus import CORPUS


def types(state: ConnectionState) -> set[str]:
    return {packet.type.name for packet in LEGAL[state]}


@pytest.mark.mqtt("MQTT-3.1.0-1")
def test_first_comes_connect() -> None:
    assert types(ConnectionState.AWAITING) == {"CONNECT"}


@pytest.mark.mqtt("MQTT-3.1.2-30", version=5)
def test_during_an_enhanced_authentication_come_auth_and_disconnect() -> None:
    assert types(ConnectionState.AUTHENTICATING) == {"AUTH", "DISCONNECT"}


def test_then_comes_all_that_table_2_1_lets_clients_send_but_a_second_connect() -> None:
    from_servers_only = {"CONNACK", "SUBACK", "UNSUBACK", "PINGRESP"}
    assert types(ConnectionState.CONNECTED) == {kind.name for kind in PacketType} - from_servers_only - {"CONNECT"}


def test_after_the_end_comes_nothing() -> None:
    assert types(ConnectionState.CLOSED) == set()


def test_every_state_has_its_row() -> None:
    assert set(LEGAL) == set(ConnectionState)


SERVERS_ONLY = [
    pytest.param(
        Publish("t", properties=Properties(subscription_identifiers=(1,))),
        marks=pytest.mark.mqtt("MQTT-3.3.4-6", version=5),
    ),
    pytest.param(Disconnect(R.SESSION_TAKEN_OVER), id="a server's reason"),
    pytest.param(Disconnect(R.SUCCESS, Properties(server_reference="s")), id="a server reference"),
    pytest.param(Auth(R.SUCCESS, Properties(authentication_method="m")), id="success of an authentication"),
]


@pytest.mark.parametrize("packet", SERVERS_ONLY)
def test_what_only_servers_say_is_refused_from_a_client(packet: Packet) -> None:
    with pytest.raises(ProtocolError):
        check_from_client(packet)


@pytest.mark.parametrize("entry", CORPUS, ids=str)
def test_what_clients_may_send_passes(entry) -> None:  # type: ignore[no-untyped-def]
    servers = {"PUBLISH with all properties", "DISCONNECT with all properties", "AUTH, success"}
    if entry.name in servers:
        with pytest.raises(ProtocolError):
            check_from_client(entry.packet)
    else:
        check_from_client(entry.packet)


def test_clients_have_no_reason_codes_that_servers_have_not() -> None:
    for kind, codes in CARRIED_BY_CLIENTS.items():
        assert codes < CARRIED_BY[kind]
