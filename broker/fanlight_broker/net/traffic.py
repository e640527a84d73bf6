"""The traffic of one port: a Meter that compiled code counts in, and the number of open connections.

The ports have the names that the log gives them: native, native_tls, mqtt, mqtt_websocket_tls, ...
"""

from fanlight_broker.wire.ledger import Meter


class Traffic:
    """Of one port."""

    __slots__ = ("connections", "meter", "name", "protocol")

    def __init__(self, protocol: str, *, tls: bool, websocket: bool, name: str | None = None) -> None:
        """name: one of its own"""
        self.protocol = protocol
        self.name = name or protocol + "_websocket" * websocket + "_tls" * tls
        self.meter = Meter()
        self.connections = 0  # open connections, those in their handshake included
