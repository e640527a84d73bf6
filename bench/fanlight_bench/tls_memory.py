"""`python -m fanlight_bench tls-memory`: what a connection by TLS takes of the broker's memory.

    python -m fanlight_bench tls-memory                        1,000 connections of each kind: JSON on standard output
    python -m fanlight_bench tls-memory --tcp uvloop           what follows the options goes to `fanlightd serve`

Connections are opened one after the other and stay. Each figure is by how much the broker's resident memory grows, per
connection, in bytes; `tls` and `handshake` are without what a plain connection takes.

    plain      a native client without TLS that has got its WELCOME: the buffers of TLS are none of it
    tls        the same by TLS
    handshake  a client that has sent its first message of the handshake, got the answer and says nothing more
    charged    what each of these counts in `tls_bytes`
    received   what a quiet connection takes more once it has got a message of 300 kB, and has sent none
    large      what a quiet connection takes more once it has sent a message of 300 kB and got it
"""

import argparse
import contextlib
import json
import resource
import socket
import ssl
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

from fanlight_bench import frames
from fanlight_bench.launch import PORTS, Server, byte_code, fanlightd
from fanlight_bench.machine import machine
from fanlight_bench.peers.certificate import certificate
from fanlight_bench.procfs import resident_bytes

HELLO: Final = frames.encode(frames.HELLO, frames.VERSION, {})
SECONDS: Final = 60.0
WARM: Final = 50  # connections of each kind that come before, and stay: what the first ones bring is nobody's
LARGE_BYTES: Final = 300_000
STEADY: Final = 20  # answers of the broker that say the same: it is at rest
ANSWERS_MAX: Final = 10_000
VERSIONS: Final = {"1.3": ssl.TLSVersion.TLSv1_3, "1.2": ssl.TLSVersion.TLSv1_2}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m fanlight_bench tls-memory", description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--connections", type=int, default=1_000, help="of each kind (%(default)d)")
    parser.add_argument("--version", choices=VERSIONS, default="1.3", help="of TLS (%(default)s)")
    options, rest = parser.parse_known_args(arguments)
    if options.connections < 1:
        parser.error("--connections must be 1 or more")
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    report: dict[str, Any] = {"machine": machine(), "connections": options.connections, "arguments": rest}
    with tempfile.TemporaryDirectory() as folder:
        report["bytes"] = measured(Path(folder), options.connections, VERSIONS[options.version], rest)
    json.dump(report, sys.stdout, indent=1)
    sys.stdout.write("\n")
    return 0


def measured(folder: Path, count: int, version: ssl.TLSVersion, arguments: Sequence[str]) -> dict[str, int]:
    """Bytes of a connection of each kind. Raises LaunchError, OSError."""
    public, key = certificate(folder)
    ports = (*PORTS, "native_tls_port", "http_tls_port")
    command = [
        fanlightd(), "serve", *(f"--{name.replace('_', '-')}=0" for name in ports),
        f"--tls-certificate={public}", f"--tls-key={key}", "--handshake-seconds-max=300", "--log-format=json",
    ]  # fmt: skip
    context = ssl.create_default_context(cafile=public)
    context.minimum_version = context.maximum_version = version
    found: dict[str, int] = {}
    with (
        Server([*command, *arguments], listeners=("native", "native_tls", "http"), environment=byte_code()) as broker,
        contextlib.ExitStack() as stack,
    ):
        clear, secure = broker.addresses["native"][1], broker.addresses["native_tls"][1]
        charge(broker)  # which imports aiohttp

        def opened(kind: str) -> ssl.SSLSocket | None:
            port = clear if kind == "plain" else secure
            plain = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=SECONDS))
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if kind == "plain":
                plain.sendall(HELLO)
                plain.recv(1 << 16)
                return None
            if kind == "handshake":
                begin(context, plain)
                return None
            peer = stack.enter_context(context.wrap_socket(plain, server_hostname="127.0.0.1"))
            peer.sendall(HELLO)
            peer.recv(1 << 16)
            return peer

        peers = list[ssl.SSLSocket]()
        warm = list[ssl.SSLSocket]()
        for kind in ("plain", "tls", "handshake"):
            warm += [peer for _ in range(WARM) if (peer := opened(kind)) is not None]
            before, charged = resident(broker), charge(broker)
            made = [opened(kind) for _ in range(count)]
            peers += [peer for peer in made if peer is not None]
            found[kind] = (resident(broker) - before) // count - (found["plain"] if kind != "plain" else 0)
            if kind != "plain":
                found[f"{kind}_charged"] = (charge(broker) - charged) // count
        sender = stack.enter_context(socket.create_connection(("127.0.0.1", clear), timeout=SECONDS))
        sender.sendall(HELLO)
        sender.recv(1 << 16)
        listeners = [peer for _ in range(WARM + count) if (peer := opened("tls")) is not None]
        deliver(sender, listeners[:WARM], "warm")
        before, charged = resident(broker), charge(broker)
        deliver(sender, listeners[WARM:], "received")
        found["received"] = (resident(broker) - before) // count
        found["received_charged"] = (charge(broker) - charged) // count
        send(warm)
        before, charged = resident(broker), charge(broker)
        send(peers)
        found["large"] = (resident(broker) - before) // count
        found["large_charged"] = (charge(broker) - charged) // count
    return found


def begin(context: ssl.SSLContext, plain: socket.socket) -> None:
    """Send the first message of a handshake, and wait for what the server says to it."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    plain.sendall(outgoing.read())
    plain.recv(1 << 16)


def send(peers: Sequence[ssl.SSLSocket]) -> None:
    """A large message from each to itself."""
    for number, peer in enumerate(peers):
        topic = f"{len(peers)}.{number}"
        peer.sendall(frames.encode(frames.SUBSCRIBE, None, 1, topic, {}))
        peer.sendall(frames.publish(topic, LARGE_BYTES, "amqp", receipt=False)[0])
        left = LARGE_BYTES
        while left > 0:
            left -= len(peer.recv(1 << 16))


def deliver(sender: socket.socket, peers: Sequence[ssl.SSLSocket], name: str) -> None:
    """A large message from a client without TLS to each."""
    for number, peer in enumerate(peers):
        topic = f"{name}.{number}"
        peer.sendall(frames.encode(frames.SUBSCRIBE, 1, 1, topic, {}))
        peer.recv(1 << 16)
        sender.sendall(frames.publish(topic, LARGE_BYTES, "amqp", receipt=False)[0])
        left = LARGE_BYTES
        while left > 0:
            left -= len(peer.recv(1 << 16))


def charge(broker: Server) -> int:
    with urlopen(f"http://127.0.0.1:{broker.addresses['http'][1]}/stats", timeout=SECONDS) as answer:
        return int(json.load(answer)["tls_bytes"])


def resident(broker: Server) -> int:
    """Once it has done what it has to do: memory that is given back in the next turns is no connection's.

    That is when neither it nor the charge has changed over several answers of the broker, each of which takes turns.
    Raises OSError where it never comes to rest.
    """
    seen: list[tuple[int, int]] = []
    for _ in range(ANSWERS_MAX):
        charged, found = charge(broker), resident_bytes(broker.pid)
        if found is None:
            raise OSError("the memory of a process is not to be known without /proc")
        seen.append((found, charged))
        if len(seen) >= STEADY and len(set(seen[-STEADY:])) == 1:
            return found
    raise OSError(f"the broker's memory still changed after {ANSWERS_MAX} of its answers")


if __name__ == "__main__":
    raise SystemExit(main())
