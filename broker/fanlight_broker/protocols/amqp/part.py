"""AMQP 0-9-1 as a part of a broker."""

import json
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.errors import FanlightError
from fanlight_broker.core.listening_port import ListeningPort
from fanlight_broker.core.protocol_part import ProtocolPart
from fanlight_broker.protocols.amqp.connection import AmqpConnection
from fanlight_broker.protocols.amqp.definition_service import DefinitionService
from fanlight_broker.protocols.amqp.exchanges.definitions import DefinitionsError
from fanlight_broker.protocols.amqp.exchanges.ports import ExchangeLimits
from fanlight_broker.protocols.amqp.format import FORMAT
from fanlight_broker.protocols.amqp.frames import PROTOCOL_HEADER
from fanlight_broker.protocols.amqp.options import COUNTERS, AmqpCounts, AmqpOptions
from fanlight_broker.protocols.amqp.settings import AmqpSettings
from fanlight_broker.protocols.amqp.vhost import Vhosts, vhost_names


class AmqpPart(ProtocolPart):
    name = "amqp"
    title = "AMQP"
    settings = AmqpSettings
    subprotocols = ("amqp",)
    counters_help = COUNTERS
    formats = (FORMAT,)

    def __init__(self, settings: AmqpSettings) -> None:
        super().__init__(settings)
        self.origins, self.durability = settings.amqp_websocket_origins, settings.amqp_durability
        self.counts = AmqpCounts()
        options = AmqpOptions(
            settings.amqp_message_bytes_max, settings.amqp_heartbeat_seconds, settings.amqp_consumer_timeout_seconds
        )
        limits = ExchangeLimits(settings.amqp_exchanges_max, settings.amqp_exchanges_bytes_max)
        self._vhosts = Vhosts(vhost_names(settings.amqp_vhosts or ""), limits)
        self.connection = partial(AmqpConnection, options, self.counts, self._vhosts)

    def begin(self, broker: Broker) -> None:
        self._vhosts.begin(broker)
        self._definitions = DefinitionService(broker, self._vhosts)

    def views(self) -> Mapping[str, Callable[[Mapping[str, str]], Any]]:
        return {"/definitions": self._rows}

    def _rows(self, query: Mapping[str, str]) -> Generator[None, None, tuple[int, dict[str, Any]]]:
        return 200, (yield from self._definitions.rows(offset=int(query["offset"]), limit=int(query["limit"])))

    def actions(self) -> Mapping[str, Callable[..., Any]]:
        return {"/definitions/import": self._take, "/definitions/delete": self._drop}

    def _take(self, body: bytes) -> Generator[None, None, dict[str, Any]]:
        """A part of a file, with `dry_run: true` in it if it is only to be looked at. Raises FanlightError."""
        return self._with(body, lambda document: self._definitions.take(
            document, dry=isinstance(document, dict) and document.get("dry_run") is True
        ))  # fmt: skip

    def _drop(self, body: bytes) -> Generator[None, None, dict[str, Any]]:
        """What a file has as vhosts and policies is to be there no more. Raises FanlightError."""
        return self._with(body, self._definitions.drop)

    @staticmethod
    def _with(
        body: bytes, act: Callable[[object], Generator[None, None, dict[str, Any]]]
    ) -> Generator[None, None, dict[str, Any]]:
        try:
            document = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise FanlightError(f"it is not JSON: {error}") from error
        try:
            return (yield from act(document))
        except DefinitionsError as error:
            raise FanlightError(str(error)) from error

    def example(self, port: ListeningPort, host: str, number: int, *, credentials: bool) -> str:
        if port.websocket:
            return f"new AMQPWebSocketClient('{'wss' if port.tls else 'ws'}://{host}:{number}') in amqp-client.js"
        user = "USER:PASSWORD@" if credentials else ""
        return f"celery -b {'amqps' if port.tls else 'amqp'}://{user}{host}:{number}// status"

    @staticmethod
    def recognises(first: bytes) -> bool:
        return first.startswith(PROTOCOL_HEADER[:4])

    @staticmethod
    def refusal(first: bytes, text: str) -> bytes:
        return b""  # the one answer before the protocol header is accepted is another header, which has no text

    def counters(self) -> Mapping[str, int]:
        return self.counts.counters()
