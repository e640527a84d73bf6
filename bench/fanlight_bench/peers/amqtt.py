"""amqtt: the MQTT broker on PyPI that is written in Python alone, on asyncio. It lives in a virtual environment of its
own, so that what it needs and what Fanlight needs do not meet."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from fanlight_bench.peers.peer import Peer, Up, free_ports, said, served

VENV = Path(__file__).parents[3] / "build" / "peers" / "amqtt"
VERSION = "0.12.1"
CONFIGURATION = """\
listeners:
  default:
    type: tcp
    bind: 127.0.0.1:PORT
    max_connections: 65536
plugins:
  amqtt.plugins.authentication.AnonymousAuthPlugin:
    allow_anonymous: true
"""


class Amqtt(Peer):
    name = "amqtt"
    one_thread = True
    start_seconds = 2.0

    def __init__(self, venv: Path = VENV) -> None:
        self.venv = venv

    def program(self) -> str | None:
        path = self.venv / "bin" / "amqtt"
        return str(path) if path.exists() else None

    def version(self) -> str:
        return said([str(self.venv / "bin" / "amqtt"), "--version"])

    def configuration(self) -> str:
        return CONFIGURATION

    def installation(self) -> list[list[str]]:
        """The commands that make its environment."""
        return [
            [sys.executable, "-m", "venv", str(self.venv)],
            [str(self.venv / "bin" / "pip"), "install", "--quiet", f"amqtt=={VERSION}"],
        ]

    @contextlib.contextmanager
    def start(self, folder: Path, cpu: int | None) -> Iterator[Up]:
        (port,) = free_ports(1)
        file = folder / "amqtt.yaml"
        file.write_text(CONFIGURATION.replace("PORT", str(port)), encoding="utf-8")
        command = [str(self.venv / "bin" / "amqtt"), "-c", str(file)]
        with served(command, "Starting session expiration", cpu=cpu) as server:
            yield Up({"mqtt": port}, server.pid)
