from collections.abc import Iterable

from fanlight_broker.storage.log import Log

class MessageReader:
    damage: list[tuple[int, str]]
    def __init__(self, log: Log) -> None: ...
    def read(self, numbers: Iterable[int]) -> dict[int, bytes]: ...
