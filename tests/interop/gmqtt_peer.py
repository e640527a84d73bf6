"""gmqtt: asyncio, MQTT 5 first, a parser of its own."""

import asyncio
from typing import Any

from gmqtt import Client
from gmqtt import Message as GmqttMessage
from gmqtt.mqtt.handler import MQTTConnectError
from gmqtt.storage import PersistentStorage

from tests.interop.peer import PLAIN, Message, Options, Peer, Refused, Said, Wanted, soon

VERSIONS = {3: 4, 5: 5}
NEVER = -2  # reconnects: 0 still allows the first


def written(said: Said) -> dict[str, Any]:
    """What is said, as gmqtt's keywords."""
    values = {
        "user_property": list(said.user) or None, "content_type": said.content_type,
        "response_topic": said.response_topic, "correlation_data": said.correlation,
        "payload_format_id": None if said.is_text is None else int(said.is_text),
        "message_expiry_interval": said.expiry,
    }
    return {name: value for name, value in values.items() if value is not None}


def read(topic: str, payload: bytes, qos: int, properties: dict[str, Any]) -> Message:
    """A message as gmqtt tells it: each property is a list."""

    def only(name: str) -> Any:
        values = properties.get(name)
        return None if values is None else values[0]

    indicator, correlation = only("payload_format_id"), only("correlation_data")
    said = Said(
        user=tuple(properties.get("user_property", ())), content_type=only("content_type"),
        response_topic=only("response_topic"), correlation=None if correlation is None else bytes(correlation),
        is_text=None if indicator is None else bool(indicator), expiry=only("message_expiry_interval"),
    )
    identifiers = tuple(properties.get("subscription_identifier", ()))
    return Message(topic, bytes(payload), qos, bool(properties["retain"]), said, identifiers)


class GmqttPeer(Peer):
    def __post_init__(self) -> None:
        super().__post_init__()
        self._unacknowledged = PersistentStorage()
        self._answers: dict[int, asyncio.Future[int]] = {}
        self._present = False

    async def connect(self, wanted: Wanted) -> bool | None:
        will = None
        if (last := wanted.will) is not None:
            delay = {"will_delay_interval": wanted.will_delay} if wanted.will_delay else {}
            will = GmqttMessage(last.topic, last.payload, last.qos, last.retain, **written(last.said), **delay)
        asked = {
            "session_expiry_interval": wanted.expiry or None, "receive_maximum": wanted.receive_max,
            "maximum_packet_size": wanted.packet_max, "topic_alias_maximum": wanted.alias_max,
        }
        self.client = client = Client(
            wanted.client_id, clean_session=wanted.clean, will_message=will, persistent_storage=self._unacknowledged,
            **{name: value for name, value in asked.items() if value is not None},
        )
        client.set_config({"reconnect_retries": NEVER, "reconnect_delay": 0})
        client.on_connect, client.on_disconnect = self._on_connect, self._on_disconnect
        client.on_message = self._on_message
        client.on_subscribe, client.on_unsubscribe = self._on_subscribe, self._on_unsubscribe
        if wanted.user is not None:
            client.set_auth_credentials(wanted.user, wanted.password)
        try:
            await soon(client.connect(
                "127.0.0.1", self.endpoint.port, keepalive=wanted.keep_alive, version=VERSIONS[self.version]
            ))
        except MQTTConnectError as error:
            raise Refused(error._code) from None
        return self._present

    async def subscribe(self, filter: str, qos: int = 0, options: Options = PLAIN) -> int:
        more = {} if options.identifier is None else {"subscription_identifier": options.identifier}
        number = self.client.subscribe(
            filter, qos, options.no_local, options.retain_as_published, options.retain_handling, **more
        )
        return await soon(self._answer(number))

    async def unsubscribe(self, filter: str) -> None:
        await soon(self._answer(self.client.unsubscribe(filter)))

    async def publish(self, *messages: Message) -> None:
        for each in messages:
            self.client.publish(each.topic, each.payload, each.qos, each.retain, **written(each.said))
        await soon(self._unacknowledged.wait_empty())

    async def disconnect(self) -> None:
        await soon(self.client.disconnect())

    async def cut(self) -> None:
        self.client._connection._transport.abort()  # it has no other way to fail
        await soon(self.closed)
        await self.disconnect()

    def _answer(self, number: int) -> "asyncio.Future[int]":
        return self._answers.setdefault(number, self.loop.create_future())

    def _on_connect(self, client: Client, present: int, code: int, properties: Any) -> None:
        self._present = bool(present)

    def _on_disconnect(self, client: Client, packet: Any, error: Any = None) -> None:
        self.has_closed(packet[0] if isinstance(packet, bytes) and packet else None)

    def _on_message(self, client: Client, topic: str, payload: bytes, qos: int, properties: dict[str, Any]) -> int:
        self.inbox.put_nowait(read(topic, payload, qos, properties))
        return 0

    def _on_subscribe(self, client: Client, number: int, granted: tuple[int, ...], properties: Any) -> None:
        self._answer(number).set_result(granted[0])

    def _on_unsubscribe(self, client: Client, number: int, codes: tuple[int, ...]) -> None:
        self._answer(number).set_result(0)
