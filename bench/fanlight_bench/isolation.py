"""`python -m fanlight_bench isolation`: what one user at full speed, in each pot, costs another of its throughput.

    python -m fanlight_bench isolation                        all pots, 5 rounds: 5 minutes
    python -m fanlight_bench isolation --pots rate,sessions --rounds 1 --duration 0.5
    python -m fanlight_bench isolation --pots connections --set logins_percent=100      a setting of the broker

A broker has a file of quotas, with small numbers for the user `a`, 1,000 messages a second among them. User `b` runs a
scenario of `bench load` by MQTT. In each round it runs once alone and once, in turn before or after it, while a process
of `a` does all it can in one pot:

    rate            publishes over its rate, and is held back
    refused_rate    the same with QoS 1, and is refused
    connections     connects, over its number of connections
    sessions        connects with sessions that stay, over their number
    subscriptions   subscribes to more and more filters
    retained        publishes retained messages on more and more topics
    queues          publishes to a session of its own that is away, whose queue is full

`kept` is the messages a second of `b` beside `a`, divided by those without: the median of the rounds. The bar is 0.95.
`kept_cpu` is the broker's processor time for a message of `b` without `a`, divided by that beside it, in which there is
the work for `a`. `taken` is that work as a part of one processor: what `a` takes of a broker that has a processor to
itself, where other programs use the machine and make `kept` and `kept_cpu` of a broker that gets a tenth of one.
The process of `a` has the generator's processor, so `kept` is never better than it would be on a larger machine. The
report is JSON on standard output. Exit codes: 0 done, whatever the figures are; 1 a run failed; 2 the command line.
"""

import argparse
import contextlib
import json
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from fanlight_bench.launch import Broker, byte_code, on_cpu
from fanlight_bench.load.run import run
from fanlight_bench.load.speak_mqtt import packet, string
from fanlight_bench.machine import machine
from fanlight_bench.peers.compare import processors
from fanlight_bench.permissions import HASH, PASSWORD

OK, FAILED, WRONG = 0, 1, 2
BAR = 0.95
AT_ONCE = 32  # packets of one write
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
SETTLED = b"\n"  # what the process of `a` says when it has begun


def publish(topic: str, *, qos: int = 0, retain: bool = False) -> bytes:
    number = struct.pack(">H", 1) if qos else b""
    return packet(0x30 | qos << 1 | retain, string(topic) + number + bytes(64))


def connected(port: int, name: str, *, clean: bool = True) -> socket.socket:
    """A connection of `a`; whether it is accepted does not matter."""
    opened = socket.create_connection(("127.0.0.1", port))
    flags = 0xC0 | clean << 1
    who = b"".join(map(string, (name, "a", PASSWORD)))
    opened.sendall(packet(0x10, string("MQTT") + bytes([4, flags, 0, 60]) + who))
    opened.recv(4)
    return opened


def send_all_the_time(port: int, made: Callable[[int], bytes]) -> Iterator[None]:
    """made: a packet for each number. What is answered is read and dropped."""
    peer = connected(port, "a-sends")
    numbers = count()
    waiting = b""
    while True:
        waiting = waiting or b"".join(made(next(numbers)) for _ in range(AT_ONCE))
        peer.setblocking(True)
        peer.settimeout(0.01)
        with contextlib.suppress(TimeoutError):
            waiting = waiting[peer.send(waiting) :]
        peer.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            if not peer.recv(1 << 16):
                peer = connected(port, "a-sends")
        yield


def connect_all_the_time(port: int, clean: bool) -> Iterator[None]:
    for number in count():
        connected(port, f"a-{number}", clean=clean).close()
        yield


def fill_a_queue(port: int) -> Iterator[None]:
    reader = connected(port, "a-away", clean=False)
    reader.sendall(packet(0x82, struct.pack(">H", 1) + string("a/#") + b"\1"))
    reader.recv(5)
    reader.close()
    yield from send_all_the_time(port, lambda number: publish("a/t", qos=1))


def hold_connections(port: int) -> Iterator[None]:
    held = [connected(port, f"a-held-{number}") for number in range(4)]
    yield from connect_all_the_time(port, clean=True)
    held.clear()


def subscribe(number: int) -> bytes:
    return packet(0x82, struct.pack(">H", 1) + string(f"a/{number}/+") + b"\0")


POTS: dict[str, Callable[[int], Iterator[None]]] = {
    "rate": lambda port: send_all_the_time(port, lambda number: publish("a/t")),
    "refused_rate": lambda port: send_all_the_time(port, lambda number: publish("a/t", qos=1)),
    "connections": hold_connections,
    "sessions": lambda port: connect_all_the_time(port, clean=False),
    "subscriptions": lambda port: send_all_the_time(port, subscribe),
    "retained": lambda port: send_all_the_time(port, lambda number: publish(f"a/{number}", retain=True)),
    "queues": fill_a_queue,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    options = _parser().parse_args(arguments)
    if options.attack:
        return attack(options.attack, options.port)
    pots = [pot for pot in options.pots.split(",") if pot]
    if unknown := [pot for pot in pots if pot not in POTS]:
        print(f"there is no pot {', '.join(unknown)}, but {', '.join(POTS)}", file=sys.stderr)
        return WRONG
    rows = []
    for pot in pots:
        for number in range(options.rounds):
            row = {"pot": pot, "round": number}
            for beside in (False, True) if number % 2 == 0 else (True, False):
                row |= measured(
                    pot, options.scenario, options.duration, beside=beside, attackers=options.attackers,
                    chosen=options.set,
                )
            rows.append(row)
            print(f"bench: {json.dumps(row)}", file=sys.stderr, flush=True)
    report = {"machine": machine(), "scenario": options.scenario, "bar": BAR, "kept": kept(rows), "runs": rows}
    json.dump(report, sys.stdout, indent=1)
    sys.stdout.write("\n")
    return FAILED if any(row.get("faults") for row in rows) else OK


def measured(
    pot: str, scenario: str, duration: float, *, beside: bool, attackers: int = 1, chosen: Sequence[str] = ()
) -> dict[str, Any]:
    """One run of `b`, beside some processes of `a` or alone. chosen: settings of the broker, NAME=VALUE."""
    broker_cpu, other_cpu = processors()
    with tempfile.TemporaryDirectory(prefix="fanlight-isolation-") as folder:
        passwords, quotas = Path(folder, "passwords"), Path(folder, "quotas.toml")
        passwords.write_text(f"a:{HASH}\nb:{HASH}\n")
        passwords.chmod(0o600)
        over_rate = "refuse" if pot == "refused_rate" else "hold"
        quotas.write_text(QUOTAS.format(over_rate=over_rate))
        settings: dict[str, Any] = {"password_file": passwords, "quotas": quotas, "password_queue_max": 10_000}
        settings |= dict(each.split("=", 1) for each in chosen)
        with Broker(cpu=broker_cpu, environment=byte_code(), **settings) as broker, on_cpu(other_cpu):
            port = broker.mqtt_port
            with contextlib.ExitStack() as at_work:
                for _ in range(attackers if beside else 0):
                    at_work.enter_context(attacking(pot, port))
                url = f"mqtt://b:{PASSWORD}@127.0.0.1:{port}"
                result = run(scenario, url, duration=duration, warmup=0.5, pids=[broker.pid])
    name = "beside" if beside else "alone"
    found: dict[str, Any] = {
        name: result.published_per_second, f"{name}_us": result.broker_us_per_publish,
        f"{name}_generator_busy": result.generator_busy,
    }  # fmt: skip
    faults = {fault: number for fault, number in result.faults.items() if number}
    return found | ({"faults": faults} if faults else {})


@contextlib.contextmanager
def attacking(pot: str, port: int) -> Iterator[None]:
    """A process of `a` that has begun; it is ended with the block."""
    command = [sys.executable, "-m", "fanlight_bench.isolation", "--attack", pot, "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield
        finally:
            process.kill()


def attack(pot: str, port: int) -> int:
    """Until it is killed, or the broker goes."""
    begun = False
    with contextlib.suppress(OSError):
        for _ in POTS[pot](port):
            if not begun:
                begun = True
                sys.stdout.buffer.write(SETTLED)
                sys.stdout.flush()
    return OK


def kept(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each pot the median of what is kept, with the least and the most."""
    found = []
    for pot in dict.fromkeys(row["pot"] for row in rows):
        mine = [row for row in rows if row["pot"] == pot and row["alone"] and row["beside_us"]]
        if not mine:
            continue
        parts = sorted(row["beside"] / row["alone"] for row in mine)
        taken = median((row["beside_us"] - row["alone_us"]) * row["beside"] / 1e6 for row in mine)
        found.append({
            "pot": pot, "kept": round(median(parts), 4), "least": round(parts[0], 4), "most": round(parts[-1], 4),
            "kept_cpu": round(median(row["alone_us"] / row["beside_us"] for row in mine), 4),
            "taken": round(taken, 4), "met": median(parts) >= BAR,
        })  # fmt: skip
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fanlight_bench isolation", description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add("--pots", default=",".join(POTS), metavar="NAME,NAME", help="%(default)s")
    add("--scenario", default="pairs", help="of `bench load`, that `b` runs (%(default)s)")
    add("--rounds", type=int, default=5, metavar="N", help="of each pot (%(default)s)")
    add("--duration", type=float, default=2.0, metavar="SECONDS", help="measured, of a run (%(default)s)")
    add("--attackers", type=int, default=1, metavar="N", help="processes of `a` (%(default)s)")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the broker; may be repeated")
    add("--attack", choices=list(POTS), help=argparse.SUPPRESS)
    add("--port", type=int, default=0, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
