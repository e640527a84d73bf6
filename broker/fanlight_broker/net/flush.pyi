from asyncio import AbstractEventLoop, WriteTransport
from collections.abc import Callable
from typing import Any

from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.outbox import Sink

class SocketSink(Sink):
    outbox: Outbox
    transport: WriteTransport
    fd: int
    full: bool
    closing: bool
    ended: bool
    broken: bool
    def __init__(
        self, outbox: Outbox, transport: WriteTransport, on_drained: Callable[[Outbox], Any], fd: int = -1,
        waits: bool = False,
    ) -> None: ...
    def resumed(self) -> None: ...
    def paused(self) -> None: ...
    def flush_now(self) -> None: ...
    def close(self, linger: bool = True) -> None: ...
    def abort(self) -> None: ...
    @property
    def unsent(self) -> int: ...

class Flusher:
    turns: int
    writes: int
    def __init__(self, ledger: Ledger, on_fault: Callable[[Outbox, Exception], Any]) -> None: ...
    def schedule(self, loop: AbstractEventLoop) -> None: ...
    def flush(self) -> None: ...
