from collections.abc import Iterable, Mapping

from fanlight_broker.storage.log import Log
from fanlight_broker.storage.wanted import Wanted
from fanlight_broker.wire.message import Format

class MessageReader:
    damage: list[tuple[int, str]]
    def __init__(self, log: Log) -> None: ...
    def read(self, numbers: Iterable[int]) -> dict[int, bytes]: ...
    def messages(
        self, wanted: Wanted, formats: Mapping[str, Format], wall: float, soon: Wanted | None = None
    ) -> None: ...
