"""Fanlight: this checkout, on its default settings; only what it says of every connection is not written down."""

import contextlib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from fanlight_bench.launch import Broker, fanlightd
from fanlight_bench.peers.peer import Peer, Up


class Fanlight(Peer):
    name = "fanlight"
    one_thread = True

    def program(self) -> str | None:
        return fanlightd() if Path(fanlightd()).exists() else None

    def version(self) -> str:
        return metadata.version("fanlight-broker")

    def configuration(self) -> str:
        return "default settings; --native-port PORT --mqtt-port PORT"

    @contextlib.contextmanager
    def start(self, folder: Path, cpu: int | None) -> Iterator[Up]:
        with Broker(cpu=cpu) as broker:
            mqtt = broker.mqtt_port
            yield Up({"fanlight": broker.port, "mqtt": mqtt, "mqtt5": mqtt}, broker.pid)
