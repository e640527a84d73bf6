"""Opening a connection that is not a plain socket: TLS, or WebSocket. One after the other, and waiting for each."""

import base64
import os
import socket

from fanlight_bench.load import openssl
from fanlight_bench.load.carrier import Carrier
from fanlight_bench.load.target import TLS, Target

SECONDS = 20.0
HEAD_BYTES_MAX = 16_384
PATH = "/mqtt"  # nats-server wants it of MQTT; to the others it is all the same


def opened(target: Target, address: tuple[str, int]) -> tuple[socket.socket, Carrier]:
    """A connection that is ready to be spoken on, and does not block. Raises OSError."""
    connection = socket.create_connection(address, SECONDS)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if target.carrier == TLS:
            if target.protocol == "nats":
                _until(connection, b"\r\n")  # INFO, in the clear, which says that TLS is wanted
            carrier = Carrier(connection.fileno(), openssl.connect(connection))
        else:
            connection.sendall(_request(target))
            head = _until(connection, b"\r\n\r\n")
            if head.split(b" ", 2)[1:2] != [b"101"]:
                status = head.partition(b"\r\n")[0].decode("latin-1")
                raise ConnectionRefusedError(f"the broker does not want a WebSocket: {status}")
            carrier = Carrier(connection.fileno(), framed=True)
        connection.setblocking(False)
    except BaseException:
        connection.close()
        raise
    return connection, carrier


def _request(target: Target) -> bytes:
    """The handshake (RFC 6455, 4.1)."""
    path, wanted = (PATH, "Sec-WebSocket-Protocol: mqtt\r\n") if target.protocol != "nats" else ("/", "")
    return (
        f"GET {path} HTTP/1.1\r\nHost: {target.host}:{target.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\nSec-WebSocket-Version: 13\r\n{wanted}\r\n"
    ).encode()


def _until(connection: socket.socket, end: bytes) -> bytes:
    """Read up to `end` and not a byte more: what follows is not for us."""
    found = b""
    while not found.endswith(end):
        octet = connection.recv(1)
        if not octet or len(found) > HEAD_BYTES_MAX:
            raise ConnectionResetError("the broker closed a connection in its handshake")
        found += octet
    return found
