"""An MQTT client over a real socket, for tests: it does what a test says and reads when it is asked.

    async with await MqttPeer.connect(broker.mqtt_port, "name", keep_alive=2) as peer:
        await peer.subscribe("#")
        assert (await peer.message()).payload == b"187"

The packets are the broker's own (tests/conformance checks them). Every wait is bounded.
"""

import asyncio
from collections import deque
from types import TracebackType
from typing import Any, Self

from fanlight_broker.protocols.mqtt.codec import decode, encode
from fanlight_broker.protocols.mqtt.framing import PacketDecoder
from fanlight_broker.protocols.mqtt.packets import (
    ConnAck,
    Packet,
    PingReq,
    Publish,
    SubAck,
    Subscribe,
    Subscription,
    WillFields,
)
from fanlight_broker.protocols.mqtt.version import V5, Version
from tests.broker.protocols.mqtt.world import connect
from tests.system.wire import WAIT_SECONDS, Closed

READ_BYTES = 256 * 1024


class MqttPeer:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, version: Version) -> None:
        self.version = version
        self._reader, self._writer = reader, writer
        self._decoder = PacketDecoder(1 << 28)
        self._packets: deque[Packet] = deque()
        self._packet_id = 0

    @classmethod
    async def connect(
        cls, port: int, client_id: str = "", *, version: Version = V5, keep_alive: int = 0,
        will: WillFields | None = None, **fields: Any,
    ) -> Self:
        """A connection that is through its handshake. fields: of CONNECT, or of its properties."""
        peer = cls(*await asyncio.open_connection("127.0.0.1", port), version)
        await peer.send(connect(client_id, version, keep_alive=keep_alive, will=will, **fields))
        connack = await peer.packet()
        assert isinstance(connack, ConnAck), connack
        assert connack.reason_code == 0, connack
        return peer

    async def send(self, *packets: Packet) -> None:
        await self.pour(b"".join(encode(packet, self.version) for packet in packets))

    async def pour(self, octets: bytes) -> None:
        self._writer.write(octets)
        async with asyncio.timeout(WAIT_SECONDS):
            await self._writer.drain()

    async def ping(self) -> None:
        """Send PINGREQ; its answer is a packet like others."""
        await self.send(PingReq())

    async def packet(self) -> Packet:
        """The next packet. Raises Closed."""
        async with asyncio.timeout(WAIT_SECONDS):
            while not self._packets:
                try:
                    octets = await self._reader.read(READ_BYTES)
                except ConnectionError as error:
                    raise Closed(str(error)) from error
                if not octets:
                    raise Closed("the broker closed the connection")
                self._decoder.feed(octets)
                while (raw := self._decoder.next_packet()) is not None:
                    self._packets.append(decode(raw.first_byte, raw.body, self.version))
        return self._packets.popleft()

    async def message(self) -> Publish:
        """The next message; other packets before it are passed over."""
        while not isinstance(packet := await self.packet(), Publish):
            pass
        return packet

    async def subscribe(self, *filters: str, qos: int = 0) -> tuple[int, ...]:
        """The codes of SUBACK, once it is there; packets before it are passed over."""
        self._packet_id += 1
        await self.send(Subscribe(self._packet_id, tuple(Subscription(each, qos) for each in filters)))
        while not isinstance(packet := await self.packet(), SubAck):
            pass
        return packet.reason_codes

    async def close(self) -> None:
        self._writer.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
