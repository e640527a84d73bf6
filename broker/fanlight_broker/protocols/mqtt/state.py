"""The packets that a client may send in each state of an MQTT connection."""

from typing import Final

from fanlight_broker.core.connection import ConnectionState
from fanlight_broker.protocols.mqtt.packets import (
    Auth,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    Subscribe,
    Unsubscribe,
)

# A client need not wait for CONNACK with its next packets (3.1.4): while VERIFYING they wait in the inbox.
# CONNACK, SUBACK, UNSUBACK and PINGRESP are legal nowhere: servers send them.
LEGAL: Final[dict[ConnectionState, frozenset[type[Packet]]]] = {
    ConnectionState.AWAITING: frozenset({Connect}),  # [MQTT-3.1.0-1]
    ConnectionState.VERIFYING: frozenset(),
    ConnectionState.AUTHENTICATING: frozenset({Auth, Disconnect}),  # until CONNACK: 4.12, [MQTT-3.1.2-30]
    ConnectionState.CONNECTED: frozenset({
        Publish, PubAck, PubRec, PubRel, PubComp, Subscribe, Unsubscribe, PingReq, Disconnect, Auth
    }),  # a second CONNECT is not [MQTT-3.1.0-2]
    ConnectionState.CLOSED: frozenset(),  # [MQTT-3.14.4-1]
}  # fmt: skip
