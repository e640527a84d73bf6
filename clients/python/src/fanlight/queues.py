"""Named queues for operators: `client.queues` adds, lists, describes, empties and removes them (docs/queues.md).

    await client.queues.add("billing", "orders.#", options=fanlight.QueueOptions(messages_max=10_000))
    for queue in await client.queues.list():
        print(queue.name, queue.waiting)
    await client.queues.move("dead", count=100)

Nothing here subscribes. What a call has begun at the broker goes on if the call is cancelled or its time is over.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from . import topics
from .errors import ProtocolError, Unsupported
from .frames import Headers
from .link import Link
from .options import Where
from .queue import FEATURE, QueueOptions
from .subscription import check_selectors
from .topics import Syntax, SyntaxName, Topic

PAGE = 100  # queues in one answer
COUNT = 10  # messages that `peek` shows
PAYLOAD_BYTES = 1_024  # of each

Filter = Topic | tuple[Topic, Syntax]
"""A filter, in the syntax of the call or in its own."""


@dataclass(frozen=True, kw_only=True)
class QueueState:
    """What a queue has now: messages that wait, are delayed, or are delivered and not acknowledged."""

    name: str
    durable: bool
    waiting: int
    delayed: int
    unacknowledged: int
    bytes: int
    oldest_seconds: float | None
    """That the oldest message has waited; None: nothing waits."""
    consumers: int
    where: str | None = None
    """The selector of what comes into it; None: everything that matches a filter does."""


@dataclass(frozen=True, kw_only=True)
class QueueInfo(QueueState):
    """All about a queue. The counts of messages are since it began."""

    filters: tuple[tuple[str, SyntaxName], ...]
    options: QueueOptions
    """In force: the broker's limits are in them."""
    user: str
    """Who declared it; empty if anonymous."""
    clients: tuple[Mapping[str, Any], ...]
    """The first of its consumers: `client`, `connection`, `prefetch`, `unacknowledged`, `delivered`, `ack_wait`."""
    messages: int
    deliveries: int
    redeliveries: int
    acknowledged: int
    discarded: int


@dataclass(frozen=True, kw_only=True)
class WaitingMessage:
    """A message that waits in a queue, as `peek` shows it."""

    topic: str
    topic_bytes: bytes
    syntax: SyntaxName
    payload: bytes
    """Its beginning."""
    headers: Headers
    reply: str | None
    attempt: int
    """How often it was delivered."""
    seconds: float
    """That it has waited."""
    size: int
    """Bytes of the whole payload."""
    cut: bool
    """Payload, headers or reply are not complete."""


class Moved(NamedTuple):
    messages: int
    stopped: str | None
    """Why the others were left where they are; None: all were moved."""


class Queues:
    """`Client.queues`. Each call waits up to `timeout` seconds for its answer; None: the client's option.

    All raise NoSuchQueue, NotPermitted, LimitExceeded, Unsupported (a broker without it), ConnectionLost,
    RequestTimeout, ConnectionClosed. What changes a durable queue is on the broker's disk when the call returns.
    """

    def __init__(self, link: Link) -> None:
        self._link = link

    async def add(
        self, name: str, *filters: Filter, where: Where | None = None, options: QueueOptions | None = None,
        syntax: Syntax = "amqp", timeout: float | None = None,
    ) -> bool:
        """Declare a durable queue that gets what matches any of the filters. Whether it is new.

        where: only messages of which this selector is true (docs/selectors.md).

        Raises QueueInUse if it exists with other filters, another selector or other options (those left out are not
        compared), InvalidFilter, InvalidSelector.
        """
        if not filters:
            raise ValueError(f"the queue {name!r} needs a filter")
        pairs = [each if isinstance(each, tuple) else (each, syntax) for each in filters]
        wanted = [[topics.checked(text), topics.number(own)] for text, own in pairs]
        declared = (options or QueueOptions()).on_wire() or None
        result = await self._ask(timeout, "add", name=_checked(name), filters=wanted, where=where, queue=declared)
        return bool(result.get("created"))

    async def list(self, *, timeout: float | None = None) -> tuple[QueueState, ...]:
        """All queues that this client may see, by name."""
        found: list[QueueState] = []
        after: str | None = None
        while True:
            page = await self._ask(timeout, "list", limit=PAGE, after=after)
            found += [QueueState(**_state(each)) for each in _maps(page, "queues")]
            following = page.get("after")
            if not isinstance(following, str) or (after is not None and following <= after):
                return tuple(found)
            after = following

    async def info(self, name: str, *, timeout: float | None = None) -> QueueInfo:
        """All about a queue."""
        return _info(await self._ask(timeout, "info", name=_checked(name)))

    async def purge(self, name: str, *, timeout: float | None = None) -> int:
        """Drop the messages that wait; delivered ones stay. Returns how many."""
        return _number(await self._ask(timeout, "purge", name=_checked(name)), "messages")

    async def remove(
        self, name: str, *, if_empty: bool = False, force: bool = False, timeout: float | None = None
    ) -> int:
        """End a queue. Returns how many messages are lost.

        if_empty: also if it has consumers, as long as it has no messages.
        force: also if it has messages or consumers.

        Raises QueueNotEmpty.
        """
        result = await self._ask(timeout, "remove", name=_checked(name), if_empty=if_empty or None, force=force or None)
        return _number(result, "messages")

    async def peek(
        self, name: str, count: int = COUNT, *, payload_bytes: int = PAYLOAD_BYTES, timeout: float | None = None
    ) -> tuple[WaitingMessage, ...]:
        """The first messages that wait, which stay where they are. Fewer than `count` if they are large."""
        result = await self._ask(timeout, "peek", name=_checked(name), count=count, payload_bytes=payload_bytes)
        return tuple(_waiting(each) for each in _maps(result, "messages"))

    async def peek_session(
        self, session: str, count: int = COUNT, *, payload_bytes: int = PAYLOAD_BYTES, timeout: float | None = None
    ) -> tuple[WaitingMessage, ...]:
        """As `peek`, of the MQTT session of the client with this identifier: what waits for it.

        `attempt` and `seconds` are 0. For clients that may subscribe to `#`. What is in flight is not among them.
        """
        result = await self._ask(timeout, "peek", session=session, count=count, payload_bytes=payload_bytes)
        return tuple(_waiting(each) for each in _maps(result, "messages"))

    async def peek_group(
        self, group: str, filter: Filter, count: int = COUNT, *, payload_bytes: int = PAYLOAD_BYTES,
        timeout: float | None = None,
    ) -> tuple[WaitingMessage, ...]:
        """As `peek_session`, of a shared subscription. A filter without a syntax is one of MQTT."""
        text, syntax = filter if isinstance(filter, tuple) else (filter, "mqtt")
        wanted = [topics.checked(text), topics.number(syntax)]
        result = await self._ask(
            timeout, "peek", group=group, filter=wanted, count=count, payload_bytes=payload_bytes
        )
        return tuple(_waiting(each) for each in _maps(result, "messages"))

    async def move(
        self, name: str, to: str | None = None, *, count: int | None = None, timeout: float | None = None
    ) -> Moved:
        """Move the messages that wait, oldest first, at most `count`.

        to: another queue. None: each is published where it was published first, so dead letters go back.

        A message that cannot be moved (the queue is full, nobody is subscribed) stays, and ends the move: no error.
        """
        target = None if to is None else _checked(to)
        result = await self._ask(timeout, "move", name=_checked(name), to=target, count=count)
        why = result.get("stopped")
        return Moved(_number(result, "messages"), None if why is None else str(why))

    async def _ask(self, timeout: float | None, verb: str, **arguments: Any) -> dict[str, Any]:
        link = self._link

        def frame(request: int) -> bytes:
            if link.welcome is None or FEATURE not in (link.welcome.info.get("features") or ()):
                raise Unsupported("this broker has no named queues", code="unsupported")
            if arguments.get("where") is not None:
                check_selectors(link.welcome.info)
            given = {key: value for key, value in arguments.items() if value is not None}
            return link.encoder.queue(request, verb, given)

        result = await link.answer(frame, timeout)
        return result if isinstance(result, dict) else {}


def _checked(name: str) -> str:
    size = len(name.encode())
    if not 1 <= size <= 255:
        raise ValueError(f"the name of a queue has 1 to 255 bytes; got {size}")
    return name


# What the broker says. A key of a later version is ignored, and a wrong value is an error of the protocol.


def _maps(result: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    values = result.get(key)
    if not isinstance(values, list) or not all(isinstance(each, dict) for each in values):
        raise ProtocolError(f"the broker's answer has no {key}")
    return values


def _number(result: Mapping[str, Any], key: str) -> int:
    value = result.get(key)
    if not isinstance(value, int):
        raise ProtocolError(f"the broker's answer has no number of {key}")
    return value


def _state(said: Mapping[str, Any]) -> dict[str, Any]:
    oldest, where = said.get("oldest_seconds"), said.get("where")
    return {
        "name": str(said.get("name")),
        "durable": bool(said.get("durable")),
        **{key: _number(said, key) for key in ("waiting", "delayed", "unacknowledged", "bytes", "consumers")},
        "oldest_seconds": oldest if isinstance(oldest, int | float) else None,
        "where": where if isinstance(where, str) else None,
    }


def _info(said: dict[str, Any]) -> QueueInfo:
    known = {field.name for field in fields(QueueOptions)}
    options = {key: value for key, value in said.items() if key in known and value is not None}
    syntax = options.pop("dead_letter_syntax", None)
    if syntax:
        options["dead_letter_syntax"] = topics.NAMES[syntax]
    pairs = said.get("filters") or []
    counts: dict[str, Any] = {
        key: _number(said, key) for key in ("messages", "deliveries", "redeliveries", "acknowledged", "discarded")
    }
    return QueueInfo(
        **_state({**said, "consumers": said.get("consumer_count")}),
        filters=tuple((topics.text(text), topics.NAMES[number]) for text, number in pairs),
        options=QueueOptions(**options),
        user=str(said.get("user") or ""),
        clients=tuple(_maps(said, "consumers")),
        **counts,
    )


def _waiting(said: Mapping[str, Any]) -> WaitingMessage:
    topic, reply = said.get("topic", ""), said.get("reply")
    return WaitingMessage(
        topic=topics.text(topic), topic_bytes=topics.octets(topic), syntax=topics.NAMES[said.get("syntax") or 0],
        payload=bytes(said.get("payload") or b""), headers=said.get("headers") or {},
        reply=None if reply is None else topics.text(reply), attempt=_number(said, "attempt"),
        seconds=float(said.get("seconds") or 0.0), size=_number(said, "size"), cut=bool(said.get("cut")),
    )
