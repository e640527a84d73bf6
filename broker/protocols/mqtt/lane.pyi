from broker.protocols.mqtt.format import PublishFormat
from broker.wire.fanout import Route
from broker.wire.inbox import Inbox
from broker.wire.ledger import Ledger
from broker.wire.message import Message
from broker.wire.outbox import Outbox
from broker.wire.routes import RouteCache
from broker.wire.window import Window

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
    passed: bool
    control_max: int
    open: bool
    plain: bool
    silent: bool
    check_text: bool
    blocker: Outbox | None
    fault: str
    fault_reason: int
    alias_max: int
    first_byte: int
    packet_size: int
    message: Message
    routed: int
    def __init__(
        self, inbox: Inbox, outbox: Outbox, routes: RouteCache, ledger: Ledger, *, packet_max: int, control_max: int
    ) -> None: ...
    def begin(self, format: PublishFormat, window: Window, *, alias_max: int) -> None: ...
    def advance(self, now: float) -> int: ...
    def packet(self) -> bytes: ...
    @property
    def packet_id(self) -> int | None: ...
    @property
    def dup(self) -> bool: ...
    @property
    def is_text(self) -> bool: ...
    def forward(self, route: Route) -> bool: ...
    def done(self) -> None: ...
