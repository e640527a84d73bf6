"""What the parts of a channel need of their channel, and a channel of its connection: they do not import these."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.subscriber import Client, Subscriber
from fanlight_broker.protocols.amqp.lane import AmqpLane
from fanlight_broker.protocols.amqp.methods import AnyMethod
from fanlight_broker.protocols.amqp.options import AmqpCounts, AmqpOptions
from fanlight_broker.protocols.amqp.vhost import DeclaredQueue, Vhost
from fanlight_broker.wire.inbox import Inbox
from fanlight_broker.wire.outbox import Outbox


class ConnectionSide(Protocol):
    """A connection that is open. connection.AmqpConnection is one, and says what each attribute is."""

    broker: Namespace
    lane: AmqpLane
    inbox: Inbox
    outbox: Outbox
    options: AmqpOptions
    counts: AmqpCounts
    frame_max: int
    login: str
    gave_up: bool
    done: bool
    kombu: bool
    wants_cancels: bool
    at_work: Iterator[Any] | None

    @property
    def vhost(self) -> Vhost: ...

    @property
    def restricted(self) -> bool: ...

    @property
    def core_client(self) -> Client: ...

    @property
    def subscriber(self) -> Subscriber: ...

    def in_order(self, write: Callable[[], None], *, stored: bool = False) -> None: ...

    def answers_at_once(self, *, stored: bool) -> bool: ...

    def go_through(self, steps: Iterator[None]) -> None: ...


class ChannelSide(Protocol):
    """channel.AmqpChannel is one."""

    connection: ConnectionSide
    number: int
    is_open: bool

    def queue(self, name: str) -> DeclaredQueue:
        """The queue of a method; an empty name is the one declared last. Raises AmqpError."""
        ...

    @property
    def reply_address(self) -> str:
        """For answers to this channel, see direct_reply.py. Raises AmqpError."""
        ...

    def send(self, method: AnyMethod) -> None: ...

    def answer(
        self, method: AnyMethod, answer: AnyMethod, *, stored: bool = False, then: Callable[[], None] | None = None
    ) -> None: ...
