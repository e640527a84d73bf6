from collections.abc import Callable
from typing import Any

def read(
    octets: bytes, at: int, end: int, depth: int, timestamp: Callable[[int], int]
) -> tuple[dict[str, Any], int] | None: ...
def raw(encoded: bytes) -> dict[str, bytes] | None: ...
def read_method(
    layouts: dict[bytes, Any], payload: bytes, timestamp: Callable[[int], int]
) -> tuple[Any, ...] | None: ...
