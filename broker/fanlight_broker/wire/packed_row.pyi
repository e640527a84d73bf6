from typing import final

from fanlight_broker.wire.backlog import Backlog
from fanlight_broker.wire.ledger import Account, Ledger

@final
class Place: ...

@final
class PackedRow(Backlog):
    held: int
    def __init__(self, ledger: Ledger, account: Account | None = None, chunk_bytes: int = ...) -> None: ...
