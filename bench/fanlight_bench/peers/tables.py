"""The tables of the comparison, made from a report."""

from collections.abc import Sequence

from fanlight_bench.peers.bar import Bar
from fanlight_bench.peers.results import Figured, Report, ratio
from fanlight_bench.reporting import VERDICTS, limit, number, share, with_unit

Table = list[tuple[str, ...]]

def bars(rows: Sequence[Bar]) -> Table:
    """Each bar, what was reached, and whether it is met."""
    cells: Table = [("", "whose", "what", "bar", "reached", "")]
    for bar in rows:
        reached = "" if bar.reached is None else with_unit(bar.reached, bar.unit)
        bound = limit(bar.limit, bar.unit, at_most=bar.at_most)
        cells.append((bar.scenario, bar.whose, bar.what, bound, reached, VERDICTS[bar.met]))
    return cells


def overview(report: Report, figure: str) -> Table:
    """A row a contender, a column a scenario: the medians. What the generator may have limited has a *."""
    figured = Figured(report)
    letters = [name for name in report["scenarios"] if any(figured(name, one, figure) for one in report["contenders"])]
    cells: Table = [("", *letters)]
    for contender in report["contenders"]:
        row = [
            number(figured(letter, contender, figure))
            + ("*" if figured.rows.get((letter, contender), {}).get("generator_bound") else "")
            for letter in letters
        ]
        if any(row):
            cells.append((contender, *row))
    return cells


# Of scenarios that are not one stream of messages.
BESIDES = {
    "connects_per_second": "connects/s", "broker_us_per_connect": "CPU µs/connect",
    "bytes_per_connection": "bytes/connection", "bytes_per_subscription": "bytes/filter",
    "throughput_kept": "throughput kept", "round_trips_per_second": "round trips/s",
    "broker_us_per_round_trip": "CPU µs/round trip", "stored_per_second": "stored/s",
    "broker_us_per_stored": "CPU µs/stored", "bytes_per_stored": "bytes/stored", "last_ms_p50": "last p50 ms",
    "last_ms_p99": "last p99 ms", "pause_ms": "pause ms", "pause_ms_max": "longest ms",
    "pause_ms_without": "pause ms without",
}  # fmt: skip


def scenario(report: Report, letter: str) -> Table:
    """One scenario: a row a contender, with how many times the processor time of ours it needs; no empty columns."""
    figured = Figured(report)
    cells: Table = [
        ("", "messages/s", "deliveries/s", "CPU µs/delivery", "least to most", "x fanlight-mqtt", *BESIDES.values(),
         "broker", "generator", "others", "RSS MB", "p50 / p99 µs", "said")
    ]  # fmt: skip
    base = figured(letter, "fanlight-mqtt", "us_per_delivery")
    for contender in report["contenders"]:
        row = figured.rows.get((letter, contender))
        if row is None:
            continue
        cost = figured(letter, contender, "us_per_delivery")
        between = figured.between(letter, contender, "us_per_delivery")
        half, slow = figured(letter, contender, "p50_us"), figured(letter, contender, "p99_us")
        resident = figured(letter, contender, "resident_bytes")
        cells.append(
            (
                contender,
                number(figured(letter, contender, "messages_per_second") or None),
                number(figured(letter, contender, "deliveries_per_second") or None),
                number(cost),
                "" if between is None else f"{number(between[0])} to {number(between[1])}",
                number(ratio(cost, base)),
                *[number(figured(letter, contender, name)) for name in BESIDES],
                share(figured(letter, contender, "broker_busy")),
                share(figured(letter, contender, "generator_busy")) + ("*" if row["generator_bound"] else ""),
                share(figured(letter, contender, "others_busy")),
                "" if resident is None else f"{resident / 1e6:,.0f}",
                "" if half is None or slow is None else f"{half:,.0f} / {slow:,.0f}",
                "; ".join(row["complaints"]) + _left(row),
            )
        )
    return without_empty(cells)


def without_empty(table: Table) -> Table:
    """The table without columns in which only the head says something."""
    kept = [at for at in range(len(table[0])) if at == 0 or any(row[at] for row in table[1:])]
    return [tuple(row[at] for at in kept) for row in table]


def _left(row: dict[str, object]) -> str:
    return "" if row["good"] == row["runs"] else f" ({row['good']} of {row['runs']} runs good)"


def ratios(report: Report) -> Table:
    """How many times the processor time of Fanlight's MQTT 3.1.1 each needs, a column a scenario."""
    figured = Figured(report)
    base = {name: figured(name, "fanlight-mqtt", "us_per_delivery") for name in report["scenarios"]}
    letters = [name for name, value in base.items() if value is not None]
    cells: Table = [("", *letters)]
    for contender in report["contenders"]:
        row = [number(ratio(figured(one, contender, "us_per_delivery"), base[one])) for one in letters]
        if any(row):
            cells.append((contender, *row))
    return cells


def targets(report: Report) -> Table:
    """The figures that were set as targets, which hold for the machine they were set on; and what ours reached."""
    figured = Figured(report)
    ours = ("fanlight-native", "fanlight-mqtt")
    cells: Table = [("CPU µs/delivery", "target", *ours)]
    for letter, about in report["scenarios"].items():
        if about["target"] is not None:
            reached = [figured(letter, name, "us_per_delivery") for name in ours]
            cells.append((f"{letter}: {about['title']}", number(about["target"]), *map(number, reached)))
    return cells


# What a column of the table of memory is: a figure of a scenario.
MEMORY = {
    "process after A, MB": ("A", "resident_bytes", 1e6),
    "process with a million filters, MB": ("G", "resident_bytes", 1e6),
    "a filter of these, bytes": ("G", "bytes_per_subscription", 1),
    "processor time to load them, s": ("G", "subscribe_cpu_seconds", 1),
    "an idle connection, KiB": ("F", "bytes_per_connection", 1024),
    "connects/s": ("F", "connects_per_second", 1),
    "a connect, µs of processor time": ("F", "broker_us_per_connect", 1),
}


def memory(report: Report) -> Table:
    """What is held: by the process, a filter, a connection. User memory only: the kernel's is the same for all."""
    figured = Figured(report)
    measured = {
        name: at for name, at in MEMORY.items()
        if any(figured(at[0], one, at[1]) is not None for one in report["contenders"])
    }  # fmt: skip
    cells: Table = [("", *measured)]
    for contender in report["contenders"]:
        values = [(figured(letter, contender, figure), unit) for letter, figure, unit in measured.values()]
        row = ["" if value is None else number(value / unit) for value, unit in values]
        if any(row):
            cells.append((contender, *row))
    return cells
