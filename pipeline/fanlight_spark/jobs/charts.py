"""Charts as data, which a report's page draws: lines, dots, bars, candles.

What is drawn is decided here, in Python; page/charts.js draws it with Apache ECharts, and has the pointer, the zoom and
the downloads. Here everything is bounded: of more points than a chart may have, the least and the greatest of each
stretch stay; of more bars or series, the first; of more candles, the newest. What is not finite is a gap.

A chart as JSON; times are milliseconds since 1970 and shown in UTC:
    kind      lines, dots, bars, candles
    x         name, scale (time, value, log, category), values; of a series with an `x` of its own, that
    y         name, log: whether it begins logarithmic
    series    name, y: a number for each x, null where there is a gap
    candles   [open, close, low, high] for each x; volumes: a number for each
    marks     from, to, name: stretches of x that have something to be said of them
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final

X = float | datetime

BARS_MAX, SERIES_MAX, CANDLES_MAX, MARKS_MAX = 40, 8, 400, 50
VALUES_MAX: Final = 4_000  # numbers of a chart of lines or dots, over all its series; some 12 bytes each
NAME_MAX: Final = 200  # letters; a topic may have 65,535 bytes


@dataclass(frozen=True, slots=True)
class Chart:
    """What a page draws; `data` is what JSON has."""

    kind: str
    data: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Mark:
    """A stretch of x, such as a window that is there only in part, or an outage."""

    begin: X
    end: X
    name: str


@dataclass(frozen=True, slots=True)
class Candle:
    """A bar of prices. label: what its place on the axis is called, such as its start in the market's time zone."""

    label: str
    open: float
    high: float
    low: float
    close: float
    volume: float | None = None


def bars(items: Iterable[tuple[str, float]], unit: str = "", *, log: bool = False) -> Chart:
    """A bar for each, one below the other, in their order."""
    shown = list(items)[:BARS_MAX]
    series = [{"name": name_of(unit), "y": [number_of(value) for _, value in shown]}]
    names = [name_of(name) for name, _ in shown]
    return Chart("bars", {
        "kind": "bars", "x": {"name": "", "scale": "category", "values": names},
        "y": {"name": name_of(unit), "log": log and any(value > 0 for _, value in shown)}, "series": series,
    })  # fmt: skip


def lines(
    series: Mapping[str, Sequence[tuple[X, float | None]]],
    *,
    x: str = "",
    y: str = "",
    log_x: bool = False,
    log_y: bool = False,
    dots: bool = False,
    step: timedelta | float | None = None,
    marks: Iterable[Mark] = (),
) -> Chart:
    """A line for each series of (x, y), x ascending numbers or times. dots: the points alone, for what is no sequence.

    step: how far apart points are; where two are further apart the line is broken, as it is at a None.
    """
    shown = {name: list(points) for name, points in list(series.items())[:SERIES_MAX]}
    times = any(isinstance(at, datetime) for points in shown.values() for at, _ in points)
    least = _length(step)
    made = []
    for name, points in shown.items():
        known = [(place, number_of(value)) for at, value in points if _drawn(place := place_of(at), log_x)]
        thinned = _thinned(_broken(known, least), VALUES_MAX // len(shown))
        made.append((name_of(name), [at for at, _ in thinned], [value for _, value in thinned]))
    shared = made[0][1] if made else []
    if times and not x and any(xs for _, xs, _ in made):
        x = _days(min(min(xs) for _, xs, _ in made if xs), max(max(xs) for _, xs, _ in made if xs))
    return Chart("dots" if dots else "lines", {
        "kind": "dots" if dots else "lines",
        "x": {"name": name_of(x), "scale": "time" if times else "log" if log_x else "value", "values": shared},
        "y": {"name": name_of(y), "log": log_y},
        "series": [{"name": name, "y": ys, **({} if xs == shared else {"x": xs})} for name, xs, ys in made],
        "marks": [{"from": place_of(mark.begin), "to": place_of(mark.end), "name": name_of(mark.name)}
                  for mark in list(marks)[:MARKS_MAX]],
    })  # fmt: skip


def candles(given: Iterable[Candle], y: str = "") -> Chart:
    """Bars of prices, oldest first: from low to high a thin line, from open to close a thick one, filled if it fell.

    Volumes stand below, if there are any.
    """
    known = [one for one in given if all(map(math.isfinite, (one.open, one.high, one.low, one.close)))][-CANDLES_MAX:]
    data: dict[str, Any] = {
        "kind": "candles", "x": {"name": "", "scale": "category", "values": [name_of(one.label) for one in known]},
        "y": {"name": name_of(y), "log": False},
        "candles": [[number_of(value) for value in (one.open, one.close, one.low, one.high)] for one in known],
    }  # fmt: skip
    if any(one.volume is not None for one in known):
        data["volumes"] = [number_of(one.volume) for one in known]
    return Chart("candles", data)


def partial_marks(first: datetime, last: datetime, step: timedelta, ends: tuple[bool, bool]) -> list[Mark]:
    """Marks of the first and the last window of a line, where they may lack messages: `ends` says which of them."""
    found = [Mark(first, first + step, "partial")] if ends[0] else []
    return found + ([Mark(last - step, last, "partial")] if ends[1] and (last > first or not ends[0]) else [])


def place_of(at: X) -> float | int:
    """Where on an axis: a time in whole milliseconds since 1970, in UTC if it has no zone."""
    if isinstance(at, datetime):
        return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1_000)
    return float(at)


def number_of(value: float | None) -> float | int | None:
    """A number as a page has it: seven digits of it; None for what is not finite."""
    if value is None or not math.isfinite(value):
        return None
    if value == int(value) and abs(value) < 1e15:
        return int(value)
    return float(f"{value:.7g}")


def name_of(text: str) -> str:
    """Of bounded length, cut in the middle, and with control characters made visible."""
    return short(visible(text), NAME_MAX)


def visible(text: str) -> str:
    """Control characters, and what UTF-8 has no bytes for, as the sign for what cannot be shown."""
    return "".join("\ufffd" if letter < " " or letter == "\x7f" or "\ud800" <= letter <= "\udfff" else letter
                   for letter in text)  # fmt: skip


def short(text: str, letters: int) -> str:
    """Cut in the middle, for topics differ at both ends."""
    if len(text) <= letters:
        return text
    return f"{text[: letters // 2]}…{text[-(letters - letters // 2 - 1):]}"


def _days(first: float, last: float) -> str:
    """What a time axis is of: its days, and that they are UTC's."""
    days = [f"{datetime.fromtimestamp(at / 1_000, UTC):%Y-%m-%d}" for at in (first, last)]
    return " to ".join(dict.fromkeys(days)) + ", UTC"


def _drawn(place: float, log: bool) -> bool:
    return math.isfinite(place) and (place > 0 or not log)


def _length(step: timedelta | float | None) -> float:
    if step is None:
        return math.inf
    return step.total_seconds() * 1_000 if isinstance(step, timedelta) else float(step)


Point = tuple[float | int, float | int | None]


def _broken(points: list[Point], step: float) -> list[Point]:
    """With a gap between two that are further apart than a step."""
    if math.isinf(step) or not points:
        return points
    found = points[:1]
    for (one, _), other in pairwise(points):
        if other[0] - one > 1.5 * step:
            found.append((one + step, None))
        found.append(other)
    return found


def _thinned(points: list[Point], most: int) -> list[Point]:
    """No more than `most`: of each stretch the least, the greatest, and one gap if there is any, in their order."""
    if len(points) <= most:
        return points
    stretches = max(1, most // 3)
    kept: set[int] = set()
    for number in range(stretches):
        part = range(number * len(points) // stretches, (number + 1) * len(points) // stretches)
        known = [at for at in part if points[at][1] is not None]
        if known:
            kept |= {min(known, key=lambda at: points[at][1] or 0), max(known, key=lambda at: points[at][1] or 0)}
        kept |= set([at for at in part if points[at][1] is None][:1])
    return [points[at] for at in sorted(kept)]
