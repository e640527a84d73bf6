from collections.abc import Mapping

from matchcore.selector import Selector

__all__ = ["covers", "intersects"]

_Where = str | bytes | Mapping[str, object] | Selector

def covers(
    a: str | bytes, b: str | bytes, *, a_syntax: str = "amqp", b_syntax: str = "amqp",
    where_a: _Where | None = None, where_b: _Where | None = None,
) -> bool: ...
def intersects(
    a: str | bytes, b: str | bytes, *, a_syntax: str = "amqp", b_syntax: str = "amqp",
    where_a: _Where | None = None, where_b: _Where | None = None,
) -> bool: ...
def outline(
    filter: str | bytes, syntax: str
) -> tuple[tuple[int, int, int, int], bytes]: ...
