"""What the job `silence` has to find, in plain Python: lists, dictionaries and `statistics`, slowly.

Nothing of this is shared with pipeline/fanlight_spark/histories.py, whose docstring says what is meant.
"""

import math
import statistics
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from functools import cache
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

SECOND = 1_000_000


class Asked(NamedTuple):
    every: int
    recent: int
    end: int
    zone: str = "UTC"
    factor: float = 8
    score: float = 4
    least: int = 20
    whole: bool = False


Found = tuple[str, int, int | None]  # what, begin, end


def expected(rows: Iterable[tuple[str, int, int]], asked: Asked) -> dict[str, set[Found]]:
    """rows: (name, microseconds, bytes) of all messages."""
    by_name: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for name, at, size in rows:
        by_name[name].append((at, size))
    every = asked.every
    live = sorted({at // every for messages in by_name.values() for at, _ in messages})
    local = {window: datetime.fromtimestamp(window * asked.every / SECOND, ZoneInfo(asked.zone)) for window in live}
    found = {name: of_one(sorted(messages), live, local, asked) for name, messages in by_name.items()}
    return {name: some for name, some in found.items() if some}


def of_one(messages: list[tuple[int, int]], live: list[int], local: dict[int, datetime], asked: Asked) -> set[Found]:
    place = {window: number for number, window in enumerate(live)}
    every, times = asked.every, [at for at, _ in messages]
    if times[0] >= asked.recent:
        return {("new", times[0], times[-1])}

    def passed(at: int) -> int:
        before = live[bisect_right(live, at // every) - 1]
        return place[before] * every + min(at - before * every, every)

    there = {at: passed(at) for at in {*times, asked.recent, asked.end}}
    hour = {window: local[window].hour for window in live}
    day = {window: local[window].date() for window in live}
    sizes: dict[int, list[int]] = defaultdict(list)
    for at, size in messages:
        sizes[at // every].append(size)
    own = [window for window in live if window > times[0] // every]  # the first is there only in part
    known = [window for window in own if (window + 1) * every <= asked.recent]
    of_hour = {h: [window for window in known if hour[window] == h] for h in range(24)}
    usual_hours = {h for h, windows in of_hour.items() if len({day[window] for window in windows}) >= 5}
    found: set[Found] = set()

    # Silences.
    pairs: list[tuple[int, int | None]] = [*pairwise(times), (times[-1], None)]
    lengths = [there[b] - there[a] for a, b in pairs if b is not None and b < asked.recent]
    if len(lengths) >= asked.least and any(lengths):
        run, usual = 0, 0
        for length in sorted(lengths):
            run += length
            if run >= sum(lengths) / 2:
                usual = length
                break

        active = {h: len({day[w] for w in of_hour[h] if w in sizes}) / len({day[w] for w in of_hour[h]})
                  for h in usual_hours}  # fmt: skip

        @cache
        def explained(first: int, last: int) -> bool:
            inside = live[first + 1 : last]
            quiet = 0.0
            for window in inside:
                h = hour[window]
                quiet += active[h] if h in usual_hours else 1
            return bool(inside) and quiet < 0.5

        odd = [(a, b) for a, b in pairs
               if not explained(there[a] // every, there[asked.end if b is None else b] // every)]  # fmt: skip
        repeated = sorted((there[b] - there[a] for a, b in odd if b is not None and b < asked.recent), reverse=True)
        most = max(asked.factor * usual, 60 * SECOND)
        if len(repeated) >= 3 and repeated[2] >= 40 * SECOND:
            most = max(most, 1.5 * repeated[2])
        for a, b in odd:
            end = asked.end if b is None else b
            if there[end] - there[a] > most and there[a] + most >= there[asked.recent]:
                found.add(("silent", a, b))
    silent = [(a, asked.end if b is None else b) for _, a, b in found]

    # Rates and sizes.
    judged = [window for window in own if window * every >= asked.recent]
    judged = judged if asked.whole else [window for window in judged if window != live[-1]]
    rate = {window: 2 * math.sqrt(len(sizes.get(window, [])) + 0.375) for window in own}
    mean = {window: math.log(max(sum(some) / len(some), 1)) for window, some in sizes.items()}
    busy = [window for window in judged if window in sizes]
    apart = [w for w in busy if all((w + 1) * every <= a or w * every > b for a, b in silent)]
    first = times[0] // every
    sized = [w for w in [first, *known] if w in sizes and (w + 1) * every <= asked.recent]
    hours_sized = {h for h in range(24) if len({day[w] for w in sized if hour[w] == h}) >= 5}
    for what, values, base, hours, windows, least in (
        ("rate", rate, known, usual_hours, apart, 1.0), ("size", mean, sized, hours_sized, busy, 0.05)
    ):  # fmt: skip
        beyond: dict[int, bool] = {}
        for window in windows:
            same = [values[w] for w in base if hour[w] == hour[window]] if hour[window] in hours else [
                values[w] for w in base
            ]  # fmt: skip
            if hour[window] not in hours and len(same) < 12:
                continue
            middle = statistics.median(same)
            spread = 1.4826 * statistics.median(abs(value - middle) for value in same)
            score = (values[window] - middle) / max(spread, least)
            if abs(score) > asked.score:
                beyond[window] = score > 0
        for window, above in beyond.items():
            before = live[place[window] - 1] if place[window] else None
            if before is not None and beyond.get(before) == above:
                continue
            last = window
            while place[last] + 1 < len(live) and beyond.get(live[place[last] + 1]) == above:
                last = live[place[last] + 1]
            found.add((what, window * every, (last + 1) * every))
    return found
