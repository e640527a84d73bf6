from broker.protocols.mqtt.format import PublishFormat
from broker.wire.inbox import Inbox
from broker.wire.lane import BLOCKED as BLOCKED
from broker.wire.lane import FAULT as FAULT
from broker.wire.lane import NEED_MORE as NEED_MORE
from broker.wire.lane import PUBLISH as PUBLISH
from broker.wire.lane import TOO_LARGE as TOO_LARGE
from broker.wire.lane import Lane as AnyLane
from broker.wire.ledger import Ledger
from broker.wire.outbox import Outbox
from broker.wire.routes import RouteCache
from broker.wire.window import Window

PACKET: int

class Lane(AnyLane):
    packet_max: int
    open: bool
    check_text: bool
    user_properties_max: int
    fault: str
    fault_reason: int
    alias_max: int
    aliases_bytes: int
    first_byte: int
    packet_size: int
    def __init__(
        self, inbox: Inbox, outbox: Outbox, routes: RouteCache, ledger: Ledger, *, packet_max: int, control_max: int
    ) -> None: ...
    def begin(
        self, format: PublishFormat, window: Window, *, alias_max: int, alias_bytes_max: int = ..., maximum_qos: int = 2
    ) -> None: ...
    def forget_aliases(self) -> None: ...
    def packet(self) -> bytes: ...
    @property
    def packet_id(self) -> int | None: ...
    @property
    def dup(self) -> bool: ...
    @property
    def is_text(self) -> bool: ...
