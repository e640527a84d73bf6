"""One consumer of a channel, or what basic.get takes messages by."""

from dataclasses import dataclass

from fanlight_broker.core.work_queue import QueueConsumer
from fanlight_broker.protocols.amqp.stream_consumers import StreamDeliveries
from fanlight_broker.protocols.amqp.vhost import DeclaredQueue
from fanlight_broker.wire.named_queue import NamedQueue
from fanlight_broker.wire.window import Window


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
