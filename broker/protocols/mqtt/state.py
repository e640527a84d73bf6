"""The states of an MQTT connection, and the packets that a client may send in each."""

from enum import Enum, auto
from typing import Final

from broker.protocols.mqtt.packets import (
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


class State(Enum):
    AWAITING_CONNECT = auto()
    VERIFYING = auto()  # CONNECT has come, and its password is being checked: nothing is read meanwhile (3.1.4)
    AUTHENTICATING = auto()  # CONNECT named an Authentication Method, and CONNACK has not been sent (4.12)
    CONNECTED = auto()
    CLOSED = auto()  # DISCONNECT has been sent or received: nothing more is processed


# A client need not wait for CONNACK with its next packets (3.1.4): while VERIFYING they wait in the inbox.
# CONNACK, SUBACK, UNSUBACK and PINGRESP are legal nowhere: servers send them.
LEGAL: Final[dict[State, frozenset[type[Packet]]]] = {
    State.AWAITING_CONNECT: frozenset({Connect}),  # [MQTT-3.1.0-1]
    State.VERIFYING: frozenset(),
    State.AUTHENTICATING: frozenset({Auth, Disconnect}),  # [MQTT-3.1.2-30]
    State.CONNECTED: frozenset({
        Publish, PubAck, PubRec, PubRel, PubComp, Subscribe, Unsubscribe, PingReq, Disconnect, Auth
    }),  # a second CONNECT is not [MQTT-3.1.0-2]
    State.CLOSED: frozenset(),  # [MQTT-3.14.4-1]
}  # fmt: skip
