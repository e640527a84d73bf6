from broker.wire.inbox import Inbox
from broker.wire.lane import BLOCKED as BLOCKED
from broker.wire.lane import FAULT as FAULT
from broker.wire.lane import FRAME as FRAME
from broker.wire.lane import NEED_MORE as NEED_MORE
from broker.wire.lane import PUBLISH as PUBLISH
from broker.wire.lane import TOO_LARGE as TOO_LARGE
from broker.wire.lane import Lane as AnyLane
from broker.wire.ledger import Ledger
from broker.wire.outbox import Outbox
from broker.wire.routes import RouteCache


class Lane(AnyLane):
    frame_max: int
    open: bool
    fault: str
    fault_request: int | None
    frame_size: int
    def __init__(
        self, inbox: Inbox, outbox: Outbox, routes: RouteCache, ledger: Ledger, *, frame_max: int, control_max: int
    ) -> None: ...
    def frame(self) -> bytes: ...
    @property
    def reply(self) -> bytes | None: ...
    @property
    def syntax(self) -> int: ...
    @property
    def request(self) -> int | None: ...
    @property
    def mark(self) -> tuple[str, int, int] | None: ...
