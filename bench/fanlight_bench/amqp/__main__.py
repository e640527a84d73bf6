"""`python -m fanlight_bench amqp`: Fanlight and RabbitMQ by AMQP 0-9-1, with the same load.

    python -m fanlight_bench amqp                                  all loads, three rounds: some ten minutes
    python -m fanlight_bench amqp --loads one-to-one,fan-out --rounds 1 --scale 0.1
    python -m fanlight_bench amqp --only fanlight                  without RabbitMQ, which need not be installed then
    python -m fanlight_bench amqp --rounds 1 --markdown            the tables of docs/amqp.md

What is compared is processor time of the broker, from /proc: a message, and a delivery of it. RabbitMQ runs twice: as
it is configured by default, and with one scheduler, which is one thread for its processes. In each round every load
runs against all, one directly after the other. `ratios` is RabbitMQ's time divided by Fanlight's, the median of the
rounds, beside the bar; of RabbitMQ's two times the lower one. `bars` has the rows about what a broker holds, bindings,
ready messages and idle connections: their figures, the mean of the rounds, with their bars. Loads that are stored have
`flushes`, those of the whole disk meanwhile, where there is one, and how many messages came to each. The report is
JSON on standard output, or tables; a line a run is on standard error. Exit codes: 0 done, whatever the figures are; 1
a run failed; 2 the command line is wrong; 3 a broker did not start.
"""

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

from fanlight_bench.amqp.holding import HOLDING, HoldingLoad, bars_of
from fanlight_bench.amqp.link import BrokerAnswered
from fanlight_bench.amqp.loads import LOADS, AmqpLoad, run
from fanlight_bench.amqp.tables import tables
from fanlight_bench.durable.disk import Device
from fanlight_bench.launch import Broker, LaunchError
from fanlight_bench.machine import machine
from fanlight_bench.peers.rabbitmq import RabbitMQ

OK, FAILED, WRONG, NO_BROKER = 0, 1, 2, 3
FANLIGHT, RABBITMQ, ONE_SCHEDULER = "fanlight", "rabbitmq", "rabbitmq-one-scheduler"
BROKERS: Final = (FANLIGHT, RABBITMQ, ONE_SCHEDULER)
BY_NAME: Final[dict[str, AmqpLoad | HoldingLoad]] = {load.name: load for load in (*LOADS, *HOLDING)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    options = _parser().parse_args(arguments)
    try:
        loads = [BY_NAME[name] for name in options.loads.split(",")]
    except KeyError as error:
        print(f"no load is called {error}; there are {', '.join(BY_NAME)}", file=sys.stderr)
        return WRONG
    brokers = [options.only] if options.only else list(BROKERS)
    runs: list[dict[str, Any]] = []
    try:
        for _ in range(options.rounds):
            with contextlib.ExitStack() as stack:
                up = {name: stack.enter_context(_started(name)) for name in brokers}
                for load in loads:
                    for name in brokers:
                        if not _messages(load, name):
                            continue
                        runs.append(_measured(load, name, up[name], options.scale))
                        print(_line(runs[-1]), file=sys.stderr, flush=True)
    except LaunchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return NO_BROKER
    bars = {each.name: bars_of(runs, each, BROKERS) for each in loads if isinstance(each, HoldingLoad)}
    report = {"machine": machine(), "ratios": ratios(runs), "bars": bars, "runs": runs}
    sys.stdout.write(tables(report) if options.markdown else f"{json.dumps(report, indent=1)}\n")
    return FAILED if any("error" in row for row in runs) else OK


class RunningBroker(NamedTuple):
    """A broker that runs."""

    port: int
    pid: int
    folder: Path


@contextlib.contextmanager
def _flushes(folder: Path, row: dict[str, Any]) -> Iterator[None]:
    """Count those of the disk below a folder, if there is one."""
    try:
        device = Device.below(folder)
    except ValueError:
        yield
        return
    before = device.written()
    yield
    if (flushes := device.written().since(before).flushes) is not None:
        row["flushes"] = flushes


@contextlib.contextmanager
def _started(name: str, *, data: bool = True) -> Iterator[RunningBroker]:
    """A broker, with its data in a folder of its own. data: whether Fanlight has any; RabbitMQ always has."""
    with tempfile.TemporaryDirectory(prefix="fanlight-amqp-") as folder:
        if name == FANLIGHT:
            settings: dict[str, Any] = {"data": str(Path(folder) / "data")} if data else {}
            with Broker(amqp=True, **settings) as broker:
                yield RunningBroker(broker.amqp_port, broker.pid, Path(folder))
        else:
            with RabbitMQ(one_scheduler=name == ONE_SCHEDULER).start(Path(folder), None) as up:
                yield RunningBroker(up.ports["amqp"], up.pid, Path(folder))


def _messages(load: AmqpLoad | HoldingLoad, name: str) -> int:
    """How many this broker gets; 0: it is not measured."""
    return load.messages[0 if name == FANLIGHT else 1]


def _measured(load: AmqpLoad | HoldingLoad, name: str, up: RunningBroker, scale: float) -> dict[str, Any]:
    """One run, in a new process if what earlier loads have left in its memory is not to be measured."""
    if isinstance(load, HoldingLoad) and load.alone:
        with _started(name, data=load.data) as alone:
            return _row(load, name, alone, scale)
    return _row(load, name, up, scale)


def _row(load: AmqpLoad | HoldingLoad, name: str, up: RunningBroker, scale: float) -> dict[str, Any]:
    row: dict[str, Any] = {"load": load.name, "broker": name}
    count = max(10, int(_messages(load, name) * scale))
    try:
        if isinstance(load, AmqpLoad):
            with _flushes(up.folder, row) if load.durable else contextlib.nullcontext():
                row |= run(load if name == FANLIGHT else load.for_rabbitmq(), up.port, up.pid, count)
            if row.get("flushes"):
                row["messages_per_flush"] = count / row["flushes"]
        else:
            row |= load.measure(up.port, up.pid, count)
    except (BrokerAnswered, TimeoutError, OSError) as error:
        row["error"] = str(error) or type(error).__name__
    return row


def ratios(runs: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Of each load: microseconds a delivery, RabbitMQ's divided by Fanlight's, and the bar; the same of messages a
    second, Fanlight's divided by RabbitMQ's, where these have one. Of RabbitMQ's configurations the better one counts.
    """
    found: dict[str, dict[str, float]] = {}
    for load in LOADS:
        figures = _medians(runs, load, "us_per_delivery")
        if not figures:
            continue
        found[load.name] = dict(figures)
        others = [figure for name, figure in figures.items() if name != FANLIGHT]
        if others and FANLIGHT in figures:
            found[load.name] |= {"ratio": min(others) / figures[FANLIGHT], "bar": load.bar}
        rates = _medians(runs, load, "messages_per_second") if load.rate_bar else {}
        found[load.name] |= {f"{name} messages/s": figure for name, figure in rates.items()}
        others = [figure for name, figure in rates.items() if name != FANLIGHT]
        if others and FANLIGHT in rates:
            found[load.name] |= {"rate_ratio": rates[FANLIGHT] / max(others), "rate_bar": load.rate_bar}
    return found


def _medians(runs: Sequence[dict[str, Any]], load: AmqpLoad, figure: str) -> dict[str, float]:
    """Of each broker that has run this load."""
    return {
        name: median(each)
        for name in BROKERS
        if (each := [
            row[figure] for row in runs if (row["load"], row["broker"]) == (load.name, name) and "error" not in row
        ])
    }  # fmt: skip


def _line(row: dict[str, Any]) -> str:
    if "us_per_delivery" in row:
        said = f"{row['us_per_message']:9.2f} µs a message {row['us_per_delivery']:9.2f} a delivery"
        if "flushes" in row:
            said += f"  {row['flushes']} flushes"
    else:
        said = row.get("error") or "  ".join(
            f"{name} {value:,.4g}" for name, value in row.items() if name not in {"load", "broker"}
        )
    return f"{row['load']:<18} {row['broker']:<22} {said}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fanlight_bench amqp", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--loads", default=",".join(BY_NAME), help="names (%(default)s)")
    parser.add_argument("--only", choices=BROKERS, help="one of the brokers")
    parser.add_argument("--markdown", action="store_true", help="tables in place of JSON")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of messages (%(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
