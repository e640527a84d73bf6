"""What an open page costs a broker that has very many connections and subscriptions: `dashboard --connections`.

One broker, with a crowd of clients that are connected and idle: --connections of them, with --subscriptions among them.
A scenario runs all the time. A turn of a page (the requests that it makes each time) is one slice, and the slice before
or after it, of the same length, is without: the two are neighbours in time, of one process, and change places.

The cost of a turn is the broker's processor time in its slice, less what as many messages took in the other one. A page
rests after a turn: 5 s, or PATIENCE times as long as the answer took (api.js). `taken` is the median of the costs by
the time from turn to turn; and `background`: what the broker does for the page all the time, with and without a turn,
which the answer has in `worked_seconds`, by the time of all slices. A page that the broker does not answer, because the
list takes longer than a connection may last (http_connection_seconds_max), has an `error` and no figures.

With --whole-pass the last row is a whole pass for redundant subscriptions, which is asked for as an open page does,
and without the scenario, until it ends: with its hundredth of the processor that takes a quarter
of an hour for a million.
"""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from itertools import pairwise
from statistics import median
from typing import Any

from fanlight_bench.launch import Broker, byte_code, on_cpu
from fanlight_bench.load import scenario as scenarios
from fanlight_bench.load import target as targets
from fanlight_bench.load.run import workers
from fanlight_bench.load.speak_mqtt import packet, string
from fanlight_bench.load.workers import Workers
from fanlight_bench.peers.compare import processors
from fanlight_bench.procfs import process_seconds, resident_bytes

EVERY = 5.0  # seconds between two turns of a page (list.js)
PATIENCE = 15  # times the time that an answer took (api.js)
STEP_SECONDS = 0.02  # of the load, between two looks at whether the answer is there
LEAST_SECONDS = 0.3  # of a slice: a shorter one has too few of the kernel's ticks of processor time
WARMUP_SECONDS = 1.0
TOGETHER = 50  # filters in a SUBSCRIBE
SETTINGS: dict[str, Any] = {
    "http_requests_per_second_max": 10_000, "connections_max": 100_000, "connections_per_address_max": 100_000,
    "subscriptions_max": 10_000_000, "share_percent": 100, "subscriptions_bytes_max": "4GiB",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Slice:
    """What was counted in a slice: answers of the page, messages, seconds."""

    turns: int
    messages: int
    broker: float  # seconds of its processor time
    wall: float
    answer: float  # seconds that one turn's answers took
    worked: float  # seconds of the processor of what goes on in the background, so far
    looked_at: str  # how far that is


def measured_all(
    pages: dict[str, Sequence[str]], scenario: str, *, connections: int, subscriptions: int, rounds: int,
    whole_pass: Sequence[str] = (),
) -> Iterator[dict[str, Any]]:
    """A row for each page, all of one broker. whole_pass: of a page, that are asked for until what they list is whole.
    """
    broker_cpu, other_cpu = processors()
    with (
        Broker(cpu=broker_cpu, environment=byte_code(), **SETTINGS) as broker,
        on_cpu(other_cpu),
        crowd(broker, connections, subscriptions),
        workers(scenarios.load(scenario), targets.parse(broker.url), 1) as load,
    ):
        load.connect()
        load.subscribe()
        load.start()
        load.run(WARMUP_SECONDS, _nothing)
        for page, paths in pages.items():
            try:
                with _asking(broker) as http:
                    _slice(load, broker.pid, http, paths, 0.0)  # the first request imports what it needs
                yield {"page": page, **_row(load, broker, paths, rounds)}
            except ConnectionError as error:
                yield {"page": page, "error": str(error)}
        if whole_pass:
            yield _whole_pass(broker, whole_pass)


def _whole_pass(broker: Broker, paths: Sequence[str]) -> dict[str, Any]:
    began, memory = time.monotonic(), [resident_bytes(broker.pid) or 0]
    answer, used = dict[str, Any](), process_seconds(broker.pid) or 0.0
    while not answer.get("complete"):
        time.sleep(EVERY)
        with _asking(broker) as http:
            _, answer = _answered(http, paths)
        memory.append(resident_bytes(broker.pid) or 0)
    return {
        "whole_pass": ", ".join(paths), "seconds": round(time.monotonic() - began, 1),
        "worked_seconds": answer["worked_seconds"], "looked_at": f"{answer['looked_at']} of {answer['of']}",
        "redundant": answer["redundant"], "broker_seconds": round((process_seconds(broker.pid) or 0.0) - used, 1),
        "memory_mib": round(memory[0] / 2**20, 1), "memory_mib_most": round(max(memory) / 2**20, 1),
        "memory_mib_after": round(memory[-1] / 2**20, 1),
    }  # fmt: skip


def _asking(broker: Broker) -> contextlib.closing[HTTPConnection]:
    """A connection of its own for each slice: the broker ends those that are older than http_connection_seconds_max."""
    return contextlib.closing(HTTPConnection(*broker.addresses["http"], timeout=600))


@contextlib.contextmanager
def crowd(broker: Broker, connections: int, subscriptions: int) -> Iterator[None]:
    """So many MQTT clients, with so many subscriptions among them, in the way of the background of `bench load`."""
    with contextlib.ExitStack() as clients:
        for number in range(connections):
            client = clients.enter_context(socket.create_connection(("127.0.0.1", broker.mqtt_port), timeout=60))
            client.sendall(packet(0x10, string("MQTT") + bytes([4, 2, 0, 0]) + string(f"crowd-{number:06}")))
            mine = range(number, subscriptions, connections)
            for at in range(0, len(mine), TOGETHER):
                filters = (string(f"site/{each % 100}/+/alarm{each // 100}/#") for each in mine[at : at + TOGETHER])
                client.sendall(packet(0x82, b"\0\1" + b"".join(each + b"\0" for each in filters)))
            # One SUBACK each, of 4 bytes and one a filter: its length is below 128.
            _read(client, 4 + sum(4 + len(mine[at : at + TOGETHER]) for at in range(0, len(mine), TOGETHER)))
        yield


def _row(load: Workers, broker: Broker, paths: Sequence[str], rounds: int) -> dict[str, Any]:
    costs, answers, pid = list[float](), list[float](), broker.pid
    worked, began, looked_at = list[float](), time.monotonic(), ""
    for number in range(rounds):
        before = _slice(load, pid, None, paths, answers[-1]) if number % 2 else None
        with _asking(broker) as http:
            opened = _slice(load, pid, http, paths, LEAST_SECONDS)
        alone = before or _slice(load, pid, None, paths, opened.wall)
        costs.append((opened.broker - opened.messages * alone.broker / max(1, alone.messages)) / opened.turns)
        answers.append(opened.answer)
        worked.append(opened.worked)
        looked_at = opened.looked_at
    answer, cost = median(answers), median(costs)
    period = answer + max(EVERY, PATIENCE * answer)
    behind = sum(max(0.0, after - before) for before, after in pairwise(worked)) / (time.monotonic() - began)
    return {
        "answer_ms": round(answer * 1e3, 1), "turn_ms": round(cost * 1e3, 2), "every_seconds": round(period, 2),
        "taken": round(cost / period + behind, 5), "background": round(behind, 5),
        **({"looked_at": looked_at} if looked_at else {}), "turns_ms": [round(each * 1e3, 2) for each in costs],
    }  # fmt: skip


def _slice(load: Workers, pid: int, http: HTTPConnection | None, paths: Sequence[str], seconds: float) -> Slice:
    """Load for so long; with `http`, while turns of the page are answered, at least one, until the last one's end."""
    took, ended, last = list[float](), threading.Event(), dict[str, Any]()

    def ask(connection: HTTPConnection) -> None:
        try:
            while not took or sum(took) < seconds:
                seconds_taken, answer = _answered(connection, paths)
                took.append(seconds_taken)
                last.update(answer)
        except ConnectionError:
            took.clear()  # no slice is made of it: see below
        finally:
            ended.set()

    messages, spent, began = load.shared.totals()["received"], process_seconds(pid) or 0.0, time.monotonic()
    asker = threading.Thread(target=ask, args=(http,), daemon=True) if http is not None else None
    if asker is not None:
        asker.start()
    while not ended.is_set() if asker is not None else time.monotonic() - began < max(seconds, LEAST_SECONDS):
        load.run(STEP_SECONDS, _nothing)
    if asker is not None:
        asker.join()
        if not took:
            raise ConnectionError(f"the broker did not answer {', '.join(paths)}")
    used = (process_seconds(pid) or 0.0) - spent
    counted = load.shared.totals()["received"] - messages
    looked_at = f"{last['looked_at']} of {last['of']}" if "looked_at" in last else ""
    return Slice(
        len(took), counted, used, time.monotonic() - began, sum(took) / max(1, len(took)),
        last.get("worked_seconds", 0.0), looked_at,
    )  # fmt: skip


def _answered(http: HTTPConnection, paths: Sequence[str]) -> tuple[float, dict[str, Any]]:
    """Seconds that it took, and the last answer. Raises ConnectionError if it is refused."""
    began = time.monotonic()
    for path in paths:
        http.request("GET", f"/{path}", headers={"Accept": "application/json"})
        with http.getresponse() as answer:
            body = answer.read()
        if answer.status != 200:
            raise ConnectionError(f"{path}: {answer.status} {body[:200]!r}")
    return time.monotonic() - began, json.loads(body)


def _read(client: socket.socket, count: int) -> None:
    while count:
        part = client.recv(min(count, 65_536))
        if not part:
            raise ConnectionError("the broker has closed the connection of a client of the crowd")
        count -= len(part)


def _nothing() -> None:
    """Nobody looks on."""
