"""`python -m bench load`: run scenarios against a broker; JSON on standard output, a table on standard error."""

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from bench.launch import Broker, LaunchError
from bench.load import scenario as scenarios
from bench.load.result import Result
from bench.load.run import run
from bench.load.scenario import BadScenario, Scenario
from bench.load.speaker import Refused
from bench.load.table import table
from bench.load.target import PORTS, BadUrl

OK, FAULTY, BAD_COMMAND, NO_SERVER = 0, 1, 2, 3
CHANGES = {
    "publishers": int, "subscribers": int, "topics": int, "payload_bytes": int, "window": int, "batch": int,
    "inflight": int, "rate": float, "qos": int, "idle": int,
}  # fmt: skip


def add_parser(commands: Any) -> None:
    """The command's own parser, below that of `python -m bench`."""
    parser = commands.add_parser(
        "load", help="scenarios against any broker that speaks native, MQTT or NATS", description=__doc__
    )
    add = parser.add_argument
    add("scenarios", nargs="*", metavar="SCENARIO", help="names (see --list), or files that end in .toml")
    add("--list", action="store_true", help="say what scenarios there are")
    add("--url", help=f"of the broker: {', '.join(f'{scheme}://' for scheme in PORTS)}; without it one is started")
    add("--protocol", choices=list(PORTS), default="fanlight", help="to the broker that is started (%(default)s)")
    add("--duration", type=float, default=3.0, metavar="SECONDS", help="measured, of a run (%(default)s)")
    add("--warmup", type=float, default=0.5, metavar="SECONDS", help="before it (%(default)s)")
    add("--drain", type=float, default=10.0, metavar="SECONDS", help="after it, at most (%(default)s)")
    add("--processes", type=int, default=1, metavar="N", help="of the generator (%(default)s)")
    add("--repeats", type=int, default=1, metavar="N", help="runs of each scenario (%(default)s)")
    add("--pid", type=int, action="append", metavar="PID", help="the broker's, if it is not found by its port")
    add("--broker-cpu", type=int, default=0, metavar="N", help="of the broker that is started (%(default)s)")
    add("--generator-cpu", type=int, metavar="N", help="to pin the generator to, if it is one process")
    for name, kind in CHANGES.items():
        add(f"--{name.replace('_', '-')}", type=kind, metavar="N", help=argparse.SUPPRESS)


def main(options: argparse.Namespace) -> int:
    """Run it; the exit code."""
    if options.list or not options.scenarios:
        for name in scenarios.names():
            print(f"{name:<18} {scenarios.load(name).title}")
        return OK
    try:
        chosen = [_chosen(name, options) for name in options.scenarios]
        results = list(_results(chosen, options))
    except (BadScenario, BadUrl) as error:
        print(f"bench: {error}", file=sys.stderr)
        return BAD_COMMAND
    except (OSError, Refused, LaunchError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return NO_SERVER
    print("\n".join(table(results)), file=sys.stderr)
    for result in results:
        if result.complaint:
            print(f"bench: {result.scenario}: {result.complaint}", file=sys.stderr)
    json.dump({"machine": machine(), "results": [result.as_json() for result in results]}, sys.stdout, indent=2)
    print()
    return OK if all(result.ok for result in results) else FAULTY


def _chosen(name: str, options: argparse.Namespace) -> Scenario:
    changes = {key: getattr(options, key) for key in CHANGES if getattr(options, key) is not None}
    return scenarios.load(name).with_changes(**changes)


def _results(chosen: Sequence[Scenario], options: argparse.Namespace) -> Iterator[Result]:
    if options.generator_cpu is not None and options.processes == 1:
        with contextlib.suppress(OSError):  # fewer processors than that: unpinned is the best there is
            os.sched_setaffinity(0, {options.generator_cpu})
    with _url(options) as url:
        for scenario in chosen:
            for _ in range(options.repeats):
                print(f"bench: {scenario.name} ({scenario.title}), {url}, {options.duration:g} s", file=sys.stderr)
                yield run(
                    scenario,
                    url,
                    duration=options.duration,
                    warmup=options.warmup,
                    drain=options.drain,
                    processes=options.processes,
                    pids=options.pid,
                )


@contextlib.contextmanager
def _url(options: argparse.Namespace) -> Iterator[str]:
    """The broker's: the one that was given, or of one that is started."""
    if options.url is not None:
        yield options.url
        return
    if options.protocol == "nats":
        raise BadUrl("a broker that speaks NATS must be there already: --url")
    with Broker(cpu=options.broker_cpu) as broker:
        port = broker.port if options.protocol == "fanlight" else broker.mqtt_port
        yield f"{options.protocol}://127.0.0.1:{port}"


def machine() -> dict[str, object]:
    """What the figures were measured on."""
    name = os.uname()
    return {"processors": os.cpu_count(), "system": f"{name.sysname} {name.release}", "machine": name.machine}
