from fanlight_broker.wire.archive_tap import ArchiveTap
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.outbox import Outbox

def record(tap: ArchiveTap, ledger: Ledger, publisher: Outbox | None, message: Message) -> None: ...
