"""OpenSSL's functions for the generator, which uses them without the interpreter lock.

They are those of the library that Python's own `ssl` uses, or of the system's, found when a load goes to an encrypted
port: nothing is linked, and nobody needs OpenSSL's headers to build this. Certificates are not checked: a load does not
send secrets. The one cipher that is offered is the one that all brokers have, so that they are compared by the same.
"""

import _ssl
import ctypes
import ctypes.util
import functools
import socket
import struct
from typing import Final

CIPHER: Final = b"TLS_AES_128_GCM_SHA256"
MODE, READ_AHEAD, MIN_VERSION = 33, 41, 123  # of SSL_CTX_ctrl
PARTIAL_WRITE, MOVING_BUFFER = 1, 2
TLS_1_3 = 0x0304
READ_BUFFER_BYTES = 65_536
TIMEOUT_SECONDS = 20  # of a handshake
FUNCTIONS = ("SSL_read", "SSL_write", "SSL_get_error", "SSL_has_pending", "SSL_free")


class NoOpenSSL(OSError):
    """There is no OpenSSL 3 here."""


@functools.cache
def library() -> ctypes.CDLL:
    """The library. Raises NoOpenSSL."""
    for path in (getattr(_ssl, "__file__", None), ctypes.util.find_library("ssl"), "libssl.so.3"):
        if path is None:
            continue
        try:
            found = ctypes.CDLL(path)
            for name in ("SSL_CTX_new", "SSL_CTX_set_ciphersuites", *FUNCTIONS):
                getattr(found, name)
        except (OSError, AttributeError):
            continue  # another may have it
        for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"):
            getattr(found, name).restype = ctypes.c_void_p
        return found
    raise NoOpenSSL("a load by TLS needs OpenSSL 3 (libssl), and it is not found")


@functools.cache
def _context() -> ctypes.c_void_p:
    """What all connections share, of this process."""
    found = library()
    context = ctypes.c_void_p(found.SSL_CTX_new(ctypes.c_void_p(found.TLS_client_method())))
    if not context:
        raise NoOpenSSL("OpenSSL makes no context")
    found.SSL_CTX_ctrl(context, MODE, ctypes.c_long(PARTIAL_WRITE | MOVING_BUFFER), None)
    found.SSL_CTX_ctrl(context, READ_AHEAD, ctypes.c_long(1), None)
    found.SSL_CTX_ctrl(context, MIN_VERSION, ctypes.c_long(TLS_1_3), None)
    found.SSL_CTX_set_default_read_buffer_len(context, ctypes.c_size_t(READ_BUFFER_BYTES))
    found.SSL_CTX_set_ciphersuites(context, CIPHER)
    return context


def connect(connection: socket.socket) -> tuple[int, ...]:
    """The handshake on a socket that blocks; what a Carrier takes. Raises OSError when the broker does not want it."""
    found = library()
    connection.setblocking(True)  # a timeout of Python's own would make the descriptor a non-blocking one
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        connection.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", TIMEOUT_SECONDS, 0))
    ssl = ctypes.c_void_p(found.SSL_new(_context()))
    found.SSL_set_fd(ssl, connection.fileno())
    if (result := found.SSL_connect(ssl)) != 1:
        why = found.SSL_get_error(ssl, result)
        found.SSL_free(ssl)
        found.ERR_clear_error()
        raise ConnectionRefusedError(f"the handshake of TLS failed: OpenSSL's error {why}")
    addresses = [ctypes.cast(getattr(found, name), ctypes.c_void_p).value for name in FUNCTIONS]
    return tuple(address or 0 for address in (ssl.value, *addresses))
