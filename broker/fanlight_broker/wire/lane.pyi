from typing import Final

from fanlight_broker.wire.badge import Badge
from fanlight_broker.wire.route import Route
from fanlight_broker.wire.inbox import Inbox
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.receipts import Receipts, Receiver
from fanlight_broker.wire.routes import RouteCache

NEED_MORE: Final = 0
FRAME: Final = 1
PUBLISH: Final = 2
BLOCKED: Final = 3
FAULT: Final = 4
TOO_LARGE: Final = 5
NO_ROOM: Final = 6
TURN_OVER: Final = 7
ANY_SIZE: int

class Lane(Receiver):
    inbox: Inbox
    outbox: Outbox
    frame_max: int
    publish_max: int
    control_max: int
    open: bool
    message: Message
    routed: int
    unkept: bool
    badge: Badge | None
    receipts: Receipts | None
    fault: str
    blocker: Outbox | None
    last_activity: float
    ready: bool
    frame_size: int
    def __init__(
        self, inbox: Inbox, outbox: Outbox, routes: RouteCache, ledger: Ledger, *, frame_max: int, control_max: int
    ) -> None: ...
    def note_activity(self, now: float) -> None: ...
    def silence(self, now: float) -> float: ...
    def hold_back(self, blocker: Outbox | None) -> None: ...
    def frame(self) -> bytes: ...
    def forward(self, route: Route) -> bool: ...
    def done(self) -> None: ...
    def forget_receipts(self) -> None: ...
    def confirm(self, route: Route) -> bool: ...
    def waits(self, route: Route) -> bool: ...
    def advance(self, now: float = ...) -> int: ...
    def use_routes(self, routes: RouteCache) -> int: ...
