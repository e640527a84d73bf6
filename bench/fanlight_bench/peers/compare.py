"""The runs: each with a broker of its own, started for it and stopped after it, so that none has another's memory.

A broker that has one thread is pinned to the first processor and the generator to the second; one that uses all is left
free, and so is the generator beside it. A broker that does not start, or a run that breaks off, is a row that says so.
"""

import contextlib
import datetime
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fanlight_bench import procfs
from fanlight_bench.launch import on_cpu
from fanlight_bench.load import usage
from fanlight_bench.machine import machine
from fanlight_bench.peers import plan
from fanlight_bench.peers.contenders import Contender
from fanlight_bench.peers.plan import PlannedScenario, Step
from fanlight_bench.peers.results import Report, Row, medians

# (scenario, url, duration, warmup, pid of the broker) -> the figures of a run.
Drive = Callable[[PlannedScenario, str, float, float, int], Row]
Log = Callable[[str], None]


def compare(
    asked: Sequence[PlannedScenario], contenders: Sequence[Contender], drive: Drive, log: Log, *,
    rounds: int, duration: float, warmup: float,
) -> Report:  # fmt: skip
    """Run all of it, saying first how long it will take; the report, with what is missing named."""
    absent = [one.name for one in contenders if one.peer.program() is None]
    present = [one for one in contenders if one.name not in absent]
    planned = list(plan.steps(asked, present, rounds))
    whole = plan.seconds(planned, duration, warmup)
    log(f"{len(planned)} runs of {len(asked)} scenarios and {len(present)} contenders: about {clock(whole)}")
    began = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    runs = []
    done = 0.0
    since = time.monotonic()
    try:
        with many_files():
            for at, step in enumerate(planned, 1):
                row = run(step, drive, max(duration, step.asked.least_seconds), warmup)
                runs.append(row)
                done += plan.seconds([step], duration, warmup)
                left = (whole - done) * (time.monotonic() - since) / done  # as this machine has kept to it so far
                log(f"[{at}/{len(planned)}, {clock(left)} left] {_words(step, row)}")
    except KeyboardInterrupt:
        log(f"interrupted after {len(runs)} runs, which are kept")
    return {
        "date": began,
        "machine": machine(),
        "effort": {"rounds": rounds, "duration": duration, "warmup": warmup},
        "complete": len(runs) == len(planned),
        "contenders": {one.name: _about(one) for one in present},
        "scenarios": {
            one.letter: {"scenario": one.scenario, "title": one.title, "target": one.target} for one in asked
        },
        "left_out": plan.left_out(asked, present),
        "missing": absent,
        "runs": runs,
        "medians": medians(runs),
    }


def run(step: Step, drive: Drive, duration: float, warmup: float) -> Row:
    """One run: start, load, stop."""
    row: Row = {
        "scenario": step.asked.letter, "contender": step.contender.name, "round": step.round, "scheme": step.scheme,
    }  # fmt: skip
    peer = step.contender.peer.configured(step.asked.settings, step.asked.module).listening(step.scheme)
    broker_cpu, generator_cpu = processors() if peer.one_thread else (None, None)
    began = time.monotonic()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="fanlight-bench-", ignore_cleanup_errors=True) as folder,
            peer.start(Path(folder), broker_cpu) as up,
            on_cpu(generator_cpu),
        ):
            row["start_seconds"] = time.monotonic() - began
            row["resting_bytes"] = usage.resident_bytes([up.pid, *procfs.descendants(up.pid)])
            row |= drive(step.asked, up.url(step.scheme), duration, warmup, up.pid)
    except Exception as error:  # whatever it is: the row says it, and an hour of other runs is not lost for it
        row["error"] = f"{type(error).__name__}: {error}"
    return row


def processors() -> tuple[int | None, int | None]:
    """Of a broker with one thread, and of the generator: the first two that we may use; None, where that is one."""
    if not hasattr(os, "sched_getaffinity"):
        return None, None
    usable = sorted(os.sched_getaffinity(0))
    return (usable[0], usable[1]) if len(usable) > 1 else (None, None)


@contextlib.contextmanager
def many_files() -> Iterator[None]:
    """As many open files as may be: for 10,000 connections both we and the broker need that many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _about(contender: Contender) -> dict[str, Any]:
    peer = contender.peer
    return {
        "title": contender.title,
        "broker": peer.name,
        "version": peer.version(),
        "schemes": list(contender.schemes),
        "one_thread": peer.one_thread,
        "configuration": peer.configuration(),
    }


def _words(step: Step, row: Row) -> str:
    what = f"{step.asked.letter} {step.asked.scenario}, round {step.round + 1}, {step.contender.name}"
    if row.get("error"):
        return f"{what}: {str(row['error']).splitlines()[0]}"
    figures = []
    if row.get("deliveries_per_second"):
        figures.append(f"{row['deliveries_per_second']:,.0f}/s")
    if row.get("connects_per_second"):
        figures.append(f"{row['connects_per_second']:,.0f} connects/s")
    if row.get("us_per_delivery"):
        figures.append(f"{row['us_per_delivery']:.3g} µs")
    if row.get("faults"):
        figures.append(f"FAULTS {row['faults']}")
    return f"{what}: {', '.join(figures)}"


def clock(seconds: float) -> str:
    minutes, rest = divmod(round(max(0.0, seconds)), 60)
    return f"{minutes}:{rest:02}"

