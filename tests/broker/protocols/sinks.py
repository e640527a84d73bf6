"""Worlds whose connections send through the real sink (net/flush.pyx), for what it decides: when nothing is sent."""

from collections.abc import Sequence
from typing import Any

from fanlight_broker.core.permissions import Asker
from fanlight_broker.core.quota import NO_QUOTA, Quota, quota_of
from fanlight_broker.net.flush import SocketSink
from fanlight_broker.wire.outbox import Outbox
from tests.broker.protocols import world
from tests.broker.protocols.mqtt import world as mqtt
from tests.broker.protocols.native import world as native

PACED, FREE = "192.0.2.66", "192.0.2.1"


class ByAddress:
    """Quotas of one address."""

    empty = False

    def __init__(self, address: str, **entries: Any) -> None:
        self._address, self._quota = address, quota_of(entries)

    def of(self, asker: Asker, own: Any) -> Quota:
        return self._quota if asker.address == self._address else NO_QUOTA

    def held(self, holder: Sequence[str]) -> Quota | None:
        return None


class Pipe:
    """The transport of a sink: what is written is received, as long as the other end reads."""

    def __init__(self, peer: world.Peer) -> None:
        self._peer = peer

    def write(self, octets: bytes) -> None:
        self._peer.received += octets

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        self._peer.world.soon.append(lambda: self._peer._lose("closed"))

    def abort(self) -> None:
        self.close()


class SendingByASink(world.Peer):
    """A peer whose end of the broker has a sink."""

    sink: SocketSink

    def give_sink(self) -> None:
        pipe: Any = Pipe(self)
        self.sink = self.protocol.outbox.sink = SocketSink(self.protocol.outbox, pipe, self._drained)

    def _drained(self, outbox: Outbox) -> None:
        for client in self.world.broker.flow.drained(outbox, self.world.now):
            self.world.soon.append(client.connection.unblocked)

    def flush(self) -> bool:
        before = len(self.received)
        if not self.gone:
            self.sink.flush_now()
        return len(self.received) > before

    def close(self, reason: str = "") -> None:
        self.close_reason = reason
        self._reading = True
        self.sink.close()


class NativePeer(SendingByASink, native.Peer):
    def __init__(self, world: native.World, address: str) -> None:
        super().__init__(world)
        self.address = address
        self.give_sink()


class MqttPeer(SendingByASink, mqtt.Peer):
    def __init__(self, world: mqtt.World, version: Any, address: str) -> None:
        super().__init__(world, version)
        self.address = address
        self.give_sink()


def connect_native(world: native.World, address: str, **options: Any) -> NativePeer:
    peer = NativePeer(world, address)
    peer.send(native.frame(1, 1, options))
    assert peer.next()[0] == 2
    return peer


def connect_mqtt(world: mqtt.World, name: str, version: Any, address: str, **fields: Any) -> MqttPeer:
    peer = MqttPeer(world, version, address)
    peer.say(mqtt.connect(name, version, **fields))
    assert peer.next().reason_code == 0  # type: ignore[union-attr]
    return peer
