"""A message as a subscriber of the blocking client gets it."""

from typing import TYPE_CHECKING, Any

from .frames import Headers
from .message import BaseMessage
from .message import Message as AsyncMessage
from .queue import QueueMessage as AsyncQueueMessage
from .serializers import Serializer

if TYPE_CHECKING:
    from .sync import Client
    from .sync_subscription import Subscription


class Message(BaseMessage):
    """One message; `message.respond(...)` answers it."""

    __slots__ = ("_client", "_subscription")

    def __init__(self, message: AsyncMessage, client: "Client", subscription: "Subscription | None" = None) -> None:
        super().__init__(message._frame, message._source, message.size)
        self._client = client
        self._subscription = subscription

    @property
    def subscription(self) -> "Subscription | None":
        """The subscription it came by; None for the reply to a request."""
        return self._subscription

    def _serializer(self) -> Serializer:
        return self._client.options.serializer

    def respond(
        self, payload: Any = b"", *, headers: Headers | None = None, serializer: Serializer | None = None
    ) -> None:
        """Publish an answer to the topic in `reply`, with the `correlation-id` of the message if it has one.

        Raises FanlightError where the message asks for no answer.
        """
        self._client.publish(
            self._reply_topic(), payload, headers=self._reply_headers(headers), syntax=self.syntax,
            serializer=serializer,
        )


class QueueMessage(Message):
    """A message of a queue, to be acknowledged: as `fanlight.QueueMessage`."""

    __slots__ = ("_queued",)

    def __init__(
        self, message: AsyncQueueMessage, client: "Client", subscription: "Subscription | None" = None
    ) -> None:
        super().__init__(message, client, subscription)
        self._queued = message

    @property
    def sequence(self) -> int:
        """Of this delivery, in its queue."""
        return self._queued.sequence

    @property
    def attempt(self) -> int:
        """How often it was delivered, this time included."""
        return self._queued.attempt

    @property
    def redelivered(self) -> bool:
        """It was delivered before, and may have been worked on."""
        return self._queued.redelivered

    def ack(self, *, all: bool = False) -> bool:
        """As `fanlight.QueueMessage.ack`."""
        return self._client._thread.run(self._queued.ack(all=all))

    def nack(self, delay: float | None = None) -> bool:
        """As `fanlight.QueueMessage.nack`."""
        return self._client._thread.run(self._queued.nack(delay))

    def term(self, reason: str | None = None) -> bool:
        """As `fanlight.QueueMessage.term`."""
        return self._client._thread.run(self._queued.term(reason))

    def in_progress(self) -> bool:
        """As `fanlight.QueueMessage.in_progress`."""
        return self._client._thread.run(self._queued.in_progress())
