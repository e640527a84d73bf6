from typing import final

from fanlight_broker.wire.flight import Flight
from fanlight_broker.wire.ledger import Pot

TAGS_MAX: int

class Inflight:
    count: int
    most: int
    nbytes: int
    def __init__(self, pot: Pot) -> None: ...
    def __len__(self) -> int: ...
    def get(self, tag: int) -> Flight | None: ...
    def give(self, flight: Flight) -> int: ...
    def discard(self, flight: Flight) -> None: ...
    def in_order(self) -> list[Flight]: ...

@final
class ReusedTags(Inflight): ...

@final
class TagCounter:
    last: int

@final
class CountingTags(Inflight):
    def all_up_to(self, tag: int) -> list[Flight]: ...
