"""WebSocket (RFC 6455) between a socket and a Connection: a protocol for the socket, a transport for the Connection.

    socket (or TLS) --bytes--> WebSocketProtocol --payload--> Connection.take --> the protocol without I/O
                   <--frames--   WebSocketTransport   <--bytes-- SocketSink

The payload of binary messages is a stream of bytes: message boundaries have no meaning, as MQTT requires
([MQTT-6.0.0-2]). Text is an error. wsproto does the handshake and the control frames, compiled code the frames of
messages (websocket_frames.pyx). A frame's bytes are passed on as they arrive, so none is ever held whole, whatever
length a peer announces. No extension is accepted: permessage-deflate takes memory for every connection, and lets a peer
cause work.

Which pages may connect is in origins.py.
"""

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, cast

from wsproto import ConnectionType, WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    RejectData,
    Request,
)
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from fanlight_broker import event_log
from fanlight_broker.net.connection import Connection
from fanlight_broker.net.handshake import UNREAD_BYTES_MAX, Handshake, peer_of
from fanlight_broker.net.origins import may_connect
from fanlight_broker.net.websocket_frames import FrameReader, binary_frame

log: Final = event_log.get("net")

EVENTS_PER_TURN: Final = 256  # control frames, at about 10 µs each, before other connections have their turn
LINGER_SECONDS: Final = 1.0  # for a peer by TLS to read that it is refused, and to close; as the HTTP listener's
END_OF_HEAD: Final = b"\r\n\r\n"  # of a request
MESSAGE_BYTES_MAX: Final = 64 * 1024 * 1024  # as large as a frame of any protocol may be; it is never buffered whole


@dataclass(frozen=True, slots=True)
class WebSocket:
    """How a listener answers requests for a WebSocket.

    subprotocols  ours; a client must offer one of them, and gets the first that it names
    origins       pages that may connect, such as "https://example.com"; "*" for all
    pages         where the broker itself serves pages, which may connect, too: ports by scheme (origins.py)
    advice        for other requests: what this port is for, and which port to use instead
    """

    subprotocols: Sequence[str]
    origins: Sequence[str] = ()
    message_bytes_max: int = MESSAGE_BYTES_MAX
    advice: Callable[[], str] = str
    pages: Callable[[], Mapping[str, int]] = dict

    def entrance(self, handshake: Handshake, connection: Callable[[], Connection]) -> "WebSocketProtocol":
        """What a connection begins with that has just been accepted, or is through its TLS handshake."""
        return WebSocketProtocol(self, handshake, connection)

    def refusal(self, request: Request, *, secure: bool) -> tuple[int, str] | None:
        """Why this request is refused, with the status code; None if it is not. `secure`: it came by TLS."""
        origins = [value.decode("latin-1") for name, value in request.extra_headers if name == b"origin"]
        own = self.pages()
        if not all(may_connect(each, self.origins, request.host, secure=secure, pages=own) for each in origins):
            return 403, f"pages of {origins[0][:200]} may not connect to this broker"
        if self.subprotocol(request) is None:
            return 400, f"this broker's WebSocket subprotocols: {', '.join(self.subprotocols)}"
        return None

    def subprotocol(self, request: Request) -> str | None:
        return next((each for each in request.subprotocols if each in self.subprotocols), None)


class WebSocketProtocol(asyncio.Protocol):
    """One connection, towards its socket."""

    def __init__(self, options: WebSocket, handshake: Handshake, connection: Callable[[], Connection]) -> None:
        self.closing = False  # a Close frame was sent: nothing but the peer's is waited for
        self._options = options
        self._handshake = handshake
        self._make = connection
        self._connection: Connection | None = None
        self._transport: asyncio.Transport | None = None
        self._ws = WSConnection(ConnectionType.SERVER)
        self._events: Generator[Event, None, None] | None = None  # None: there are none left
        self._frames: FrameReader | None = None  # once the request is accepted
        self._seam = b""  # the last bytes of the request so far
        self._behind = b""  # what came behind the request, together with its end
        self._pong: Ping | None = None  # to be answered when the socket is writable again; the last is enough
        self._full = False
        self._paused = False  # the connection wants to read nothing
        self._pumping = False
        self._scheduled = False
        self._ended = False  # no further frame is processed
        self._met = False  # the first bytes have been checked
        self._unread = 0  # bytes received after that

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    # -- asyncio's side ---------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self._handshake.stage != "websocket":  # it was admitted before its TLS handshake
            self._handshake.stage = "websocket"
        else:
            self._handshake.address, self._handshake.port = peer_of(transport)
            if not self._handshake.begin():
                self._transport.abort()
                return
        self._handshake.give_up = self._transport.abort

    def data_received(self, data: bytes) -> None:
        if self._ended:  # what comes behind a Close, or an answer that says no
            self._unread += len(data)
            if self._unread > UNREAD_BYTES_MAX:
                self.transport.abort()
            return
        if self._frames is not None:
            self._frames.feed(data)
            self._pump()
            return
        if not self._met and self._is_wrong(data):
            return
        try:
            self._ws.receive_data(self._cut_at_the_end(data))
        except RemoteProtocolError as error:
            advice = self._options.advice() if self._connection is None else ""
            self._reject(error.event_hint, f"{error}; {advice}" if advice else str(error))
        except UnicodeError as error:  # in a header, where there may be none
            self._reject(RejectConnection(), str(error))
        else:
            self._pump()

    def _cut_at_the_end(self, data: bytes) -> bytes:
        """Keep what is behind the end of the request, which wsproto would drop. Returns the rest."""
        joined = self._seam + data
        end = joined.find(END_OF_HEAD)
        if end < 0:
            self._seam = joined[1 - len(END_OF_HEAD) :]
            return data
        self._behind = joined[end + len(END_OF_HEAD) :]
        return data[: len(data) - len(self._behind)]

    def _is_wrong(self, first: bytes) -> bool:
        """Refuse a peer that does not speak HTTP: answer in its protocol, and close. Returns whether it was refused."""
        self._met = True
        wrong = self._handshake.wrong_protocol(first)
        if wrong is None:
            return False
        self._refuse(wrong.answer, wrong.text)
        return True

    def _refuse(self, answer: bytes, reason: str) -> None:
        """Answer a peer that does not get through. It closes first, or its time for the handshake is over."""
        self._ended = True
        self._events = None  # what else came is read and thrown away
        transport = self.transport
        self._handshake.refuse(reason)
        transport.write(answer)
        if not answer or self._connection is not None:
            transport.close()
        elif transport.can_write_eof():
            with suppress(OSError):  # the peer has reset the connection, which is heard of
                transport.write_eof()
        else:  # TLS has no end of one direction
            asyncio.get_running_loop().call_later(LINGER_SECONDS, transport.close)

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._full = True
        if self._connection is not None:
            self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._full = False
        ping, self._pong = self._pong, None
        if ping is not None:
            self.send(ping.response())
        if self._connection is not None:
            self._connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._events = None
        if self._connection is not None:
            self._connection.connection_lost(exc)
        else:
            self._handshake.fail("closed during the WebSocket handshake")

    # -- received ---------------------------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Handle received frames while the connection wants to read and this turn lasts."""
        if self._pumping:
            return
        self._pumping = True
        try:
            for _ in range(EVENTS_PER_TURN):
                if self._paused or self._ended:
                    break
                if self._frames is not None:
                    if not self._frames.pending or self.transport.is_closing():
                        break
                    self._read_frames(self._frames)
                    continue
                if self._events is None:
                    self._events = self._ws.events()
                event = next(self._events, None)
                if event is None:
                    self._events = None
                    break
                self._handle(event)
        except Exception:
            log.exception("internal_error", address=self._handshake.address, port=self._handshake.port)
            self.transport.abort()
        finally:
            self._pumping = False
        self._read_or_not()

    def _handle(self, event: Event) -> None:
        if isinstance(event, Request):
            self._answer(event)
        elif isinstance(event, Ping):
            if self._full:
                self._pong = event  # the most recent is enough (RFC 6455, 5.5.3)
            else:
                self.send(event.response())
        elif isinstance(event, CloseConnection):
            self._closed_by_peer(event)

    def _read_frames(self, frames: FrameReader) -> None:
        """Handle what stopped the reader last, or what has come up to where it stops next."""
        if frames.control is not None:
            control, frames.control = frames.control, None
            self._ws.receive_data(control)
            for event in self._ws.events():
                self._handle(event)
        elif frames.error is not None:
            (code, text), frames.error = frames.error, None
            if not self.closing:
                self._fail(CloseReason(code), text)
            if code == CloseReason.PROTOCOL_ERROR:
                self._ended = True
                self.transport.close()
        else:
            payload = frames.read()
            if payload and not self.closing:
                assert self._connection is not None
                self._connection.take(payload)

    def _read_or_not(self) -> None:
        if self.transport.is_closing():
            return
        if self._paused or self._unhandled:
            self.transport.pause_reading()
            if not self._paused and not self._scheduled:
                self._scheduled = True
                asyncio.get_running_loop().call_soon(self._next_turn)
        else:
            self.transport.resume_reading()

    def _next_turn(self) -> None:
        self._scheduled = False
        if self._unhandled:
            self._pump()

    @property
    def _unhandled(self) -> bool:
        """Is there anything left of what has come?"""
        return self._events is not None if self._frames is None else self._frames.pending

    # -- the handshake (RFC 6455, 4.2) ------------------------------------------------------------------------------

    def _answer(self, request: Request) -> None:
        secure = self.transport.get_extra_info("sslcontext") is not None
        refusal = self._options.refusal(request, secure=secure)
        if refusal is not None:
            self._reject(RejectConnection(status_code=refusal[0]), refusal[1])
            return
        self.transport.write(self._ws.send(AcceptConnection(subprotocol=self._options.subprotocol(request))))
        self._frames, self._events = FrameReader(self._options.message_bytes_max), None
        self._frames.feed(self._behind)
        self._behind = b""
        self._connection = self._make()
        self._connection.connection_made(WebSocketTransport(self))

    def _reject(self, hint: Any, text: str) -> None:
        """Answer a request with an error, and close."""
        body = f"{text}\n".encode(errors="replace")
        status = hint.status_code if isinstance(hint, RejectConnection) else 400
        more = list(hint.headers) if isinstance(hint, RejectConnection) else []
        headers = [*more, (b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
        answer = b""
        with suppress(LocalProtocolError):  # a peer that does not speak HTTP gets no HTTP answer
            answer = self._ws.send(RejectConnection(status_code=status, headers=headers, has_body=True))
            answer += self._ws.send(RejectData(data=body))
        self._refuse(answer, f"{status}: {text}")

    # -- the end (RFC 6455, 7) --------------------------------------------------------------------------------------

    def _fail(self, code: CloseReason, text: str) -> None:
        """Close with a reason because the peer broke the rules; it has the usual time to read it."""
        connection = self._connection
        assert connection is not None
        if connection.protocol.failed is None:
            connection.protocol.failed = "websocket"
        log.warning(
            "connection_failed", address=connection.address, port=connection.port, code=f"websocket {int(code)}",
            text=text,
        )
        self.close(code, text)
        connection.close(f"WebSocket: {text}")

    def _closed_by_peer(self, event: CloseConnection) -> None:
        if not self.closing and self._ws.state is ConnectionState.OPEN:  # wsproto's way to say that a frame is wrong
            self._fail(CloseReason(event.code), event.reason or "not a valid frame")
        elif not self.closing:
            self.close(event.code)  # an echo (5.5.1)
        self._ended = True
        self.transport.close()  # the server is the first to (7.1.1)

    def close(self, code: int = CloseReason.NORMAL_CLOSURE, reason: str | None = None) -> None:
        """Send a Close frame; the peer's answer, or the listener's clock, ends the connection."""
        if not self.closing:
            self.send(CloseConnection(code=code, reason=reason))
            self.closing = True
            self.pause(False)  # the connection may have paused: the peer's answer must still be read

    # -- the connection's side (WebSocketTransport) -----------------------------------------------------------------

    def send(self, event: Event) -> None:
        if self.closing or self.transport.is_closing():
            return
        with suppress(LocalProtocolError):  # after a Close frame; the peer would not read it
            self.transport.write(self._ws.send(event))

    def send_message(self, payload: bytes) -> None:
        if not self.closing and not self.transport.is_closing():
            self.transport.write(binary_frame(payload))

    def pause(self, paused: bool) -> None:
        """Stop handing bytes to the connection, or continue."""
        self._paused = paused
        if not self._pumping:
            self._read_or_not()


class WebSocketTransport(asyncio.Transport):
    """The same connection, towards its Connection: bytes written are one binary message."""

    def __init__(self, protocol: WebSocketProtocol) -> None:
        super().__init__()
        self._protocol = protocol
        self._below = protocol.transport

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._below.get_extra_info(name, default)

    def write(self, data: "bytes | bytearray | memoryview[Any]") -> None:
        self._protocol.send_message(bytes(data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._below.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._below.get_write_buffer_size()

    def can_write_eof(self) -> bool:
        return False

    def is_closing(self) -> bool:
        return self._protocol.closing or self._below.is_closing()

    def pause_reading(self) -> None:
        self._protocol.pause(True)

    def resume_reading(self) -> None:
        self._protocol.pause(False)

    def close(self) -> None:
        self._protocol.close()

    def abort(self) -> None:
        self._below.abort()
