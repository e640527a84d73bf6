"""What Spark says of the rows that it wants, as far as the archive can use it: conditions on topic, time and offset.

Times and offsets become bounds, so that segments and batches outside are not read at all; topics are compared once for
each topic of a batch, before the rows go to the JVM. What is taken here Spark does not check again, so only what means
exactly the same is taken: the rest stays with Spark.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from fanlight_archive import SCHEMA

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Wanted:
    """Rows by their columns. Bounds are integers: from the first to before the second; None is no bound."""

    since: int | None = None  # microseconds
    until: int | None = None
    first: int | None = None  # offsets
    end: int | None = None
    topics: list[Filter] = field(default_factory=list)

    def take(self, filter: Filter) -> bool:
        """Take a condition over, if it is one of those. What is taken is one more that must hold."""
        column: tuple[str, ...] = getattr(filter, "attribute", ())
        if isinstance(filter, IsNotNull):
            return len(column) == 1 and column[0] in NEVER_NULL
        if column == ("topic",):
            return self._topic(filter)
        if column == ("timestamp",):
            at = _microseconds(getattr(filter, "value", None))
        elif column == ("offset",):
            at = _whole(getattr(filter, "value", None))
        else:
            return False
        bounds = _bounds(filter, at)
        if bounds is None:
            return False
        low, high = bounds
        if column == ("timestamp",):
            self.since, self.until = _later(self.since, low), _earlier(self.until, high)
        else:
            self.first, self.end = _later(self.first, low), _earlier(self.end, high)
        return True

    def wants(self, topic: str) -> bool:
        """Do all conditions hold for a topic?"""
        return all(_holds(condition, topic) for condition in self.topics)

    def _topic(self, filter: Filter) -> bool:
        texts: Sequence[Any] = filter.value if isinstance(filter, In) else (getattr(filter, "value", None),)
        known = isinstance(filter, EqualTo | In | StringStartsWith | StringEndsWith | StringContains)
        if not known or not all(isinstance(text, str) for text in texts):
            return False
        self.topics.append(filter)
        return True


#: What a message always has.
NEVER_NULL = frozenset(column.name for column in SCHEMA if not column.nullable)


def _holds(condition: Filter, topic: str) -> bool:
    match condition:
        case EqualTo(value=text):
            return bool(topic == text)
        case In(value=texts):
            return topic in texts
        case StringStartsWith(value=text):
            return topic.startswith(text)
        case StringEndsWith(value=text):
            return topic.endswith(text)
        case StringContains(value=text):
            return text in topic
    raise AssertionError(f"{condition} was not to be taken")


def _bounds(filter: Filter, at: int | None) -> tuple[int | None, int | None] | None:
    """The first and the end that a comparison with a number means; None if it is no such comparison."""
    if at is None:
        return None
    match filter:
        case EqualTo():
            return at, at + 1
        case GreaterThan():
            return at + 1, None
        case GreaterThanOrEqual():
            return at, None
        case LessThan():
            return None, at
        case LessThanOrEqual():
            return None, at + 1
    return None


def _microseconds(value: Any) -> int | None:
    """A time with a zone, which is what a TIMESTAMP comes as; not one without, which would be somebody's local time."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    return (value - _EPOCH) // timedelta(microseconds=1)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _later(one: int | None, other: int | None) -> int | None:
    return max(bounds) if (bounds := [at for at in (one, other) if at is not None]) else None


def _earlier(one: int | None, other: int | None) -> int | None:
    return min(bounds) if (bounds := [at for at in (one, other) if at is not None]) else None
