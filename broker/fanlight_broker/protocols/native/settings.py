"""The settings of the native protocol."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fanlight_broker.core.limits import StoreDurability
from fanlight_broker.core.listening_port import ListeningPort, ProtocolSettings
from fanlight_broker.core.setting import LISTENERS, Ge, Le, NeedsRestart, Reason, Unit


@dataclass(frozen=True, init=False, repr=False, eq=False)
class NativeSettings(ProtocolSettings):
    ports: ClassVar[tuple[ListeningPort, ...]] = (
        ListeningPort("native"), ListeningPort("native", tls=True),
        ListeningPort("native", websocket=True), ListeningPort("native", websocket=True, tls=True),
    )  # fmt: skip

    native_host: Annotated[
        str, LISTENERS, NeedsRestart(), Unit("address"),
        Reason(
            "where native clients connect; any but a loopback address needs a password (see Access), "
            "0.0.0.0 is all of IPv4"
        ),
    ] = "127.0.0.1"
    native_port: Annotated[
        int, LISTENERS, NeedsRestart(), Ge(0), Le(65_535), Unit("port"),
        Reason("TCP port of the native protocol; 0 takes a free one and logs it"),
    ] = 7420
    native_websocket: Annotated[
        bool, LISTENERS, NeedsRestart(),
        Reason("whether native clients may come over WebSocket (subprotocol fanlight), for browsers"),
    ] = True
    native_websocket_port: Annotated[
        int, LISTENERS, NeedsRestart(), Ge(0), Le(65_535), Unit("port"),
        Reason("TCP port of the native protocol over WebSocket; 0 takes a free one and logs it"),
    ] = 7425
    native_websocket_origins: Annotated[
        str | None, LISTENERS, NeedsRestart(), Unit("origins"),
        Reason(
            "pages whose scripts may connect, as mqtt_websocket_origins; those that the broker itself serves by HTTPS, "
            "or from an address or localhost, need not be listed"
        ),
    ] = None
    native_websocket_tls_port: Annotated[
        int, LISTENERS, NeedsRestart(), Ge(0), Le(65_535), Unit("port"),
        Reason(
            "TCP port of the native protocol over WebSocket and TLS, open with a certificate; 0 takes a free one and "
            "logs it"
        ),
    ] = 7426
    native_tls_host: Annotated[
        str | None, LISTENERS, NeedsRestart(), Unit("address"),
        Reason("where native clients connect by TLS; without it, native_host"),
    ] = None
    native_tls_port: Annotated[
        int, LISTENERS, NeedsRestart(), Ge(0), Le(65_535), Unit("port"),
        Reason("TCP port of the native protocol over TLS, open with a certificate; 0 takes a free one and logs it"),
    ] = 7423
    native_durability: Annotated[
        StoreDurability | None, LISTENERS, NeedsRestart(),
        Reason(
            "the same as durability, for what native clients publish and subscribe to; without it, durability"
        ),
    ] = None
