"""A client that somebody else wrote, as the tests use it: the same few calls, whatever the library.

    paho_peer.py   aiomqtt_peer.py   gmqtt_peer.py   mqttjs_peer.py      a library each
    conversation.py                                                       what users do, with any of them

A library that does not tell something (aiomqtt: whether a session was present) has None there. Every wait ends after
WAIT_SECONDS.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, TypeVar

WAIT_SECONDS = 60.0  # for anything that should come at once; two slow cores may be busy with something else

T = TypeVar("T")


async def soon(event: Awaitable[T]) -> T:
    """What `event` gives. Raises TimeoutError."""
    async with asyncio.timeout(WAIT_SECONDS):
        return await event


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the broker is."""

    port: int
    websocket: bool = False
    ca: Path | None = None  # with it, TLS
    certificate: Path | None = None  # the client's own, and its key in the same file


@dataclass(frozen=True, slots=True)
class Said:
    """What MQTT 5 can say beside topic and payload."""

    user: tuple[tuple[str, str], ...] = ()
    content_type: str | None = None
    response_topic: str | None = None
    correlation: bytes | None = None
    is_text: bool | None = None
    expiry: int | None = None  # seconds


@dataclass(frozen=True, slots=True)
class Message:
    """A message to publish, or as it came."""

    topic: str
    payload: bytes = b""
    qos: int = 0
    retain: bool = False
    said: Said = Said()
    identifiers: tuple[int, ...] = ()  # of the subscriptions it came for


@dataclass(frozen=True, slots=True)
class Options:
    """Of a SUBSCRIBE of MQTT 5."""

    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0
    identifier: int | None = None


PLAIN = Options()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What CONNECT asks for."""

    client_id: str
    clean: bool = True
    expiry: int = 0  # seconds; MQTT 3.1.1 has `clean` only
    keep_alive: int = 60
    user: str | None = None
    password: str | None = None
    will: Message | None = None
    will_delay: int = 0
    receive_max: int | None = None
    packet_max: int | None = None
    alias_max: int | None = None


class Refused(Exception):
    """CONNACK said no; `code` as its version has it."""

    def __init__(self, code: int) -> None:
        super().__init__(f"CONNACK 0x{code:02X}")
        self.code = code


@dataclass
class Peer(ABC):
    """One client, for one connection."""

    takes_aliases: ClassVar[bool] = True  # whether the library knows what a Topic Alias that comes stands for
    endpoint: Endpoint
    version: int  # 3 for 3.1.1, or 5
    inbox: "asyncio.Queue[Message]" = field(default_factory=asyncio.Queue, init=False)
    # Done when the connection has ended; the reason code of the broker's DISCONNECT, None if there was none.
    closed: "asyncio.Future[int | None]" = field(init=False)
    loop: asyncio.AbstractEventLoop = field(init=False)

    def __post_init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.closed = self.loop.create_future()

    # -- what a library does ----------------------------------------------------------------------------------------

    @abstractmethod
    async def connect(self, wanted: Wanted) -> bool | None:
        """Returns whether a session was present. Raises Refused."""

    @abstractmethod
    async def subscribe(self, filter: str, qos: int = 0, options: Options = PLAIN) -> int:
        """Returns the granted QoS, or the reason why not."""

    @abstractmethod
    async def unsubscribe(self, filter: str) -> None:
        """Returns when UNSUBACK is there."""

    @abstractmethod
    async def publish(self, *messages: Message) -> None:
        """Send them one after the other without waiting; return when all have been acknowledged as their QoS has it."""

    @abstractmethod
    async def disconnect(self) -> None:
        """With a DISCONNECT. Without effect on a connection that has ended."""

    @abstractmethod
    async def cut(self) -> None:
        """End the connection without a DISCONNECT, as a cut cable does; the session stays as it is."""

    # -- the same for all -------------------------------------------------------------------------------------------

    def has_closed(self, reason: int | None) -> None:
        """For libraries: the connection has ended."""
        if not self.closed.done():
            self.closed.set_result(reason)

    async def message(self) -> Message:
        """The next message."""
        return await soon(self.inbox.get())

    async def messages(self, count: int) -> list[Message]:
        """The next `count` messages."""
        return [await self.message() for _ in range(count)]

    async def until(self, topic: str) -> list[Message]:
        """All that comes before the next message of `topic`."""
        found: list[Message] = []
        while (message := await self.message()).topic != topic:
            found.append(message)
        return found


def numbered(topic: str, count: int, qos: int = 0) -> list[Message]:
    """Messages that say their place."""
    return [Message(topic, str(number).encode(), qos) for number in range(count)]


def numbers(messages: Iterable[Message]) -> list[int]:
    """The places that messages say."""
    return [int(message.payload) for message in messages]
