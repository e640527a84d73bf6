"""The frames of the native protocol as a table, and as named tuples.

`SPECS` is chapter 3 of docs/native-protocol.md: for each type its fields in order, the kind of each, and its
default where it may be nil or left out. Decoding looks it up; nothing else here decides anything. Both
directions are in it, although a client reads only half: the tests play the broker with the same table.
"""

from collections.abc import Callable, Mapping
from enum import IntEnum
from math import inf
from typing import Any, NamedTuple

from .topics import Topic

U32_MAX = 2**32 - 1
U64_MAX = 2**64 - 1
VERSION = 1
NESTING_MAX = 8  # section 2

Scalar = None | bool | int | float | str | bytes
Headers = Mapping[str, Scalar | list[Scalar]]


class FrameType(IntEnum):
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


class Hello(NamedTuple):
    version: int
    options: dict[str, Any]


class Welcome(NamedTuple):
    version: int
    info: dict[str, Any]


class Publish(NamedTuple):
    request: int | None
    topic: Topic
    payload: bytes
    headers: dict[str, Any] | None
    syntax: int
    reply: Topic | None
    mark: list[Any] | None = None
    options: dict[str, Any] | None = None


class Delivery(NamedTuple):
    """MESSAGE; the name Message is the one that users see."""

    subscription: int
    topic: Topic
    payload: bytes
    headers: dict[str, Any] | None
    syntax: int
    reply: Topic | None


class QueueDelivery(NamedTuple):
    """DELIVERY: a message of a queue (3.9)."""

    subscription: int
    sequence: int
    attempt: int
    topic: Topic
    payload: bytes
    headers: dict[str, Any] | None
    syntax: int
    reply: Topic | None


class Ack(NamedTuple):
    subscription: int
    sequence: int
    options: dict[str, Any] | None


class Nack(NamedTuple):
    subscription: int
    sequence: int
    delay: float | None


class Term(NamedTuple):
    subscription: int
    sequence: int
    reason: str | None


class InProgress(NamedTuple):
    subscription: int
    sequence: int


class QueueRequest(NamedTuple):
    """QUEUE: an operator's request about named queues (3.10)."""

    request: int | None
    verb: str
    arguments: dict[str, Any] | None


class ChangeConsumer(NamedTuple):
    """CONSUMER: another prefetch or `ack_wait`, or a pause."""

    request: int | None
    subscription: int
    options: dict[str, Any] | None


class ConsumerInfo(NamedTuple):
    subscription: int
    info: dict[str, Any]


class ReplayRequest(NamedTuple):
    """REPLAY; the name Replay is the one that users see."""

    request: int | None
    subscription: int
    filter: Topic
    options: dict[str, Any] | None


class Replayed(NamedTuple):
    """MESSAGE with the fields that only an archived one has (3.7)."""

    subscription: int
    topic: Topic
    payload: bytes
    headers: dict[str, Any] | None
    syntax: int
    reply: Topic | None
    offset: int
    timestamp: int


class ReplayEnd(NamedTuple):
    subscription: int
    offset: int
    epoch: int


class Receipt(NamedTuple):
    request: int
    routed: int
    offset: int | None = None
    repeated: bool = False
    delayed: bool = False
    id: int | None = None


class Subscribe(NamedTuple):
    request: int | None
    subscription: int
    filter: Topic
    options: dict[str, Any] | None


class Ok(NamedTuple):
    request: int
    result: dict[str, Any] | None


class Unsubscribe(NamedTuple):
    request: int | None
    subscription: int
    after: int


class Ended(NamedTuple):
    subscription: int
    reason: str
    delivered: int
    dropped: int


class Credit(NamedTuple):
    subscription: int
    messages: int


class Ping(NamedTuple):
    token: int | None


class Pong(NamedTuple):
    token: int | None


class Error(NamedTuple):
    request: int | None
    code: str
    text: str
    details: dict[str, Any] | None


class Goodbye(NamedTuple):
    reason: str
    text: str | None


class Held(NamedTuple):
    held: bool
    seconds: float | None


Frame = (
    Hello | Welcome | Publish | Delivery | Receipt | Subscribe | Ok | Unsubscribe
    | Ended | Credit | Ping | Pong | Error | Goodbye | Replayed | ReplayRequest
    | ReplayEnd | Held | QueueDelivery | Ack | Nack | Term | InProgress | QueueRequest
    | ChangeConsumer | ConsumerInfo
)  # fmt: skip


def is_u32(value: object) -> bool:
    return type(value) is int and 0 <= value <= U32_MAX  # type(), because True is an int


def is_u64(value: object) -> bool:
    return type(value) is int and 0 <= value <= U64_MAX


def is_str(value: object) -> bool:
    return type(value) is str


def is_bin(value: object) -> bool:
    return type(value) is bytes


def is_topic(value: object) -> bool:
    return type(value) is str or type(value) is bytes


def is_syntax(value: object) -> bool:
    return value in (0, 1) and type(value) is int


def is_map(value: object) -> bool:
    return type(value) is dict and all(type(key) is str for key in value)


def is_headers(value: object) -> bool:
    """Section 3.3: `str` keys of up to 255 bytes to scalars, or to arrays of scalars."""
    if type(value) is not dict:
        return False
    for key, item in value.items():
        if type(key) is not str or len(key.encode()) > 255:
            return False
        if type(item) is list:
            if not all(_is_scalar(each) for each in item):
                return False
        elif not _is_scalar(item):
            return False
    return True


def _is_scalar(value: object) -> bool:
    if type(value) is int:
        return -(2**63) <= value <= U64_MAX  # what msgpack can say
    return value is None or type(value) in (bool, float, str, bytes)


def is_bool(value: object) -> bool:
    return type(value) is bool


def is_seconds(value: object) -> bool:
    return type(value) in (int, float)


def is_delay(value: object) -> bool:
    return type(value) in (int, float) and value >= 0  # type: ignore[operator]


def is_mark(value: object) -> bool:
    """Section 3.8: a producer's name of 1 to 255 bytes, a batch and a sequence."""
    if type(value) is not list or len(value) != 3 or type(value[0]) is not str:
        return False
    try:
        size = len(value[0].encode())
    except UnicodeEncodeError:
        return False
    return 1 <= size <= 255 and is_u64(value[1]) and is_u64(value[2])


def is_publish_options(value: object) -> bool:
    """Section 3.3: at most one of `delay` and `deliver_at`, in seconds."""
    if type(value) is not dict or not is_map(value):
        return False
    times = [value[key] for key in ("delay", "deliver_at") if value.get(key) is not None]
    return len(times) < 2 and all(is_delay(each) and each < inf for each in times)


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()


class Field(NamedTuple):
    name: str
    kind: Callable[[object], bool]
    default: Any = REQUIRED


class Spec(NamedTuple):
    frame: Callable[..., Frame]
    fields: tuple[Field, ...]


_REQUEST = Field("request", is_u32)
_OPTIONAL_REQUEST = Field("request", is_u32, None)
_SUBSCRIPTION = Field("subscription", is_u32)
_CONTENT = (
    Field("topic", is_topic),
    Field("payload", is_bin),
    Field("headers", is_headers, None),
    Field("syntax", is_syntax, 0),
    Field("reply", is_topic, None),
)
_SEQUENCE = Field("sequence", is_u64)
_TOKEN = Field("token", is_u32, None)

SPECS: dict[int, Spec] = {
    FrameType.HELLO: Spec(Hello, (Field("version", is_u32), Field("options", is_map))),
    FrameType.WELCOME: Spec(Welcome, (Field("version", is_u32), Field("info", is_map))),
    FrameType.PUBLISH: Spec(
        Publish,
        (_OPTIONAL_REQUEST, *_CONTENT, Field("mark", is_mark, None), Field("options", is_publish_options, None)),
    ),
    FrameType.MESSAGE: Spec(Delivery, (_SUBSCRIPTION, *_CONTENT)),
    FrameType.RECEIPT: Spec(
        Receipt,
        (
            _REQUEST, Field("routed", is_u32), Field("offset", is_u64, None), Field("repeated", is_bool, False),
            Field("delayed", is_bool, False), Field("id", is_u64, None),
        ),
    ),
    FrameType.SUBSCRIBE: Spec(
        Subscribe,
        (_OPTIONAL_REQUEST, _SUBSCRIPTION, Field("filter", is_topic), Field("options", is_map, None)),
    ),
    FrameType.OK: Spec(Ok, (_REQUEST, Field("result", is_map, None))),
    FrameType.UNSUBSCRIBE: Spec(Unsubscribe, (_OPTIONAL_REQUEST, _SUBSCRIPTION, Field("after", is_u64, 0))),
    FrameType.ENDED: Spec(
        Ended, (_SUBSCRIPTION, Field("reason", is_str), Field("delivered", is_u64), Field("dropped", is_u64))
    ),
    FrameType.CREDIT: Spec(Credit, (_SUBSCRIPTION, Field("messages", is_u32))),
    FrameType.PING: Spec(Ping, (_TOKEN,)),
    FrameType.PONG: Spec(Pong, (_TOKEN,)),
    FrameType.ERROR: Spec(
        Error,
        (_OPTIONAL_REQUEST, Field("code", is_str), Field("text", is_str), Field("details", is_map, None)),
    ),
    FrameType.DELIVERY: Spec(QueueDelivery, (_SUBSCRIPTION, _SEQUENCE, Field("attempt", is_u32), *_CONTENT)),
    FrameType.ACK: Spec(Ack, (_SUBSCRIPTION, _SEQUENCE, Field("options", is_map, None))),
    FrameType.NACK: Spec(Nack, (_SUBSCRIPTION, _SEQUENCE, Field("delay", is_delay, None))),
    FrameType.TERM: Spec(Term, (_SUBSCRIPTION, _SEQUENCE, Field("reason", is_str, None))),
    FrameType.IN_PROGRESS: Spec(InProgress, (_SUBSCRIPTION, _SEQUENCE)),
    FrameType.QUEUE: Spec(
        QueueRequest, (_OPTIONAL_REQUEST, Field("verb", is_str), Field("arguments", is_map, None))
    ),
    FrameType.CONSUMER: Spec(
        ChangeConsumer, (_OPTIONAL_REQUEST, _SUBSCRIPTION, Field("options", is_map, None))
    ),
    FrameType.CONSUMER_INFO: Spec(ConsumerInfo, (_SUBSCRIPTION, Field("info", is_map))),
    FrameType.REPLAY: Spec(
        ReplayRequest,
        (_OPTIONAL_REQUEST, _SUBSCRIPTION, Field("filter", is_topic), Field("options", is_map, None)),
    ),
    FrameType.REPLAY_END: Spec(ReplayEnd, (_SUBSCRIPTION, Field("offset", is_u64), Field("epoch", is_u32))),
    FrameType.GOODBYE: Spec(Goodbye, (Field("reason", is_str), Field("text", is_str, None))),
    FrameType.HELD: Spec(Held, (Field("held", is_bool), Field("seconds", is_seconds, None))),
}
