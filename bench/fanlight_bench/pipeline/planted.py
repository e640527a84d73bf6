"""`python -m fanlight_bench planted`: how many of the faults that are planted in real data the job `silence` finds.

    python -m fanlight_bench planted               each data set, each fault, in three strengths: a table
    python -m fanlight_bench planted --seed 7      other names, at other times

A tenth of the names gets a fault, in the time that is judged. A name falls silent for so many of its usual gaps, at a
time when it has messages; its messages come so many times as often, or are so many times as large, for a twentieth of
all the time.

recall      of the planted faults, how many are found: at that name, of that kind, at that time
precision   of all that is found, how much was planted; `untouched` is what is found before anything is planted, such as
            buses that leave service, and `beside it` is the precision without that

It needs no Spark: it asks the rules that the job asks (fanlight_spark/histories.py). docs/pipeline-jobs.md has the
table. Exit codes: 0 done; 2 the command line is wrong; 3 the data is not here.
"""

import argparse
import csv
import gzip
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, time
from pathlib import Path
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from fanlight_bench.pipeline.messages import NoData, data_folder
from fanlight_spark.histories import SECOND, Clock, Finding, History, Integers, Rules, findings

NEW_YORK: Final = "America/New_York"
RECENT: Final = 0.4  # of the time: what is judged
SHARE: Final = 10  # one of so many names gets a fault
STRENGTHS: Final = {"silent": (10, 20, 40), "rate": (3, 5, 10), "size": (1.2, 1.5, 2)}
HEAD: Final = "| data | fault | planted | recall | precision | beside the untouched |\n|---|---|---:|---:|---:|---:|"
UNITS: Final = {"silent": "usual gaps", "rate": "times as often", "size": "times as large"}

Messages = dict[str, tuple[Integers, Integers]]  # times, ascending, and sizes of each name


class DataSet(NamedTuple):
    """What is judged as one archive. every: seconds of a window."""

    title: str
    messages: Messages
    every: int
    zone: str


class Score(NamedTuple):
    planted: int
    found: int
    others: int  # found, and neither planted nor there before


class Trial:
    """A data set, its clock, and what is found in it as it is."""

    def __init__(self, data: DataSet, rules: Rules) -> None:
        self.data, self.rules = data, rules
        times = np.concatenate([at for at, _ in data.messages.values()])
        self.end, begin = int(times.max()), int(times.min())
        self.recent = self.end - round(RECENT * (self.end - begin))
        self.longest = (self.end - begin) // 20
        self._every = data.every * SECOND
        self.clock = self._clock(times)
        self.untouched = {name: self.judged(*given) for name, given in data.messages.items()}
        self.known = [name for name, (at, _) in data.messages.items() if self.history(at, at).gaps >= rules.least]

    def history(self, at: Integers, octets: Integers) -> History:
        return History.of(at, octets, self.clock, self.rules)

    def judged(self, at: Integers, octets: Integers) -> list[Finding]:
        return findings(self.history(at, octets), self.clock, self.rules)

    def plant(self, fault: str, strength: float, dice: np.random.Generator) -> Score:
        """Faults of one kind and one strength, judged. Other names stay, so that live time is the same."""
        planted = found = others = 0
        for name in dice.permutation(self.known)[: max(1, len(self.known) // SHARE)]:
            given = self.data.messages[str(name)]
            made = self._faulty(fault, strength, given, dice)
            if made is None:
                continue
            begin, end, at, octets = made
            planted += 1
            before = {(one.what, one.begin) for one in self.untouched[str(name)]}
            mine = False
            for one in self.judged(at, octets):
                until = self.end if one.end is None else one.end
                if one.what == fault and one.begin <= end and until >= begin:
                    mine = True
                elif (one.what, one.begin) not in before:
                    others += 1
            found += mine
        return Score(planted, found, others)

    def _faulty(
        self, fault: str, strength: float, given: tuple[Integers, Integers], dice: np.random.Generator
    ) -> tuple[int, int, Integers, Integers] | None:
        """From when, until when, and the messages; None where the name has none then, and nothing would be missed."""
        at, octets = given
        usual = self.history(at, octets).usual_gap
        # In live time, so that a silence of a week is one of five days of trade.
        there = self.clock.live(at)
        length = strength * usual if fault == "silent" else int(self.clock.live(np.array([self.end]))[0]) / 20
        first, last = there[np.searchsorted(at, self.recent)] if at[-1] >= self.recent else 0, there[-1] - length
        if last <= first or not first:
            return None
        begin = dice.uniform(first, last)
        mine = (there >= begin) & (there < begin + length)
        if mine.sum() < max(2, 0.5 * length / usual):
            return None
        span = int(at[mine][0]), int(at[mine][-1])
        if fault == "silent":
            return (*span, at[~mine], octets[~mine])
        if fault == "size":
            return (*span, at, np.where(mine, np.rint(octets * strength).astype(np.int64), octets))
        more = np.repeat(at[mine], round(strength) - 1) + dice.integers(0, SECOND, mine.sum() * (round(strength) - 1))
        order = np.argsort(whole := np.concatenate([at, np.minimum(more, self.end)]), kind="stable")
        return (*span, whole[order], np.concatenate([octets, np.repeat(octets[mine], round(strength) - 1)])[order])

    def _clock(self, times: Integers) -> Clock:
        starts = np.unique(times // self._every * self._every)
        return Clock.of(starts, self._every, self.recent, self.end, self.data.zone)


def buses(folder: Path) -> Iterator[DataSet]:
    """Vehicles and routes in the afternoon, and vehicles until midnight, when most of them leave service."""
    with gzip.open(folder / "transit" / "austin_vehicles_2017-04-18.csv.gz", "rt", newline="") as lines:
        rows = list(csv.DictReader(lines))
    afternoon = [row for row in rows if row["timestamp"][11:16] < "20:30"]
    for title, some, key in (
        ("vehicles, afternoon", afternoon, "vehicle_id"), ("routes, afternoon", afternoon, "route_id"),
        ("vehicles, until midnight", rows, "vehicle_id"),
    ):  # fmt: skip
        if title.endswith("midnight") and len(some) == len(afternoon):  # of the sample, which ends before
            continue
        messages = _sorted(
            (row[key], datetime.fromisoformat(row["timestamp"]), sum(map(len, row.values()))) for row in some
        )
        span = max(at[-1] for at, _ in messages.values()) - min(at[0] for at, _ in messages.values())
        yield DataSet(title, messages, int(span) // (40 * SECOND), "America/Chicago")


def prices(folder: Path) -> Iterator[DataSet]:
    """A message of each ticker at the close of each day of trade, for up to three years."""
    from pyarrow import parquet  # type: ignore[import-untyped, unused-ignore]

    table = parquet.read_table(folder / "market" / "sp500_daily.parquet")
    days = sorted(set(table["date"].to_pylist()))[-750:]
    close = {day: datetime.combine(day, time(16), ZoneInfo(NEW_YORK)) for day in days}
    columns = zip(*(table[name].to_pylist() for name in ("ticker", "date", "volume")), strict=True)
    messages = _sorted((ticker, close[day], 80 + len(str(volume))) for ticker, day, volume in columns if day in close)
    yield DataSet("prices, a message a day", messages, 86_400, NEW_YORK)


def _sorted(rows: Iterator[tuple[str, datetime, int]]) -> Messages:
    found: dict[str, list[tuple[int, int]]] = {}
    for name, at, size in rows:
        found.setdefault(name, []).append((round(at.timestamp()) * SECOND, size))
    columns = {name: np.array(sorted(some), np.int64).T for name, some in found.items()}
    return {name: (at, octets) for name, (at, octets) in columns.items()}


def report(trial: Trial, seed: int) -> Iterator[str]:
    """A line of the table for each fault."""
    untouched = sum(len(some) for some in trial.untouched.values())
    for fault, strengths in STRENGTHS.items():
        scores = [trial.plant(fault, strength, np.random.default_rng(seed)) for strength in strengths]
        found, others = sum(one.found for one in scores), sum(one.others for one in scores)
        what = f"{fault}: {', '.join(f'{strength:g}' for strength in strengths)} {UNITS[fault]}"
        yield (
            f"| {trial.data.title} | {what} | {', '.join(str(one.planted) for one in scores)} | "
            f"{', '.join(_share(one.found, one.planted) for one in scores)} | "
            f"{_share(found, found + others + untouched * len(scores))} | {_share(found, found + others)} |"
        )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.2f}" if whole else "–"


SOURCES: Final[tuple[Callable[[Path], Iterator[DataSet]], ...]] = (buses, prices)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m fanlight_bench planted", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="which names, and when (%(default)s)")
    options = parser.parse_args(arguments)
    try:
        folder = data_folder()
    except NoData as error:
        print(f"bench: {error}", file=sys.stderr)
        return 3
    print(HEAD)
    untouched = []
    for source in SOURCES:
        for data in source(folder):
            trial = Trial(data, Rules())
            for line in report(trial, options.seed):
                print(line)
            count = sum(len(some) for some in trial.untouched.values())
            untouched.append(f"{data.title}: {len(data.messages):,} names, {len(trial.known):,} of them known well "
                             f"enough; {count:,} findings before anything was planted")  # fmt: skip
    print("\n".join(untouched))
    return 0


if __name__ == "__main__":
    sys.exit(main())
