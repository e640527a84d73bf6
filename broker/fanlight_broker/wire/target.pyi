from typing import Any, final

from fanlight_broker.wire.consumers import Consumers
from fanlight_broker.wire.message import Message, Variant
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.queue import Queue
from fanlight_broker.wire.window import Window

UNLIMITED: int

class Members(Consumers):
    name: str
    members: list[Target]
    queue: Queue | None

@final
class Target:
    variant: Variant
    window: Window | None
    number: int
    filter: bytes
    syntax_number: int
    id: int
    credit: int
    remaining: int
    ended: bool
    partly: int
    def __init__(
        self,
        destination: Outbox | Window,
        variant: Variant,
        number: int,
        filter: bytes = b"",
        syntax: int = 0,
        no_echo: bool = False,
        *,
        only_echo: bool = False,
        credit: int = ...,
        after: int = ...,
        waiting_max: int = 0,
        parts: list[Target] | None = None,
        condition: Any = None,
    ) -> None: ...
    @property
    def delivered(self) -> int: ...
    @property
    def dropped(self) -> int: ...
    @property
    def waiting_max(self) -> int: ...
    @property
    def parts(self) -> list[Target] | None: ...
    @property
    def condition(self) -> Any: ...
    @property
    def group(self) -> Members | None: ...
    @property
    def outbox(self) -> Outbox | None: ...
    @property
    def owner(self) -> Any: ...
    @property
    def no_echo(self) -> bool: ...
    def send(self, message: Message, variant: Variant, now: float) -> None: ...
    def rebind(self, variant: Variant, no_echo: bool) -> None: ...
    @property
    def waiting_messages(self) -> int: ...
    def lift_credit(self) -> None: ...
    def grant(self, messages: int) -> None: ...
    def end_after(self, messages: int) -> bool: ...
    def end(self) -> None: ...
    def cancel(self) -> None: ...
    def discard(self) -> None: ...
