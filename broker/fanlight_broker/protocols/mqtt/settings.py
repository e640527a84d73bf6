"""The settings of MQTT."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

from fanlight_broker.core.limits import KIB, StoreDurability
from fanlight_broker.core.listening_port import ListeningPort, ProtocolSettings
from fanlight_broker.core.setting import Ge, Le, NeedsRestart, Reason, SettingGroup, Unit
from fanlight_broker.protocols.mqtt.publish_denied import PublishDenied

MQTT: Final = SettingGroup(
    "MQTT",
    """\
MQTT 3.1.1 and 5.0 on one port, over WebSocket for browsers, and with a certificate over TLS as well.
What an MQTT client may do is under Limits, with what all others may.""",
)


@dataclass(frozen=True, init=False, repr=False, eq=False)
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
            "pages whose scripts may connect, such as https://example.com, separated by commas, or * for all; "
            "programs other than browsers need not be listed"
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
        Reason("longest keep alive of MQTT 5 clients, announced to clients that ask for more or none; 0: no bound"),
    ] = 0
    mqtt_maximum_qos: Annotated[
        int, MQTT, NeedsRestart(), Ge(0), Le(2), Unit("QoS"),
        Reason("highest QoS that MQTT clients may publish with and are granted, announced in 5.0; 2 is the maximum"),
    ] = 2
    mqtt_durability: Annotated[
        StoreDurability | None, MQTT, NeedsRestart(),
        Reason(
            "the same as durability, for what MQTT clients publish and subscribe to; without it, durability"
        ),
    ] = None
    mqtt_topic_alias_max: Annotated[
        int, MQTT, NeedsRestart(), Ge(0), Le(65_535), Unit("topics"),
        Reason("topic aliases of the client on one connection, and as many of the broker; each stores its topic"),
    ] = 64
    mqtt_topic_alias_bytes_max: Annotated[
        int, MQTT, NeedsRestart(), Ge(256), Le(64 * 1024 * KIB), Unit("bytes"),
        Reason("what the topics of a client's aliases may take: 64 topics of 1 KiB; beyond it the client is "
               "disconnected with Quota exceeded"),
    ] = 64 * KIB
    mqtt_user_properties_max: Annotated[
        int, MQTT, NeedsRestart(), Ge(1), Le(100_000), Unit("properties"),
        Reason("User Properties of one packet, a few µs each; 130,000 fit into 1 MiB. Beyond it: Quota exceeded"),
    ] = 1_000
    mqtt_connect_bytes_max: Annotated[
        int, MQTT, NeedsRestart(), Ge(256), Le(512 * KIB), Unit("bytes"),
        Reason("largest CONNECT, or frame_bytes_max if that is less: room for a will, and for a token as its password"),
    ] = 64 * KIB
    mqtt_payload_format_check: Annotated[
        bool, MQTT, NeedsRestart(),
        Reason("whether payloads that MQTT 5 clients declare as UTF-8 are checked, and refused if they are not"),
    ] = False
    mqtt_filter_suffix: Annotated[
        bool, MQTT, NeedsRestart(),
        Reason(
            "whether a filter ends at a ? and a selector follows, as in EMQX: sensor/+/t?location=roomA&value>25; "
            "otherwise a ? is an ordinary character"
        ),
    ] = False
    mqtt_publish_denied: Annotated[
        PublishDenied, MQTT, NeedsRestart(), Unit("policy"),
        Reason(
            "a message that its client may not publish, where MQTT has no error for it (3.1.1, QoS 0): dropped, "
            "acknowledged and counted, or the connection is closed"
        ),
    ] = PublishDenied.DROP
    mqtt_authentication_methods: Annotated[
        str | None, MQTT, NeedsRestart(), Unit("methods"),
        Reason(
            "enhanced authentication by plug-ins, as NAME=module:class separated by commas; mqtt.md says what "
            "such a class does"
        ),
    ] = None
    mqtt_server_reference: Annotated[
        str | None, MQTT, NeedsRestart(), Unit("server"),
        Reason("the server that MQTT 5 clients are sent to when this broker stops, as host:port"),
    ] = None
