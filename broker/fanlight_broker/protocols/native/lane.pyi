from typing import final

from fanlight_broker.wire.lane import Lane

@final
class NativeLane(Lane):
    fault_request: int | None
    @property
    def reply(self) -> bytes | None: ...
    @property
    def syntax(self) -> int: ...
    @property
    def request(self) -> int | None: ...
    @property
    def mark(self) -> tuple[str, int, int] | None: ...
