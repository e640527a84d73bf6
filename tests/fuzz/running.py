"""A real broker, several connections, and packets that were valid before they were changed: `make test-sanitize`.

    python -m tests.fuzz.running SECONDS [SEED [amqp]]

It starts a broker, sends native, MQTT and AMQP frames (those of the documents and of the tests, and some with
selectors; or those of AMQP alone) from several connections, as they are and with bytes changed, cut, doubled or joined,
and ends. In between an honest client of each protocol must get its answer. At the end SIGTERM must end the broker with
status 0, and a sanitizer must have found nothing. The seed is printed: with it the same bytes are sent again. So is by
how much the broker's memory has grown since its first thousand frames, and how long the slowest answer took. Of that is
said how long the two processes waited for a processor meanwhile, which is the machine's part, and beside it the
processor time of the broker's longest turn, which is the broker's.
"""

import json
import os
import random
import select
import socket
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgpack  # type: ignore[import-untyped]

from fanlight_bench.launch import Broker, Patience
from fanlight_broker.protocols.amqp.frames import PROTOCOL_HEADER
from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.packets import Publish, Subscribe, Subscription
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.version import V3, V5
from tests.broker.protocols.mqtt.corpus import CORPUS
from tests.fuzz import amqp_frames

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
HELLO = bytes.fromhex("0000000493010180")
PING = bytes.fromhex("00000003920b01")
CONNECT = bytes.fromhex("100c00044d5154540402003c0000")
PINGREQ, PINGRESP = b"\xc0\x00", b"\xd0\x00"
CONNECTIONS = 8
ANSWER_SECONDS = 60.0  # a sanitized broker on a busy machine
HONEST_EVERY = 200     # rounds
LONGEST_TURN = "fanlight_turn_cpu_max_seconds"
REPORTS = ("AddressSanitizer", "runtime error:", "LeakSanitizer", "fanlight debug:", "Traceback")


def native_frames() -> list[bytes]:
    """Every frame of the protocol's vectors, valid and not."""
    vectors = json.loads((DOCS / "native-protocol-vectors.json").read_text(encoding="utf-8"))
    return [bytes.fromhex(vector["bytes"]) for part in ("frames", "invalid") for vector in vectors[part]]


def selecting_packets() -> list[bytes]:
    """Subscriptions by content, and messages for them."""
    said = Properties(user_properties=(("where", "unit = 'C' AND value > 20"),))
    message = Publish("s/1/t", b"{}", properties=Properties(user_properties=(("unit", "C"), ("value", "21"))))
    subscriptions = Subscription("s/+/t?unit=C&value>25", 1), Subscription("#?value<=3", 0)
    return [
        encode(Subscribe(1, subscriptions, said), V5), encode(Subscribe(1, subscriptions[:1], said), V5),
        encode(Subscribe(1, subscriptions), V3), encode(message, V5), encode(Publish("s/2/t", b"x"), V3),
    ]  # fmt: skip


def selecting_frames() -> list[bytes]:
    """The same in the native protocol."""
    wheres = "unit = 'C' AND value > 20", "payload.a LIKE '%x_' OR $words = 3", {"unit": ["C", {"prefix": "k"}]}
    frames = [msgpack.packb([6, 1, 9, "s.#", {"where": where}]) for where in wheres]
    frames.append(msgpack.packb([3, None, "s.1.t", b'{"a": "yxz"}', {"unit": "C", "value": 21}]))
    return [len(body).to_bytes(4, "big") + body for body in frames]


def changed(dice: random.Random, octets: bytes, others: Sequence[bytes]) -> bytes:
    """The same with a few changes of the kinds that parsers get wrong."""
    found = bytearray(octets)
    for _ in range(dice.choice((0, 0, 1, 1, 2, 5))):
        kind, at = dice.randrange(6), dice.randrange(len(found) + 1)
        if kind == 0 and found:
            found[at % len(found)] ^= 1 << dice.randrange(8)
        elif kind == 1 and found:
            found[at % len(found)] = dice.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif kind == 2:
            del found[at:]
        elif kind == 3:
            found[at:at] = found[:at]
        elif kind == 4:
            found += dice.choice(others)
        else:
            found[at:at] = dice.randbytes(dice.choice((1, 4, 100, 5_000)))
    return bytes(found)


class Stranger:
    """One connection that sends what it likes, reads what comes, and connects again when it is closed."""

    def __init__(
        self, dice: random.Random, address: tuple[str, int], greetings: Sequence[bytes], said: list[bytes]
    ) -> None:
        self.dice, self.address, self.greetings, self.said = dice, address, greetings, said
        self.socket: socket.socket | None = None
        self.connects = 0

    def round(self) -> None:
        try:
            if self.socket is None:
                self.socket = socket.create_connection(self.address, ANSWER_SECONDS)
                self.socket.setblocking(False)
                self.connects += 1
                self.socket.send(self.dice.choice(self.greetings))
            self.socket.send(changed(self.dice, self.dice.choice(self.said), self.said))
            while select.select([self.socket], [], [], 0)[0]:
                if not self.socket.recv(1 << 16):
                    self.close()
                    return
            if self.dice.random() < 0.01:
                self.close()
        except BlockingIOError:
            pass  # the broker reads no more from it until it reads its answers: it does, in the next round
        except OSError:
            self.close()

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()
            self.socket = None


def resident(pid: int) -> int:
    """Bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def answer(address: tuple[str, int], sent: bytes, expected: bytes) -> float:
    """An honest client sends this, and what is expected is in what it gets. Returns the seconds that took."""
    got, began = b"", time.monotonic()
    with socket.create_connection(address, ANSWER_SECONDS) as honest:
        honest.settimeout(ANSWER_SECONDS)
        honest.sendall(sent)
        while expected not in got:
            more = honest.recv(1 << 16)
            assert more, f"the broker closed an honest connection after {got!r}"
            got += more
    return time.monotonic() - began


def waited(pid: int) -> float:
    """Seconds for which the first thread of a process, which has the loop, was ready to run and had no processor."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    except OSError:
        return 0.0  # a kernel that does not count it, or the process has ended


class Answer(NamedTuple):
    """How long one took, and of that: how long the broker, and this generator, waited for a processor."""

    seconds: float
    broker_waited: float = 0.0
    generator_waited: float = 0.0


def metric(url: str, name: str) -> float:
    """One of the broker's, of /metrics."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=ANSWER_SECONDS) as response:
        lines = response.read().decode().splitlines()
    (value,) = (line.split()[1] for line in lines if line.startswith(f"{name} "))
    return float(value)


def verdict(slowest: Answer, longest_turn: float) -> str:
    """The slowest answer, with the parts that are known of it."""
    return (
        f"the slowest answer took {1_000 * slowest.seconds:.0f} ms, of which the broker waited "
        f"{1_000 * slowest.broker_waited:.0f} ms and the generator {1_000 * slowest.generator_waited:.0f} ms for a "
        f"processor; the broker's longest turn took {1_000 * longest_turn:.0f} ms of one"
    )


def fuzz(seconds: float, seed: int, only: str = "") -> None:
    """Raises AssertionError if anything that must hold does not."""
    dice = random.Random(seed)
    Patience.seconds = 300.0
    # It may be slow, and those who send rubbish are many: neither is to be refused here.
    broker = Broker(
        connections_without_login_per_second_max=0, handshake_seconds_max=60, mqtt_filter_suffix=True, amqp=True
    )
    try:
        broker.wait_for(lambda: "amqp" in broker.addresses, ANSWER_SECONDS)
        packets = [*(entry.octets for entry in CORPUS), *selecting_packets()]
        connects = [octets for octets in packets if octets[0] == 0x10]
        protocols = {
            "native": ([HELLO, HELLO, b""], [*native_frames(), *selecting_frames()], HELLO + PING,
                       bytes.fromhex("920c01")),
            "mqtt": ([CONNECT, *connects], packets, CONNECT + PINGREQ, PINGRESP),
            "amqp": ([amqp_frames.HANDSHAKE] * 4 + [PROTOCOL_HEADER, b""], amqp_frames.FRAMES, amqp_frames.QUESTION,
                     amqp_frames.OK),
        }  # fmt: skip
        if only:
            protocols = {only: protocols[only]}
        strangers = [
            Stranger(dice, broker.addresses[name], greetings, said)
            for name, (greetings, said, _, _) in protocols.items() for _ in range(CONNECTIONS)
        ]
        rounds, ends = 0, time.monotonic() + seconds
        slowest, memory = Answer(0.0), 0

        def ask() -> None:
            nonlocal slowest
            for name, (_, _, question, expected) in protocols.items():
                before = waited(broker.pid), waited(os.getpid())
                took = answer(broker.addresses[name], question, expected)
                found = Answer(took, waited(broker.pid) - before[0], waited(os.getpid()) - before[1])
                slowest = max(slowest, found)

        while time.monotonic() < ends and broker.process.poll() is None:
            dice.choice(strangers).round()
            rounds += 1
            if rounds % HONEST_EVERY == 0:
                ask()
                if rounds == 1_000:
                    memory = resident(broker.pid)
        assert broker.process.poll() is None, "the broker has ended"
        ask()
        for stranger in strangers:
            stranger.close()
        longest_turn = metric(broker.http_url, LONGEST_TURN)
        grown = resident(broker.pid) - (memory or resident(broker.pid))
        broker.process.terminate()
        code = broker.wait(300.0)
        assert code == 0, f"the broker exited with {code}"
        connected = sum(stranger.connects for stranger in strangers)
        print(f"{rounds} packets on {connected} connections; the broker answered, and exited with 0")
        print(f"{verdict(slowest, longest_turn)}; memory has grown by {grown / (1 << 20):.1f} MiB")
    finally:
        broker.kill()
        reports = [line for line in broker.lines if any(report in line for report in REPORTS)]
        if reports:
            print("\n".join(broker.lines))
    assert not reports, f"seed {seed}: {reports[0]}"


def main() -> None:
    """Take the time and the seed from the command line."""
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int.from_bytes(os.urandom(4), "big")
    print(f"fuzzing a running broker for {sys.argv[1]} s, seed {seed}", flush=True)
    fuzz(float(sys.argv[1]), seed, *sys.argv[3:])


if __name__ == "__main__":
    main()
