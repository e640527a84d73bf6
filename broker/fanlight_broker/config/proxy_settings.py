"""The settings of proxies before the listeners: docs/tls.md."""

from dataclasses import dataclass
from typing import Annotated

from fanlight_broker.core.setting import LISTENERS, NeedsRestart, Reason, Unit


@dataclass(frozen=True, init=False, repr=False, eq=False)
class ProxySettings:
    proxy_protocol: Annotated[
        str | None, LISTENERS, NeedsRestart(), Unit("listeners"),
        Reason(
            "listeners behind a proxy that says who a client is, by the PROXY protocol (versions 1 and 2): names "
            "separated by commas, such as mqtt, mqtt_tls, http, or all, which is all but http and https; a connection "
            "without its header is closed"
        ),
    ] = None
    proxy_protocol_from: Annotated[
        str | None, LISTENERS, NeedsRestart(), Unit("networks"),
        Reason(
            "addresses and networks of these proxies, separated by commas, such as 10.0.0.0/8, ::1; nobody else is "
            "believed, and a connection from elsewhere is closed"
        ),
    ] = None
    http_forwarded_from: Annotated[
        str | None, LISTENERS, NeedsRestart(), Unit("networks"),
        Reason(
            "addresses and networks of proxies before the HTTP listener whose X-Forwarded-For, -Proto and -Host say "
            "who a client is and how it came, such as 127.0.0.1; without it, or from elsewhere, they are not looked at"
        ),
    ] = None
