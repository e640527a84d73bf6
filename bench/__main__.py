"""`python -m bench`: load figures of this machine, as JSON on standard output and a table on standard error.

    python -m bench                           all scenarios, against a broker of its own and the null broker
    python -m bench load fan-out --url URL    one scenario against any broker: native, MQTT, NATS
    python -m bench load --list               the scenarios there are
    python -m bench native fan-out            one scenario, against a broker of its own
    python -m bench native pairs --port 7420 --broker-pid 4711      ... against one that is running
    python -m bench null fan-out              one scenario against the null broker: the floor
    python -m bench serve-null --port 7421    the null broker alone
    python -m bench micro ...                 parts of the broker by themselves: see bench/micro/__main__.py
    python -m bench matchers ...              topic matchers compared, no broker: see bench/matchers/__main__.py
    python -m bench peers ...                 Fanlight beside other brokers: see bench/peers/__main__.py

Exit codes: 0 all is well; 1 something was lost, repeated, reordered, damaged or misrouted, or a connection
was closed; 2 the command line is wrong; 3 the server did not start, or refused the load.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Iterator

from bench import null_server, report
from bench.frames import Refused
from bench.launch import Broker, LaunchError
from bench.measure import Run, measure
from bench.scenarios import SCENARIOS, Scenario
from bench.session import Target

OK, FAULTY, NO_SERVER = 0, 1, 3


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code."""
    if arguments and arguments[0] == "micro":
        from bench.micro.__main__ import main as micro  # it imports the broker

        return micro(arguments[1:])
    if arguments and arguments[0] == "matchers":
        from bench.matchers.__main__ import main as matchers  # only here are the compiled contenders needed

        return matchers(arguments[1:])
    if arguments and arguments[0] == "peers":
        from bench.peers.__main__ import main as peers

        return peers(arguments[1:])
    options = _parser().parse_args(arguments or ["all"])
    if options.command == "load":
        from bench.load.command import main as load

        return load(options)
    if options.command == "serve-null":
        null_server.serve(options.port)
        return OK
    if options.generator_cpu is not None and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):  # fewer processors than that: unpinned is the best there is
            os.sched_setaffinity(0, {options.generator_cpu})
    try:
        runs = _all(options) if options.command == "all" else _one(options)
    except (OSError, Refused, LaunchError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return NO_SERVER
    scenarios = report.summary(runs)
    print("\n".join(report.table(scenarios)), file=sys.stderr)
    for run in runs:
        if not run.ok:
            faults = ", ".join(f"{name} {count}" for name, count in run.faults.items() if count)
            print(f"bench: {run.scenario} against {run.server}: {faults} {run.complaint}", file=sys.stderr)
    json.dump(
        {"machine": _machine(), "scenarios": scenarios, "runs": [dataclasses.asdict(run) for run in runs]},
        sys.stdout, indent=2,
    )  # fmt: skip
    print()
    return OK if all(run.ok for run in runs) else FAULTY


def _all(options: argparse.Namespace) -> list[Run]:
    """Every scenario against both servers, in turns: what else the machine does falls on both alike."""
    runs = []
    chosen = [SCENARIOS[name] for name in options.scenarios or SCENARIOS]
    with _broker(options) as broker, _null(options) as null:
        for scenario in chosen:
            for _ in range(options.repeats):
                runs.append(_measure(null, report.NULL, scenario, options))
                runs.append(_measure(broker, "broker", scenario, options))
    return runs


def _one(options: argparse.Namespace) -> list[Run]:
    scenario = SCENARIOS[options.scenario]
    changes = {
        name: getattr(options, name)
        for name in ("publishers", "subscribers", "topics", "window", "batch", "payload_bytes", "rate")
        if getattr(options, name) is not None
    }
    scenario = dataclasses.replace(scenario, **changes)
    server = "null" if options.command == "null" else "broker"
    with _null(options) if server == "null" else _broker(options) as target:
        return [_measure(target, server, scenario, options) for _ in range(options.repeats)]


def _measure(target: Target, server: str, scenario: Scenario, options: argparse.Namespace) -> Run:
    print(f"bench: {scenario.name} ({scenario.title}), {server}, {options.duration:g} s", file=sys.stderr)
    return measure(target, scenario, server=server, duration=options.duration, warmup=options.warmup)


@contextlib.contextmanager
def _broker(options: argparse.Namespace) -> Iterator[Target]:
    if options.port is not None:
        yield Target(options.host, options.port, options.broker_pid)
        return
    with Broker(cpu=options.broker_cpu) as broker:
        yield Target("127.0.0.1", broker.port, broker.pid)


@contextlib.contextmanager
def _null(options: argparse.Namespace) -> Iterator[Target]:
    with null_server.start(options.broker_cpu) as server:
        yield Target("127.0.0.1", server.addresses["native"][1], server.pid, null=True)


def _machine() -> dict[str, object]:
    name = os.uname()
    return {"processors": os.cpu_count(), "system": f"{name.sysname} {name.release}", "machine": name.machine}


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    add = common.add_argument
    add("--duration", type=float, default=2.0, metavar="SECONDS", help="measured, of a run (%(default)s)")
    add("--warmup", type=float, default=0.5, metavar="SECONDS", help="before it (%(default)s)")
    add("--broker-cpu", type=int, default=0, metavar="N", help="of a server it starts (%(default)s)")
    add("--generator-cpu", type=int, default=1, metavar="N", help="of this process (%(default)s)")
    add("--host", default="127.0.0.1", help="of a running broker (%(default)s)")
    add("--port", type=int, metavar="PORT", help="of a running broker; else one is started")
    add("--broker-pid", type=int, metavar="PID", help="of a running broker, to measure it")

    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    everything = commands.add_parser("all", parents=[common], help="all scenarios, broker and floor")
    names = ", ".join(SCENARIOS)
    everything.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"only these: {names}")
    everything.add_argument("--repeats", type=int, default=3, metavar="N", help="runs of each (%(default)s)")
    for name, server in (("native", "broker"), ("null", "floor")):
        one = commands.add_parser(name, parents=[common], help=f"one scenario against the {server}")
        one.add_argument("scenario", choices=list(SCENARIOS))
        one.add_argument("--repeats", type=int, default=1, metavar="N", help="runs (%(default)s)")
        one.add_argument("--payload-bytes", type=int, metavar="BYTES")
        one.add_argument("--batch", type=int, metavar="MESSAGES", help="messages of one write")
        one.add_argument("--window", type=int, metavar="DELIVERIES", help="outstanding, at most")
        one.add_argument("--rate", type=float, metavar="MESSAGES", help="a second, to measure latency")
        for what in ("publishers", "subscribers", "topics"):
            one.add_argument(f"--{what}", type=int, metavar="N")
    from bench.load.command import add_parser

    add_parser(commands)
    null = commands.add_parser("serve-null", help="the null broker alone")
    null.add_argument("--port", type=int, default=0)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
