"""Times in payloads to instants: ISO 8601 with a zone or without, and numbers since 1970.

What has no zone is of the field's `zone`, an IANA name, which may have daylight saving time. A local time that there is
twice, when clocks are set back, is the earlier instant; one that there is not, when they are set forward, is later by
as much as they are set. So do Java, and Spark's own functions.

ISO 8601 as Arrow reads it: `2018-01-02`, `2018-01-02T10:00`, `2018-01-02 10:00:00.123456`, with `Z`, `+01`, `+0100` or
`+01:00` behind the time. Digits past microseconds are cut off.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np

from fanlight_archive.arrow import pa, pc
from fanlight_spark.decoding.type_names import TIMESTAMP

#: Unit of a number -> microseconds in one, or None for nanoseconds.
UNITS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": None}
FLOATING: Final = ("s", "ms")  # units in which a number may have a fraction
LEAST, MOST = -62_135_596_800_000_000, 253_402_300_799_999_999  # years 1 to 9999, in microseconds since 1970
_LOCAL: Final = pa.timestamp("us")
_MORE_DIGITS: Final = re.compile(r"(:\d\d\.\d{6})\d{1,12}(?!\d)")


@lru_cache(64)
def zone_of(name: str) -> ZoneInfo:
    """Raises ValueError."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"{name!r} is no time zone, such as America/New_York") from error


def of_texts(texts: Any, zone: str) -> Any:
    """Instants of a string array; null where a text is null, and where it is no time."""
    for whole in (_zoned, _unzoned):  # most arrays are of one kind
        try:
            return _within(whole(texts, zone))
        except pa.ArrowInvalid:
            continue
    return _within(pa.array([_of_text(text, zone) for text in texts.to_pylist()], TIMESTAMP))


def of_numbers(numbers: Any, unit: str) -> Any:
    """Instants of an int64 or double array; null where a number is null, or outside the years 1 to 9999."""
    factor = UNITS[unit]
    valid = pc.is_valid(numbers).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(numbers.type):
        values = pc.fill_null(numbers, 0.0).to_numpy(zero_copy_only=False) * float(factor or 1e-3)
        valid &= (values >= LEAST) & (values <= MOST)  # not of NaN
        whole = np.rint(np.where(valid, values, 0.0)).astype(np.int64)
    else:
        given = pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False)
        if factor is None:
            whole = given // 1_000
        else:
            valid &= (given >= LEAST // factor) & (given <= MOST // factor)
            whole = np.where(valid, given, 0) * factor
    valid &= (whole >= LEAST) & (whole <= MOST)
    return pa.array(whole, pa.int64(), mask=~valid).cast(TIMESTAMP)


def of_datetime(moment: datetime, zone: str) -> datetime:
    """In UTC; of the zone if it has none. Raises OverflowError beyond the years 1 to 9999."""
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=zone_of(zone))).astimezone(UTC)


def _zoned(texts: Any, _zone: str) -> Any:
    return texts.cast(TIMESTAMP)


def _unzoned(texts: Any, zone: str) -> Any:
    local = texts.cast(_LOCAL)
    if zone == "UTC":
        return local.cast(TIMESTAMP)
    try:
        return pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="raise").cast(TIMESTAMP)
    except (pa.ArrowInvalid, OSError):  # a time that there is not, or Arrow finds no table of zones
        return pa.array([_of_local(value, zone) for value in local.cast(pa.int64()).to_pylist()], TIMESTAMP)


def _of_local(microseconds: int | None, zone: str) -> datetime | None:
    if microseconds is None or not LEAST <= microseconds <= MOST:
        return None
    local: datetime = pa.scalar(microseconds, _LOCAL).as_py()
    try:
        return of_datetime(local, zone)
    except OverflowError:
        return None


def _of_text(text: str | None, zone: str) -> datetime | None:
    """One that is not like the others of its array."""
    if text is None:
        return None
    one = pa.array([_MORE_DIGITS.sub(r"\1", text, count=1)])
    for whole in (_zoned, _unzoned):
        try:
            found: datetime | None = _within(whole(one, zone))[0].as_py()
            return found
        except pa.ArrowInvalid:
            continue
    return None


def _within(instants: Any) -> Any:
    """Without those outside the years that Spark and Python have."""
    numbers = instants.cast(pa.int64())
    outside = pc.or_(pc.less(numbers, LEAST), pc.greater(numbers, MOST))
    if pc.any(outside).as_py():
        return pc.if_else(outside, pa.scalar(None, TIMESTAMP), instants)
    return instants
