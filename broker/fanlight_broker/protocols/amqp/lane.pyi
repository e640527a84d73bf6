from typing import final

from fanlight_broker.wire.lane import Lane
from fanlight_broker.wire.message import Message

@final
class AmqpLane(Lane):
    greeted: bool
    kind: int
    channel: int
    def payload(self) -> bytes: ...
    def offer(self, message: Message) -> None: ...
