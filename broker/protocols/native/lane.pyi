from broker.wire.fanout import Route
from broker.wire.inbox import Inbox
from broker.wire.ledger import Ledger
from broker.wire.outbox import Outbox
from broker.wire.routes import RouteCache

NEED_MORE: int
FRAME: int
PUBLISH: int
BLOCKED: int
FAULT: int
TOO_LARGE: int

class Lane:
    inbox: Inbox
    outbox: Outbox
    frame_max: int
    control_max: int
    open: bool
    plain: bool
    blocker: Outbox | None
    fault: str
    fault_request: int | None
    frame_size: int
    def __init__(
        self, inbox: Inbox, outbox: Outbox, routes: RouteCache, ledger: Ledger, *, frame_max: int, control_max: int
    ) -> None: ...
    def advance(self) -> int: ...
    def frame(self) -> bytes: ...
    @property
    def topic(self) -> bytes: ...
    @property
    def reply(self) -> bytes | None: ...
    @property
    def syntax(self) -> int: ...
    @property
    def request(self) -> int | None: ...
    def forward(self, route: Route) -> bool: ...
    def done(self) -> None: ...
