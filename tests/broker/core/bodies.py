"""A FieldReader and what it is compared with: the fields of a decoded body, by their paths."""

import math
from collections.abc import Iterator
from typing import Any

from fanlight_broker.core.field_reader import FieldReader
from fanlight_broker.wire.message import Message
from matchcore.body_reader import BODY_FORMATS
from matchcore.fields import Attributes
from matchcore.selector import Attribute, Source
from tests.broker.wire.formats import LineFormat

OTHER = b""  # what the reader says of a value that is present, and no more
NOWHERE = ("nowhere\0",)  # asked for so that the reader looks at the whole body
LINE = LineFormat("line")

Path = tuple[str, ...]


class Pairs(list[Any]):
    """A map as it is encoded: any value may be a key, and a key may come several times."""


class Bodies:
    """Reads bodies in one format for these paths."""

    def __init__(self, format: str, *paths: Path) -> None:
        self.format = BODY_FORMATS[format]
        self.attributes = Attributes()
        self.numbers = {
            self.attributes.acquire(Attribute(Source.PAYLOAD, path)): path for path in {*paths, NOWHERE}
        }
        self.reader = FieldReader(self.attributes)

    def read(self, body: bytes) -> dict[Path, Any] | None:
        """What was found; None: the body was refused, and nothing was."""
        read = self.reader.bodies.decoded
        self.reader.read_fields(Message(LINE, b"t", 0, body), self.format)
        found = {self.numbers[number]: value for number, value in self.reader.values().items()}
        assert self.reader.bodies.decoded > read or not found
        return found if self.reader.bodies.decoded > read else None

    @property
    def refused(self) -> tuple[int, int]:
        return self.reader.bodies.malformed, self.reader.bodies.too_large


def values_of(value: Pairs, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Each value of a map and of the maps in it, with its path, in the order in which they are encoded."""
    for name, inner in value:
        if isinstance(name, str):
            yield (*path, name), inner
            if isinstance(inner, Pairs):
                yield from values_of(inner, (*path, name))


def plain(value: Any) -> Any:
    """A decoded value as a field of it is; None: absent."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str):
        return OTHER if any("\ud800" <= character < "\ue000" for character in value) else value
    if isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else nearest(value)
    return OTHER


def nearest(value: int) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def expected(value: Pairs, paths: list[Path]) -> dict[Path, Any]:
    """What a reader is to find: of several values of a path the first that is not absent."""
    found: dict[Path, Any] = {}
    for path, inner in values_of(value):
        if path in paths and path not in found and plain(inner) is not None:
            found[path] = plain(inner)
    return found


def exactly(found: dict[Path, Any] | None) -> str:
    """1, 1.0 and True differ, and so do 0.0 and -0.0."""
    return repr(found and sorted(found.items()))


def depth(value: Any) -> int:
    """Maps and lists inside each other."""
    if isinstance(value, Pairs):
        return 1 + max((depth(item) for pair in value for item in pair), default=0)
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0
