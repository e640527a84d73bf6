"""What the buffers of one TLS connection are charged for.

The event loop reads what is encrypted into a buffer of its own, and OpenSSL keeps what is still to be decrypted in
another. Both grow to the largest read and stay as large. They are not the broker's, so they are charged by what the
broker sees: the size of each read, and whether it reads at all. Under the poller (tls_socket.pyx) there are OpenSSL's
two buffers, for what comes and what goes, and each grows to the largest record.
"""

from typing import Final

from fanlight_broker.wire.ledger import Pot

QUIET_BYTES: Final = 52 * 1024  # of a TLS connection that has sent little: mostly OpenSSL's state; measured
READ_BYTES_MAX: Final = 256 * 1024  # what asyncio and uvloop read at once
RECORD_BYTES_MAX: Final = 16 * 1024  # RFC 8446, 5.1


class TlsMemory:
    """The charge of one connection.

    pot     of all TLS connections together
    nbytes  until the connection is closed
    unread  more, as long as the broker does not read from it
    """

    __slots__ = ("nbytes", "pot", "unread")

    def __init__(self, pot: Pot) -> None:
        self.pot = pot
        self.nbytes = self.unread = 0

    def begin(self) -> bool:
        """Charge a new connection. False if there is no room for it."""
        if not self.pot.reserve(QUIET_BYTES):
            return False
        self.nbytes = QUIET_BYTES
        return True

    def read(self, size: int) -> bool:
        """Charge what a read of `size` bytes leaves. False if there is no room, and the connection must end.

        A read of a record or less is always allowed.
        """
        more = QUIET_BYTES + 2 * min(size, READ_BYTES_MAX) - self.nbytes
        if more <= 0:
            return True
        if size <= RECORD_BYTES_MAX:
            self.pot.add(more)
        elif not self.pot.reserve(more):
            return False
        self.nbytes += more
        return True

    def pause(self, paused: bool) -> bool:
        """The broker stops reading, or goes on. TLS reads on meanwhile, up to a bound: it is charged for all of that.

        False if there is no room, and the connection must end.
        """
        if not paused:
            self.pot.refund(self.unread)
            self.unread = 0
            return True
        more = QUIET_BYTES + 2 * READ_BYTES_MAX - self.nbytes - self.unread
        if not self.pot.reserve(more):
            return False
        self.unread += more
        return True

    def end(self) -> None:
        """The connection is closed."""
        self.pot.refund(self.nbytes + self.unread)
        self.nbytes = self.unread = 0
