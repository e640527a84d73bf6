from collections.abc import Iterable, Mapping

from matchcore.screen import Screen
from matchcore.selector import Attribute

__all__ = ["found_by"]

def found_by(
    screen: Screen, ids: Iterable[int], mapping: Mapping[str, object] | Mapping[Attribute, object]
) -> list[tuple[str, ...]]: ...
