from broker.wire.inbox import Inbox
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
    blocker: Outbox | None
    heard_at: float
    ready: bool
    def hear(self, now: float) -> None: ...
    def silence(self, now: float) -> float: ...
    def hold(self, blocker: Outbox | None) -> None: ...
    def advance(self, now: float = ...) -> int: ...
