"""Mosquitto: Eclipse's MQTT broker in C, one thread. Without persistence, log and $SYS, and without limits of queues:
what it would otherwise drop under a full window would only look like speed."""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from fanlight_bench.peers.certificate import certificate
from fanlight_bench.peers.peer import Peer, Up, free_ports, said, served, which

CONFIGURATION = """\
listener PORT 127.0.0.1
allow_anonymous true
persistence false
log_dest stderr
log_type information
connection_messages false
sys_interval 0
set_tcp_nodelay true
max_connections -1
max_queued_messages 0
max_queued_bytes 0
max_inflight_messages 0
"""  # log_type information: the line that says it runs, and no other while it works


class Mosquitto(Peer):
    name = "mosquitto"
    package = "mosquitto"
    one_thread = True

    def __init__(self, *, encrypted: bool = False) -> None:
        self.encrypted = encrypted

    def listening(self, scheme: str) -> "Mosquitto":
        return Mosquitto(encrypted=True) if scheme.endswith("+tls") else self

    def program(self) -> str | None:
        return which("mosquitto")

    def version(self) -> str:
        found = re.search(r"version (\S+)", said([self.program() or self.name, "-h"]))
        return found[1] if found else ""

    def configuration(self) -> str:
        # Started by root it would go on as a user who may not read the folder.
        return CONFIGURATION + ("user root\n" if os.geteuid() == 0 else "")

    @contextlib.contextmanager
    def start(self, folder: Path, cpu: int | None) -> Iterator[Up]:
        (port,) = free_ports(1)
        file = folder / "mosquitto.conf"
        text = self.configuration().replace("PORT", str(port))
        if self.encrypted:  # of the one listener
            public, key = certificate(folder)
            text += f"certfile {public}\nkeyfile {key}\n"
        file.write_text(text, encoding="utf-8")
        with served([self.program() or self.name, "-c", str(file)], " running", cpu=cpu) as server:
            yield Up({"mqtt+tls": port} if self.encrypted else {"mqtt": port, "mqtt5": port}, server.pid)
