"""What payloads have in them, so that a decoder's fields can be proposed: of each place which values were seen there.

    kinds       proposed                            beside it
    number      bigint; double with a fraction      decimal(38,0) if all are whole and one is beyond 64 bits
    string      date or timestamp if all are        string otherwise
    object      struct of what it has               map<string, T> with more than MEMBERS_MAX different keys
    several     that of most values                 a conflict: messages with another become dead letters
    none        string                              null wherever it was

Places are fields of a payload, fields of an object in it, and elements of an array. Their number is bounded, so keys
that are data take no memory without end: what there was no room for is counted.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, Final

from fanlight_archive.arrow import pa
from fanlight_spark.decoding import times
from fanlight_spark.decoding.records import kind_of
from fanlight_spark.decoding.type_names import TIMESTAMP

PLACES_MAX: Final = 4_096  # of a table
DEPTH_MAX: Final = 8  # of objects and arrays; what is deeper is a conflict of its own
MEMBERS_MAX: Final = 64  # keys of an object that is no map
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
_ZONED: Final = re.compile(r"(Z|[+-]\d\d(:?\d\d)?)$")
_DIGITS: Final = 38


class Room:
    """How many places a table may still have. left_out: values that there was none for."""

    def __init__(self, places: int = PLACES_MAX) -> None:
        self._places, self.left_out = places, 0

    def take(self) -> bool:
        if self._places:
            self._places -= 1
            return True
        self.left_out += 1
        return False


class Seen:
    """The values of one place."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.nulls = 0
        self.firsts: dict[str, int] = {}  # kind -> the offset of the first message with it
        self.first: int | None = None  # of those with a value
        self.last: int | None = None
        self.members: dict[str, Seen] = {}  # of objects
        self.items: Seen | None = None  # of arrays
        self.least, self.most = 0, 0  # of whole numbers
        self.fractions = 0
        self.dates = self.moments = self.zoned = 0  # of texts

    def add(self, value: Any, offset: int, room: Room, depth: int = 0) -> None:
        if value is None:
            self.nulls += 1
            return
        kind = kind_of(value)
        self.kinds[kind] += 1
        self.firsts.setdefault(kind, offset)
        self.first, self.last = offset if self.first is None else self.first, offset
        if kind == "number":
            self._number(value)
        elif kind == "string":
            self._text(value)
        elif kind == "object" and depth < DEPTH_MAX:
            for key, each in value.items():
                if (place := self.member(str(key), room)) is not None:
                    place.add(each, offset, room, depth + 1)
        elif kind == "array" and depth < DEPTH_MAX:
            if self.items is None and room.take():
                self.items = Seen()
            if self.items is not None:
                for each in value:
                    self.items.add(each, offset, room, depth + 1)

    def member(self, key: str, room: Room) -> "Seen | None":
        if (found := self.members.get(key)) is None and room.take():
            found = self.members[key] = Seen()
        return found

    def merge(self, other: "Seen") -> None:
        """Take what was seen in another place for what was seen here."""
        self.kinds += other.kinds
        self.nulls += other.nulls
        for kind, offset in other.firsts.items():
            self.firsts[kind] = min(offset, self.firsts.get(kind, offset))
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)
        self.fractions += other.fractions
        self.dates, self.moments = self.dates + other.dates, self.moments + other.moments
        self.zoned += other.zoned
        for key, place in other.members.items():
            self.members.setdefault(key, Seen()).merge(place)
        if other.items is not None:
            self.items = self.items or Seen()
            self.items.merge(other.items)

    @property
    def kind(self) -> str | None:
        """That of most values; None if all are null."""
        return max(self.kinds, key=lambda kind: (self.kinds[kind], kind), default=None)

    def type(self) -> Any:
        """The narrowest type of Arrow for all values of that kind."""
        kind = self.kind
        if kind == "number":
            if self.fractions:
                return pa.float64()
            if self.least >= -(2**63) and self.most < 2**63:
                return pa.int64()
            return pa.decimal128(_DIGITS, 0) if max(-self.least, self.most) < 10**_DIGITS else pa.float64()
        if kind == "string":
            return self._type_of_texts()
        if kind == "array":
            return pa.list_(pa.string() if self.items is None else self.items.type())
        if kind == "object" and self.members:
            return self._type_of_objects()
        # An object that was always empty has no field: as a map it has none either.
        return {"boolean": pa.bool_(), "binary": pa.binary(), "timestamp": TIMESTAMP, "date": pa.date32(),
                "object": pa.map_(pa.string(), pa.string())}.get(kind or "", pa.string())  # fmt: skip

    def conflicts(self, path: str = "") -> Iterator[tuple[str, str, int, int]]:
        """(path below it, kind, how many, the first offset) of values that are not of its type."""
        for kind, count in self.kinds.items():
            if kind != self.kind:
                yield path, kind, count, self.firsts[kind]
        if self.kind == "object":
            inside = self.members.items() if not self.is_map else [("*", self.as_one())]
            for key, place in inside:
                yield from place.conflicts(f"{path}.{key}")
        elif self.kind == "array" and self.items is not None:
            yield from self.items.conflicts(f"{path}[]")

    @property
    def is_map(self) -> bool:
        """Are the keys of its objects data, and not names? Some names no struct can have."""
        names = {key.lower() for key in self.members if key and "`" not in key}
        return len(self.members) > MEMBERS_MAX or len(names) < len(self.members)

    def as_one(self) -> "Seen":
        """What a map has for values."""
        whole = Seen()
        for place in self.members.values():
            whole.merge(place)
        return whole

    def _type_of_objects(self) -> Any:
        if self.is_map:
            return pa.map_(pa.string(), self.as_one().type())
        return pa.struct([(key, place.type()) for key, place in self.members.items()])

    def _type_of_texts(self) -> Any:
        count = self.kinds["string"]
        if self.dates == count:
            return pa.date32()
        return TIMESTAMP if self.moments == count else pa.string()

    def _number(self, value: Any) -> None:
        if type(value) is int:
            self.least, self.most = min(self.least, value), max(self.most, value)
        elif isinstance(value, float | Decimal):
            self.fractions += 1

    def _text(self, value: str) -> None:
        if _DATE.fullmatch(value):
            try:
                date.fromisoformat(value)
            except ValueError:
                return
            self.dates += 1
        elif not _TIME.match(value) or times.of_texts(pa.array([value]), "UTC")[0].as_py() is None:
            return
        self.moments += 1
        self.zoned += _ZONED.search(value[10:]) is not None


class Inferred:
    """The payloads of a table. Its fields are `whole.members`.

    unreadable: reason -> how many, of REASONS_MAX reasons
    """

    REASONS_MAX: Final = 32

    def __init__(self) -> None:
        self.whole, self.room = Seen(), Room()
        self.messages = 0
        self.unreadable: Counter[str] = Counter()
        self.rows = 0

    def add(self, record: Mapping[Any, Any] | None, problem: str | None, offset: int) -> None:
        """A payload: a record, or why there is none."""
        self.messages += 1
        if record is None:
            reason = re.sub(r"\d+", "N", problem or "")
            known = reason in self.unreadable or len(self.unreadable) < self.REASONS_MAX
            self.unreadable[reason if known else "other"] += 1
            return
        self.rows += 1
        for key, value in record.items():
            if isinstance(key, str) and (place := self.whole.member(key, self.room)) is not None:
                place.add(value, offset, self.room, 1)

    def optional(self, place: Seen) -> bool:
        return place.kinds.total() < self.rows


def moment_needs_zone(place: Seen) -> bool:
    """Are its values times, some of which do not say their zone?"""
    return place.type() == TIMESTAMP and place.kind == "string" and place.zoned < place.kinds["string"]
