from collections.abc import Callable
from typing import final

from fanlight_broker.protocols.amqp.channel_tags import ChannelTags
from fanlight_broker.protocols.amqp.exchange_routes import ExchangeRoutes, RouteRoom
from fanlight_broker.protocols.amqp.exchanges.kept_answer import KeptAnswer
from fanlight_broker.wire.route import Route

@final
class PublishSite:
    topic: bytes
    names: bytes
    route: Route | None
    answer: KeptAnswer | None
    by_headers: ExchangeRoutes | None
    onward: Route | None
    def __init__(
        self, topic: bytes, names: bytes, route: Route | None, answer: KeptAnswer | None,
        by_headers: ExchangeRoutes | None = None, onward: Route | None = None,
    ) -> None: ...

@final
class PublishSites:
    most: int
    def __init__(
        self, resolve: Callable[[bytes], PublishSite | None], most: int = 16_384,
        later: Callable[[Callable[[], None]], object] | None = None,
    ) -> None: ...
    room: RouteRoom
    def __len__(self) -> int: ...
    def add(self, exchange: bytes, routes: ExchangeRoutes) -> None: ...
    def drop_exchanges(self) -> None: ...
    def clear(self) -> None: ...

@final
class LaneChannel:
    number: int
    serial: int
    under_way: bool
    plain: bool
    confirming: bool
    published: int
    tags: ChannelTags | None
    def __init__(self, number: int, serial: int) -> None: ...

class PublishCounts:
    confirms: int
    confirm_refusals: int
    discarded: int
