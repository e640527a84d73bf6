"""The ports of a protocol, and the names of their settings, which follow from the protocol's name.

    port                    listener               settings
    ListeningPort("x")      x                      x_host, x_port
    tls=True                x_tls                  x_tls_host (without it x_host), x_tls_port
    websocket=True          x_websocket            x_host, x_websocket_port
    both                    x_websocket_tls        x_tls_host (without it x_host), x_websocket_tls_port

A setting `x`, where there is one, turns the protocol on and off; `x_websocket` does so for its WebSocket ports. TLS
ports are open when there is a certificate.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple


class ListeningPort(NamedTuple):
    """One TCP port that a protocol may have. `settings` below are those of the broker (config.Settings)."""

    protocol: str
    tls: bool = False
    websocket: bool = False

    @property
    def name(self) -> str:
        """Its name in the log and in metrics."""
        return self.protocol + "_websocket" * self.websocket + "_tls" * self.tls

    @property
    def setting(self) -> str:
        return f"{self.name}_port"

    def number(self, settings: object) -> int:
        return int(getattr(settings, self.setting))

    def host_setting(self, settings: object) -> str:
        """The setting that its address comes from."""
        secure = f"{self.protocol}_tls_host"
        return secure if self.tls and getattr(settings, secure) is not None else f"{self.protocol}_host"

    def host(self, settings: object) -> str:
        return str(getattr(settings, self.host_setting(settings)))

    def wanted(self, settings: object) -> bool:
        """Whether the settings open it."""
        if not getattr(settings, self.protocol, True):
            return False
        if self.websocket and not getattr(settings, f"{self.protocol}_websocket"):
            return False
        return not self.tls or getattr(settings, "tls_certificate") is not None  # noqa: B009 - of any settings


@dataclass(frozen=True, init=False, repr=False, eq=False)
class ProtocolSettings:
    """The base of what a protocol declares in settings.py. All of them together are the bases of config.Settings.

    None is made but as a part of that: they need no methods of their own, which would take a millisecond each to make.
    """

    ports: ClassVar[tuple[ListeningPort, ...]] = ()
