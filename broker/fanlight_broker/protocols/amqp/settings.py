"""The settings of AMQP."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

from fanlight_broker.core.limits import KIB, MIB, StoreDurability
from fanlight_broker.core.listening_port import ListeningPort, ProtocolSettings
from fanlight_broker.core.setting import Ge, Le, NeedsRestart, Reason, SettingGroup, Unit

AMQP: Final = SettingGroup(
    "AMQP",
    """\
AMQP 0-9-1 with RabbitMQ's extensions, and with a certificate over TLS as well.
What an AMQP client may do is under Limits, with what all others may.""",
)


@dataclass(frozen=True, init=False, repr=False, eq=False)
class AmqpSettings(ProtocolSettings):
    ports: ClassVar[tuple[ListeningPort, ...]] = (
        ListeningPort("amqp"), ListeningPort("amqp", tls=True),
        ListeningPort("amqp", websocket=True), ListeningPort("amqp", websocket=True, tls=True),
    )  # fmt: skip

    amqp: Annotated[
        bool, AMQP, NeedsRestart(), Reason("whether AMQP clients (0-9-1) may connect")
    ] = True
    amqp_host: Annotated[
        str, AMQP, NeedsRestart(), Unit("address"),
        Reason("where AMQP clients connect; any but a loopback address needs a password (see Access)"),
    ] = "127.0.0.1"
    amqp_port: Annotated[
        int, AMQP, NeedsRestart(), Ge(0), Le(65_535), Unit("port"),
        Reason("TCP port of AMQP; 0 takes a free one and logs it"),
    ] = 5672
    amqp_websocket: Annotated[
        bool, AMQP, NeedsRestart(), Reason("whether AMQP may come over WebSocket (subprotocol amqp), for browsers")
    ] = False
    amqp_websocket_port: Annotated[
        int, AMQP, NeedsRestart(), Ge(0), Le(65_535), Unit("port"),
        Reason("TCP port of AMQP over WebSocket; 0 takes a free one and logs it"),
    ] = 15678
    amqp_websocket_origins: Annotated[
        str | None, AMQP, NeedsRestart(), Unit("origins"),
        Reason("pages whose scripts may connect by AMQP, as mqtt_websocket_origins"),
    ] = None
    amqp_websocket_tls_port: Annotated[
        int, AMQP, NeedsRestart(), Ge(0), Le(65_535), Unit("port"),
        Reason("TCP port of AMQP over WebSocket and TLS, open with a certificate; 0 takes a free one and logs it"),
    ] = 15677
    amqp_tls_host: Annotated[
        str | None, AMQP, NeedsRestart(), Unit("address"),
        Reason("where AMQP clients connect by TLS; without it, amqp_host"),
    ] = None
    amqp_tls_port: Annotated[
        int, AMQP, NeedsRestart(), Ge(0), Le(65_535), Unit("port"),
        Reason("TCP port of AMQP over TLS, open with a certificate; 0 takes a free one and logs it"),
    ] = 5671
    amqp_durability: Annotated[
        StoreDurability | None, AMQP, NeedsRestart(),
        Reason("the same as durability, for what AMQP clients publish and declare; without it, durability"),
    ] = None
    amqp_vhosts: Annotated[
        str | None, AMQP, NeedsRestart(), Unit("names"),
        Reason(
            "vhosts beside /, separated by commas: namespaces of their own, which clients choose by the path of the "
            "URL. Who may be in one is said by permissions with the condition namespace"
        ),
    ] = None
    amqp_exchanges_max: Annotated[
        int, AMQP, NeedsRestart(), Ge(10), Le(10_000_000), Unit("exchanges"),
        Reason("exchanges of a vhost, those that are there from the start included; a client with one more gets 406"),
    ] = 10_000
    amqp_exchanges_bytes_max: Annotated[
        int, AMQP, NeedsRestart(), Ge(1 * MIB), Le(1 << 40), Unit("bytes"),
        Reason(
            "memory of the exchanges and bindings of a vhost, estimated: about 350 bytes a binding; a client that asks "
            "for more gets 406"
        ),
    ] = 512 * MIB
    amqp_message_bytes_max: Annotated[
        int, AMQP, NeedsRestart(), Ge(1 * KIB), Le(128 * MIB), Unit("bytes"),
        Reason(
            "largest body of a message, put together from its frames; RabbitMQ's default. What is under way counts for "
            "inboxes_bytes_max"
        ),
    ] = 16 * MIB
    amqp_heartbeat_seconds: Annotated[
        int, AMQP, NeedsRestart(), Ge(0), Le(65_535), Unit("seconds"),
        Reason(
            "time between heartbeats that clients are offered; a peer that is silent for two of them is dropped. A "
            "client may choose another, or 0: none"
        ),
    ] = 60
    amqp_consumer_timeout_seconds: Annotated[
        int, AMQP, NeedsRestart(), Ge(0), Le(86_400 * 365), Unit("seconds"),
        Reason(
            "time in which an AMQP consumer acknowledges a delivery; its channel is closed later than that, and the "
            "message goes to another. RabbitMQ's default; 0: without a bound"
        ),
    ] = 1_800
