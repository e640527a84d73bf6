"""What is promised of durable messages, and what one comparison reached.

Ratios between figures of the same interleaved runs, where there is something to compare with; the others are those of
the machine that they were set on. `Bar` is that of fanlight_bench/peers.
"""

from collections.abc import Iterator
from statistics import median

from fanlight_bench.durable.plan import OURS, PAIRS
from fanlight_bench.peers.bar import Bar
from fanlight_bench.peers.results import Figured, Report, ratio

MINE, MEMORY = OURS
MB = 1e6


def bars(report: Report) -> list[Bar]:
    """All of them, met or not."""
    figured = Figured(report)
    return [*_rates(figured), *_latency(figured), *_stored(figured), *_pairs(report)]


def _rates(figured: Figured) -> Iterator[Bar]:
    mine = figured("100x10", MINE, "messages_per_second")
    for others, least in ((("rabbitmq-quorum",), 5.0), (("jetstream", "jetstream-2.9"), 2.0), ((MEMORY,), 0.55)):
        known = [value for one in others if (value := figured("100x10", one, "messages_per_second"))]
        best = max(known, default=None)
        yield Bar("100x10", MINE, f"messages/s, to {' or '.join(others)}", least, False, "x", ratio(mine, best))
    used = [figured("100x10", one, "us_per_message") for one in (MINE, MEMORY)]
    more = None if used[0] is None or used[1] is None else used[0] - used[1]
    yield Bar("100x10", MINE, "processor time a message, above memory", 1.0, True, "µs", more)
    yield Bar("100x10", MINE, "device bytes a payload byte", 1.6, True, "x",
              figured("100x10", MINE, "device_bytes_per_byte"))  # fmt: skip


def _latency(figured: Figured) -> Iterator[Bar]:
    for figure, what, most in (
        ("p50_to_growing", "p50, to an fdatasync of a growing file", 1.5),
        ("p50_to_recycled", "p50, to an fdatasync of a recycled file", 2.0),
        ("p99_to_growing", "p99, to an fdatasync of a growing file", 3.0),
    ):
        yield Bar("1x1", MINE, what, most, True, "x", figured("1x1", MINE, figure))


def _stored(figured: Figured) -> Iterator[Bar]:
    def scaled(row: str, figure: str, unit: float = 1.0) -> float | None:
        return ratio(figured(row, MINE, figure), unit)

    for row, what, limit, at_most, unit, reached in (
        ("fan-out", "messages stored", 10_000, False, "/s", scaled("fan-out", "stored_per_second")),
        ("fan-out", "device bytes a delivery", 12, True, "B", scaled("fan-out", "device_bytes_per_delivery")),
        ("backlog", "memory above idle", 80, True, "MB", scaled("backlog", "resident_bytes_above_idle", MB)),
        ("backlog", "disk bytes a payload byte", 1.25, True, "x", scaled("backlog", "disk_bytes_per_byte")),
        ("backlog", "rate kept, 100x10", 90, False, "%", scaled("backlog", "rate_kept", 0.01)),
        ("backlog", "drain of all", 300_000, False, "/s", scaled("backlog", "deliveries_per_second")),
        ("backlog", "drain of one session, cold", 50_000, False, "/s", scaled("backlog", "one_session_per_second")),
        ("shared", "memory above idle", 40, True, "MB", scaled("shared", "resident_bytes_above_idle", MB)),
        ("shared", "disk bytes, to those of one session", 1.15, True, "x", scaled("shared", "disk_to_once")),
        ("restart", "until it is ready", 10, True, "s", scaled("restart", "restart_seconds")),
    ):
        yield Bar(row, MINE, what, limit, at_most, unit, reached)


def _pairs(report: Report) -> Iterator[Bar]:
    """The median of the rounds' own ratios, for a pair is two runs that follow each other."""
    for letter in PAIRS:
        used = {
            (run["contender"], run["round"]): run["us_per_delivery"]
            for run in report["runs"]
            if run["scenario"] == letter and not run.get("faults") and run.get("us_per_delivery")
        }
        pairs = [value / used[MEMORY, number] for (one, number), value in used.items()
                 if one == MINE and (MEMORY, number) in used]  # fmt: skip
        yield Bar(letter, MINE, "processor time a delivery, to memory", 1.02, True, "x",
                  median(pairs) if pairs else None)  # fmt: skip
