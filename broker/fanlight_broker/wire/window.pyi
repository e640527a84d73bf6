from typing import Any, final

from fanlight_broker.wire.flight import Flight
from fanlight_broker.wire.inflight import Inflight, TagCounter
from fanlight_broker.wire.journal import JournalPosition
from fanlight_broker.wire.ledger import Pot
from fanlight_broker.wire.message import Format, Message, Variant, Variants
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.consumers import Consumers
from fanlight_broker.wire.queue import Consumer, Queue

@final
class Window:
    owner: Any
    queue: Queue
    inflight: Inflight
    open: bool
    ended: bool
    resting: bool
    inflight_max: int
    sent: int
    consumers: list[Consumer]
    ended_flights: int
    position: JournalPosition | None
    unsent: int
    hub: Consumers | None
    variant: Variant | None
    number: int
    ack_wait: float
    rank: int
    automatic: bool
    delivered: int
    def __init__(
        self, outbox: Outbox | None, queue: Queue, pot: Pot | None = ..., owner: Any = None, *, counting: bool = False,
        hub: Consumers | None = None, variant: Variant | None = None, number: int = 0,
        counter: TagCounter | None = None,
    ) -> None: ...
    @property
    def outbox(self) -> Outbox | None: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def acknowledge(self, tag: int, now: float) -> bool: ...
    def acknowledge_up_to(self, tag: int, now: float) -> int: ...
    def advance(self, now: float) -> None: ...
    def attach(self, outbox: Outbox, inflight_max: int) -> None: ...
    def resume(self, now: float) -> None: ...
    def leave(self) -> list[Consumers]: ...
    def stand_in(self) -> Outbox: ...
    def detach(self) -> list[Consumers]: ...
    def flights(self) -> list[Flight]: ...
    def rebind(self, variants: Variants, format: Format) -> None: ...
    def end(self) -> int: ...
