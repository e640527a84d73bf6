from collections.abc import Callable
from typing import Any, final

from fanlight_broker.wire.archive_tap import ArchiveTap
from fanlight_broker.wire.sampler import Sampler
from fanlight_broker.wire.screening import Screener
from fanlight_broker.wire.target import Target

@final
class Finder:
    selects: Callable[[bytes, int], bool] | None
    tap: ArchiveTap | None
    topic_bytes_max: int
    topic_words_max: int
    built: int
    screener: Screener
    body_formats: Callable[[bytes, int], int] | None
    rules: Callable[[bytes, int], bool] | None
    onward: Callable[[bytes, int], bool] | None
    sampler: Sampler | None
    screened: int
    partly: int
    may_read: Callable[[Target, bytes, int], bool]
    def __init__(
        self, index: object, find_ids: object, by_id: list[Any], *, separators: bytes, roots: tuple[bytes, ...],
        reserved: tuple[bytes, ...], merge: Callable[[list[Target]], list[Target]],
    ) -> None: ...
    def without_denied(self, ids: tuple[int, ...], topic: bytes, syntax: int) -> tuple[int, ...]: ...
