"""Fanlight: this checkout, on its default settings; only what it says of every connection is not written down."""

import contextlib
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from fanlight_bench.launch import Broker, byte_code, fanlightd
from fanlight_bench.peers.certificate import certificate
from fanlight_bench.peers.peer import Peer, Up

# Listener -> scheme.
SCHEMES = {
    "native": "fanlight", "mqtt": "mqtt", "native_tls": "fanlight+tls", "mqtt_tls": "mqtt+tls",
    "mqtt_websocket": "mqtt+ws",
}  # fmt: skip


class Fanlight(Peer):
    name = "fanlight"
    one_thread = True

    def __init__(
        self, settings: Mapping[str, str] | None = None, *, module: str = "", encrypted: bool = False
    ) -> None:
        self.chosen = dict(settings or {})
        self.module = module
        self.encrypted = encrypted

    def configured(self, settings: Mapping[str, str], module: str = "") -> "Fanlight":
        byte_code()  # before the start is timed
        return Fanlight(settings, module=module) if settings or module else self

    def listening(self, scheme: str) -> "Fanlight":
        return Fanlight(self.chosen, module=self.module, encrypted=True) if scheme.endswith("+tls") else self

    def program(self) -> str | None:
        return fanlightd() if Path(fanlightd()).exists() else None

    def version(self) -> str:
        return metadata.version("fanlight-broker")

    def configuration(self) -> str:
        return "default settings; --native-port PORT --mqtt-port PORT; by TLS also --tls-certificate FILE"

    @contextlib.contextmanager
    def start(self, folder: Path, cpu: int | None) -> Iterator[Up]:
        environment = {f"FANLIGHT_{name.upper()}": value for name, value in self.chosen.items()}
        environment |= byte_code()
        settings: dict[str, Any] = {}
        if self.encrypted:
            public, key = certificate(folder)
            settings = {"tls_certificate": public, "tls_key": key, "native_tls_port": 0, "http_tls_port": 0}
        command = [sys.executable, "-m", self.module] if self.module else ()
        with Broker(cpu=cpu, environment=environment, command=command, **settings) as broker:
            ports = {SCHEMES[name]: port for name, (_, port) in broker.addresses.items() if name in SCHEMES}
            yield Up({**ports, "mqtt5": ports["mqtt"]}, broker.pid)
