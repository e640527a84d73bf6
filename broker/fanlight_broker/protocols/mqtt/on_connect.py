"""CONNECT: what it asks for as the core's terms, and the CONNACK that answers it (3.1, 3.2)."""

import secrets
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Final

from fanlight_broker.core import errors
from fanlight_broker.core.identity import Identity
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.permissions import NOWHERE, Origin
from fanlight_broker.core.ports import Transport
from fanlight_broker.core.quota import Quota
from fanlight_broker.core.requests import ConnectRequest
from fanlight_broker.core.topics import INBOX_ROOT, SYNTAXES, check_publisher, check_topic
from fanlight_broker.core.will import Will
from fanlight_broker.protocols.mqtt.aliases import AliasFormat
from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.error_codes import REASON_STRING_MAX
from fanlight_broker.protocols.mqtt.errors import ProtocolError
from fanlight_broker.protocols.mqtt.fields import fields_of
from fanlight_broker.protocols.mqtt.format import FORMATS, PublishFormat
from fanlight_broker.protocols.mqtt.options import OWN_CLIENTS, MqttOptions
from fanlight_broker.protocols.mqtt.packets import ConnAck, Connect, Disconnect, WillFields
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from fanlight_broker.wire.ledger import Pot
from fanlight_broker.wire.message import Format, Message

MQTT: Final = SYNTAXES.index("mqtt")
NEVER_EXPIRES: Final = 0xFFFFFFFF  # a Session Expiry Interval (3.1.2.11.2)
RECEIVE_MAXIMUM: Final = 65_535  # where none is given (3.1.2.11.3)


PLAIN_CONNACKS: Final = ConnAck(False), ConnAck(True)
ACCEPTED: Final = tuple(encode(each, V3) for each in PLAIN_CONNACKS)  # by whether the session was present
GOODBYE: Final = Disconnect()


@dataclass(slots=True)
class AcceptedConnect:
    """A CONNECT that is in order, the user not yet known."""

    packet: Connect
    client_id: str
    assigned: bool
    keep_alive: int  # seconds, as it is in force; 0: none
    will: Will | None

    @property
    def properties(self) -> Properties:
        return self.packet.properties

    @property
    def protocol(self) -> str:
        return "mqtt 5.0" if self.packet.protocol_version is V5 else "mqtt 3.1.1"

    def wanted(
        self, identity: Identity, transport: Transport, options: MqttOptions, aliases: Pot, origin: Origin = NOWHERE
    ) -> ConnectRequest:
        """What the core is asked for."""
        packet, properties = self.packet, self.properties
        if packet.protocol_version is V3:
            expiry = 0.0 if packet.clean_start else inf
        else:
            seconds = properties.session_expiry_interval or 0
            expiry = seconds_of(seconds)
        return ConnectRequest(
            client_id=self.client_id, format=self.format(options, aliases),
            protocol=self.protocol,
            address=transport.address, port=transport.port,
            user=identity.user, verified=identity.verified, label=identity.label,
            clean_start=packet.clean_start, expiry=expiry,
            receive_max=properties.receive_maximum or RECEIVE_MAXIMUM, frame_max=properties.maximum_packet_size,
            will=self.will, origin=origin, limits=identity.limits,
        )

    def format(self, options: MqttOptions, aliases: Pot) -> PublishFormat:
        """Its own one for a client that takes Topic Aliases."""
        taken = min(self.properties.topic_alias_maximum or 0, options.topic_alias_max)
        if taken:
            return AliasFormat(taken, self.properties.maximum_packet_size, aliases)
        return FORMATS[self.packet.protocol_version]

    def connack(
        self, present: bool, expiry: float, limits: Limits, options: MqttOptions, inbox: str, quota: Quota
    ) -> ConnAck:
        """`expiry`: of the session, as it is in force; `inbox`: a prefix for this client's reply topics, with `.`."""
        packet = self.packet
        if packet.protocol_version is V3:
            return PLAIN_CONNACKS[present]
        asked = self.properties
        return ConnAck(
            present,
            properties=Properties(
                session_expiry_interval=_announced(asked.session_expiry_interval, expiry),
                receive_maximum=within(limits.unreleased_messages_max, quota, "receive_maximum"),
                maximum_qos=options.maximum_qos if options.maximum_qos < 2 else None,
                retain_available=None if limits.retains else False,
                maximum_packet_size=within(limits.frame_bytes_max, quota, "message_bytes"),
                assigned_client_identifier=self.client_id if self.assigned else None,
                topic_alias_maximum=within(options.topic_alias_max, quota, "topic_aliases") or None,
                server_keep_alive=self.keep_alive if self.keep_alive != packet.keep_alive else None,
                response_information=inbox_of(inbox) if asked.request_response_information else None,
                authentication_method=asked.authentication_method,
            ),
        )


def within(most: int, quota: Quota, name: str) -> int:
    """A limit, or the quota of this name, if that is less."""
    least = quota.least(name)
    return most if least is None else min(most, least)


def seconds_of(interval: int) -> float:
    """A Session Expiry Interval as the core has it."""
    return inf if interval == NEVER_EXPIRES else float(interval)


def _announced(asked: int | None, expiry: float) -> int | None:
    """The Session Expiry Interval of a CONNACK: present if it is not the one that the client asked for (3.2.2.3.2)."""
    given = NEVER_EXPIRES if expiry == inf else int(expiry)
    return given if given != (asked or 0) else None


def accept(packet: Connect, options: MqttOptions, limits: Limits) -> AcceptedConnect:
    """Raises ProtocolError with the reason for the CONNACK."""
    client_id = packet.client_id
    if 4 * len(client_id) > limits.name_bytes_max and len(client_id.encode()) > limits.name_bytes_max:
        raise ProtocolError(
            f"CONNECT: a client identifier of {len(client_id.encode())} bytes; at most {limits.name_bytes_max} "
            "(name_bytes_max)", ReasonCode.CLIENT_IDENTIFIER_NOT_VALID,
        )
    if client_id.startswith(OWN_CLIENTS) and not options.own_clients:
        raise ProtocolError(
            f"CONNECT: client identifiers that begin with {OWN_CLIENTS} are of bridges of this broker",
            ReasonCode.CLIENT_IDENTIFIER_NOT_VALID,
        )
    if not client_id:
        if packet.protocol_version is V3 and not packet.clean_start:  # [MQTT-3.1.3-8] of 3.1.1
            raise ProtocolError(
                "CONNECT: an empty client identifier needs Clean Session 1", ReasonCode.CLIENT_IDENTIFIER_NOT_VALID
            )
        client_id = f"auto-{secrets.token_hex(12)}"  # [MQTT-3.1.3-6]
    keep_alive, most = packet.keep_alive, options.keep_alive_max
    if most and packet.protocol_version is V5 and not 0 < keep_alive <= most:
        keep_alive = most
    will = None
    if packet.will is not None:
        if options.payload_format_check and packet.will.properties.payload_format_indicator == 1:
            check_text(packet.will.payload, "CONNECT: the Will Payload")
        check_will(packet.will, packet.protocol_version, options, limits)
        will = _will(packet.will, FORMATS[packet.protocol_version])
    return AcceptedConnect(packet, client_id, not packet.client_id, keep_alive, will)


@lru_cache(maxsize=256)  # there is one for each reason code
def goodbye_of(reason: ReasonCode) -> str:
    """Why a connection ends that its client has ended, for the log."""
    return f"the client said goodbye: {reason.name.lower()}"


def packet_of(level: int, clean_start: bool, keep_alive: int, client_id: str) -> Connect:
    """A plain CONNECT (connect_body)."""
    return Connect(client_id, V3 if level == V3 else V5, clean_start, keep_alive)


def check_will(will: WillFields, version: Version, options: MqttOptions, limits: Limits) -> None:
    """Could the will be published, as far as that is known now? Raises ProtocolError, InvalidTopic."""
    topic = will.topic.encode()
    try:
        check_publisher(topic)
    except errors.NotPermitted as error:
        raise ProtocolError(f"CONNECT: the Will Topic: {error.text}", ReasonCode.TOPIC_NAME_INVALID) from error
    check_topic(topic, SYNTAXES[MQTT], limits)
    if will.qos > options.maximum_qos:  # [MQTT-3.2.2-12]
        raise ProtocolError(
            f"CONNECT: Will QoS {will.qos}; at most {options.maximum_qos} (mqtt_maximum_qos)",
            ReasonCode.QOS_NOT_SUPPORTED,
        )
    if will.retain and not limits.retains and version is V5:  # [MQTT-3.2.2-13]
        raise ProtocolError(
            "CONNECT: a retained will, and this broker retains nothing (retained_messages_max)",
            ReasonCode.RETAIN_NOT_SUPPORTED,
        )


def _will(will: WillFields, format: Format) -> Will:
    topic = will.topic.encode()
    properties = will.properties
    fields, expiry_hole = fields_of(properties)
    message = Message(
        format, topic, MQTT, will.payload, fields=fields, qos=will.qos, retain=will.retain,
        expiry_hole=expiry_hole,
    )
    lifetime = properties.message_expiry_interval
    return Will(
        message, None if lifetime is None else float(lifetime), float(properties.will_delay_interval or 0),
        properties.response_topic is not None,
    )


def check_text(payload: bytes, what: str) -> None:
    """A payload whose Payload Format Indicator says that it is UTF-8 (3.3.2.3.2). Raises ProtocolError."""
    try:
        payload.decode()
    except UnicodeDecodeError as error:
        raise ProtocolError(
            f"{what} is not the UTF-8 it is said to be: byte {error.start}", ReasonCode.PAYLOAD_FORMAT_INVALID
        ) from None


def refusal(reason: ReasonCode, text: str, version: Version, options: MqttOptions) -> ConnAck:
    """A refusing CONNACK, with the server to use instead if one is configured (4.11)."""
    if version is V3:
        return ConnAck(False, reason)
    moved = options.server_reference if reason in (ReasonCode.USE_ANOTHER_SERVER, ReasonCode.SERVER_MOVED) else None
    return ConnAck(False, reason, Properties(reason_string=text[:REASON_STRING_MAX], server_reference=moved))


def credentials(packet: Connect) -> tuple[str | None, str | None]:
    """User name and password. A password that is not UTF-8 becomes a text that no stored password is equal to."""
    if packet.password is None:
        return packet.user_name, None
    return packet.user_name, packet.password.decode(errors="surrogateescape")


def inbox_of(prefix: str) -> str:
    """A reply prefix as MQTT spells it."""
    assert prefix.startswith(INBOX_ROOT.decode())
    return prefix.replace(".", "/")


