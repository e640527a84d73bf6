"""Eclipse Paho for Python: its network loop is a thread, so all that it tells comes from there."""

import asyncio
import socket
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from tests.interop.peer import PLAIN, Message, Options, Peer, Refused, Said, Wanted, soon

VERSIONS = {3: paho.MQTTv311, 5: paho.MQTTv5}


def properties_of(kind: int, **values: Any) -> Properties:
    """Paho's properties: names as in `ContentType`, without those that are None."""
    properties = Properties(kind)
    for name, value in values.items():
        if value is not None:
            setattr(properties, name, value)
    return properties


def written(said: Said, kind: int = PacketTypes.PUBLISH, **more: Any) -> Properties:
    """What is said, as properties."""
    return properties_of(
        kind, UserProperty=list(said.user) or None, ContentType=said.content_type, ResponseTopic=said.response_topic,
        CorrelationData=said.correlation, MessageExpiryInterval=said.expiry,
        PayloadFormatIndicator=None if said.is_text is None else int(said.is_text), **more,
    )


def read(message: paho.MQTTMessage) -> Message:
    """A message as paho has it."""
    properties = message.properties
    found: dict[str, Any] = {} if properties is None else vars(properties)
    indicator = found.get("PayloadFormatIndicator")
    said = Said(
        user=tuple(found.get("UserProperty", ())), content_type=found.get("ContentType"),
        response_topic=found.get("ResponseTopic"), correlation=found.get("CorrelationData"),
        is_text=None if indicator is None else bool(indicator), expiry=found.get("MessageExpiryInterval"),
    )
    identifiers = tuple(found.get("SubscriptionIdentifier", ()))
    return Message(message.topic, message.payload, message.qos, message.retain, said, identifiers)


class PahoPeer(Peer):
    takes_aliases = False
    returns = False  # whether it connects anew by itself when its connection breaks

    def __post_init__(self) -> None:
        super().__post_init__()
        self._answers: dict[tuple[str, int], asyncio.Future[int]] = {}
        self.connections: asyncio.Queue[bool] = asyncio.Queue()  # whether each found a session
        self._connected: asyncio.Future[tuple[bool, int]] = self.loop.create_future()

    async def connect(self, wanted: Wanted) -> bool | None:
        self.client = client = paho.Client(
            CallbackAPIVersion.VERSION2, wanted.client_id, clean_session=wanted.clean if self.version == 3 else None,
            protocol=VERSIONS[self.version], transport="websockets" if self.endpoint.websocket else "tcp",
            reconnect_on_failure=self.returns,
        )
        client.on_connect, client.on_disconnect = self._on_connect, self._on_disconnect
        client.reconnect_delay_set(0, 0)
        client.on_subscribe, client.on_unsubscribe = self._on_subscribe, self._on_unsubscribe
        client.on_message = self._on_message
        if self.endpoint.ca is not None:
            certificate = self.endpoint.certificate
            client.tls_set(ca_certs=str(self.endpoint.ca), certfile=None if certificate is None else str(certificate))
        if wanted.user is not None:
            client.username_pw_set(wanted.user, wanted.password)
        five = self.version == 5
        if (will := wanted.will) is not None:
            delay = wanted.will_delay or None
            about = written(will.said, PacketTypes.WILLMESSAGE, WillDelayInterval=delay) if five else None
            client.will_set(will.topic, will.payload, will.qos, will.retain, about)
        asked = properties_of(
            PacketTypes.CONNECT, SessionExpiryInterval=wanted.expiry or None, ReceiveMaximum=wanted.receive_max,
            MaximumPacketSize=wanted.packet_max, TopicAliasMaximum=wanted.alias_max,
        )
        client.connect_async(
            "127.0.0.1", self.endpoint.port, wanted.keep_alive, properties=asked if five else None,
            clean_start=wanted.clean if five else paho.MQTT_CLEAN_START_FIRST_ONLY,
        )
        client.loop_start()
        present, code = await soon(self._connected)
        if code:
            raise Refused(code)
        return present

    async def subscribe(self, filter: str, qos: int = 0, options: Options = PLAIN) -> int:
        if self.version == 3:
            _, number = self.client.subscribe(filter, qos)
        else:
            asked = SubscribeOptions(qos, options.no_local, options.retain_as_published, options.retain_handling)
            about = properties_of(PacketTypes.SUBSCRIBE, SubscriptionIdentifier=options.identifier)
            _, number = self.client.subscribe(filter, options=asked, properties=about)
        assert number is not None
        return await soon(self._answer("subscribed", number))

    async def unsubscribe(self, filter: str) -> None:
        _, number = self.client.unsubscribe(filter)
        assert number is not None
        await soon(self._answer("unsubscribed", number))

    async def publish(self, *messages: Message) -> None:
        await self.publish_with({}, *messages)

    async def publish_with(self, more: dict[str, Any], *messages: Message) -> None:
        """`more`: properties in paho's names."""
        five = self.version == 5
        sent = [
            self.client.publish(
                each.topic, each.payload, each.qos, each.retain, written(each.said, **more) if five else None
            )
            for each in messages
        ]
        for one in sent:
            await soon(asyncio.to_thread(one.wait_for_publish, 20.0))
            assert one.is_published()

    async def disconnect(self) -> None:
        self.client.disconnect()
        await asyncio.to_thread(self.client.loop_stop)

    async def cut(self) -> None:
        self.shut()
        await soon(self.closed)
        await asyncio.to_thread(self.client.loop_stop)

    def shut(self) -> None:
        """What lies below, through TLS and WebSocket alike."""
        connection = self.client.socket()
        assert connection is not None
        getattr(connection, "_socket", connection).shutdown(socket.SHUT_RDWR)

    # -- in paho's thread -------------------------------------------------------------------------------------------

    def _tell(self, call: Any, *arguments: Any) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(call, *arguments)

    def _on_connect(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        # In 3.1.1 the return code is told as the reason code of 5 that means the same.
        self._tell(self.connections.put_nowait, flags.session_present)
        self._tell(self._set, self._connected, (flags.session_present, reason.value))

    def _on_disconnect(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        self._tell(self.has_closed, reason.value if flags.is_disconnect_packet_from_server else None)

    def _on_subscribe(self, client: Any, userdata: Any, number: int, reasons: Any, properties: Any) -> None:
        self._tell(lambda: self._set(self._answer("subscribed", number), reasons[0].value))

    def _on_unsubscribe(self, client: Any, userdata: Any, number: int, reasons: Any, properties: Any) -> None:
        self._tell(lambda: self._set(self._answer("unsubscribed", number), 0))

    def _on_message(self, client: Any, userdata: Any, message: paho.MQTTMessage) -> None:
        self._tell(self.inbox.put_nowait, read(message))

    # -- in the loop's ----------------------------------------------------------------------------------------------

    def _answer(self, kind: str, number: int) -> "asyncio.Future[int]":
        return self._answers.setdefault((kind, number), self.loop.create_future())

    @staticmethod
    def _set(future: "asyncio.Future[Any]", value: Any) -> None:
        if not future.done():
            future.set_result(value)
