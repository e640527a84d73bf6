from collections.abc import Callable
from typing import Any, final

import matchcore
from fanlight_broker.protocols.amqp.exchanges.conditions import ConditionIndex
from fanlight_broker.protocols.amqp.exchanges.kept_answer import KeptAnswer
from fanlight_broker.wire.route import Route

def is_live(route: Route) -> bool: ...
@final
class RouteRoom:
    most: int
    taken: int
    full: Callable[[], None] | None
    unfreed: int
    def __init__(
        self, most: int = ..., later: Callable[[Callable[[], None]], object] | None = None
    ) -> None: ...
    def clear(self) -> None: ...
    def free_some(self) -> None: ...

@final
class ExchangeRoutes(KeptAnswer):
    prefix: bytes
    conditions: ConditionIndex | None
    def __init__(
        self, prefix: bytes, resolve: Callable[[tuple[int, ...]], Route | None], room: RouteRoom, *,
        conditions: ConditionIndex | None = None, filters: matchcore.FilterIndex | None = None, find_ids: Any = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    def drop(self) -> None: ...
