"""The settings of MQTT."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

from annotated_types import Ge, Le

from fanlight_broker.core.limits import KIB, Reason, Unit
from fanlight_broker.core.listening_port import ListeningPort, ProtocolSettings
from fanlight_broker.core.setting import NeedsRestart, SettingGroup

MQTT: Final = SettingGroup(
    "MQTT",
    """\
MQTT 3.1.1 and 5.0 on one port, over WebSocket for browsers, and with a certificate over TLS as well.
What an MQTT client may do is under Limits, with what all others may.""",
)


@dataclass(frozen=True)
class MqttSettings(ProtocolSettings):
    ports: ClassVar[tuple[ListeningPort, ...]] = (
        ListeningPort("mqtt"), ListeningPort("mqtt", tls=True),
        ListeningPort("mqtt", websocket=True), ListeningPort("mqtt", websocket=True, tls=True),
    )  # fmt: skip

    mqtt: Annotated[
        bool, MQTT, NeedsRestart(), Reason("whether MQTT clients (3.1.1 and 5.0) may connect")
    ] = True
    mqtt_host: Annotated[
        str, MQTT, NeedsRestart(), Unit("address"),
        Reason("where MQTT clients connect; any but a loopback address needs a password (see Access)"),
    ] = "127.0.0.1"
    mqtt_port: Annotated[
        int, MQTT, NeedsRestart(), Ge(0), Le(65_535), Unit("port"),
        Reason("TCP port of MQTT; 0 takes a free one and logs it"),
    ] = 1883
    mqtt_websocket: Annotated[
        bool, MQTT, NeedsRestart(), Reason("whether MQTT may come over WebSocket, for browsers")
    ] = True
    mqtt_websocket_port: Annotated[
        int, MQTT, NeedsRestart(), Ge(0), Le(65_535), Unit("port"),
        Reason("TCP port of MQTT over WebSocket; 0 takes a free one and logs it"),
    ] = 8083
    mqtt_websocket_origins: Annotated[
        str | None, MQTT, NeedsRestart(), Unit("origins"),
        Reason(
            "pages whose scripts may connect, such as https://example.com, with commas between, or * for all; "
            "programs that are no browsers need not be listed"
        ),
    ] = None
    mqtt_tls_host: Annotated[
        str | None, MQTT, NeedsRestart(), Unit("address"),
        Reason("where MQTT clients connect by TLS; without it, mqtt_host"),
    ] = None
    mqtt_tls_port: Annotated[
        int, MQTT, NeedsRestart(), Ge(0), Le(65_535), Unit("port"),
        Reason("TCP port of MQTT over TLS, open with a certificate; 0 takes a free one and logs it"),
    ] = 8883
    mqtt_websocket_tls_port: Annotated[
        int, MQTT, NeedsRestart(), Ge(0), Le(65_535), Unit("port"),
        Reason("TCP port of MQTT over WebSocket and TLS, open with a certificate; 0 takes a free one and logs it"),
    ] = 8084
    mqtt_keep_alive_max: Annotated[
        int, MQTT, NeedsRestart(), Ge(0), Le(65_535), Unit("seconds"),
        Reason("longest keep alive of MQTT 5 clients, announced to those that ask for more or none; 0: no bound"),
    ] = 0
    mqtt_maximum_qos: Annotated[
        int, MQTT, NeedsRestart(), Ge(0), Le(2), Unit("QoS"),
        Reason("highest QoS that MQTT clients may publish with and are granted, announced in 5.0; 2 is all there are"),
    ] = 2
    mqtt_topic_alias_max: Annotated[
        int, MQTT, NeedsRestart(), Ge(0), Le(65_535), Unit("topics"),
        Reason("topic aliases on one connection, of the client and as many of the broker, kept with their topics"),
    ] = 64
    mqtt_topic_alias_bytes_max: Annotated[
        int, MQTT, NeedsRestart(), Ge(256), Le(64 * 1024 * KIB), Unit("bytes"),
        Reason("what the topics of a client's aliases may take: 64 topics of 1 KiB; past it the client is disconnected "
               "with Quota exceeded"),
    ] = 64 * KIB
    mqtt_user_properties_max: Annotated[
        int, MQTT, NeedsRestart(), Ge(1), Le(100_000), Unit("properties"),
        Reason("User Properties of one packet, some µs each; 130,000 fit into 1 MiB. Past it: Quota exceeded"),
    ] = 1_000
    mqtt_connect_bytes_max: Annotated[
        int, MQTT, NeedsRestart(), Ge(256), Le(512 * KIB), Unit("bytes"),
        Reason("largest CONNECT, or frame_bytes_max if that is less: room for a will, and for a token as its password"),
    ] = 64 * KIB
    mqtt_payload_format_check: Annotated[
        bool, MQTT, NeedsRestart(),
        Reason("whether a payload that MQTT 5 clients say is UTF-8 is looked at, and refused if it is not"),
    ] = False
    mqtt_authentication_methods: Annotated[
        str | None, MQTT, NeedsRestart(), Unit("methods"),
        Reason(
            "enhanced authentication by code of yours, as NAME=module:class with commas between; mqtt.md says what "
            "such a class does"
        ),
    ] = None
    mqtt_server_reference: Annotated[
        str | None, MQTT, NeedsRestart(), Unit("server"),
        Reason("the server that MQTT 5 clients are sent to when this broker stops, as host:port"),
    ] = None
