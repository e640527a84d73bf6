"""The null broker (null_broker.pyx): receive, look up, send, and no checks. No broker, but the floor for one
thread; what a broker takes above it is what it does beyond that."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from fanlight_bench import null_server
from fanlight_bench.peers.peer import Peer, Up


class Null(Peer):
    name = "null"
    one_thread = True

    def program(self) -> str | None:
        return sys.executable

    def version(self) -> str:
        return ""

    def configuration(self) -> str:
        return "none: it has no settings"

    @contextlib.contextmanager
    def start(self, folder: Path, cpu: int | None) -> Iterator[Up]:
        with null_server.start(cpu) as server:
            ports = {name: port for name, (_, port) in server.addresses.items()}
            yield Up({"fanlight": ports["native"], **ports}, server.pid)
