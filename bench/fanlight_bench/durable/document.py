"""The parts of docs/benchmarks-durable.md that are made from a report (reporting.py)."""

from collections.abc import Callable
from pathlib import Path

from fanlight_bench import reporting
from fanlight_bench.durable.bars import MEMORY, bars
from fanlight_bench.durable.plan import LOADS, PAIRS
from fanlight_bench.peers import tables
from fanlight_bench.peers.results import Figured, Report, ratio
from fanlight_bench.reporting import markdown, number, paragraph, share

DOCUMENT = Path(__file__).parents[3] / "docs" / "benchmarks-durable.md"

Table = tables.Table

# Figure -> head of its column, and what it is divided by.
RATES = {
    "messages_per_second": ("messages/s", 1.0), "p50_us": ("p50 µs", 1.0), "p99_us": ("p99 µs", 1.0),
    "us_per_message": ("CPU µs a message", 1.0), "device_bytes_per_byte": ("device bytes a byte", 1.0),
    "device_bytes_per_byte_first": ("while its files were made", 1.0),
    "flushes": ("flushes", 1.0), "messages_per_flush": ("messages a flush", 1.0), "syncs": ("its own syncs", 1.0),
    "messages_per_sync": ("messages a sync", 1.0), "broker_busy": ("broker %", 0.01),
    "generator_busy": ("generator %", 0.01),
}  # fmt: skip
LATENCY = {
    "p50_us": ("p50 µs", 1.0), "p99_us": ("p99 µs", 1.0), "p50_to_growing": ("p50 to growing", 1.0),
    "p50_to_recycled": ("p50 to recycled", 1.0), "p99_to_growing": ("p99 to growing", 1.0),
    "p99_to_recycled": ("p99 to recycled", 1.0),
}  # fmt: skip
LARGE = {
    "stored_per_second": ("stored/s", 1.0), "deliveries_per_second": ("deliveries/s", 1.0),
    "us_per_delivery": ("CPU µs a delivery", 1.0),
    "device_bytes_per_delivery": ("device bytes a delivery", 1.0), "one_session_per_second": ("one session, /s", 1.0),
    "bare_reads_per_second": ("bare reads/s", 1.0),
    "resident_bytes_above_idle": ("MB above idle", 1e6), "disk_bytes_per_byte": ("disk bytes a byte", 1.0),
    "disk_to_once": ("to one session's", 1.0),
    "messages_per_second": ("rate beside it", 1.0), "rate_kept": ("rate kept", 1.0),
    "sessions_per_second": ("sessions made/s", 1.0), "retained_per_second": ("retained/s", 1.0),
    "start_seconds": ("empty start s", 1.0), "restart_seconds": ("restart s", 1.0),
}  # fmt: skip
PAIR = {"us_per_delivery": ("CPU µs a delivery", 1.0), "deliveries_per_second": ("deliveries/s", 1.0)}
COLUMNS = {**dict.fromkeys(LOADS, RATES), **dict.fromkeys(PAIRS, PAIR)}


def rewritten(text: str, report: Report) -> str:
    """The page with its parts made from the report. KeyError: a part that nobody makes."""
    return reporting.rewritten(text, lambda name: BLOCKS[name](report))


def rewrite(report: Report, path: Path) -> bool:
    """Rewrite the file; whether it changed. OSError: it cannot be read or written."""
    return reporting.rewrite(path, lambda text: rewritten(text, report))


def table(report: Report, row: str, columns: dict[str, tuple[str, float]] | None = None) -> Table:
    """A row of the comparison: a line a broker; columns that nobody has a figure in are left out."""
    chosen = columns or COLUMNS.get(row, LARGE)
    figured = Figured(report)
    have = {
        figure: about for figure, about in chosen.items()
        if any(figured(row, name, figure) is not None for name in report["contenders"])
    }  # fmt: skip
    cells: Table = [("", *(head for head, _ in have.values()), "said")]
    for name in report["contenders"]:
        found = figured.rows.get((row, name))
        if found is None:
            continue
        values = [number(ratio(figured(row, name, figure), unit)) for figure, (_, unit) in have.items()]
        bad = "" if found["good"] == found["runs"] else f" ({found['good']} of {found['runs']} runs good)"
        cells.append((name, *values, "; ".join(found["complaints"]) + bad))
    return tables.without_empty(cells)


def _machine(report: Report) -> list[str]:
    effort, storage = report["effort"], report["storage"]
    # Older files have one number for the three rows.
    effort = {"shared": effort["backlog"], "restart_backlog": effort["backlog"], **effort}
    return paragraph(
        f"{str(report['date'])[:10]}: {reporting.machine(report['machine'])}, loopback. Data on {storage['device']}, "
        f"{storage['file_system']}, write cache {storage['write_cache'] or 'unknown'}. {effort['rounds']} interleaved "
        f"rounds of {effort['duration']:g} s, each after a warm-up of {effort['warmup']:g} s; "
        f"{effort['pairs']} of A to D. Fan-out: "
        f"{effort['fan_out_messages']:,} messages to {effort['fan_out_sessions']:,} sessions. Backlog: "
        f"{effort['backlog']:,} messages, each in one of {effort['backlog_sessions']:,} sessions. Shared: "
        f"{effort['shared']:,}, each in all of {effort['shared_sessions']:,} sessions. Restart: with "
        f"{effort['restart_backlog']:,} waiting messages, {effort['sessions']:,} sessions of "
        f"{effort['subscriptions']} subscriptions and {effort['retained']:,} retained messages."
    )


def _brokers(report: Report) -> list[str]:
    cells: Table = [("", "what", "version", "when it acknowledges")]
    cells += [(name, one["title"], one["version"] or "-", one["syncs"]) for name, one in report["contenders"].items()]
    cells += [(name, f"not measured: {why}", "-", "-") for name, why in report["missing"].items()]
    return markdown(cells)


def _bars(report: Report) -> list[str]:
    return markdown(tables.bars(bars(report)))


def _details(report: Report) -> list[str]:
    lines: list[str] = []
    for row, about in report["scenarios"].items():
        cells = table(report, row)
        if len(cells) > 1:
            lines += [f"### {row}: {about['title']}", "", *markdown(cells), ""]
    return lines


def _bare(report: Report) -> list[str]:
    """What the disk alone takes, over the runs of all brokers."""
    figured = Figured(report)
    cells: Table = [("", "growing p50 / p99 µs", "growing/s", "recycled p50 / p99 µs", "recycled/s")]
    for name in report["contenders"]:
        found = [figured("1x1", name, f"bare_{kind}_{what}") for kind in ("growing", "recycled")
                 for what in ("p50_us", "p99_us", "per_second")]  # fmt: skip
        if None not in found:
            said = [number(value) for value in found]
            cells.append((f"beside {name}", f"{said[0]} / {said[1]}", said[2], f"{said[3]} / {said[4]}", said[5]))
    return [*markdown(cells), "", *markdown(table(report, "1x1", LATENCY))]


def _kept(report: Report) -> list[str]:
    """How much of the rate in memory is left with data on disk."""
    figured = Figured(report)
    cells: Table = [("", *LOADS)]
    for name in report["contenders"]:
        rates = [
            ratio(figured(row, name, "messages_per_second"), figured(row, MEMORY, "messages_per_second"))
            for row in LOADS
        ]
        cells.append((name, *map(share, rates)))
    return markdown(cells)


def _configurations(report: Report) -> list[str]:
    lines: list[str] = []
    for about in {(one["broker"], one["configuration"]): one for one in report["contenders"].values()}.values():
        lines += [f"{about['broker']} {about['version']}".rstrip(), "", "```text"]
        lines += [*about["configuration"].rstrip("\n").splitlines(), "```", ""]
    return lines


BLOCKS: dict[str, Callable[[Report], list[str]]] = {
    "machine": _machine, "brokers": _brokers, "bars": _bars, "bare": _bare, "kept": _kept, "details": _details,
    "configurations": _configurations,
}  # fmt: skip
