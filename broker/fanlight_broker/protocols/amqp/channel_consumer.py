"""One consumer of a channel, or what basic.get takes messages by."""

from dataclasses import dataclass
from typing import Protocol

from fanlight_broker.core.work_queue import QueueConsumer
from fanlight_broker.protocols.amqp.stream_consumers import StreamDeliveries
from fanlight_broker.protocols.amqp.vhost import DeclaredQueue
from fanlight_broker.wire.named_queue import NamedQueue
from fanlight_broker.wire.window import Window


class Ending(Protocol):
    """consumers.ChannelConsumers is one."""

    def ended(self, number: int, reason: str) -> None: ...


@dataclass(slots=True, eq=False)
class ConsumerEnd:
    """Called when the broker ends a consumer. A partial does the same, and cannot be hidden from the collector."""

    consumers: Ending
    number: int

    def __call__(self, reason: str) -> None:
        self.consumers.ended(self.number, reason)


@dataclass(slots=True, eq=False)
class ChannelConsumer:
    """tag: None for the one that basic.get uses. core: None for that, too.

    stream  of a consumer of a stream, whose window never gets anything
    """

    number: int
    tag: str | None
    queue: DeclaredQueue
    window: Window
    core: QueueConsumer | None
    automatic: bool
    cancelled: bool = False
    stream: StreamDeliveries | None = None

    @property
    def delivers(self) -> bool:
        """Does it get what there is room for?"""
        return self.core is not None and self.core.started and not self.core.paused and not self.cancelled

    @property
    def inside(self) -> NamedQueue:
        return self.queue.work.inside
