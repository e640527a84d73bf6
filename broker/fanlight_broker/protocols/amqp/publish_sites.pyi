from collections.abc import Callable
from typing import final

from fanlight_broker.wire.route import Route

class KeptAnswer:
    valid: bool

@final
class PublishSite:
    topic: bytes
    names: bytes
    route: Route | None
    answer: KeptAnswer | None
    def __init__(self, topic: bytes, names: bytes, route: Route | None, answer: KeptAnswer | None) -> None: ...

@final
class PublishSites:
    most: int
    def __init__(self, resolve: Callable[[bytes], PublishSite | None], most: int = 16_384) -> None: ...
    def __len__(self) -> int: ...

@final
class LaneChannel:
    number: int
    serial: int
    under_way: bool
    plain: bool
    confirming: bool
    published: int
    def __init__(self, number: int, serial: int) -> None: ...

class PublishCounts:
    confirms: int
    confirm_refusals: int
    discarded: int
