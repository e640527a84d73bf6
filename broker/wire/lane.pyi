from broker.wire.fanout import Route
from broker.wire.inbox import Inbox
from broker.wire.message import Message
from broker.wire.outbox import Outbox

NEED_MORE: int
FRAME: int
PUBLISH: int
BLOCKED: int
FAULT: int
TOO_LARGE: int
NO_ROOM: int
TURN_OVER: int

class Lane:
    inbox: Inbox
    outbox: Outbox
    control_max: int
    message: Message
    routed: int
    unkept: bool
    plain: bool
    silent: bool
    blocker: Outbox | None
    heard_at: float
    ready: bool
    def hear(self, now: float) -> None: ...
    def silence(self, now: float) -> float: ...
    def hold(self, blocker: Outbox | None) -> None: ...
    def forward(self, route: Route) -> bool: ...
    def done(self) -> None: ...
    def answers(self, route: Route) -> bool: ...
    def advance(self, now: float = ...) -> int: ...
