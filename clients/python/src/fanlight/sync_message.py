"""A message as a subscriber of the blocking client gets it."""

from typing import TYPE_CHECKING, Any

from .frames import Headers
from .message import BaseMessage
from .message import Message as AsyncMessage
from .serializers import Serializer

if TYPE_CHECKING:
    from .sync import Client, Subscription


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
