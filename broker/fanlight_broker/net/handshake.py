"""Handshakes: what a connection goes through before its protocol has it, and what bounds that.

    accepted --> proxy (proxies.py) --> TLS (tls_handshake.py) --> WebSocket (websocket.py) --> Connection
                  '--------------------------'--------------------------'-- failed: its owner counts it, its place
                                                                            is free

A connection is admitted from the moment it is accepted, so that strangers who stall a handshake are bounded by the
same limits as everybody. One that is refused keeps its place until its peer has closed, or its time is over: closing a
socket while there is something to read in it resets the connection, and the peer may lose the answer.

TLS handshakes start some in each turn of the loop, however many clients arrive together. One takes a millisecond or two
of the processor, and the event loop's TLS does it in one step as soon as it may read. So the number of connections that
begin to read in a turn is limited. A connection waits for its whole ClientHello, and then for its turn: a peer that
sends nothing, or only a part, keeps nobody waiting and has no turn.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, TypeVar

from fanlight_broker.core.ports import WrongProtocol
from fanlight_broker.net.tls_memory import TlsMemory

HANDSHAKES_PER_TURN: Final = 2  # about 2 ms in all, as long as any turn (core/turns.py)
HELLO_BYTES_MAX: Final = 64 * 1024  # of a ClientHello that is waited for; real ones have up to 2 KiB
HELLO_RECORDS_MAX: Final = 8
HANDSHAKE_RECORD: Final = b"\x16"
RECORD_HEADER: Final = 5  # bytes: type, version, length
MESSAGE_HEADER: Final = 4  # type, length
UNREAD_BYTES_MAX: Final = 1024 * 1024  # that a refused peer may still send; after more, its connection is reset
DISCARDED_AT_ONCE: Final = 4_096  # bytes

Who = TypeVar("Who")


class HandshakeOwner(Protocol):
    """Counts connections during their handshake: a listener, or HTTPS."""

    def begin_handshake(self, handshake: "Handshake") -> bool:
        """Admit one more connection. False if there is no room."""
        ...

    def end_handshake(self, handshake: "Handshake") -> None:
        """A protocol has the connection. Either this or `fail_handshake` is called, once, for each admitted one."""
        ...

    def check(self, listener: str, first: bytes) -> WrongProtocol | None:
        """Whether a connection that begins like this speaks another protocol than the listener's."""
        ...

    def fail_handshake(self, handshake: "Handshake", reason: str) -> None:
        """The connection is closed before a protocol had it."""
        ...


class Handshake:
    """The handshakes of one connection.

    stage     the present one: "proxy", "tls" or "websocket"
    charged   the address whose connections it counts among; "": nobody's, until a proxy says who it is from
    listener  the name of the listener that accepted it
    give_up   closes the connection, as long as it is at this stage
    welcome   False: refused as one too many, which does not count for its address (strangers.py)
    memory    what the buffers of its TLS are charged for; None without TLS
    """

    __slots__ = (
        "_admitted", "_reason", "address", "charged", "give_up", "listener", "memory", "owner", "port", "stage",
        "welcome",
    )  # fmt: skip

    def __init__(self, owner: HandshakeOwner, stage: str, address: str, port: int, listener: str) -> None:
        self.owner = owner
        self.stage = stage
        self.address = self.charged = address
        self.port = port
        self.welcome = True
        self.memory: TlsMemory | None = None
        self.listener = listener
        self.give_up: Callable[[], object] = lambda: None
        self._admitted = False  # the owner waits for its end
        self._reason = ""

    def begin(self) -> bool:
        """Ask to be admitted. False if there is no room."""
        self.charged = "" if self.stage == "proxy" else self.address
        self._admitted = self.owner.begin_handshake(self)
        return self._admitted

    def wrong_protocol(self, first: bytes) -> WrongProtocol | None:
        """Whether the connection begins with another protocol than the one expected at this stage."""
        return self.owner.check(self.listener if self.stage == "tls" else self.listener.removesuffix("_tls"), first)

    def end(self) -> None:
        """A protocol has the connection."""
        if self._admitted:
            self._admitted = False
            self.owner.end_handshake(self)

    def refuse(self, reason: str) -> None:
        """Set the reason of its failure, whatever ends it. Whoever closes the connection then calls `fail`."""
        self._reason = self._reason or reason

    def fail(self, reason: str) -> None:
        """It has failed. Does nothing if it had ended well."""
        if self._admitted:
            self._admitted = False
            self.owner.fail_handshake(self, self._reason or reason)

    def abort(self, reason: str) -> None:
        """Close the connection immediately. The current stage then calls `fail`."""
        self._reason = self._reason or reason
        self.give_up()


class HandshakeTimes(Generic[Who]):
    """When each connection began its handshake, the protocol's own included; the oldest comes first."""

    def __init__(self) -> None:
        self._since: dict[Who, float] = {}

    def begin(self, who: Who, now: float) -> None:
        self._since[who] = now

    def end(self, who: Who) -> None:
        self._since.pop(who, None)

    def late(self, now: float, seconds_max: float) -> Who | None:
        """The oldest, if its time is over."""
        for who, since in self._since.items():
            return who if now - since >= seconds_max else None
        return None


class HandshakeTurns:
    """When a TLS handshake may start. One for all listeners of a broker.

    later  calls a function in a later turn of the loop (core.turns.Turns.later)
    """

    def __init__(self, later: Callable[[Callable[[], Any]], Any]) -> None:
        self._later = later
        self._waiting: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        """Handshakes that wait for their turn."""
        return len(self._waiting)

    async def wait(self) -> None:
        """Return when one more handshake may start. First come, first served."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        if len(self._waiting) == 1:
            self._later(self._start_some)
        await turn

    def _start_some(self) -> None:
        started = 0
        while self._waiting and started < HANDSHAKES_PER_TURN:
            turn = self._waiting.popleft()
            if not turn.done():  # else its connection was aborted while it waited
                turn.set_result(None)
                started += 1
        if self._waiting:
            self._later(self._start_some)


def peer_of(transport: asyncio.BaseTransport) -> tuple[str, int]:
    """The peer's address and port."""
    peer = transport.get_extra_info("peername")
    return (str(peer[0]), int(peer[1])) if isinstance(peer, tuple) else (str(peer), 0)


def hello_size(begun: bytes) -> int:
    """How many bytes of a connection must be there before its ClientHello can be whole, as far as `begun` shows.

    0 if it does not begin as TLS does. Not more than `len(begun)` if it is whole. A ClientHello is one handshake
    message in one or several records (RFC 8446, 4 and 5.1). Raises OSError if it is longer than any client's.
    """
    message, at = b"", 0
    for _ in range(HELLO_RECORDS_MAX):
        if begun[at : at + 1] not in (b"", HANDSHAKE_RECORD):
            return 0
        end = at + RECORD_HEADER
        if len(begun) >= end:
            end += int.from_bytes(begun[at + 3 : end])
        if end > HELLO_BYTES_MAX:
            break
        if len(begun) < end:
            return end
        message += begun[at + RECORD_HEADER : end]
        at = end
        body = int.from_bytes(message[1:MESSAGE_HEADER])
        if len(message) >= MESSAGE_HEADER and len(message) >= MESSAGE_HEADER + body:
            return at
    raise OSError(f"a ClientHello of over {HELLO_BYTES_MAX} bytes or {HELLO_RECORDS_MAX} records")


async def first_bytes(accepted: socket.socket, most: int, seconds: float, turns: HandshakeTurns) -> bytes:
    """The first bytes of a connection, once its turn has come; they are not removed. On failure the socket is closed.

    Raises TimeoutError if no bytes arrive, or not a whole ClientHello; OSError, also for one that is too long.
    """
    try:
        async with asyncio.timeout(seconds):
            await readable(accepted, 1)
            begun = accepted.recv(HELLO_BYTES_MAX, socket.MSG_PEEK)
            while len(begun) < (size := hello_size(begun)):
                await readable(accepted, size)
                before, begun = begun, accepted.recv(HELLO_BYTES_MAX, socket.MSG_PEEK)
                if len(begun) == len(before):  # the peer has closed
                    break
        await turns.wait()
        return begun[:most]
    except BaseException:
        accepted.close()
        raise


async def readable(accepted: socket.socket, size: int) -> None:
    """Return when this many bytes can be read from a socket, or its peer has closed it."""
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    # So that what is there already does not wake the loop again and again.
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
    loop.add_reader(accepted, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(accepted)
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)


async def answer_and_close(accepted: socket.socket, answer: bytes, seconds: float) -> None:
    """Answer a client that does not speak TLS, and close when it has closed, or after `seconds`.

    What cannot be sent at once is not sent: the log has it.
    """
    loop, discarded, unread = asyncio.get_running_loop(), bytearray(DISCARDED_AT_ONCE), UNREAD_BYTES_MAX
    try:
        accepted.send(answer)
        accepted.shutdown(socket.SHUT_WR)
        async with asyncio.timeout(seconds):
            while unread > 0 and (size := await loop.sock_recv_into(accepted, discarded)):
                unread -= size
    except OSError:  # it took too long, or the peer has reset the connection
        pass
    finally:
        accepted.close()
