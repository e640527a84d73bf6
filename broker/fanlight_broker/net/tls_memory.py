"""What the buffers of one TLS connection are charged for.

The event loop reads what is encrypted into a buffer of its own, and OpenSSL keeps what is still to be decrypted in
another. Both grow to the largest read and stay as large. They are not the broker's, so they are charged by what the
broker sees: the size of each read, and whether it reads at all. Under the poller (tls_socket.pyx) there are OpenSSL's
two buffers, for what comes and what goes, and each grows to the largest record.

Measured with OpenSSL 3.0 (`python -m fanlight_bench tls-memory`), in kB beyond what a plain connection takes:

                                poller   uvloop
    at the handshake                49       63     OpenSSL gives most of it back when the handshake is over
    quiet                           18       51
    300 kB were got, none sent      32      309
    300 kB were sent and got        64      662     OpenSSL's buffers grow by a third more than they need

Not charged under uvloop: OpenSSL's buffer for what goes out, of a client that gets more than it sends. It grows to the
largest write and stays, which nobody reports to the broker; `times` covers it where a client gets what it sent. What
waits to be written is in `outbox_bytes`, so it is at most `outbox_bytes_max` and a third more for each connection.
"""

from typing import Final, NamedTuple

from fanlight_broker.wire.ledger import Pot


class Charge(NamedTuple):
    """state: bytes, whatever is sent; times: what each byte of the largest read counts."""

    state: int
    times: float


HANDSHAKE: Final = Charge(64 * 1024, 2.5)
LOOP: Final = Charge(52 * 1024, 2.5)  # TLS of the event loop
POLLER: Final = Charge(16 * 1024, 3.0)
READ_BYTES_MAX: Final = 256 * 1024  # what asyncio and uvloop read at once
RECORD_BYTES_MAX: Final = 16 * 1024  # RFC 8446, 5.1


class TlsMemory:
    """The charge of one connection.

    pot     of all TLS connections together
    nbytes  until the connection is closed; 0 then
    unread  more, as long as the broker does not read from it
    """

    __slots__ = ("_charge", "nbytes", "pot", "unread")

    def __init__(self, pot: Pot) -> None:
        self.pot = pot
        self._charge = HANDSHAKE
        self.nbytes = self.unread = 0

    def begin(self) -> bool:
        """Charge a new connection. False if there is no room for it."""
        if not self.pot.reserve(HANDSHAKE.state):
            return False
        self.nbytes = HANDSHAKE.state
        return True

    def settle(self, charge: Charge) -> None:
        """The handshake is over. The connection may be closed already; it has read nothing, or `times` is the same."""
        if self.nbytes:
            less = self._charge.state - charge.state
            self._charge = charge
            self.nbytes -= less
            self.pot.refund(less)

    def _held(self, size: int) -> int:
        """What it is charged for in all, after a largest read of `size` bytes."""
        return self._charge.state + int(self._charge.times * min(size, READ_BYTES_MAX))

    def read(self, size: int) -> bool:
        """Charge what a read of `size` bytes leaves. False if there is no room, and the connection must end.

        A read of a record or less is always allowed.
        """
        more = self._held(size) - self.nbytes
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
        more = self._held(READ_BYTES_MAX) - self.nbytes - self.unread
        if not self.pot.reserve(more):
            return False
        self.unread += more
        return True

    def end(self) -> None:
        """The connection is closed."""
        self.pot.refund(self.nbytes + self.unread)
        self.nbytes = self.unread = 0
