"""The options of an MQTT listener besides the broker's limits, and its counters for all connections."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Protocol

from fanlight_broker.protocols.mqtt.format import MQTT_5_0
from fanlight_broker.protocols.mqtt.publish_denied import PublishDenied
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode

OWN_CLIENTS: Final = "$bridge/"  # begins client identifiers that are the broker's own: of its bridges

COUNTERS: Final[Mapping[str, str]] = {
    "mqtt_connects_refused": "MQTT clients refused, by the reason code in CONNACK",
    "mqtt_errors": "MQTT connections closed because of their client, by reason code",
    "mqtt_unknown_acknowledgements": "Acknowledgements from MQTT clients for packet identifiers that were not in use",
    "mqtt_answers_too_large": "Answers not sent because they exceed the MQTT client's Maximum Packet Size",
    "mqtt_publishers_waited": "Times an MQTT 3.1.1 publisher waited because no queue had room for its message",
    "mqtt_fields_left_out": "Headers of other protocols' messages that MQTT cannot represent, not delivered",
}


class Exchange(Protocol):
    """One enhanced authentication of one client (MQTT 5, 4.12): SCRAM, Kerberos, a challenge of your own."""

    def step(self, data: bytes | None) -> tuple[bytes | None, str | None]:
        """Answer the client's Authentication Data with (data for the client, None to go on, or the user when done).

        Raises AuthenticationFailed to end it. It must not block: it runs in the loop.
        """
        ...


class AuthenticationMethod(Protocol):
    """The plug-in point for enhanced authentication: makes an Exchange for each client that names the method."""

    def __call__(self, user: str | None, address: str) -> Exchange: ...


@dataclass(frozen=True, slots=True)
class MqttOptions:
    keep_alive_max: int = 0  # seconds; sent as Server Keep Alive to clients that ask for more, or none; 0: their choice
    maximum_qos: int = 2  # that clients may publish with and are granted
    topic_alias_max: int = 64  # Topic Aliases of each side of one connection
    topic_alias_bytes_max: int = 64 * 1024  # of the topics of these, for each side
    user_properties_max: int = 1_000  # in one packet
    connect_bytes_max: int = 64 * 1024  # bytes of a CONNECT, which may have a will, and a token as its password
    server_reference: str | None = None  # the server that clients are referred to when this broker stops (4.11)
    filter_suffix: bool = False  # is what is behind a `?` in a Topic Filter a selector, as in EMQX?
    publish_denied: PublishDenied = PublishDenied.DROP  # where there is no error for it
    payload_format_check: bool = False  # check payloads that are declared as UTF-8?
    own_clients: bool = False  # are the clients the broker's own, which may have its identifiers?
    methods: Mapping[str, AuthenticationMethod] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(slots=True)
class Counts:
    """Counters of all connections of the protocol, monotonic."""

    errors: Counter[ReasonCode] = field(default_factory=Counter)  # connections closed because of their client
    refused: Counter[ReasonCode] = field(default_factory=Counter)  # CONNECTs, by the reason in CONNACK
    unknown_acknowledgements: int = 0  # for packet identifiers that were not in use
    oversized: int = 0  # answers larger than the client's Maximum Packet Size

    unkept: int = 0  # times a publisher waited because no queue had room for its message

    def counters(self) -> Mapping[str, int]:
        """By the names of COUNTERS."""
        return {
            "mqtt_unknown_acknowledgements": self.unknown_acknowledgements,
            "mqtt_answers_too_large": self.oversized,
            "mqtt_publishers_waited": self.unkept,
            "mqtt_fields_left_out": MQTT_5_0.left_out,
        }

    def reasons(self) -> Mapping[str, Mapping[str, int]]:
        """Counts by reason code, in the specification's words; codes without an occurrence are left out."""
        return {
            "mqtt_connects_refused": {code.name.lower(): count for code, count in sorted(self.refused.items())},
            "mqtt_errors": {code.name.lower(): count for code, count in sorted(self.errors.items())},
        }
