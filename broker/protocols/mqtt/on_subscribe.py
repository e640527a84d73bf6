"""SUBSCRIBE and UNSUBSCRIBE: each filter on its own, a reason code for each (3.8, 3.10).

A packet may hold 100,000 filters and more, at some 10 to 50 us each: it yields after a turn's share of them, and the
client's next packets wait until it is done. Retained messages are sent when the turn's packets are done, one slice for
all of them.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from broker.core import errors
from broker.core.session import SessionOptions
from broker.protocols.mqtt.data_types import encode_variable
from broker.protocols.mqtt.error_codes import explaining, reason_of
from broker.protocols.mqtt.packets import SubAck, Subscribe, Subscription, UnsubAck, Unsubscribe
from broker.protocols.mqtt.properties import NONE
from broker.protocols.mqtt.reason_codes import ReasonCode
from broker.protocols.mqtt.topics import SHARE, parse_shared
from broker.protocols.mqtt.version import V5

if TYPE_CHECKING:
    from broker.protocols.mqtt.connection import MqttConnection

SUBSCRIPTION_IDENTIFIER = 0x0B  # the property (2.2.2.2)
SEND, SEND_IF_NEW = 0, 1  # Retain Handling (3.8.3.1)
FILTERS_PER_TURN: Final = 256


def subscribe(connection: "MqttConnection", packet: Subscribe) -> Iterator[None]:
    identifiers = packet.properties.subscription_identifiers
    identifier = bytes((SUBSCRIPTION_IDENTIFIER,)) + encode_variable(identifiers[0]) if identifiers else b""
    refused: list[errors.FanlightError] = []
    codes: list[ReasonCode] = []
    for wanted in packet.subscriptions:
        if codes and len(codes) % FILTERS_PER_TURN == 0:
            yield
        codes.append(_subscribe(connection, wanted, identifier, refused))
    explained = explaining(refused[0]) if refused and connection.version is V5 else NONE
    connection.send(SubAck(packet.packet_id, tuple(codes), explained))


def _subscribe(
    connection: "MqttConnection", wanted: Subscription, identifier: bytes, refused: list[errors.FanlightError]
) -> ReasonCode:
    sessions, session = connection.broker.sessions, connection.session
    group, filter = parts_of(wanted.filter)
    options = SessionOptions(
        qos=wanted.qos, no_local=wanted.no_local, retain_as_published=wanted.retain_as_published,
        identifier=identifier, group=group,
    )
    try:
        subscription, is_new = sessions.subscribe(session, filter, "mqtt", options)
    except errors.FanlightError as error:
        connection.note_refusal(error)
        refused.append(error)
        return reason_of(error)
    handling = wanted.retain_handling
    if group is None and (handling == SEND or (handling == SEND_IF_NEW and is_new)):
        sessions.send_retained(session, subscription)
    return ReasonCode(wanted.qos)


def unsubscribe(connection: "MqttConnection", packet: Unsubscribe) -> Iterator[None]:
    codes: list[ReasonCode] = []
    for text in packet.filters:
        if codes and len(codes) % FILTERS_PER_TURN == 0:
            yield
        codes.append(_unsubscribe(connection, text))
    connection.send(UnsubAck(packet.packet_id, tuple(codes)))


def _unsubscribe(connection: "MqttConnection", text: str) -> ReasonCode:
    group, filter = parts_of(text)
    try:
        connection.broker.sessions.unsubscribe(connection.session, filter, group)
    except errors.NoSuchSubscription:
        return ReasonCode.NO_SUBSCRIPTION_EXISTED  # no refusal: the client has what it wants
    return ReasonCode.SUCCESS


def parts_of(text: str) -> tuple[str | None, bytes]:
    """Queue group and filter: `$share/{ShareName}/{filter}` is a Shared Subscription (4.8.2), here in 3.1.1, too."""
    if not text.startswith(SHARE):
        return None, text.encode()
    shared = parse_shared(text)
    return shared.share_name, shared.filter.encode()
