"""`python -m fanlight_bench sizing`: what a broker keeps in memory for each thing that clients leave there.

    python -m fanlight_bench sizing                       100,000 of each that is small, 20,000 sessions: half a minute
    python -m fanlight_bench sizing --scale 0.1           a tenth of it

A broker of its own, without a store. Each kind is made by one MQTT 3.1.1 client after the other, and the growth of the
process's resident memory is divided by how many there are; `counted` is what the broker counts itself, which limits are
about. Topics and bodies have 20 bytes. Figures are of 64-bit Linux.

The report is JSON on standard output. Exit codes: 0 done, 2 the command line is wrong, 3 the broker did not start.
"""

import argparse
import json
import socket
import struct
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fanlight_bench.launch import Broker
from fanlight_bench.machine import machine

RETAINED, SESSIONS, QUEUED, CONNECTIONS = 100_000, 20_000, 100_000, 2_000
SESSION_POTS = ("session_bytes", "subscription_bytes")
PART = 1_000  # messages in a write
BODY = b"x" * 20
CONNECT, SUBSCRIBE, PUBLISH, RETAIN, QOS1, PINGREQ, DISCONNECT = 0x10, 0x82, 0x30, 0x01, 0x02, 0xC0, 0xE0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m fanlight_bench sizing", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--scale", type=float, default=1.0, help="how many, as a part of all (1)")
    options = parser.parse_args(arguments)
    if not 0 < options.scale <= 10:
        parser.error("--scale is above 0 and at most 10")
    broker = Broker(
        sessions_max=1_000_000, share_percent=100, queue_messages_max=1_000_000, queue_bytes_max="1GiB",
        connections_per_address_max=100_000,
    )
    try:
        print(json.dumps({"machine": machine(), "bytes": measure(broker, options.scale)}, indent=1))
    finally:
        broker.terminate()
    return 0


def measure(broker: Broker, scale: float) -> dict[str, dict[str, int]]:
    """By kind: bytes each of resident memory, and as the broker counts them."""
    found = {}
    for name, pots, count, make in (
        ("retained message", ("retained_bytes",), RETAINED, _retain),
        ("session that is away, with a subscription", SESSION_POTS, SESSIONS, _leave_sessions),
        ("message that waits for a session", ("stored_bytes",), QUEUED, _queue),
    ):
        count = max(1, round(count * scale))
        before, counted = _resident(broker), _counted(broker, pots)
        make(broker, count)
        found[name] = {
            "each": round((_resident(broker) - before) / count),
            "counted": round((_counted(broker, pots) - counted) / count), "count": count,
        }  # fmt: skip
    count = max(1, round(CONNECTIONS * scale))
    before = _resident(broker)
    clients = [_client(broker, f"idle-{number}") for number in range(count)]
    found["idle connection"] = {"each": round((_resident(broker) - before) / count), "count": count}
    for client in clients:
        client.close()
    return found


def _retain(broker: Broker, count: int) -> None:
    with _connected(broker, "retaining") as client:
        for begin in range(0, count, PART):
            numbers = range(begin, min(begin + PART, count))
            client.sendall(b"".join(_publish(f"site/{number:010}/temp", RETAIN) for number in numbers))
        _settle(client)


def _leave_sessions(broker: Broker, count: int) -> None:
    for number in range(count):
        with _connected(broker, f"device-{number:08}", keep=True) as client:
            client.sendall(_packet(SUBSCRIBE, b"\0\1" + _text(f"command/{number:08}/#") + b"\1"))
            _read(client, 5)
            client.sendall(_packet(DISCONNECT))


def _queue(broker: Broker, count: int) -> None:
    """All of them for one session, whose client is away."""
    with _connected(broker, "waited-for", keep=True) as client:
        client.sendall(_packet(SUBSCRIBE, b"\0\1" + _text("queued/#") + b"\1"))
        _read(client, 5)
        client.sendall(_packet(DISCONNECT))
    with _connected(broker, "queueing") as client:
        for begin in range(0, count, PART):
            numbers = range(begin, min(begin + PART, count))
            client.sendall(b"".join(_publish(f"queued/{number % 1000:013}", QOS1) for number in numbers))
            _read(client, 4 * len(numbers))  # a PUBACK each


def _client(broker: Broker, name: str, *, keep: bool = False) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", broker.mqtt_port))
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.sendall(_packet(CONNECT, _text("MQTT") + bytes([4, 0 if keep else 2, 0, 0]) + _text(name)))
    _read(client, 4)
    return client


@contextmanager
def _connected(broker: Broker, name: str, *, keep: bool = False) -> Iterator[socket.socket]:
    with _client(broker, name, keep=keep) as client:
        yield client


def _settle(client: socket.socket) -> None:
    """Until all that was sent has been read: its answer comes behind it."""
    client.sendall(_packet(PINGREQ))
    _read(client, 2)


def _read(client: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        part = client.recv(count - len(found))
        if not part:
            raise ConnectionError("the broker has closed the connection")
        found += part
    return found


def _publish(topic: str, flags: int) -> bytes:
    identifier = b"\0\1" if flags & QOS1 else b""
    return _packet(PUBLISH | flags, _text(topic) + identifier + BODY)


def _packet(kind: int, body: bytes = b"") -> bytes:
    if len(body) >= 128:
        raise ValueError(f"a body of {len(body)} bytes; these packets have a length of one byte")
    return bytes([kind, len(body)]) + body


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def _resident(broker: Broker) -> int:
    """Bytes of memory of the broker's process."""
    text = Path(f"/proc/{broker.pid}/statm").read_text(encoding="ascii")
    return int(text.split()[1]) * 4096


def _counted(broker: Broker, pots: Sequence[str]) -> int:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{broker.http_url}/stats") as answer:
        stats: dict[str, Any] = json.load(answer)
    return sum(int(stats[pot]) for pot in pots)


if __name__ == "__main__":
    sys.exit(main())
