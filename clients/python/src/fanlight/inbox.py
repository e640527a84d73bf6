"""Replies to this client's requests: one subscription to `<inbox>.#`, made when first needed, for each
connection.

The last word of a reply topic is the number of the request, so that one subscription serves them all.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import topics
from .errors import NoResponders, ProtocolError
from .frames import Delivery, Headers, QueueDelivery, Replayed
from .link import Link
from .message import Message
from .serializers import Serializer
from .topics import Syntax, Topic

if TYPE_CHECKING:
    from .client import Client


class Inbox:
    def __init__(self, client: "Client", link: Link, next_number: Callable[[], int]) -> None:
        self.client = client
        self._link = link
        self._next_number = next_number
        self._number: int | None = None
        self._connection: object = None  # the WELCOME under which the subscription was made
        self._subscribed: asyncio.Future[Any] | None = None

    async def request(
        self,
        topic: Topic,
        payload: Any,
        headers: Headers | None,
        syntax: Syntax,
        serializer: Serializer | None,
    ) -> Message:
        link = self._link
        await link.connected()
        prefix = await self._prefix()
        number, answered = link.replies.open(0)
        try:
            reply = topics.join(prefix, str(number), topics.number(syntax))
            content = self.client.content(topic, payload, headers, syntax, reply, serializer)
            routed = await link.ask(lambda request: link.encoder.publish(*content, request=request))
            link.stats.published += 1
            if routed == 0:
                raise NoResponders(f"nobody is subscribed to {topic!r}", details={"topic": topic})
            message: Message = await answered
            return message
        finally:
            if not answered.done():
                answered.cancel()
            link.replies.forget(number)

    async def _prefix(self) -> Topic:
        """The inbox of this connection, subscribed to."""
        welcome = self._link.welcome
        assert welcome is not None
        inbox = topics.checked(welcome.info.get("inbox") or "")
        if not inbox:
            raise ProtocolError("the broker's WELCOME names no inbox: requests cannot be answered")
        if self._connection is not welcome or self._subscribed is None or self._failed(self._subscribed):
            self._connection = welcome
            self._number = self._next_number()
            self._subscribed = self._link.ask(self._subscribe_frame(inbox, self._number))
        # Shielded: many requests wait for the one subscription, and any of them may be cancelled.
        await asyncio.shield(self._subscribed)
        return inbox

    def _subscribe_frame(self, inbox: Topic, number: int) -> Callable[[int], bytes]:
        filter = topics.join(inbox, "#", topics.AMQP)
        return lambda request: self._link.encoder.subscribe(request, number, filter, {})

    @staticmethod
    def _failed(subscribed: "asyncio.Future[Any]") -> bool:
        """The one before was refused: the next request tries again."""
        return subscribed.done() and (subscribed.cancelled() or subscribed.exception() is not None)

    def delivered(self, frame: Delivery | QueueDelivery | Replayed, size: int) -> bool:
        """Whether it was a reply that somebody awaits."""
        if frame.subscription != self._number:
            return False
        words = topics.words(frame.topic, frame.syntax)
        try:
            number = int(words[-1])
        except (IndexError, ValueError):
            return False
        return self._link.replies.resolve(number, Message(frame, self, size))
