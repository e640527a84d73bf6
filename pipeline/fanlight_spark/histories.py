"""What of the recent time of a topic, or of a publisher, is outside of its own history. Without Spark.

Time is counted in *live* windows: those in which anything at all was archived. A night in which all is quiet, or a
broker that was down, says nothing of one topic.

silent  A gap between two messages, or behind the last, that is `factor` times the usual gap. Half of all time passes in
        gaps that are no longer than the usual one, so that bursts do not make it short. The gap is also half again as
        long as the third longest before: what happened three times is not unusual. Where the history has five days or
        more, a gap at hours in which it is mostly quiet does not count.
rate    Messages in a window, by 2 * sqrt(n + 3/8), which is about as far spread for any rate (Anscombe): from the
        median, in units of the median absolute deviation, or of 1 if that is less, which is what chance alone does.
size    The same for the logarithm of the mean size of payloads; the least unit is 5 %.
new     Not seen before.

Rates and sizes are compared with those of the same hour of day, where the history has five days of it, otherwise with
all. Medians are not moved by what was wrong in the history, as long as that is less than half of it.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Reals = NDArray[np.float64]

SECOND: Final = 1_000_000  # all times are in microseconds, as Spark's are
DAYS_LEAST: Final = 5  # of an hour of day, to know what is usual then
WINDOWS_LEAST: Final = 12  # of a history, to know a rate or a size
REPEATED: Final = 3  # how often a gap has to be there in a history not to be unusual,
LONGER: Final = 1.5  # and how much longer one must be to be unusual all the same
QUIET: Final = 0.5  # windows with messages that a history would have had in a gap: fewer are no silence
DEVIATION: Final = 1.4826  # times the median absolute deviation is the standard deviation, of a normal distribution
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Rules:
    factor: float = 8  # of the usual gap: random (Poisson) messages have one in a million as long
    score: float = 4  # of rates and sizes: `python -m fanlight_bench planted`
    least: int = 20  # gaps of a history, to know which is usual
    gap_least: int = 60 * SECOND


@dataclass(frozen=True, slots=True)
class Clock:
    """Live windows, ascending, and what is judged: from `recent` on."""

    every: int
    starts: Integers
    hours: Integers  # of day, in the zone that was asked for
    days: Integers
    recent: int
    end: int  # until when messages are known
    whole: bool  # whether the last window is

    @staticmethod
    def of(starts: Integers, every: int, recent: int, end: int, zone: str = "UTC") -> "Clock":
        """Raises zoneinfo.ZoneInfoNotFoundError, a KeyError."""
        there = ZoneInfo(zone)
        local = [(EPOCH + timedelta(microseconds=int(at))).astimezone(there) for at in starts]
        hours, days = (np.array([f(at) for at in local], np.int64) for f in (lambda at: at.hour, datetime.toordinal))
        return Clock(every, starts, hours, days, recent, end, bool(len(starts)) and end >= starts[-1] + every)

    def live(self, at: Integers) -> Integers:
        """How much live time had passed."""
        place = np.maximum(np.searchsorted(self.starts, at, side="right") - 1, 0)
        found: Integers = place * self.every + np.minimum(at - self.starts[place], self.every)
        return found

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Which windows are; the last is not if it is there only in part."""
        found: NDArray[np.bool_] = self.starts >= self.recent
        if not self.whole:
            found[-1:] = False
        return found

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which windows are history."""
        return np.asarray(self.starts + self.every <= self.recent)


@dataclass(frozen=True, slots=True)
class History:
    """What is known of one topic or publisher."""

    first: int
    last: int
    windows: Integers  # numbers of the clock's windows in which it has messages, ascending,
    counts: Integers  # how many,
    octets: Integers  # and how large they are together
    begins: Integers  # of gaps that may be long,
    ends: Integers
    usual_gap: float  # in live time
    gaps: int  # that the usual one is of

    @staticmethod
    def of(times: Integers, octets: Integers, clock: Clock, rules: "Rules") -> "History":
        """That of messages, by time, where there is no Spark that has counted them."""
        places = np.searchsorted(clock.starts, times, side="right") - 1
        windows, begins, counts = np.unique(places, return_index=True, return_counts=True)
        gaps = np.diff(clock.live(times))
        before, long = times[1:] < clock.recent, gaps >= int(rules.gap_least / LONGER)
        return History(
            int(times[0]), int(times[-1]), windows, counts, np.add.reduceat(octets, begins), times[:-1][long],
            times[1:][long], usual_gap(gaps[before]), int(before.sum()),
        )  # fmt: skip


class Finding(NamedTuple):
    """usual and found: microseconds of a gap, messages of a window, bytes of a message. end: None if it goes on."""

    what: str
    begin: int
    end: int | None
    usual: float | None
    found: float
    score: float | None  # how many times the usual gap; how many deviations


def findings(history: History, clock: Clock, rules: Rules) -> list[Finding]:
    if history.first >= clock.recent:
        return [Finding("new", history.first, history.last, None, float(history.counts.sum()), None)]
    quiet = silences(history, clock, rules)
    return [*quiet, *rates(history, clock, rules, quiet), *sizes(history, clock, rules)]


def usual_gap(gaps: Integers) -> float:
    """Half of the time passes in gaps that are no longer. 0 if there is none."""
    ordered = np.sort(gaps)
    passed = np.cumsum(ordered)
    return float(ordered[np.searchsorted(passed, passed[-1] / 2)]) if len(gaps) and passed[-1] else 0.0


def silences(history: History, clock: Clock, rules: Rules) -> list[Finding]:
    if history.gaps < rules.least or not history.usual_gap:
        return []
    begins, ends = np.append(history.begins, history.last), np.append(history.ends, clock.end)
    there, until = clock.live(begins), clock.live(ends)
    lengths = until - there
    unusual = ~_explained(history, clock, there, until)
    before = np.sort(lengths[unusual & (ends < clock.recent)])[-REPEATED:]
    most = max(rules.factor * history.usual_gap, float(rules.gap_least))
    if len(before) == REPEATED:
        most = max(most, LONGER * float(before[0]))
    # A topic that has been silent for long was reported when it fell silent.
    fell = there + most >= int(clock.live(np.array([clock.recent]))[0])
    return [
        Finding("silent", int(begins[at]), None if at == len(history.begins) else int(ends[at]),
                history.usual_gap, float(lengths[at]), float(lengths[at]) / history.usual_gap)
        for at in np.flatnonzero(unusual & (lengths > most) & fell)
    ]  # fmt: skip


def _explained(history: History, clock: Clock, there: Integers, until: Integers) -> NDArray[np.bool_]:
    """Which gaps are of hours in which it was mostly quiet before, by the windows that lie within them."""
    dense = _dense(history, clock, history.counts)
    known = clock.known & (np.arange(len(dense)) > history.windows[0])
    share = np.ones(len(dense))
    for hour, days in _hours(clock, known):
        mine = clock.hours == hour
        active = np.unique(clock.days[mine & known & (dense > 0)])
        share[mine] = len(active) / days
    passed = np.concatenate([[0.0], np.cumsum(share)])
    first, last = there // clock.every + 1, until // clock.every  # windows from `first` to before `last` are within
    inside = last > first
    found: NDArray[np.bool_] = inside & (passed[np.where(inside, last, 0)] - passed[np.where(inside, first, 0)] < QUIET)
    return found


def rates(history: History, clock: Clock, rules: Rules, quiet: list[Finding]) -> list[Finding]:
    """Not of windows without a message: those are for `silences`; nor of those in which a silence begins or ends."""
    counts = _dense(history, clock, history.counts)
    there = np.arange(len(counts)) > history.windows[0]
    usual, score = _scores(2 * np.sqrt(counts + 0.375), clock, there, 1.0)
    judged = clock.judged & there & (counts > 0)
    for one in quiet:
        end = clock.end if one.end is None else one.end
        judged &= (clock.starts + clock.every <= one.begin) | (clock.starts > end)
    return _stretches("rate", clock, judged, np.maximum((usual / 2) ** 2 - 0.375, 0), counts, score, rules.score)


def sizes(history: History, clock: Clock, rules: Rules) -> list[Finding]:
    counts, octets = _dense(history, clock, history.counts), _dense(history, clock, history.octets)
    mean = octets / np.maximum(counts, 1)
    usual, score = _scores(np.log(np.maximum(mean, 1)), clock, counts > 0, 0.05)
    return _stretches("size", clock, clock.judged & (counts > 0), np.exp(usual), mean, score, rules.score)


def _dense(history: History, clock: Clock, values: Integers) -> Reals:
    found = np.zeros(len(clock.starts))
    found[history.windows] = values
    return found


def _hours(clock: Clock, known: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """The hours of day that are known of enough days, and of how many."""
    pairs = np.unique(clock.hours[known] + 24 * clock.days[known]) % 24
    return [(hour, days) for hour, days in enumerate(np.bincount(pairs, minlength=24).tolist()) if days >= DAYS_LEAST]


def _scores(values: Reals, clock: Clock, there: NDArray[np.bool_], least: float) -> tuple[Reals, Reals]:
    """What is usual in each window, and how many deviations its value is from that; 0 if too little is known."""
    known = clock.known & there
    usual, scores = np.zeros(len(values)), np.zeros(len(values))
    hours = {hour for hour, _ in _hours(clock, known)}
    others = ~np.isin(clock.hours, list(hours))
    for mine in [others, *(clock.hours == hour for hour in hours)]:
        base = values[known & mine] if mine is not others else values[known]
        if not mine.any() or (mine is others and len(base) < WINDOWS_LEAST):
            continue
        middle = float(np.median(base))
        spread = DEVIATION * float(np.median(np.abs(base - middle)))
        usual[mine], scores[mine] = middle, (values[mine] - middle) / max(spread, least)
    return usual, scores


def _stretches(
    what: str, clock: Clock, judged: NDArray[np.bool_], usual: Reals, values: Reals, score: Reals, most: float
) -> list[Finding]:
    """Windows beyond the score; neighbours on the same side are one finding, of its most extreme window."""
    beyond = np.flatnonzero(judged & (np.abs(score) > most))
    if not len(beyond):
        return []
    apart = (np.diff(beyond) > 1) | (np.sign(score[beyond[1:]]) != np.sign(score[beyond[:-1]]))
    found = []
    for part in np.split(beyond, np.flatnonzero(apart) + 1):
        worst = part[np.argmax(np.abs(score[part]))]
        begin, end = int(clock.starts[part[0]]), int(clock.starts[part[-1]]) + clock.every
        found.append(
            Finding(what, begin, end, float(usual[worst]), float(values[worst]), float(score[worst]))
        )  # fmt: skip
    return found
