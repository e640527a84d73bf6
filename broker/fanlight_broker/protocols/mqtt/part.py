"""MQTT as a part of a broker: 3.1.1 and 5.0 on the same ports."""

import importlib
from collections.abc import Mapping
from functools import partial
from typing import Final

from fanlight_broker.core.listening_port import ListeningPort
from fanlight_broker.core.protocol_part import PluginError, ProtocolPart
from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.connection import MqttConnection
from fanlight_broker.protocols.mqtt.format import MQTT_5_0
from fanlight_broker.protocols.mqtt.options import COUNTERS, AuthenticationMethod, Counts, MqttOptions
from fanlight_broker.protocols.mqtt.packets import ConnAck
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.settings import MqttSettings
from fanlight_broker.protocols.mqtt.version import V5

PROTOCOL_NAMES: Final = (b"\x00\x04MQTT", b"\x00\x06MQIsdp")
CONNECT: Final = b"\x10"


class MqttPart(ProtocolPart):
    name = "mqtt"
    title = "MQTT"
    settings = MqttSettings
    subprotocols = ("mqtt",)
    counters_help = COUNTERS
    formats = (MQTT_5_0,)

    def __init__(self, settings: MqttSettings) -> None:
        super().__init__(settings)
        self.origins, self.durability = settings.mqtt_websocket_origins, settings.mqtt_durability
        self.counts = Counts()
        self.connection = partial(MqttConnection, options_of(settings), self.counts)

    def example(self, port: ListeningPort, host: str, number: int, *, credentials: bool) -> str:
        if port.websocket:
            return f"mqtt.connect('{'wss' if port.tls else 'ws'}://{host}:{number}') in mqtt.js"
        ca = " --cafile CA.pem" if port.tls else ""
        user = " -u USER -P PASSWORD" if credentials else ""
        return f"mosquitto_sub -h {host} -p {number}{ca}{user} -t 'stock/#'"

    @staticmethod
    def recognises(first: bytes) -> bool:
        name = _variable_header(first)
        return first[:1] == CONNECT and len(name) >= 2 and any(
            name.startswith(each[: len(name)]) for each in PROTOCOL_NAMES
        )

    @staticmethod
    def refusal(first: bytes, text: str) -> bytes:
        if _variable_header(first)[6:7] != bytes((V5,)):
            return b""  # a return code of 3.1.1 has no room for a text
        refused = ConnAck(False, ReasonCode.UNSUPPORTED_PROTOCOL_VERSION, Properties(reason_string=text))
        return encode(refused, V5)

    def counters(self) -> Mapping[str, int]:
        return self.counts.counters()

    def reasons(self) -> Mapping[str, Mapping[str, int]]:
        return self.counts.reasons()


def options_of(settings: MqttSettings) -> MqttOptions:
    """Raises PluginError."""
    return MqttOptions(
        methods=methods_of(settings.mqtt_authentication_methods or ""),
        keep_alive_max=settings.mqtt_keep_alive_max, topic_alias_max=settings.mqtt_topic_alias_max,
        topic_alias_bytes_max=settings.mqtt_topic_alias_bytes_max,
        connect_bytes_max=settings.mqtt_connect_bytes_max,
        user_properties_max=settings.mqtt_user_properties_max, maximum_qos=settings.mqtt_maximum_qos,
        server_reference=settings.mqtt_server_reference, payload_format_check=settings.mqtt_payload_format_check,
        filter_suffix=settings.mqtt_filter_suffix, publish_denied=settings.mqtt_publish_denied,
    )


def methods_of(text: str) -> dict[str, AuthenticationMethod]:
    """The methods of enhanced authentication that a setting names, imported. Raises PluginError."""
    found: dict[str, AuthenticationMethod] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, _, place = part.partition("=")
        module, _, attribute = place.partition(":")
        if not (name and module and attribute):
            raise PluginError(f"mqtt_authentication_methods: {part!r} is not NAME=module:class")
        try:
            method = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            advice = "install it where this broker is, or set PYTHONPATH"
            raise PluginError(f"mqtt_authentication_methods: {part!r}: {error}; {advice}") from error
        if not callable(method):
            raise PluginError(f"mqtt_authentication_methods: {part!r} is no class or function")
        found[name] = method
    return found


def _variable_header(first: bytes) -> bytes:
    """What stands behind the Remaining Length of a CONNECT, up to the end of the longer name."""
    for at in range(1, min(5, len(first))):
        if first[at] < 0x80:
            return first[at + 1 : at + 9]
    return b""
