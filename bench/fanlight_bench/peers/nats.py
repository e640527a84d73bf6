"""nats-server: the broker of NATS in Go, in its own text protocol. As it comes it uses all processors; with
GOMAXPROCS=1 and pinned to one it is the fair peer of brokers that have one thread."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from fanlight_bench.launch import LaunchError, Server
from fanlight_bench.peers.certificate import certificate
from fanlight_bench.peers.peer import Peer, Up, free_ports, said, served, which

CONFIGURATION = """\
listen: 127.0.0.1:-1
server_name: bench
max_connections: 65536
max_pending: 268435456
write_deadline: "10s"
max_payload: 1048576
"""  # port -1: one that is free, which it then says
MQTT = """\
jetstream { store_dir: "DIR", max_memory_store: 4294967296, max_file_store: 4294967296 }
mqtt { listen: "127.0.0.1:PORT", max_ack_pending: 65535 }
"""
CARRIED = ("nats+tls", "nats+ws")
LISTENS = re.compile(r"Listening for client connections on 127\.0\.0\.1:(\d+)")


class Nats(Peer):
    name = "nats"
    package = "nats-server"
    one_thread = False

    def __init__(self, scheme: str = "nats") -> None:
        self.scheme = scheme

    def listening(self, scheme: str) -> "Nats":
        return type(self)(scheme) if scheme in CARRIED else self

    def program(self) -> str | None:
        return which("nats-server")

    def version(self) -> str:
        return said([self.program() or self.package, "--version"]).rpartition("v")[2]

    def configuration(self) -> str:
        return CONFIGURATION

    def environment(self) -> dict[str, str]:
        return {}

    @contextlib.contextmanager
    def start(self, folder: Path, cpu: int | None) -> Iterator[Up]:
        file = folder / "nats.conf"
        text, web = CONFIGURATION, 0
        if self.scheme == "nats+tls":
            public, key = certificate(folder)
            text += f'tls {{ cert_file: "{public}", key_file: "{key}" }}\n'
        elif self.scheme == "nats+ws":
            (web,) = free_ports(1)
            text += f'websocket {{ listen: "127.0.0.1:{web}", no_tls: true }}\n'
        file.write_text(text, encoding="utf-8")
        command = [self.program() or self.package, "-c", str(file)]
        with served(command, "Server is ready", cpu=cpu, environment=self.environment()) as server:
            yield Up({self.scheme: web or _port(server)}, server.pid)


class NatsMqtt(Nats):
    """Its MQTT listener, which keeps sessions and what is in flight in JetStream."""

    name = "nats-mqtt"
    start_seconds = 1.0

    def configuration(self) -> str:
        return CONFIGURATION + MQTT

    @contextlib.contextmanager
    def start(self, folder: Path, cpu: int | None) -> Iterator[Up]:
        (port,) = free_ports(1)
        file = folder / "nats.conf"
        text = self.configuration().replace("DIR", str(folder / "store")).replace("PORT", str(port))
        file.write_text(text, encoding="utf-8")
        with served([self.program() or self.package, "-c", str(file)], "Server is ready", cpu=cpu) as server:
            yield Up({"mqtt": port}, server.pid)


class NatsOnOne(Nats):
    name = "nats-1cpu"
    one_thread = True

    def configuration(self) -> str:
        return f"GOMAXPROCS=1 in the environment\n{CONFIGURATION}"

    def environment(self) -> dict[str, str]:
        return {"GOMAXPROCS": "1"}


def _port(server: Server) -> int:
    for line in server.lines:
        if found := LISTENS.search(line):
            return int(found[1])
    raise LaunchError("nats-server is ready and has not said on which port")
