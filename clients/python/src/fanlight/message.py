"""A message as a subscriber gets it: a view of the MESSAGE frame, taken apart only where it is asked."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from . import topics
from .errors import FanlightError
from .frames import Delivery, Headers, QueueDelivery, Replayed
from .serializers import BYTES, Serializer, for_content_type
from .topics import Topic

if TYPE_CHECKING:
    from .subscription import Subscription

CORRELATION = "correlation-id"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_HEADERS: dict[str, Any] = {}


class BaseMessage:
    """What messages of the asyncio and of the blocking client have in common."""

    __slots__ = ("_frame", "_source", "size")

    def __init__(self, frame: Delivery | QueueDelivery | Replayed, source: Any, size: int) -> None:
        self._frame = frame
        self._source = source
        self.size = size
        """Bytes of the frame it came in; what it counts in a subscription's queue."""

    @property
    def topic(self) -> str:
        """As it was published. An octet that is not UTF-8 is a lone surrogate in it (surrogateescape), and is
        itself again where the topic is published or subscribed to. `topic_bytes` has the octets."""
        return topics.text(self._frame.topic)

    @property
    def topic_bytes(self) -> bytes:
        """The octets of the topic."""
        return topics.octets(self._frame.topic)

    @property
    def payload(self) -> bytes:
        return self._frame.payload

    @property
    def headers(self) -> Mapping[str, Any]:
        """Empty where there are none. Not to be changed."""
        return self._frame.headers or _NO_HEADERS

    @property
    def syntax(self) -> topics.SyntaxName:
        """How the topic is spelled: "amqp" (words parted by dots) or "mqtt" (by slashes)."""
        return topics.NAMES[self._frame.syntax]

    @property
    def words(self) -> tuple[str, ...]:
        """The topic's words, whatever the spelling; the empty AMQP topic has none."""
        return topics.words(self._frame.topic, self._frame.syntax)

    @property
    def reply(self) -> str | None:
        """Where an answer is awaited, in the same spelling as the topic; None where none is."""
        return None if self._frame.reply is None else topics.text(self._frame.reply)

    @property
    def offset(self) -> int | None:
        """Where it stands in the broker's archive, if it was replayed from there; else None."""
        return self._frame.offset if type(self._frame) is Replayed else None

    @property
    def timestamp(self) -> datetime | None:
        """When the broker got it, UTC, if it was replayed; else None."""
        return _EPOCH + timedelta(microseconds=self._frame.timestamp) if type(self._frame) is Replayed else None

    @property
    def value(self) -> Any:
        """The payload, decoded as its `content-type` header says; the bytes themselves where that says
        nothing.

        Raises SerializationError.
        """
        content_type = self._frame.headers.get("content-type") if self._frame.headers else None
        if content_type is None:
            return self._frame.payload
        return for_content_type(content_type, self._serializer()).decode(self._frame.payload)

    def _serializer(self) -> Serializer:
        return BYTES

    def _reply_topic(self) -> Topic:
        if self._frame.reply is None:
            raise FanlightError(f"the message on {self.topic!r} asks for no reply", code="no_reply_topic")
        return self._frame.reply

    def _reply_headers(self, headers: Headers | None) -> Headers | None:
        # A requester, one of MQTT for instance, recognises its answers by the correlation.
        correlation = self.headers.get(CORRELATION)
        return headers if correlation is None else {CORRELATION: correlation, **(headers or {})}

    def __repr__(self) -> str:
        payload = self.payload if len(self.payload) <= 40 else self.payload[:37] + b"..."
        return f"<{type(self).__name__} {self.topic!r} {payload!r}>"


class Message(BaseMessage):
    """One message; `await message.respond(...)` answers it."""

    __slots__ = ()

    @property
    def subscription(self) -> "Subscription | None":
        """The subscription it came by; None for the reply to a request."""
        from .subscription import Subscription

        return self._source if isinstance(self._source, Subscription) else None

    def _serializer(self) -> Serializer:
        serializer: Serializer = self._source.client.serializer
        return serializer

    async def respond(
        self,
        payload: Any = b"",
        *,
        headers: Headers | None = None,
        serializer: Serializer | None = None,
    ) -> None:
        """Publish an answer to the topic in `reply`, with the `correlation-id` of the message if it has one.

        Raises FanlightError where the message asks for no answer.
        """
        await self._source.client.publish(
            self._reply_topic(), payload, headers=self._reply_headers(headers), syntax=self.syntax,
            serializer=serializer,
        )
