"""SUBSCRIBE and UNSUBSCRIBE: each filter on its own, a reason code for each (3.8, 3.10).

    body --subscribe_body, compiled--> filters, one at a time --.--> reason codes --> SUBACK, UNSUBACK
      '-- codec, which says what is wrong with one that is not sound

With the setting mqtt_filter_suffix a filter may end in a selector, `sensor/+/t?value>25`: the subscription is one for
`sensor/+/t` with that selector, and an UNSUBSCRIBE may have the suffix, whatever it says.

A packet may hold 100,000 filters and more, at 1 to 2 µs each: it yields when the turn is over, and the client's
next packets wait until it is done. Retained messages are sent when the turn's packets are done, one slice for all of
them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

from fanlight_broker.core import errors
from fanlight_broker.core.requests import SessionOptions
from fanlight_broker.core.selectors import condition_of, condition_of_suffix
from fanlight_broker.core.subscriber import Session
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.protocols.mqtt.data_types import encode_variable
from fanlight_broker.protocols.mqtt.encoding import options_byte, plain_suback, plain_unsuback
from fanlight_broker.protocols.mqtt.error_codes import explaining, reason_of
from fanlight_broker.protocols.mqtt.fixed_header import FIRST_BYTES, PacketType
from fanlight_broker.protocols.mqtt.packets import SubAck, Subscribe, UnsubAck, Unsubscribe
from fanlight_broker.protocols.mqtt.peer import Peer
from fanlight_broker.protocols.mqtt.properties import NONE
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.subscribe_body import filters_of
from fanlight_broker.protocols.mqtt.topics import SHARE, parse_shared
from fanlight_broker.protocols.mqtt.version import V5
from fanlight_broker.wire.message import Variant
from matchcore.grammar import split_suffix

if TYPE_CHECKING:
    from fanlight_broker.core.condition import Condition

Filters = Iterable[tuple[bytes, int]]  # each with the byte of its options (3.8.3.1)

SUBSCRIBE: Final = FIRST_BYTES[PacketType.SUBSCRIBE]
UNSUBSCRIBE: Final = FIRST_BYTES[PacketType.UNSUBSCRIBE]
SUBSCRIPTION_IDENTIFIER = 0x0B  # the property (2.2.2.2)
WHERE: Final = "where"  # the User Property with a selector, for all filters of the packet
SEND, SEND_IF_NEW = 0, 1  # Retain Handling (3.8.3.1)
GRANTED: Final = tuple(map(ReasonCode, range(3)))
SHARED: Final = SHARE.encode()
MQTT: Final = SYNTAXES.index("mqtt")


def begin(peer: Peer, first: int, body: bytes) -> Iterator[None] | None:
    """The work that a packet asks for. None: it is another one, or the codec is to look at it."""
    if first not in (SUBSCRIBE, UNSUBSCRIBE):
        return None
    filters = filters_of(
        body, subscribe=first == SUBSCRIBE, has_properties=peer.version is V5,
        filter_suffix=peer.options.filter_suffix, user_properties_max=peer.options.user_properties_max,
    )
    if filters is None:
        return None
    if first == SUBSCRIBE:
        return begin_filters(peer, filters.packet_id, filters.identifier, filters, filters.count, filters.wheres)
    return unsubscribe(peer, filters.packet_id, filters)


def begin_subscribe(peer: Peer, packet: Subscribe) -> Iterator[None]:
    """The same for what the codec has made of it."""
    identifiers = packet.properties.subscription_identifiers
    identifier = bytes((SUBSCRIPTION_IDENTIFIER,)) + encode_variable(identifiers[0]) if identifiers else b""
    filters = ((each.filter.encode(), options_byte(each, V5)) for each in packet.subscriptions)
    where = [value for name, value in packet.properties.user_properties if name == WHERE]
    return begin_filters(peer, packet.packet_id, identifier, filters, len(packet.subscriptions), where)


def begin_filters(
    peer: Peer, packet_id: int, identifier: bytes, filters: Filters, count: int, where: Sequence[str]
) -> Iterator[None]:
    """`where`: the User Properties of that name, whose selector holds for all filters."""
    if not where:
        return subscribe(peer, packet_id, identifier, filters)
    try:
        condition = condition_in(where)
    except errors.InvalidSelector as error:
        return refuse(peer, packet_id, count, error)
    return subscribe(peer, packet_id, identifier, filters, condition)


def condition_in(where: Sequence[str]) -> "Condition":
    """Raises InvalidSelector."""
    if len(where) > 1:
        raise errors.InvalidSelector(
            f"{len(where)} User Properties {WHERE}; join the conditions by AND in one of them", position=0
        )
    return condition_of(where[0])


def refuse(peer: Peer, packet_id: int, count: int, error: errors.FanlightError) -> Iterator[None]:
    """None of the filters is in force; subscriptions that were there stay."""
    peer.note_error(error)
    codes = (reason_of(error),) * count
    peer.send(SubAck(packet_id, codes, explaining(error)))
    yield from ()


def begin_unsubscribe(peer: Peer, packet: Unsubscribe) -> Iterator[None]:
    """The same for what the codec has made of it."""
    return unsubscribe(peer, packet.packet_id, ((each.encode(), 0) for each in packet.filters))


def subscribe(
    peer: Peer, packet_id: int, identifier: bytes, filters: Filters, condition: "Condition | None" = None
) -> Iterator[None]:
    refused: list[errors.FanlightError] = []
    since = peer.broker.position.appended
    codes: list[ReasonCode] = []
    asked: dict[int, tuple[SessionOptions, Variant]] = {}  # few are different, however many filters there are
    session, over, sessions = peer.session, peer.broker.turns.over, peer.broker.sessions
    entering = sessions.entering(session) if condition is None else None
    first_match, suffixes = peer.broker.retained.first_match, peer.options.filter_suffix
    for filter, octet in filters:
        if codes and over():
            yield
            entering = sessions.entering(session) if condition is None else None
        found = asked.get(octet)
        if found is None:
            options = options_of(octet, identifier, peer.options.maximum_qos)
            if condition is not None:
                options = replace(options, condition=condition)
            found = asked[octet] = options, sessions.variant_of(session, options)
        options, variant = found
        begun = None
        if entering is not None and not (suffixes and b"?" in filter):
            begun = entering.enter(variant, filter, MQTT, options.no_local)
        if begun is not None and (octet >> 4 not in (SEND, SEND_IF_NEW) or first_match(filter, MQTT) is None):
            codes.append(GRANTED[options.qos])
        else:
            codes.append(_subscribe(peer, session, filter, octet, options, variant, begun, refused))
    if not (refused or peer.limits_packets or peer.version is None):
        answer = partial(peer.answer, plain_suback(packet_id, codes, peer.version))
    else:
        explained = explaining(refused[0]) if refused and peer.version is V5 else NONE
        answer = partial(peer.send, SubAck(packet_id, tuple(codes), explained))
    _answer(peer, answer, since)


def _answer(peer: Peer, answer: Callable[[], None], since: int) -> None:
    """If the session outlives its connection: when the journal has what was reported since then."""
    broker = peer.broker
    if peer.session.outlives and not broker.acknowledgements.stored(since, peer.lane):
        broker.acknowledgements.commit(answer, peer.lane, recorded=False)
    else:
        answer()


@lru_cache(maxsize=256)  # most packets are alike
def options_of(octet: int, identifier: bytes, maximum_qos: int) -> SessionOptions:
    """Subscription Options (3.8.3.1), but for Retain Handling; 3.1.1 has the QoS alone. No more than the Maximum QoS
    is granted [MQTT-3.2.2-10].
    """
    return SessionOptions(
        qos=min(octet & 3, maximum_qos), no_local=bool(octet & 4), retain_as_published=bool(octet & 8),
        identifier=identifier,
    )


def _subscribe(
    peer: Peer, session: Session, filter: bytes, octet: int, options: SessionOptions, variant: Variant,
    begun: Subscription | None, refused: list[errors.FanlightError],
) -> ReasonCode:
    """`begun`: it is new, and in force already."""
    sessions = peer.broker.sessions
    expression = None
    if peer.options.filter_suffix:
        filter, expression = split_suffix(filter)
    if filter.startswith(SHARED):
        group, filter = parts_of(filter)
        options = replace(options, group=group)
    handling = octet >> 4
    try:
        if expression is not None:
            options = replace(options, condition=condition_of_suffix(expression, options.condition))
        subscription, is_new = (begun, True) if begun is not None \
            else sessions.subscribe(session, filter, "mqtt", options, variant)
        if options.group is None and (handling == SEND or (handling == SEND_IF_NEW and is_new)):
            try:
                sessions.send_retained(session, subscription)
            except errors.LimitExceeded:  # a new subscription is refused as a whole; one that was there stays
                if is_new:
                    sessions.unsubscribe(session, filter, None)
                raise
    except errors.FanlightError as error:
        peer.note_error(error)
        refused.append(error)
        return reason_of(error)
    return GRANTED[options.qos]


def unsubscribe(peer: Peer, packet_id: int, filters: Filters) -> Iterator[None]:
    codes: list[ReasonCode] = []
    since = peer.broker.position.appended
    for filter, _ in filters:
        if codes and peer.broker.turns.over():
            yield
        codes.append(_unsubscribe(peer, filter))
    if not (peer.limits_packets or peer.version is None):
        answer = partial(peer.answer, plain_unsuback(packet_id, codes, peer.version))
    else:
        answer = partial(peer.send, UnsubAck(packet_id, tuple(codes)))
    _answer(peer, answer, since)


def _unsubscribe(peer: Peer, filter: bytes) -> ReasonCode:
    group = None
    if peer.options.filter_suffix:
        filter, _ = split_suffix(filter)
    if filter.startswith(SHARED):
        group, filter = parts_of(filter)
    try:
        peer.broker.sessions.unsubscribe(peer.session, filter, group)
    except errors.NoSuchSubscription:
        return ReasonCode.NO_SUBSCRIPTION_EXISTED  # no refusal: the client has what it wants
    return ReasonCode.SUCCESS


def parts_of(filter: bytes) -> tuple[str, bytes]:
    """Queue group and filter: `$share/{ShareName}/{filter}` is a Shared Subscription (4.8.2), here in 3.1.1, too."""
    shared = parse_shared(filter.decode())
    return shared.share_name, shared.filter.encode()
