"""From an address to a connection that has said WELCOME, or to the error that says why not.

CONNECTING --HELLO--> AWAITING_WELCOME --WELCOME--> open
                             '--ERROR, GOODBYE, a close, silence--> raised
"""

import asyncio
import socket
import ssl
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

from . import reasons
from .codec import Decoder, Encoder
from .errors import (
    ConnectError,
    ConnectionLost,
    FanlightError,
    ProtocolError,
    UnsupportedVersion,
    from_broker,
)
from .frames import VERSION, Error, Frame, Goodbye, Ping, Welcome
from .options import Options
from .other_servers import NATIVE_PORTS, who_answers
from .url import Address
from .wire import Wire, WireOwner


def agent() -> str:
    """Program and version, for the broker's views."""
    try:
        return f"fanlight-python/{version('fanlight')}"
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "fanlight-python"


class Opened(WireOwner, Protocol):
    """Who reads what comes from WELCOME on."""

    def wire_opened(self, wire: Wire, welcome: Welcome) -> None: ...


class Handshake:
    """A WireOwner until WELCOME has come; then frames and the loss of the wire go to `successor`."""

    def __init__(self, successor: Opened, address: Address) -> None:
        self._successor = successor
        self._address = address
        self._opened = False
        self.wire: Wire | None = None
        self._refusal: FanlightError | None = None  # the ERROR that comes before its GOODBYE says more
        self.welcome: asyncio.Future[Welcome] = asyncio.get_running_loop().create_future()

    def frame_received(self, frame: Frame, size: int) -> None:
        if self._opened:
            self._successor.frame_received(frame, size)
        elif isinstance(frame, Welcome):
            if frame.version != VERSION:
                raise ProtocolError(f"the broker chose protocol version {frame.version}; this client speaks {VERSION}")
            if not self.welcome.done() and self.wire is not None:
                self._opened = True
                self._successor.wire_opened(self.wire, frame)
                self.welcome.set_result(frame)
        elif isinstance(frame, Error):
            self._refusal = from_broker(frame.code, frame.text, frame.details, frame.request)
        elif isinstance(frame, Goodbye):
            self._fail(self._refusal or from_goodbye(frame))
        elif not isinstance(frame, Ping):
            raise ProtocolError(f"{type(frame).__name__} before WELCOME")

    def wire_writable(self) -> None:
        if self._opened:
            self._successor.wire_writable()

    def wire_lost(self, wire: Wire, error: Exception | None) -> None:
        if self._opened:
            self._successor.wire_lost(wire, error)
        elif isinstance(error, ProtocolError):
            self._fail(ConnectionLost(not_a_broker(self._address, wire.peek(8), error), code=error.code))
        else:
            why = f": {reasons.of(error)}" if error else f". Does that port speak another protocol? {NATIVE_PORTS}"
            text = f"the connection to {self._address} was closed during the handshake{why}"
            self._fail(self._refusal or ConnectionLost(text))

    def _fail(self, error: FanlightError) -> None:
        if not self.welcome.done():
            self.welcome.set_exception(error)


async def open_wire(address: Address, options: Options, encoder: Encoder, successor: Opened) -> None:
    """Connect and shake hands; the successor then has the wire.

    Raises ConnectError, ConnectionLost, or what the broker answered.
    """
    loop = asyncio.get_running_loop()
    handshake = Handshake(successor, address)
    welcomed = False
    try:
        async with asyncio.timeout(options.connect_timeout):
            _, handshake.wire = await loop.create_connection(
                lambda: Wire(handshake, Decoder(options.frame_bytes)), address.host, address.port, ssl=options.tls
            )
            handshake.wire.write(encoder.hello(_hello_options(address, options)))
            await handshake.welcome
            welcomed = True
    except TimeoutError as error:
        raise ConnectError(
            f"no answer from {address} within {options.connect_timeout:g} s. "
            "Is that a Fanlight broker, and can it be reached from here?",
            code="timeout",
            details={"host": address.host, "port": address.port, "seconds": options.connect_timeout},
        ) from error
    except FanlightError as error:
        if isinstance(error, UnsupportedVersion):
            error.add_note(f"this client speaks version {VERSION}; upgrade the older of the two")
        raise
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", "") or error.reason or error
        raise ConnectError(
            f"cannot connect to {address} by TLS: {reason}. Is that the broker's TLS port, is its certificate of this "
            "name, and is ca the CA that signed it?",
            code="tls",
            details={"host": address.host, "port": address.port},
        ) from error
    except OSError as error:
        unknown = isinstance(error, socket.gaierror)
        advice = "Is the host's name right?" if unknown else (
            "Is the broker running there? Start one with `fanlightd serve`, or give another address"
        )
        raise ConnectError(
            f"cannot connect to {address}: {reasons.of(error)}. {advice}",
            details={"host": address.host, "port": address.port},
        ) from error
    finally:
        if handshake.wire is not None and not welcomed:
            handshake.wire.abort(ConnectionLost("the handshake was given up"))


def not_a_broker(address: Address, first: bytes, error: ProtocolError) -> str:
    """What to say of a server whose answer begins like this: it does not speak our protocol."""
    who = who_answers(first)
    if who is None:
        return f"what answers at {address} is not a Fanlight broker: {error}"
    return f"what answers at {address} is {who}, not the native port of a Fanlight broker. {NATIVE_PORTS}"


def from_goodbye(frame: Goodbye) -> ConnectionLost:
    text = f": {frame.text}" if frame.text else ""
    return ConnectionLost(f"the broker closed the connection ({frame.reason}{text})", code=frame.reason)


def _hello_options(address: Address, options: Options) -> dict[str, Any]:
    hello = {
        "client": options.name,
        "user": options.user if options.user is not None else address.user,
        "password": options.password if options.password is not None else address.password,
        "agent": agent(),
        "slow_policy": options.slow_policy,
    }
    return {key: value for key, value in hello.items() if value is not None}
