"""An MQTT client over a real socket, for tests that must be able to misbehave: it reads when a test asks for a packet.

Packets are encoded and decoded as in the tests without sockets; every wait is bounded.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self, TypeVar

from fanlight_broker.protocols.mqtt.codec import decode, encode
from fanlight_broker.protocols.mqtt.framing import PacketDecoder
from fanlight_broker.protocols.mqtt.packets import ConnAck, Connect, Packet
from fanlight_broker.protocols.mqtt.version import V5
from tests.system.wire import WAIT_SECONDS

P = TypeVar("P", bound=Packet)


class MqttPeer:
    """One connection."""

    def __init__(self) -> None:
        self._decoder = PacketDecoder(1 << 20)
        self._packets: list[Packet] = []

    @asynccontextmanager
    async def connected(self, port: int, client_id: str) -> AsyncIterator[Self]:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            await self.send(Connect(client_id, V5))
            assert (await self.expect(ConnAck)).reason_code == 0
            yield self
        finally:
            self._writer.close()

    async def send(self, *packets: Packet) -> None:
        self._writer.write(b"".join(encode(packet, V5) for packet in packets))
        async with asyncio.timeout(WAIT_SECONDS):
            await self._writer.drain()

    async def expect(self, kind: type[P]) -> P:
        """The next packet, which must be of this kind."""
        async with asyncio.timeout(WAIT_SECONDS):
            while not self._packets:
                octets = await self._reader.read(65_536)
                assert octets, "the broker closed the connection"
                self._decoder.feed(octets)
                while (raw := self._decoder.next_packet()) is not None:
                    self._packets.append(decode(raw.first_byte, raw.body, V5))
        packet = self._packets.pop(0)
        assert isinstance(packet, kind), packet
        return packet
