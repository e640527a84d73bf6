"""The ports on which clients look for a broker if nobody gives them an address."""

import socket
from collections.abc import Mapping

USUAL = {"native_port": 7420, "http_port": 7421, "mqtt_port": 1883, "amqp_port": 5672}


def usual_if_free(ports: Mapping[str, int] = USUAL) -> dict[str, object]:
    """These as settings of a broker; no settings if one of them is in use, so that the broker takes free ones."""
    return dict(ports) if all(_is_free(port) for port in ports.values()) else {}


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the broker binds: a connection that has ended just now does not occupy the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
