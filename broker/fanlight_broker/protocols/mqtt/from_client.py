"""What a server must not accept from a client, though as a packet it is sound: what only servers may say.

`state.LEGAL` has the packets; here are the fields within packets that both sides send.
"""

from fanlight_broker.protocols.mqtt.errors import ProtocolError
from fanlight_broker.protocols.mqtt.packets import Auth, Disconnect, Packet, Publish
from fanlight_broker.protocols.mqtt.reason_codes import CARRIED_BY_CLIENTS


def check_from_client(packet: Packet) -> None:
    """Raises ProtocolError."""
    if isinstance(packet, Publish):
        if packet.properties.subscription_identifiers:
            raise ProtocolError("PUBLISH: a Subscription Identifier from a client")  # [MQTT-3.3.4-6]
    elif isinstance(packet, Disconnect | Auth):
        if packet.reason_code not in CARRIED_BY_CLIENTS[packet.type]:
            raise ProtocolError(f"{packet.type.name}: reason code {packet.reason_code.name} is sent by servers only")
        if packet.properties.server_reference is not None:
            raise ProtocolError("DISCONNECT: a Server Reference from a client")  # 3.14.2.2.5
