from typing import final

from fanlight_broker.wire.lane import Lane
from fanlight_broker.wire.window import Window

@final
class NativeLane(Lane):
    fault_request: int | None
    consumers: dict[int, Window] | None
    @property
    def reply(self) -> bytes | None: ...
    @property
    def syntax(self) -> int: ...
    @property
    def request(self) -> int | None: ...
    @property
    def options(self) -> bytes | None: ...
    @property
    def mark(self) -> tuple[str, int, int] | None: ...
