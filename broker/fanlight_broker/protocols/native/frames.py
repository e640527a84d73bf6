"""The frames that clients send, as typed values; and those the broker sends, as functions to bytes (section 3).

A field left out and a nil field are the same. Fields behind those known are ignored. PUBLISH and MESSAGE are not here:
the compiled lane handles them (lane.pyx).

A frame is not changed once it is made. That is not checked: `frozen` takes as long again, at the start and per frame.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

import msgpack  # type: ignore[import-untyped]

from fanlight_broker.core.errors import ProtocolViolation, Unsupported
from fanlight_broker.core.filling import Beginning
from fanlight_broker.core.limits import SlowPolicy
from fanlight_broker.core.topics import syntax_of
from fanlight_broker.core.work_queue import Overflow, QueueOptions
from fanlight_broker.protocols.native.codec import LENGTH, encode
from fanlight_broker.protocols.native.fields import Fields, OptionMap, shown
from fanlight_broker.wire.levels import PRIORITIES_MAX
from fanlight_broker.wire.message import Message

VERSION: Final = 1
NAME_BYTES_MAX: Final = 64
GROUP_BYTES_MAX: Final = 255
QUEUE_BYTES_MAX: Final = 255
U64_MAX: Final = 2**64 - 1
TOPICS: Final = msgpack.Packer(use_bin_type=True)  # for the one thread that reads for replays, and for no other
REPLAYED_HEAD: Final = struct.Struct(">I3sI")  # length; header, type and form of the number; subscription
REPLAYED_TAIL: Final = struct.Struct(">3sBQBQ")  # headers, syntax and reply; offset; timestamp
REPLAYED_MARK: Final = b"\x99\x04\xce"
REPLAYED_FIELDS: Final = 9  # of a MESSAGE that is replayed, its type included


class Type(IntEnum):
    HELLO = 1
    WELCOME = 2
    PUBLISH = 3
    MESSAGE = 4
    RECEIPT = 5
    SUBSCRIBE = 6
    OK = 7
    UNSUBSCRIBE = 8
    ENDED = 9
    CREDIT = 10
    PING = 11
    PONG = 12
    ERROR = 13
    GOODBYE = 14
    HELD = 15
    DELIVERY = 32
    ACK = 33
    NACK = 34
    TERM = 35
    IN_PROGRESS = 36
    CONSUMER = 37
    CONSUMER_INFO = 38
    QUEUE = 39
    REPLAY = 48
    REPLAY_END = 49


# Options of SUBSCRIBE that are for consumers of a queue only (3.9): to ignore them would be to break a promise.
CONSUMER_OPTIONS: Final = frozenset({"durable", "ack", "prefetch", "ack_wait", "deliver", "queue", "paused"})
# And those that mean nothing to a consumer.
PLAIN_OPTIONS: Final = frozenset({"group", "no_echo", "credit", "pending_messages", "after"})


@dataclass(slots=True)
class HelloFrame:
    version: int
    client: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    agent: str = ""
    slow_policy: SlowPolicy | None = None


@dataclass(slots=True)
class SubscribeFrame:
    request: int | None
    subscription: int
    filter: bytes
    syntax: int | None
    group: str | None
    no_echo: bool
    credit: int | None
    pending_messages: int | None
    after: int | None
    where: str | dict[str, Any] | None


@dataclass(slots=True)
class ConsumeFrame:
    """SUBSCRIBE with the option `consumer`."""

    request: int | None
    subscription: int
    filter: bytes
    syntax: int | None
    consumer: str
    prefetch: int | None
    ack_wait: float | None
    paused: bool
    beginning: Beginning | None
    options: QueueOptions
    where: str | dict[str, Any] | None


@dataclass(slots=True)
class ChangeConsumerFrame:
    """CONSUMER. What is None stays."""

    request: int | None
    subscription: int
    prefetch: int | None
    ack_wait: float | None
    paused: bool | None


@dataclass(slots=True)
class AckFrame:
    subscription: int
    sequence: int
    all: bool


@dataclass(slots=True)
class NackFrame:
    subscription: int
    sequence: int
    delay: float


@dataclass(slots=True)
class TermFrame:
    subscription: int
    sequence: int


@dataclass(slots=True)
class InProgressFrame:
    subscription: int
    sequence: int


@dataclass(slots=True)
class QueueFrame:
    request: int | None
    verb: str
    arguments: OptionMap


@dataclass(slots=True)
class ReplayFrame:
    request: int | None
    subscription: int
    filter: bytes
    syntax: int | None
    offset: int | None
    epoch: int | None
    since: int | None
    end: int | None
    past_only: bool
    where: str | dict[str, Any] | None


@dataclass(slots=True)
class UnsubscribeFrame:
    request: int | None
    subscription: int
    after: int


@dataclass(slots=True)
class CreditFrame:
    subscription: int
    messages: int


@dataclass(slots=True)
class PingFrame:
    token: int | None


@dataclass(slots=True)
class PongFrame:
    token: int | None


@dataclass(slots=True)
class GoodbyeFrame:
    reason: str


Incoming = (
    HelloFrame | SubscribeFrame | ReplayFrame | UnsubscribeFrame | CreditFrame | PingFrame | PongFrame | GoodbyeFrame
    | ConsumeFrame | ChangeConsumerFrame | AckFrame | NackFrame | TermFrame | InProgressFrame | QueueFrame
)


def parse(values: Sequence[Any]) -> Incoming:
    """A client's frame other than PUBLISH. Raises ProtocolViolation, or Unsupported for an unknown type or option."""
    kind = values[0]
    parser = PARSERS.get(kind)
    if kind in BROKERS_OWN:
        raise ProtocolViolation(f"{Type(kind).name} is sent by brokers only")
    if parser is None:
        known = ", ".join(f"{known} ({Type(known).name})" for known in PARSERS)
        raise Unsupported(f"frame type {kind}; this broker takes 3 (PUBLISH), {known}", type=kind)
    return parser(Fields(Type(kind).name, values))


def parse_hello(fields: Fields) -> HelloFrame:
    options = fields.options(1)
    policy = options.text("slow_policy")
    if policy is not None and policy not in set(SlowPolicy):
        raise ProtocolViolation(f"HELLO slow_policy {shown(policy)}; it is one of {', '.join(SlowPolicy)}")
    return HelloFrame(
        version=fields.number(0, "version"),
        client=options.text("client", NAME_BYTES_MAX),
        user=options.text("user"),
        password=options.text("password"),
        agent=options.text("agent", NAME_BYTES_MAX) or "",
        slow_policy=SlowPolicy(policy) if policy is not None else None,
    )


def parse_subscribe(fields: Fields) -> SubscribeFrame | ConsumeFrame:
    options = fields.options(3)
    if "consumer" in options:
        return parse_consume(fields, options)
    for key in CONSUMER_OPTIONS:
        if key in options:
            raise Unsupported(f"SUBSCRIBE option {key} needs the option consumer: the name of a queue", option=key)
    group = options.text("group", GROUP_BYTES_MAX)
    if group == "":
        raise ProtocolViolation("SUBSCRIBE option group must not be empty; leave it out for no group")
    return SubscribeFrame(
        request=fields.number_or_none(0, "request"),
        subscription=fields.number(1, "subscription"),
        filter=fields.topic(2, "filter"),
        syntax=options.number("syntax"),
        group=group,
        no_echo=options.flag("no_echo"),
        credit=options.number("credit"),
        pending_messages=options.number("pending_messages"),
        after=options.number("after", U64_MAX),
        where=options.text_or_map("where"),
    )


def parse_consume(fields: Fields, options: OptionMap) -> ConsumeFrame:
    for key in PLAIN_OPTIONS:
        if key in options:
            raise Unsupported(f"SUBSCRIBE option {key} cannot be combined with consumer", option=key)
    if not options.flag("ack"):
        raise Unsupported("SUBSCRIBE option consumer needs ack: deliveries of a queue are acknowledged", option="ack")
    consumer = options.text("consumer", QUEUE_BYTES_MAX)
    if not consumer:
        raise ProtocolViolation("SUBSCRIBE option consumer must not be empty")
    return ConsumeFrame(
        request=fields.number_or_none(0, "request"),
        subscription=fields.number(1, "subscription"),
        filter=fields.topic(2, "filter"),
        syntax=options.number("syntax"),
        consumer=consumer,
        prefetch=prefetch_of(options),
        ack_wait=options.seconds("ack_wait"),
        paused=options.flag("paused"),
        beginning=parse_deliver(options),
        options=parse_queue(options.map("queue"), durable=options.flag("durable")),
        where=options.text_or_map("where"),
    )


def parse_deliver(options: OptionMap) -> Beginning | None:
    """The option `deliver`: "new", "last", or a map that says where in the archive."""
    if not options.is_map("deliver"):
        deliver = options.text("deliver")
        if deliver not in (None, "new", "last"):
            raise Unsupported(f"SUBSCRIBE option deliver {shown(deliver)}; it is new, last or a map", option="deliver")
        return Beginning(retained=True) if deliver == "last" else None
    place = options.map("deliver")
    offset, since = place.number("offset", U64_MAX), place.number("since", U64_MAX)
    if offset is not None and since is not None:
        raise ProtocolViolation("SUBSCRIBE option deliver: give offset or since, or neither")
    return Beginning(offset=offset, epoch=place.number("epoch"), since=since)


def prefetch_of(options: OptionMap) -> int | None:
    prefetch = options.number("prefetch")
    if prefetch == 0:
        raise ProtocolViolation(f"{options.name} option prefetch must be 1 or more")
    return prefetch


def parse_change(fields: Fields) -> ChangeConsumerFrame:
    options = fields.options(2)
    return ChangeConsumerFrame(
        request=fields.number_or_none(0, "request"),
        subscription=fields.number(1, "subscription"),
        prefetch=prefetch_of(options),
        ack_wait=options.seconds("ack_wait"),
        paused=options.flag("paused") if "paused" in options else None,
    )


def parse_queue(options: OptionMap, *, durable: bool) -> QueueOptions:
    """The options with which a queue is declared."""
    overflow = options.text("overflow")
    if overflow is not None and overflow not in set(Overflow):
        raise ProtocolViolation(f"{options.name} overflow {shown(overflow)}; it is one of {', '.join(Overflow)}")
    topic = options.topic("dead_letter")
    priorities = options.number("priorities", PRIORITIES_MAX)
    if priorities == 0:
        raise ProtocolViolation(f"{options.name} priorities must be from 1 to {PRIORITIES_MAX}")
    return QueueOptions(
        durable=durable,
        messages_max=options.number("messages_max"),
        bytes_max=options.number("bytes_max", U64_MAX),
        message_seconds=options.seconds("message_ttl"),
        unused_seconds=options.seconds("expires"),
        overflow=Overflow(overflow) if overflow is not None else None,
        deliveries_max=options.number("deliveries_max"),
        dead_letter=(topic, syntax_of(options.number("dead_letter_syntax"))) if topic is not None else None,
        single_active=options.flag("single_active"),
        priorities=priorities,
    )


def parse_replay(fields: Fields) -> ReplayFrame:
    options = fields.options(3)
    offset, since = options.number("offset", U64_MAX), options.number("since", U64_MAX)
    if offset is not None and since is not None:
        raise ProtocolViolation("REPLAY options offset and since: give one of them, or neither")
    return ReplayFrame(
        request=fields.number_or_none(0, "request"),
        subscription=fields.number(1, "subscription"),
        filter=fields.topic(2, "filter"),
        syntax=options.number("syntax"),
        offset=offset,
        epoch=options.number("epoch"),
        since=since,
        end=options.number("end", U64_MAX),
        past_only=options.flag("past_only"),
        where=options.text_or_map("where"),
    )


def parse_unsubscribe(fields: Fields) -> UnsubscribeFrame:
    return UnsubscribeFrame(
        request=fields.number_or_none(0, "request"),
        subscription=fields.number(1, "subscription"),
        after=fields.number_or_none(2, "after", U64_MAX) or 0,
    )


def parse_credit(fields: Fields) -> CreditFrame:
    return CreditFrame(fields.number(0, "subscription"), fields.number(1, "messages"))


def parse_ack(fields: Fields) -> AckFrame:
    number, sequence = delivery_of(fields)
    return AckFrame(number, sequence, fields.options(2).flag("all"))


def parse_nack(fields: Fields) -> NackFrame:
    number, sequence = delivery_of(fields)
    return NackFrame(number, sequence, fields.seconds(2, "delay") or 0.0)


def delivery_of(fields: Fields) -> tuple[int, int]:
    """Subscription and sequence of a DELIVERY."""
    return fields.number(0, "subscription"), fields.number(1, "sequence", U64_MAX)


def parse_queue_request(fields: Fields) -> QueueFrame:
    verb = fields.at(1)
    if not isinstance(verb, str):
        raise ProtocolViolation(f"QUEUE verb must be a str; got {shown(verb)}")
    return QueueFrame(fields.number_or_none(0, "request"), verb, fields.options(2))


def parse_goodbye(fields: Fields) -> GoodbyeFrame:
    reason = fields.at(0)
    if not isinstance(reason, str):
        raise ProtocolViolation(f"GOODBYE reason must be a str; got {shown(reason)}")
    return GoodbyeFrame(reason)


PARSERS: Final[dict[int, Callable[[Fields], Incoming]]] = {
    Type.HELLO: parse_hello,
    Type.SUBSCRIBE: parse_subscribe,
    Type.REPLAY: parse_replay,
    Type.UNSUBSCRIBE: parse_unsubscribe,
    Type.CREDIT: parse_credit,
    Type.ACK: parse_ack,
    Type.NACK: parse_nack,
    Type.TERM: lambda fields: TermFrame(*delivery_of(fields)),
    Type.CONSUMER: parse_change,
    Type.IN_PROGRESS: lambda fields: InProgressFrame(*delivery_of(fields)),
    Type.QUEUE: parse_queue_request,
    Type.PING: lambda fields: PingFrame(fields.number_or_none(0, "token")),
    Type.PONG: lambda fields: PongFrame(fields.number_or_none(0, "token")),
    Type.GOODBYE: parse_goodbye,
}
BROKERS_OWN: Final = frozenset(Type) - frozenset(PARSERS) - {Type.PUBLISH}


def welcome(version: int, info: Mapping[str, Any]) -> bytes:
    return encode(Type.WELCOME, version, info)


def ok(request: int, result: Mapping[str, Any] | None = None) -> bytes:
    return encode(Type.OK, request) if result is None else encode(Type.OK, request, result)


def receipt(request: int, routed: int, *, repeated: bool = False, delayed: int = 0) -> bytes:
    """delayed: the id of a delayed message; 0: it is none."""
    if delayed:
        return encode(Type.RECEIPT, request, routed, None, None, True, delayed)
    return encode(Type.RECEIPT, request, routed, None, True) if repeated else encode(Type.RECEIPT, request, routed)


def ended(subscription: int, reason: str, delivered: int, dropped: int) -> bytes:
    return encode(Type.ENDED, subscription, reason, delivered, dropped)


def consumer_info(subscription: int, info: Mapping[str, Any]) -> bytes:
    return encode(Type.CONSUMER_INFO, subscription, info)


def replay_end(subscription: int, offset: int, epoch: int) -> bytes:
    return encode(Type.REPLAY_END, subscription, offset, epoch)


def replayed_plainly(
    subscription: int, topic: bytes, syntax: int, payload: bytes, offset: int, timestamp: int
) -> bytes:
    """`replayed`, of a message without headers or reply topic."""
    packed = TOPICS.pack(topic.decode())  # the archive's topics are UTF-8
    size = len(payload)
    if size < 1 << 8:
        kind = b"\xc4" + size.to_bytes(1)
    else:
        kind = b"\xc5" + size.to_bytes(2) if size < 1 << 16 else b"\xc6" + size.to_bytes(4)
    head = REPLAYED_HEAD.pack(7 + len(packed) + len(kind) + size + 21, REPLAYED_MARK, subscription)
    return b"".join(
        (head, packed, kind, payload, REPLAYED_TAIL.pack(b"\xc0\x01\xc0" if syntax else b"\xc0\xc0\xc0",
         0xCF, offset, 0xCF, timestamp))
    )


def replayed(subscription: int, message: Message, offset: int, timestamp: int) -> bytes:
    """MESSAGE as in section 3.4, with the fields that only a replayed one has (3.7)."""
    fields = message.fields + b"\xc0" * (REPLAYED_FIELDS - 2 - message.format_data)
    fields += b"\xcf" + offset.to_bytes(8) + b"\xcf" + timestamp.to_bytes(8)
    head = bytes((0x90 | REPLAYED_FIELDS, Type.MESSAGE, 0xCE)) + subscription.to_bytes(4)
    return LENGTH.pack(len(head) + len(fields)) + head + fields


def ping(token: int) -> bytes:
    return encode(Type.PING, token)


def pong(token: int | None) -> bytes:
    return encode(Type.PONG, token)


def held(held: bool, seconds: float) -> bytes:
    return encode(Type.HELD, True) if held else encode(Type.HELD, False, seconds)


def error(request: int | None, code: str, text: str, details: Mapping[str, Any] | None = None) -> bytes:
    return encode(Type.ERROR, request, code, text, details or None)


def goodbye(reason: str, text: str) -> bytes:
    return encode(Type.GOODBYE, reason, text)
