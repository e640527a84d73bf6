from typing import final

from fanlight_broker.protocols.amqp.channel_tags import ChannelTags
from fanlight_broker.protocols.amqp.publish_sites import LaneChannel, PublishCounts, PublishSites
from fanlight_broker.wire.lane import Lane
from fanlight_broker.wire.message import Message

@final
class AmqpLane(Lane):
    greeted: bool
    kind: int
    channel: int
    sites: PublishSites | None
    login: bytes | None
    body_max: int
    counts: PublishCounts
    def payload(self) -> bytes: ...
    def offer(self, message: Message) -> None: ...
    def open_channel(self, number: int) -> LaneChannel: ...
    def track(self, number: int, tags: ChannelTags) -> None: ...
    def close_channel(self, number: int) -> None: ...
