"""Plots as SVG text, to stand in a page: bars, lines, candles.

Plain SVG of our own and not matplotlib's: a plot is 2 to 20 kB, needs nothing installed, takes its colours from the
page (light and dark), and shows its values under the pointer. The classes c0 to c7, tick, grid and axis are the
page's (report.py). Whatever comes in is bounded: of more points than there is room for, the least and the greatest
stay; of more bars or series, the first.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final, NewType

Svg = NewType("Svg", str)  # made here, so its text is escaped
X = float | datetime
Candle = tuple[datetime, float, float, float, float]  # time, open, high, low, close

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 272, 64, 28, 26, 40
BARS_MAX, SERIES_MAX, POINTS_MAX, CANDLES_MAX = 40, 8, 600, 160
LABEL_MAX: Final = 30  # letters of a bar's name
SECOND_STEPS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
DAY = 86_400
MONTH_STEPS: Final = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600)


def bars(items: Iterable[tuple[str, float]], unit: str = "") -> Svg:
    """A bar for each, one below the other, in their order."""
    shown = [(name, _finite(value)) for name, value in list(items)[:BARS_MAX]]
    left, row = 190, 22
    height = row * len(shown) + 8
    most = max([value for _, value in shown if value > 0], default=1.0)
    wide = WIDTH - left - 90
    parts = []
    for number, (name, value) in enumerate(shown):
        y = number * row + 4
        long = max(value, 0) / most * wide
        parts.append(
            f'<g><title>{_text(name)}: {_text(_exact(value, unit))}</title>'
            f'<text class="name" x="{left - 8}" y="{y + 13}" text-anchor="end">{_text(short(name, LABEL_MAX))}</text>'
            f'<rect class="c0" x="{left}" y="{y}" width="{max(long, 1):.1f}" height="{row - 6}" rx="2"/>'
            f'<text class="tick" x="{left + long + 6:.1f}" y="{y + 13}">{_text(number_text(value))}</text></g>'
        )
    return _svg(height, parts, "bars")


def lines(
    series: Mapping[str, Sequence[tuple[X, float]]],
    *,
    x: str = "",
    y: str = "",
    log_x: bool = False,
    log_y: bool = False,
    dots: bool = False,
    partial: tuple[bool, bool] = (False, False),
) -> Svg:
    """A line for each series of (x, y), x numbers or times. dots: the points by themselves, for what is no sequence.

    partial: whether the first and the last point may be too low; what leads to such a one is dashed.
    On a logarithmic axis what is not above 0 is left out. What is not finite is left out.
    """
    shown: dict[str, list[tuple[float, float]]] = {}
    times = False
    for name, given in list(series.items())[:SERIES_MAX]:
        times = times or any(isinstance(at, datetime) for at, _ in given)
        points = [(_x(at), float(value)) for at, value in given]
        shown[name] = [
            (at, value)
            for at, value in points
            if math.isfinite(at) and math.isfinite(value) and (at > 0 or not log_x) and (value > 0 or not log_y)
        ]
    every = [point for points in shown.values() for point in points]
    horizontal = _Axis([at for at, _ in every], LEFT, WIDTH - RIGHT, log=log_x, times=times)
    vertical = _Axis([value for _, value in every], HEIGHT - BOTTOM, TOP, log=log_y, from_zero=not log_y)
    parts = _frame(horizontal, vertical, x, y)
    for number, (name, points) in enumerate(shown.items()):
        places = _thinned([(horizontal.at(at), vertical.at(value)) for at, value in points])
        if dots or len(places) == 1:
            parts += [f'<circle class="c{number}" cx="{a:.1f}" cy="{b:.1f}" r="2.5"/>' for a, b in places]
        elif places:
            parts += _line(places, number, name, partial)
    return _svg(HEIGHT + _legend(parts, list(shown)), parts, "lines")


def _line(places: list[tuple[float, float]], number: int, name: str, partial: tuple[bool, bool]) -> list[str]:
    """A line through the places: of one piece, or with its first and last piece dashed."""
    first, last = (1 if partial[0] else 0), len(places) - (2 if partial[1] else 1)
    pieces = [("", places[first : last + 1])] if first < last else []
    pieces += [(" partial", places[:2])] if partial[0] else []
    pieces += [(" partial", places[-2:])] if partial[1] and (len(places) > 2 or not partial[0]) else []
    made = []
    for kind, piece in pieces:
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in piece)
        made.append(f'<polyline class="c{number}{kind}" points="{path}"><title>{_text(name)}</title></polyline>')
    return made


def candles(given: Iterable[Candle], y: str = "") -> Svg:
    """Bars of prices, oldest first: from low to high a thin line, from open to close a thick one, filled if it fell.

    Of more than there is room for, the newest.
    """
    known = [one for one in given if all(math.isfinite(value) for value in one[1:])]
    shown = known[-CANDLES_MAX:]
    horizontal = _Axis([_x(one[0]) for one in shown], LEFT + 12, WIDTH - RIGHT - 12, times=True)
    vertical = _Axis([value for one in shown for value in one[2:4]], HEIGHT - BOTTOM, TOP)
    parts = _frame(horizontal, vertical, "", y)
    wide = max(1.5, min(12.0, 0.7 * (WIDTH - LEFT - RIGHT) / max(len(shown), 1)))
    for at, first, high, low, last in shown:
        x = horizontal.at(_x(at))
        top, bottom = vertical.at(max(first, last)), vertical.at(min(first, last))
        label = f"{at:%Y-%m-%d %H:%M}: open {first:g}, high {high:g}, low {low:g}, close {last:g}"
        parts.append(
            f'<g class="{"rise" if last >= first else "fall"}"><title>{_text(label)}</title>'
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{vertical.at(high):.1f}" y2="{vertical.at(low):.1f}"/>'
            f'<rect x="{x - wide / 2:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{max(bottom - top, 1):.1f}"/></g>'
        )
    return _svg(HEIGHT, parts, "candles")


class _Axis:
    """From values to places, and the values that are written beside it."""

    def __init__(
        self, values: Sequence[float], start: float, end: float, *, log: bool = False, times: bool = False,
        from_zero: bool = False,
    ) -> None:  # fmt: skip
        low, high = (min(values), max(values)) if values else (1.0, 10.0)
        low = min(low, 0.0) if from_zero else low
        if low == high:
            low, high = (low / 2, high * 2) if log else (low - (0 if from_zero else 1), high + 1)
        self.log, self.start, self.end = log, start, end
        room = max(2, int(abs(end - start) / (90 if abs(end - start) > HEIGHT else 45)))
        self.ticks: list[tuple[float, str]]
        self.name = ""
        if times:
            self.ticks = _time_ticks(low, high, room)
            if self.ticks and ":" in self.ticks[0][1]:
                days = [_clock(low, "%Y-%m-%d"), _clock(high, "%Y-%m-%d")]
                self.name = " to ".join(dict.fromkeys(days)) + ", UTC"
        elif log:
            self.ticks = _log_ticks(low, high)
        else:
            step = _nice((high - low) / room)
            low, high = (math.floor(low / step) * step, math.ceil(high / step) * step) if start > end else (low, high)
            first = math.ceil(low / step - 1e-9)
            count = math.floor(high / step + 1e-9) - first + 1
            self.ticks = [((first + n) * step, number_text((first + n) * step)) for n in range(count)]
        self.low, self.high = (math.log10(low), math.log10(high)) if log else (low, high)

    def at(self, value: float) -> float:
        value = math.log10(value) if self.log else value
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def _frame(horizontal: _Axis, vertical: _Axis, x: str, y: str) -> list[str]:
    parts = []
    for value, label in vertical.ticks:
        at = vertical.at(value)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{_text(label)}</text>')
    bottom = HEIGHT - BOTTOM
    for value, label in horizontal.ticks:
        at = horizontal.at(value)
        parts.append(f'<line class="axis" x1="{at:.1f}" x2="{at:.1f}" y1="{bottom}" y2="{bottom + 4}"/>')
        parts.append(f'<text class="tick" x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{_text(label)}</text>')
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}"/>')
    if x := x or horizontal.name:
        parts.append(f'<text class="tick" x="{WIDTH - RIGHT}" y="{HEIGHT - 8}" text-anchor="end">{_text(x)}</text>')
    if y:
        parts.append(f'<text class="tick" x="0" y="{TOP - 14}">{_text(y)}</text>')
    return parts


def _legend(parts: list[str], names: list[str]) -> int:
    """A line of names below, if there are several; the height that it takes."""
    if len(names) < 2:
        return 0
    column = (WIDTH - LEFT) // 4
    for number, name in enumerate(names):
        x, y = LEFT + number % 4 * column, HEIGHT + 12 + number // 4 * 18
        parts.append(f'<circle class="c{number}" cx="{x}" cy="{y - 4}" r="4"/>')
        parts.append(f'<text class="name" x="{x + 9}" y="{y}">{_text(short(name, 22))}</text>')
    return 6 + 18 * ((len(names) + 3) // 4)


def _svg(height: int, parts: list[str], kind: str) -> Svg:
    return Svg(f'<svg class="plot" viewBox="0 0 {WIDTH} {max(height, 20)}" role="img" aria-label="{kind}">'
               f"{''.join(parts)}</svg>")  # fmt: skip


def number_text(value: float) -> str:
    """A figure in few letters: 12,345 as 12.3 k."""
    size = abs(value)
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= limit:
            return f"{value / (1e3 if unit == 'k' else limit):.3g} {unit}" if size < 1e15 else f"{value:.2g}"
    return f"{value:.4g}"


def short(text: str, letters: int) -> str:
    """Cut in the middle, for topics differ at both ends."""
    if len(text) <= letters:
        return text
    return f"{text[: letters // 2]}…{text[-(letters - letters // 2 - 1):]}"


def _exact(value: float, unit: str) -> str:
    label = f"{value:,.0f}" if value == int(value) else f"{value:,.6g}"
    return f"{label} {unit}".strip()


def _text(text: str) -> str:
    """Escaped, and without what XML does not allow."""
    return escape("".join(letter if letter >= " " and letter != "\x7f" else "\ufffd" for letter in text))


def _finite(value: float) -> float:
    return float(value) if math.isfinite(value) else 0.0


def _x(at: X) -> float:
    if isinstance(at, datetime):
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    return float(at)


def _thinned(places: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """No more points than there is room for: of those above each other the least and the greatest, in their order."""
    if len(places) <= POINTS_MAX:
        return places
    width = (WIDTH - LEFT - RIGHT) / (POINTS_MAX // 2 - 1)
    columns: dict[int, list[int]] = {}  # the numbers of the least and the greatest
    for number, (x, y) in enumerate(places):
        ends = columns.setdefault(int((x - LEFT) / width), [number, number])
        if y < places[ends[0]][1]:
            ends[0] = number
        if y > places[ends[1]][1]:
            ends[1] = number
    return [places[number] for number in sorted({number for ends in columns.values() for number in ends})]


def _nice(step: float) -> float:
    """The next of 1, 2 and 5 times a power of ten."""
    size = 10.0 ** math.floor(math.log10(step))
    return next(size * factor for factor in (1, 2, 5, 10) if size * factor >= step * (1 - 1e-9))


def _log_ticks(low: float, high: float) -> list[tuple[float, str]]:
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    every = max(1, (last - first) // 8)
    powers = range(first, last + 1, every)
    found = [(10.0**power, number_text(10.0**power)) for power in powers]
    return found if len(found) > 1 else [(low, number_text(low)), (high, number_text(high))]


def _time_ticks(low: float, high: float, room: int) -> list[tuple[float, str]]:
    least = (high - low) / room
    step = next((step for step in SECOND_STEPS if step >= least), 0)
    if step:
        form = "%H:%M:%S" if step < 60 else "%H:%M" if high - low < 2 * DAY else "%m-%d %H:%M"
        return [(at, _clock(at, form)) for at in _multiples(low, high, step)]
    days = next((days for days in (1, 2, 7, 14) if days * DAY >= least), 0)
    if days:
        monday = 4 * DAY if days % 7 == 0 else 0  # 1970 began on a Thursday
        found = [at + monday for at in _multiples(low - monday, high - monday, days * DAY)]
        return [(at, _clock(at, "%Y-%m-%d")) for at in found]
    months = next((months for months in MONTH_STEPS if months * 28 * DAY >= least), MONTH_STEPS[-1])
    begin, end = datetime.fromtimestamp(low, UTC), datetime.fromtimestamp(high, UTC)
    first, last = begin.year * 12 + begin.month - 1, end.year * 12 + end.month - 1
    found = [datetime(n // 12, n % 12 + 1, 1, tzinfo=UTC).timestamp()
             for n in range(-(-first // months) * months, last + 1, months)]  # fmt: skip
    return [(at, _clock(at, "%Y-%m" if months < 12 else "%Y")) for at in found if low <= at <= high]


def _multiples(low: float, high: float, step: int) -> list[float]:
    return [float(n * step) for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _clock(at: float, form: str) -> str:
    return datetime.fromtimestamp(at, UTC).strftime(form)
