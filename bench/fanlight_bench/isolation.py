"""`python -m fanlight_bench isolation`: what one user at full speed, in each pot, costs another of its throughput.

    python -m fanlight_bench isolation                        all pots: below 4 minutes
    python -m fanlight_bench isolation --pots rate,sessions --seconds 60
    python -m fanlight_bench isolation --pots connections --set logins_percent=100      a setting of the broker

A broker has a file of quotas, with small numbers for the user `a`, 1,000 messages a second among them. User `b` runs a
scenario of `bench load` by MQTT all the time, while a process of `a` (isolation_pots.py) does all it can in one pot:

    rate            publishes over its rate, and is held back
    refused_rate    the same with QoS 1, and is refused
    connections     connects, over its number of connections
    sessions        connects with sessions that stay, over their number
    subscriptions   subscribes to more and more filters
    resubscribing   subscribes and unsubscribes in turn, within its number
    retained        publishes retained messages on more and more topics
    queues          publishes to a session of its own that is away, whose queue is full
    strangers       connects, and closes before it is answered; if it is named in --pots, as no user needs to be known
    idle            logs in, and does nothing: what is measured then is the bench's own error; if it is named in --pots
    computing       the same, and computes on the generators' processor: the control; if it is named in --pots

The generators of both share the processor that the broker does not use. That of `a` gets what that of `b` leaves
(`--nice`, 19): else `b` would send less beside `a` on account of the generators, and a broker with time to spare lets
`a` have it. So what `b` keeps is what the *broker* leaves it. `attacker_busy` is the part of a processor that the
generators of `a` got beside `b`. `computing` is the control: `a` wants all of that processor, and no broker.

It does so in short slices, and pauses, with its connections closed, in others: alone and beside are neighbours in time,
of one broker process, and change places (alone, beside; beside, alone), so that neither what the machine does meanwhile
nor what a broker is like from its start makes a difference. What happens in the first part of each slice, when `a`
comes or goes, is not counted.

`kept` is 1 - taken. `taken` is the broker's processor time for `a` in each second: all of it beside `a`, less what as
many messages of `b` took alone, for each pair of slices. Of a broker that `b` keeps busy it is what `b` loses of its
throughput. Of one with time to spare it is what `b` would lose, if it had more to send. By the clock (`kept_wall`) that
is measured alone where the generators have processors of their own, and nothing else uses the machine.

`kept` is the median of the pairs, and `interval` has the middle 95 % of the medians of pairs drawn again and again
(bootstrap). `loss_below_5_percent` is true if the interval excludes a loss of 5 %, false if it excludes less, and null
if it has both: then take more `--seconds`. `busy` is the part of a processor that the broker had beside `a`.

The report is JSON on standard output, and a line a pot on standard error. Exit codes: 0 done, whatever the figures are;
1 a run failed; 2 the command line.
"""

import argparse
import contextlib
import json
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from fanlight_bench.isolation_pots import COMPUTING, IDLE, POTS, STRANGERS, Attacker
from fanlight_bench.launch import Broker, byte_code, on_cpu
from fanlight_bench.load import scenario as scenarios
from fanlight_bench.load import target as targets
from fanlight_bench.load.run import workers
from fanlight_bench.load.workers import Workers
from fanlight_bench.machine import machine
from fanlight_bench.peers.compare import processors
from fanlight_bench.permissions import HASH, PASSWORD
from fanlight_bench.procfs import process_seconds

OK, FAILED, WRONG = 0, 1, 2
BAR = 0.95
UNASKED = (STRANGERS, IDLE, COMPUTING)  # pots that are measured if they are named
SCENARIO = "pairs-unbatched"  # whose generator has less to do than the broker
SECONDS = 24.0  # of slices, for each pot
SLICE_SECONDS = 0.1  # that are counted
SETTLE_SECONDS = 0.05  # before them: what `a` had saved up of its rate is spent, and what it left behind is gone
SETTLE_BROKER_SECONDS = 0.02  # ... and at least so much of the broker's processor time, within
SETTLE_MOST_SECONDS = 0.5
WARMUP_SECONDS = 1.0
NICE = 19  # of the generators of `a`: they get what that of `b` leaves
TRIES = 100  # pairs, before one in which both sides got something done
DRAWN = 2_000  # times, for the interval
QUOTAS = """
[[quota]]
user = "a"
connections = 4
sessions = 4
subscriptions = 100
retained_messages = 100
stored_bytes = 1_000_000
publish_messages = 1_000
over_rate = "{over_rate}"
"""


@dataclass(frozen=True, slots=True)
class Part:
    """What was counted in a slice."""

    messages: int
    broker: float  # seconds of its processor time
    wall: float
    attackers: float = 0.0  # the same of the generators of `a`


Pair = tuple[Part, Part]  # alone, beside


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    options = _parser().parse_args(arguments)
    pots = [pot for pot in options.pots.split(",") if pot]
    if unknown := [pot for pot in pots if pot not in POTS]:
        print(f"there is no pot {', '.join(unknown)}, but {', '.join(POTS)}", file=sys.stderr)
        return WRONG
    rows, failed = [], False
    for pot in pots:
        pairs, complaint = measured(
            pot, options.scenario, options.seconds, options.slice,
            attackers=options.attackers, nice=options.nice, chosen=options.set,
        )  # fmt: skip
        row = {"pot": pot, **kept(pairs)} | ({"error": complaint} if complaint else {})
        failed = failed or bool(complaint) or not pairs
        rows.append(row)
        print(_line(row), file=sys.stderr, flush=True)
    report = {
        "machine": machine(), "scenario": options.scenario, "bar": BAR, "slice_seconds": options.slice, "pots": rows,
    }  # fmt: skip
    json.dump(report, sys.stdout, indent=1)
    sys.stdout.write("\n")
    return FAILED if failed else OK


def measured(
    pot: str, scenario: str, seconds: float, slice_seconds: float, *, attackers: int = 1, nice: int = NICE,
    chosen: Sequence[str] = (),
) -> tuple[list[Pair], str]:
    """Pairs of slices with one broker, and what `b` complains of. chosen: settings of the broker, NAME=VALUE."""
    broker_cpu, other_cpu = processors()
    with contextlib.ExitStack() as open_until_the_end:
        folder = open_until_the_end.enter_context(tempfile.TemporaryDirectory(prefix="fanlight-isolation-"))
        passwords, quotas = Path(folder, "passwords"), Path(folder, "quotas.toml")
        passwords.write_text(f"a:{HASH}\nb:{HASH}\n")
        passwords.chmod(0o600)
        quotas.write_text(QUOTAS.format(over_rate="refuse" if pot == "refused_rate" else "hold"))
        settings: dict[str, Any] = {"password_file": passwords, "quotas": quotas, "password_queue_max": 10_000}
        settings |= dict(each.split("=", 1) for each in chosen)
        broker = open_until_the_end.enter_context(Broker(cpu=broker_cpu, environment=byte_code(), **settings))
        open_until_the_end.enter_context(on_cpu(other_cpu))
        others = [open_until_the_end.enter_context(Attacker(pot, broker.mqtt_port, nice)) for _ in range(attackers)]
        made, target = scenarios.load(scenario), targets.parse(f"mqtt://b:{PASSWORD}@127.0.0.1:{broker.mqtt_port}")
        load = open_until_the_end.enter_context(workers(made, target, 1))
        load.connect()
        load.subscribe()
        load.start()
        load.run(min(WARMUP_SECONDS, seconds), _nothing)
        return _pairs(load, others, broker.pid, seconds, slice_seconds), _complaint(load)


def _pairs(load: Workers, others: Sequence[Attacker], pid: int, seconds: float, slice_seconds: float) -> list[Pair]:
    found: list[Pair] = []
    end = time.monotonic() + seconds
    for number in count():
        if time.monotonic() >= end and (found or number >= TRIES):
            return found
        parts: dict[bool, Part | None] = {}
        for beside in (False, True) if number % 2 == 0 else (True, False):
            for other in others:
                other.set(at_work=beside)
            _settle(load, pid)
            parts[beside] = _part(load, pid, slice_seconds, [other.pid for other in others])
        alone, by_side = parts[False], parts[True]
        if alone is not None and by_side is not None:
            found.append((alone, by_side))
    raise AssertionError


def _settle(load: Workers, pid: int) -> None:
    began, spent = time.monotonic(), process_seconds(pid) or 0.0
    while True:
        load.run(SETTLE_SECONDS, _nothing)
        used = process_seconds(pid) or spent + SETTLE_BROKER_SECONDS
        if used - spent >= SETTLE_BROKER_SECONDS or time.monotonic() - began >= SETTLE_MOST_SECONDS:
            return


def _part(load: Workers, pid: int, seconds: float, others: Sequence[int]) -> Part | None:
    """None: nothing was passed on, or the processor time is not known."""
    attackers = sum(process_seconds(other) or 0.0 for other in others)
    messages, spent, began = load.shared.totals()["received"], process_seconds(pid), time.monotonic()
    load.run(seconds, _nothing)
    now, used, ended = load.shared.totals()["received"], process_seconds(pid), time.monotonic()
    attackers = sum(process_seconds(other) or 0.0 for other in others) - attackers
    if spent is None or used is None or used <= spent or now <= messages:
        return None
    return Part(now - messages, used - spent, ended - began, attackers)


def _complaint(load: Workers) -> str:
    return next((outcome["complaint"] for outcome in load.outcomes() if outcome["complaint"]), "")


def _nothing() -> None:
    """Nobody looks on."""


def kept(pairs: Sequence[Pair]) -> dict[str, Any]:
    """The medians of what is kept, with the interval, and what it says about the bar."""
    if not pairs:
        return {"pairs": 0, "kept": None, "interval": None, "loss_below_5_percent": None}
    by_clock = [beside.messages / beside.wall / (alone.messages / alone.wall) for alone, beside in pairs]
    taken = [(beside.broker - beside.messages * alone.broker / alone.messages) / beside.wall for alone, beside in pairs]
    parts = [1 - each for each in taken]
    low, high = interval(parts)
    return {
        "pairs": len(pairs), "kept": round(median(parts), 4), "interval": [round(low, 4), round(high, 4)],
        "loss_below_5_percent": True if low > BAR else False if high < BAR else None,
        "kept_wall": round(median(by_clock), 4), "interval_wall": [round(each, 4) for each in interval(by_clock)],
        "messages_per_second_alone": round(median(alone.messages / alone.wall for alone, _ in pairs)),
        "messages_per_second_beside": round(median(beside.messages / beside.wall for _, beside in pairs)),
        "us_alone": round(median(alone.broker / alone.messages for alone, _ in pairs) * 1e6, 3),
        "us_beside": round(median(beside.broker / beside.messages for _, beside in pairs) * 1e6, 3),
        "busy": round(median(beside.broker / beside.wall for _, beside in pairs), 3),
        "attacker_busy": round(median(beside.attackers / beside.wall for _, beside in pairs), 3),
    }  # fmt: skip


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The middle 95 % of the medians of as many values, drawn from these with repetition."""
    dice = random.Random(17)
    medians = sorted(median(dice.choices(values, k=len(values))) for _ in range(DRAWN))
    return medians[DRAWN * 25 // 1000], medians[DRAWN * 975 // 1000 - 1]


def _line(row: dict[str, Any]) -> str:
    if not row["pairs"]:
        return f"bench: {row['pot']}: nothing was measured {row.get('error', '')}"
    says = {True: "a loss of 5 % is excluded", False: "MORE than 5 % is lost", None: "not shown: more --seconds"}
    low, high = row["interval"]
    return (
        f"bench: {row['pot']:<14} kept {row['kept']:.3f} ({low:.3f} to {high:.3f}), by the clock "
        f"{row['kept_wall']:.3f}; {says[row['loss_below_5_percent']]}; {row['pairs']} pairs, "
        f"broker {row['busy']:.0%} busy, generator of a {row['attacker_busy']:.0%}"
        + (f"; FAULT {row['error']}" if "error" in row else "")
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fanlight_bench isolation", description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    asked = ",".join(each for each in POTS if each not in UNASKED)
    add("--pots", default=asked, metavar="NAME,NAME", help="%(default)s")
    add("--scenario", default=SCENARIO, help="of `bench load`, that `b` runs (%(default)s)")
    add("--seconds", type=float, default=SECONDS, metavar="N", help="of each pot (%(default)s)")
    add("--slice", type=float, default=SLICE_SECONDS, metavar="SECONDS", help="of one side that count (%(default)s)")
    add("--attackers", type=int, default=1, metavar="N", help="processes of `a` (%(default)s)")
    add("--nice", type=int, default=NICE, metavar="N", help="of `a`; 0: as `b` (%(default)s)")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the broker; may be repeated")
    return parser


if __name__ == "__main__":
    sys.exit(main())
