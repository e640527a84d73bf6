"""`python -m fanlight_bench permissions --instructions`: instructions of a publish with permissions and without.

Connections of a broker without sockets do what those of A, B, C and D do, in one process under callgrind. Two brokers
are set up, one with the file of rules and one without. Each is then forked twice, for few turns and for many: what the
second takes more, by its messages, is a publish with its deliveries. So other work on the machine does not matter.

    A  1 publisher, 100 subscribers          C  1,000 topics, 5 subscribers each by wildcards
    B  50 pairs                              D  10 pairs, acknowledged: receipts natively, QoS 1 by MQTT

    python -m fanlight_bench.micro.permission_instructions A mqtt rules.csv 1000     one of them, in the process itself
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from shutil import which
from typing import Any, Final

from fanlight_bench.micro.clients import PAYLOAD, frame
from fanlight_bench.micro.publish import NoSocket
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.identity import Identity
from fanlight_broker.core.limits import Limits, SlowPolicy
from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.connection import MqttConnection
from fanlight_broker.protocols.mqtt.options import Counts, MqttOptions
from fanlight_broker.protocols.mqtt.packets import Connect, Publish, Subscribe, Subscription
from fanlight_broker.protocols.mqtt.version import V3
from fanlight_broker.protocols.native.connection import NativeConnection
from fanlight_broker.wire.inbox import ReceiveBuffer
from fanlight_permissions.permission_file import load

FEW: Final = 2  # turns, of which the first one decides
MANY: Final = 12
TOGETHER: Final = 32  # messages of a publisher in a turn
TOPICS: Final = 1_000  # of C
FOUND: Final = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)

Connection = NativeConnection | MqttConnection


class Sides:
    """Publishers with what they send in a turn, and subscribers, on one broker."""

    def __init__(self, scheme: str, rules: Path | None, users: int) -> None:
        limits = Limits(slow_policy=SlowPolicy.DROP_NEWEST, inflight_messages_max=TOGETHER, permissions_max=10_000_000)
        self.broker = Broker(limits, lambda: None, lambda work: work())
        if rules is not None:
            self.broker.use_permissions(load(rules, limits))
        self.is_mqtt = scheme != "fanlight"
        self._users = users
        self._shared = ReceiveBuffer()
        self.publishers: list[tuple[Connection, bytes]] = []
        self.subscribers: list[Connection] = []
        self.messages = 0  # of a turn

    def connect(self) -> Connection:
        number = len(self.publishers) + len(self.subscribers)
        wire = NoSocket()
        made: Connection
        if self.is_mqtt:
            made = MqttConnection(MqttOptions(), Counts(), self.broker, wire, self._shared, 0.0)
            hello = encode(Connect(f"c{number}", V3), V3)
        else:
            made = NativeConnection(self.broker, wire, self._shared, 0.0)
            hello = frame(1, 1, {})
        made.inbox.feed(hello)
        made.receive(0.0)
        made.authenticated(Identity(f"u{number % self._users}", verified=True, credential="x"), 0.0)
        return made

    def say(self, connection: Connection, octets: bytes) -> None:
        wire = connection.transport
        assert isinstance(wire, NoSocket)
        connection.inbox.feed(octets)
        connection.receive(0.0)
        wire.turn()

    def subscribe(self, filter: str, qos: int = 0) -> None:
        """filter: with slashes"""
        connection = self.connect()
        packet = encode(Subscribe(1, (Subscription(filter, qos),)), V3) if self.is_mqtt else \
            frame(6, None, 1, filter.replace("/", ".").replace("+", "*"))
        self.say(connection, packet)
        self.subscribers.append(connection)

    def publish(self, topics: list[str], qos: int = 0) -> None:
        """A publisher that publishes on these in each turn."""
        connection = self.connect()
        octets = b"".join(
            encode(Publish(topic, PAYLOAD, qos, packet_id=number if qos else None), V3) if self.is_mqtt
            else frame(3, number if qos else None, topic.replace("/", "."), PAYLOAD)
            for number, topic in enumerate(topics, 1)
        )
        self.publishers.append((connection, octets))
        self.messages += len(topics)

    def turn(self) -> int:
        """Bytes that subscribers got."""
        for publisher, octets in self.publishers:
            self.say(publisher, octets)
        got = self._taken(self.subscribers)
        for each in self.subscribers if self.is_mqtt else ():
            session = each.client.subscriber.session if each.client is not None else None
            if session is not None and (tags := [flight.tag for flight in session.window.flights()]):
                self.say(each, b"".join(bytes((0x40, 2, *tag.to_bytes(2, "big"))) for tag in tags))
        self._taken([publisher for publisher, _ in self.publishers])
        return got

    def _taken(self, connections: list[Connection]) -> int:
        got = 0
        for connection in connections:
            while connection.outbox.size:
                got += len(connection.outbox.read())
        for outbox in self.broker.ledger.pop_dirty():
            outbox.clean()
        return got


def fan_out(sides: Sides) -> None:
    for _ in range(100):
        sides.subscribe("bench/fan")
    sides.publish(["bench/fan"] * TOGETHER)


def pairs(sides: Sides, count: int = 50, qos: int = 0) -> None:
    for number in range(count):
        sides.subscribe(f"bench/pair/{number}", qos)
    for number in range(count):
        sides.publish([f"bench/pair/{number}"] * TOGETHER, qos)


def wildcards(sides: Sides) -> None:
    for filter in ("bench/+/state", "bench/#", "+/+/state", "#", "bench/+/+"):
        sides.subscribe(filter)
    for first in range(0, TOPICS, 100):
        sides.publish([f"bench/{first + number}/state" for number in range(100)])


SETUPS: Final[dict[str, Callable[[Sides], None]]] = {
    "A": fan_out, "B": pairs, "C": wildcards, "D": partial(pairs, count=10, qos=1),
}  # fmt: skip


def run_forked(sides: Sides, turns: int) -> int:
    """The number of the process that does so many turns, once it has ended."""
    child = os.fork()
    if child == 0:
        done = all(sides.turn() > 0 for _ in range(turns))
        os._exit(0 if done else 1)
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status):
        raise RuntimeError("a turn delivered nothing")
    return child


def inside(letter: str, scheme: str, rules: Path, users: int) -> None:
    """Under callgrind: prints the processes, without rules and with them, and the messages between few and many."""
    for path in (None, rules):
        sides = Sides(scheme, path, users)
        SETUPS[letter](sides)
        print(run_forked(sides, FEW), run_forked(sides, MANY), (MANY - FEW) * sides.messages, flush=True)


def counted(letter: str, scheme: str, rules: Path, users: int, bar: float) -> dict[str, Any]:
    """A row of the report. Raises RuntimeError."""
    with tempfile.TemporaryDirectory(prefix="fanlight-instructions-") as folder:
        command = [
            which("valgrind") or "valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/%p", "-q",
            sys.executable, "-m", "fanlight_bench.micro.permission_instructions",
            letter, scheme, str(rules), str(users),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{letter} by {scheme}: {done.stderr[-1000:]}")
        off, on = (_per_message(Path(folder), line) for line in done.stdout.splitlines())
    ratio = on / off
    return {
        "scenario": letter, "scheme": scheme, "instructions_off": round(off, 1), "instructions_on": round(on, 1),
        "ratio": round(ratio, 4), "met": ratio <= bar,
    }  # fmt: skip


def _per_message(folder: Path, line: str) -> float:
    few, many, messages = line.split()
    first, second = (int(FOUND.findall((folder / each).read_text())[-1]) for each in (few, many))
    return (second - first) / int(messages)


def rows(letters: list[str], schemes: list[str], rules: Path, users: int, bar: float) -> Iterator[dict[str, Any]]:
    for letter in letters:
        for scheme in schemes:
            yield counted(letter, scheme, rules, users, bar)


if __name__ == "__main__":
    inside(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
