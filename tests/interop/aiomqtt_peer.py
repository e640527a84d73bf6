"""aiomqtt, which is paho under asyncio, with a context manager and an iterator for its face."""

import asyncio
import socket
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import aiomqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.subscribeoptions import SubscribeOptions

from tests.interop.paho_peer import properties_of, read, written
from tests.interop.peer import PLAIN, Message, Options, Peer, Refused, Wanted, soon

VERSIONS = {3: aiomqtt.ProtocolVersion.V311, 5: aiomqtt.ProtocolVersion.V5}


def code_of(error: BaseException | None) -> int | None:
    """The reason code in one of aiomqtt's exceptions."""
    reason = getattr(error, "rc", None)
    return None if reason is None else int(getattr(reason, "value", reason))


class AiomqttPeer(Peer):
    takes_aliases = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._stack = AsyncExitStack()
        self._reader: asyncio.Task[None] | None = None

    async def connect(self, wanted: Wanted) -> bool | None:
        five, will = self.version == 5, None
        if (last := wanted.will) is not None:
            delay = wanted.will_delay or None
            about = written(last.said, PacketTypes.WILLMESSAGE, WillDelayInterval=delay) if five else None
            will = aiomqtt.Will(last.topic, last.payload, last.qos, last.retain, about)
        asked = properties_of(
            PacketTypes.CONNECT, SessionExpiryInterval=wanted.expiry or None, ReceiveMaximum=wanted.receive_max,
            MaximumPacketSize=wanted.packet_max, TopicAliasMaximum=wanted.alias_max,
        )
        more: dict[str, Any] = {"clean_start": wanted.clean, "properties": asked} if five \
            else {"clean_session": wanted.clean}
        self.client = aiomqtt.Client(
            "127.0.0.1", self.endpoint.port, identifier=wanted.client_id, protocol=VERSIONS[self.version], will=will,
            username=wanted.user, password=wanted.password, keepalive=wanted.keep_alive, timeout=20,
            transport="websockets" if self.endpoint.websocket else "tcp", **more,
        )
        self.client.pending_calls_threshold = 10_000  # from where on it warns
        try:
            await soon(self._stack.enter_async_context(self.client))
        except aiomqtt.MqttCodeError as error:
            raise Refused(code_of(error) or 0) from None
        self._reader = asyncio.create_task(self._read())
        return None

    async def _read(self) -> None:
        try:
            async for message in self.client.messages:
                self.inbox.put_nowait(replace(read(message), topic=str(message.topic)))
        except aiomqtt.MqttError as error:
            # In 3.1.1 the code is paho's own: there is no DISCONNECT from a server.
            self.has_closed(code_of(error.__cause__) if self.version == 5 else None)

    async def subscribe(self, filter: str, qos: int = 0, options: Options = PLAIN) -> int:
        if self.version == 3:
            granted = await soon(self.client.subscribe(filter, qos))
        else:
            asked = SubscribeOptions(qos, options.no_local, options.retain_as_published, options.retain_handling)
            about = properties_of(PacketTypes.SUBSCRIBE, SubscriptionIdentifier=options.identifier)
            granted = await soon(self.client.subscribe(filter, options=asked, properties=about))
        return int(getattr(granted[0], "value", granted[0]))

    async def unsubscribe(self, filter: str) -> None:
        await soon(self.client.unsubscribe(filter))

    async def publish(self, *messages: Message) -> None:
        five = self.version == 5
        await soon(asyncio.gather(*(
            self.client.publish(each.topic, each.payload, each.qos, each.retain, written(each.said) if five else None)
            for each in messages
        )))

    async def disconnect(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait([self._reader])
        self.client.pending_calls_threshold = 10_000  # from where on it warns
        try:
            await soon(self._stack.aclose())
        except aiomqtt.MqttError:
            assert self.closed.done(), "leaving fails for a connection that has ended, and for no other"

    async def cut(self) -> None:
        connection: Any = self.client._client.socket()  # it has no other way to fail
        getattr(connection, "_socket", connection).shutdown(socket.SHUT_RDWR)
        await soon(self.closed)
        await self.disconnect()
