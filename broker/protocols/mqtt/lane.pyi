from broker.wire.inbox import Inbox
from broker.wire.ledger import Ledger
from broker.wire.outbox import Outbox
from broker.wire.routes import RouteCache

NEED_MORE: int
PACKET: int
PUBLISH: int
BLOCKED: int
FAULT: int
TOO_LARGE: int

class Lane:
    inbox: Inbox
    outbox: Outbox
    packet_max: int
    control_max: int
    blocker: Outbox | None
    fault: str
    fault_reason: int
    first_byte: int
    packet_size: int
    def __init__(
        self, inbox: Inbox, outbox: Outbox, routes: RouteCache, ledger: Ledger, *, packet_max: int, control_max: int
    ) -> None: ...
    def advance(self, now: float) -> int: ...
    def packet(self) -> bytes: ...
