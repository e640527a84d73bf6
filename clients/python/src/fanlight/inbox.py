"""Replies to this client's requests: one subscription to `<inbox>.#`, made when first needed, for each connection.

The last word of a reply topic is the number of the request, so that one subscription serves them all.
"""

import asyncio
from typing import TYPE_CHECKING, Any

from . import topics
from .errors import NoResponders
from .frames import Delivery, Headers
from .link import Link
from .message import Message
from .serializers import Serializer
from .topics import Syntax, Topic

if TYPE_CHECKING:
    from .client import Client


class Inbox:
    def __init__(self, client: "Client", link: Link) -> None:
        self.client = client
        self._link = link
        self._number: int | None = None
        self._connection: object = None  # the WELCOME under which the subscription was made
        self._subscribed: asyncio.Task[Any] | None = None

    async def request(
        self, topic: Topic, payload: Any, headers: Headers | None, syntax: Syntax, serializer: Serializer | None
    ) -> Message:
        link = self._link
        await link.connected()
        prefix = await self._prefix()
        number, answered = link.replies.open(0)
        try:
            reply = topics.join(prefix, str(number), topics.number(syntax))
            routed = await link.ask(self.client._publisher(topic, payload, headers, syntax, reply, serializer))
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
        if self._connection is not welcome or self._subscribed is None:
            self._connection = welcome
            self._number = self.client._next_number()
            self._subscribed = self._link.spawn(self._subscribe(welcome.info["inbox"], self._number))
        # Shielded: many requests wait for the one subscription, and any of them may be cancelled.
        await asyncio.shield(self._subscribed)
        return topics.checked(welcome.info["inbox"])

    async def _subscribe(self, inbox: Topic, number: int) -> None:
        filter = topics.join(inbox, "#", topics.AMQP)
        try:
            await self._link.ask(lambda request: self._link.encoder.subscribe(request, number, filter, {}))
        except BaseException:
            self._subscribed = None  # the next request tries again
            raise

    def delivered(self, frame: Delivery, size: int) -> bool:
        """Whether it was a reply that somebody awaits."""
        if frame.subscription != self._number:
            return False
        words = topics.words(frame.topic, frame.syntax)
        try:
            number = int(words[-1])
        except (IndexError, ValueError):
            return False
        return self._link.replies.resolve(number, Message(frame, self, size))
