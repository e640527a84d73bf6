from typing import Any

from broker.wire.ledger import Ledger
from broker.wire.message import Message, Variant
from broker.wire.outbox import Outbox
from broker.wire.window import Queue, Window

UNLIMITED: int

class Target:
    variant: Variant
    window: Window | None
    number: int
    credit: int
    remaining: int
    ended: bool
    delivered: int
    dropped: int
    waiting_max: int
    subscription: Any
    def __init__(
        self,
        way: Outbox | Window,
        variant: Variant,
        number: int,
        *,
        no_echo: bool = False,
        only_echo: bool = False,
        credit: int = ...,
        after: int = ...,
        waiting_max: int = 0,
        subscription: Any = None,
        parts: list[Target] | None = None,
    ) -> None: ...
    @property
    def outbox(self) -> Outbox: ...
    @property
    def no_echo(self) -> bool: ...
    def send(self, message: Message, variant: Variant, now: float) -> None: ...
    def rebind(self, variant: Variant) -> None: ...
    @property
    def waiting_messages(self) -> int: ...
    def grant(self, messages: int) -> None: ...
    def end_after(self, messages: int) -> bool: ...
    def end(self) -> None: ...
    def cancel(self) -> None: ...
    def discard(self) -> None: ...

class Group:
    members: list[Target]
    turn: int
    queue: Queue | None
    def add(self, target: Target, queue: Queue | None = None) -> None: ...
    def replace(self, old: Target, new: Target) -> None: ...
    def feed(self, now: float) -> None: ...
    def remove(self, target: Target) -> None: ...
    def __len__(self) -> int: ...

class Route:
    key: bytes
    targets: list[Target]
    groups: list[Group]
    hits: int
    slot: Any
    def __init__(self, key: bytes, targets: list[Target], groups: list[Group]) -> None: ...
    def __len__(self) -> int: ...
    def blocker_of(self, publisher: Outbox | None) -> Outbox | None: ...

def publish(
    route: Route, ledger: Ledger, publisher: Outbox | None, message: Message, *, own: bool = False
) -> int: ...
