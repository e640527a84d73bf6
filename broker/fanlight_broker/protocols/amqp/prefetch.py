"""One prefetch for all consumers of a channel (basic.qos with global=true), beside the one that each of them has.

    a delivery -> ChannelTags.held reaches `most` -> `shut`: all are paused --an acknowledgement--> `settle`: they go on

Deliveries of basic.get, and what is acknowledged by being sent, do not count.
"""

from collections.abc import Mapping
from typing import Final

from fanlight_broker.protocols.amqp.channel_consumer import ChannelConsumer
from fanlight_broker.protocols.amqp.channel_tags import ChannelTags
from fanlight_broker.protocols.amqp.options import GETTERS

Delivery = tuple[int, int]  # number of the consumer, tag of the queue


class ChannelPrefetch:
    """consumers: those of the channel by their numbers, as they are at each time."""

    __slots__ = ("_consumers", "_tags", "_turn", "full")

    def __init__(self, tags: ChannelTags, consumers: Mapping[int, ChannelConsumer]) -> None:
        self.full = False  # the consumers that count are paused
        self._tags = tags
        self._consumers = consumers
        self._turn = 0  # who goes on first

    def limit(self, most: int, now: float) -> None:
        """A new prefetch, from now on; 0: without a bound."""
        self._tags.most = most
        if most:
            self._tags.held = self._tags.of_consumers
            if self._tags.held >= most:
                self.shut()
        self.settle(now)

    def shut(self) -> None:
        """In the middle of other work: no more is delivered."""
        self.full = True
        for consumer in self._consumers.values():
            if consumer.core is not None and not consumer.automatic:
                consumer.inside.pause(consumer.window)

    def freed(self, number: int, count: int = 1) -> None:
        """Deliveries of a consumer are dealt with; `settle` follows."""
        if self._tags.most and number < GETTERS:
            self._tags.held -= count

    def settle(self, now: float) -> None:
        """Let the consumers go on if there is room, in turn."""
        if not self.full or self._tags.held >= self._tags.most > 0:
            return
        self.full = False
        paused = [each for each in self._consumers.values() if each.delivers and not each.automatic]
        self._turn = self._turn % len(paused) if paused else 0
        for consumer in (*paused[self._turn :], *paused[: self._turn]):
            self._turn += 1
            consumer.inside.begin(consumer.window, now)
            if self.full:
                break


class NoChannelPrefetch:
    """Of a channel that has never asked for one: nearly all."""

    __slots__ = ()
    full: Final = False

    def freed(self, number: int, count: int = 1) -> None: ...

    def settle(self, now: float) -> None: ...


NO_CHANNEL_PREFETCH: Final = NoChannelPrefetch()
