"""`python -m fanlight_bench load`: scenarios against a broker; JSON on standard output, a table on standard error."""

import argparse
import contextlib
import dataclasses
import json
import signal
import sys
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fanlight_bench import null_server
from fanlight_bench.launch import Broker, LaunchError, on_cpu, program
from fanlight_bench.load import compare, kinds, metrics
from fanlight_bench.load import scenario as scenarios
from fanlight_bench.load import target as targets
from fanlight_bench.load.kinds import STREAM
from fanlight_bench.load.progress import ProgressLine
from fanlight_bench.load.result import Result
from fanlight_bench.load.run import run
from fanlight_bench.load.scenario import BadScenario, Scenario
from fanlight_bench.load.speaker import Refused
from fanlight_bench.load.speakers import speaker
from fanlight_bench.load.table import NULL, Run, medians, table
from fanlight_bench.load.target import PORTS, BadUrl
from fanlight_bench.machine import machine

OK, FAULTY, BAD_COMMAND, NO_SERVER, INTERRUPTED = 0, 1, 2, 3, 130
EXITS = """\
exit codes: 0 all is well; 1 something was lost, repeated, reordered, damaged or misrouted, a connection was closed, or
--fail-above was exceeded; 2 the command line or a file is wrong; 3 the broker is not there, or refused the load;
130 it was interrupted. What was measured before the end is printed whatever the code is
"""
CHANGES = {
    "publishers": int, "subscribers": int, "topics": int, "payload_bytes": int, "window": int, "batch": int,
    "inflight": int, "rate": float, "qos": int, "idle": int,
}  # fmt: skip
EVERYDAY = ("one-to-one", "fan-out", "pairs", "wildcard", "acknowledged", "latency")  # when none is named


def parser() -> argparse.ArgumentParser:
    """The parser of the command's own arguments."""
    parser = argparse.ArgumentParser(prog=f"{program()} load", description=__doc__, epilog=EXITS)
    add = parser.add_argument
    add("scenarios", nargs="*", metavar="SCENARIO", help=f"names, or files (.toml); {', '.join(EVERYDAY)}")
    add("--list", action="store_true", help="say what scenarios there are")
    add("--url", help=f"of the broker: {', '.join(f'{scheme}://' for scheme in PORTS)}; without it one is started")
    add("--protocol", choices=list(PORTS), default="fanlight", help="to the broker that is started (%(default)s)")
    add("--duration", type=float, default=3.0, metavar="SECONDS", help="measured, of a run (%(default)s)")
    add("--warmup", type=float, default=0.5, metavar="SECONDS", help="before it (%(default)s)")
    add("--drain", type=float, default=10.0, metavar="SECONDS", help="after it, at most (%(default)s)")
    add("--processes", type=int, default=1, metavar="N", help="of the generator (%(default)s)")
    add("--null", action="store_true", help="beside it the null broker, in turns: the floor")
    add("--repeats", type=int, default=1, metavar="N", help="runs of each scenario (%(default)s)")
    add("--pid", type=int, action="append", metavar="PID", help="the broker's, if it is not found by its port")
    add("--broker-cpu", type=int, default=0, metavar="N", help="of the broker that is started (%(default)s)")
    add("--generator-cpu", type=int, default=1, metavar="N", help="of the generator, if one process (%(default)s)")
    add("--save", metavar="FILE", help="write the JSON there, too: what --against reads")
    add("--against", metavar="FILE", help="say what became better or worse since that run")
    add("--fail-above", type=float, metavar="PERCENT", help="with --against: exit with 1 when a metric lost more")
    add("--set", action="append", default=[], metavar="OPTION=VALUE", help="of a scenario with a kind, its [options]")
    for name, kind in CHANGES.items():
        add(f"--{name.replace('_', '-')}", type=kind, metavar="N", help="instead of the scenario's")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code."""
    options = parser().parse_args(arguments)
    if options.list:
        for name in scenarios.names():
            print(f"{name:<18} {scenarios.load(name).title}")
        return OK
    try:
        chosen = _can([_chosen(name, options) for name in options.scenarios or EVERYDAY], options)
        if not options.duration > 0 or options.repeats < 1:
            raise ValueError("--duration must be more than 0, and --repeats at least 1")
        if options.fail_above is not None and not options.against:
            raise ValueError("--fail-above needs a run to compare with: --against FILE")
        before = json.loads(Path(options.against).read_text(encoding="utf-8")) if options.against else None
    except Refused as error:
        print(f"bench: {error}", file=sys.stderr)
        return NO_SERVER
    except (BadScenario, ValueError, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return BAD_COMMAND
    runs: list[Run] = []
    code = OK
    before_it = signal.signal(signal.SIGTERM, _interrupt)  # the broker that was started goes too
    try:
        for each in _runs(chosen, options):
            runs.append(each)  # noqa: PERF402 -- kept when the next one raises
    except (BadScenario, BadUrl) as error:
        print(f"bench: {error}", file=sys.stderr)
        code = BAD_COMMAND
    except (OSError, Refused, LaunchError) as error:
        print(f"bench: {error}", file=sys.stderr)
        code = NO_SERVER
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        code = INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before_it)
    if not runs:
        return code
    printed = _printed(runs, before, options)  # results are printed even if later runs failed
    return code or printed


def _interrupt(number: int, frame: types.FrameType | None) -> None:
    raise KeyboardInterrupt


def _printed(runs: Sequence[Run], before: Any, options: argparse.Namespace) -> int:
    """Print and save what came of the runs; the exit code."""
    lines = medians(runs)
    results = [{"server": each.server, **each.result.as_json()} for each in runs]
    print("\n".join([*table(lines), *metrics.lines(results)]), file=sys.stderr)
    for each in runs:
        if each.result.complaint:
            print(f"bench: {each.result.scenario}, {each.server}: {each.result.complaint}", file=sys.stderr)
    document = {"machine": machine(), "medians": lines, "results": results}
    text = json.dumps(document, indent=2) + "\n"
    sys.stdout.write(text)
    worse = False
    try:
        if options.save:
            Path(options.save).write_text(text, encoding="utf-8")
        if before is not None:
            worse = _compared(before, json.loads(text), options.fail_above)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return BAD_COMMAND
    return FAULTY if worse or not all(each.result.ok for each in runs) else OK


def _compared(before: Any, now: dict[str, Any], fail_above: float | None) -> bool:
    """Tell what changed between two runs; whether it is worse than is let pass. Raises ValueError and the like."""
    changes = compare.changes(before, now)
    print("\n".join(compare.table(changes)), file=sys.stderr)
    return fail_above is not None and compare.worst(changes) * 100 > fail_above


def _chosen(name: str, options: argparse.Namespace) -> Scenario:
    changes = {key: getattr(options, key) for key in CHANGES if getattr(options, key) is not None}
    scenario = scenarios.load(name).with_changes(**changes)
    if unused := kinds.ignored(scenario.kind, changes):
        flags = ", ".join(f"--{flag.replace('_', '-')}" for flag in unused)
        known = ", ".join(dataclasses.asdict(scenario.choices))
        raise BadScenario(f"{name} does not look at {flags}; there is --set with {known}")
    if not options.set:
        return scenario
    given = dict(word.partition("=")[::2] for word in options.set)
    return scenario.with_changes(options=given)


def _can(chosen: list[Scenario], options: argparse.Namespace) -> list[Scenario]:
    """Those that the protocol can do. Raises Refused at once when one that was named is not among them; BadUrl."""
    target = targets.parse(options.url or f"{options.protocol}://127.0.0.1")
    kept = []
    for scenario in chosen:
        try:
            speaker(target, scenario)
        except Refused as error:
            if options.scenarios:
                raise
            print(f"bench: {scenario.name} is left out: {error}", file=sys.stderr)
        else:
            kept.append(scenario)
    return kept


def _runs(chosen: Sequence[Scenario], options: argparse.Namespace) -> Iterator[Run]:
    """Every scenario against every server, in turns: what else the machine does falls on all alike."""
    pinned = on_cpu(options.generator_cpu if options.processes == 1 else None)
    with _broker(options) as broker, _null(options, broker) as null, pinned:
        for scenario in chosen:
            for _ in range(options.repeats):
                if null is not None and _null_can(scenario, null):
                    yield Run(NULL, _measure(scenario, null, None, options))
                yield Run("broker", _measure(scenario, broker, options.pid, options))


def _measure(scenario: Scenario, url: str, pids: Sequence[int] | None, options: argparse.Namespace) -> Result:
    print(f"bench: {scenario.name} ({scenario.title}), {url}, {options.duration:g} s", file=sys.stderr)
    with ProgressLine(sys.stderr, scenario.name) as line:
        return run(
            scenario,
            url,
            duration=options.duration,
            warmup=options.warmup,
            drain=options.drain,
            processes=options.processes,
            pids=pids,
            progress=line,
        )


@contextlib.contextmanager
def _broker(options: argparse.Namespace) -> Iterator[str]:
    """The URL that was given, or that of a broker that is started."""
    if options.url is not None:
        yield options.url
        return
    if options.protocol == "nats":
        raise BadUrl("a broker that speaks NATS must be there already: --url")
    settings: dict[str, Any] = {"amqp": True} if options.protocol == "amqp" else {}
    with Broker(cpu=options.broker_cpu, **settings) as broker:
        name = {"fanlight": "native", "amqp": "amqp"}.get(options.protocol, "mqtt")
        yield f"{options.protocol}://127.0.0.1:{broker.addresses[name][1]}"


@contextlib.contextmanager
def _null(options: argparse.Namespace, broker: str) -> Iterator[str | None]:
    """The null broker's URL, in the protocol that the broker is spoken to in; None if it is not wanted."""
    if not options.null:
        yield None
        return
    protocol = targets.parse(broker).protocol
    if protocol in ("nats", "amqp"):
        raise BadUrl(f"--null: the null broker does not speak {protocol.upper()}")
    with null_server.start(options.broker_cpu) as server:
        yield f"{protocol}://127.0.0.1:{server.addresses['native'][1]}"


def _null_can(scenario: Scenario, url: str) -> bool:
    """It knows streams only, no acknowledgements of MQTT, no aliases, and does not drop anything."""
    if scenario.kind != STREAM:
        return False
    return not scenario.slow and not scenario.aliases and (scenario.qos == 0 or url.startswith("fanlight:"))
