"""`connect`: the options of a client with their meaning, and the two ways of waiting for it."""

import ssl
from collections.abc import Callable, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import tls as certificates
from .backoff import Backoff
from .client import Client
from .codec import FRAME_BYTES
from .errors import FanlightError
from .options import Options, SlowPolicy
from .serializers import BYTES, Serializer
from .url import Address, parse

DEFAULT_URL = "fanlight://127.0.0.1:7420"


def connect(
    url: str = DEFAULT_URL,
    *,
    name: str | None = None,
    user: str | None = None,
    password: str | None = None,
    ca: certificates.Path | None = None,
    certificate: certificates.Path | None = None,
    key: certificates.Path | None = None,
    tls: ssl.SSLContext | None = None,
    slow_policy: SlowPolicy | None = None,
    reconnect: bool | Backoff = True,
    retry_first_connect: bool = False,
    connect_timeout: float = 10.0,
    timeout: float = 10.0,
    close_timeout: float = 5.0,
    ping_interval: float = 15.0,
    pending_bytes: int = 8 * 1024 * 1024,
    pending_requests: int = 65_536,
    frame_bytes: int = FRAME_BYTES,
    serializer: Serializer = BYTES,
    on_disconnect: Callable[[FanlightError], Any] | None = None,
    on_reconnect: "Callable[[Client], Any] | None" = None,
    on_error: Callable[[FanlightError], Any] | None = None,
) -> "Connecting":
    """A connection to a broker: `async with fanlight.connect(url) as client`, or `client = await
    fanlight.connect(url)`.

    url: `fanlight://[user:password@]host[:port]`, or `fanlights://` by TLS; `user` and `password` go before
        those in it.
    ca: for TLS, a PEM file with the CA certificates to trust; None: the system's.
    certificate, key: PEM files with what this client shows to a broker that asks for it.
    tls: a context of your own, instead of these three.
    name: for the broker's logs and views, up to 64 bytes.
    slow_policy: what the broker does when this client falls behind; None: its own default. A broker need not allow
        "pause": `client.info["slow_policy"]` says what it does.
    reconnect: True, False, or a Backoff. After a loss; the first connection fails at once unless
        `retry_first_connect`.
    connect_timeout, timeout, close_timeout: seconds to connect, to await any answer, to send the rest when
        closing.
    ping_interval: seconds between PINGs; a peer that is silent for two of them is given up.
    pending_bytes: unsent bytes held, connected or not; `publish` waits beyond.
    pending_requests: answers awaited at once; beyond, LimitExceeded.
    frame_bytes: the largest frame accepted from the broker.
    serializer: turns values into payloads: fanlight.BYTES, JSON, MSGPACK or your own.
    on_disconnect(error), on_reconnect(client), on_error(error): functions or coroutine functions, called on
    the loop;
        on_error gets what the broker refused of the things sent without awaiting an answer.

    Raises ConnectError for a file that cannot be used, ValueError for options that do not go together;

    raises, when entered or awaited: InvalidURL, ConnectError, ConnectionLost, AuthenticationFailed,
    UnsupportedVersion.
    """
    address = parse(url)
    if not address.tls and (ca or certificate or key or tls):
        raise ValueError(f"ca, certificate, key and tls are for addresses that begin with fanlights://; got {address}")
    if tls is not None and (ca or certificate or key):
        raise ValueError("tls is a whole context: load ca, certificate and key into it")
    if address.tls and tls is None:
        tls = certificates.context(ca, certificate, key)
    options = Options(
        name=name,
        user=user,
        password=password,
        tls=tls,
        slow_policy=slow_policy,
        reconnect=reconnect if isinstance(reconnect, Backoff) else Backoff() if reconnect else None,
        retry_first_connect=retry_first_connect,
        connect_timeout=connect_timeout,
        timeout=timeout,
        close_timeout=close_timeout,
        ping_interval=ping_interval,
        pending_bytes=pending_bytes,
        pending_requests=pending_requests,
        frame_bytes=frame_bytes,
        serializer=serializer,
        on_disconnect=on_disconnect,
        on_reconnect=on_reconnect,
        on_error=on_error,
    )
    return Connecting(address, options)


class Connecting:
    """What `connect` returns: to be awaited, or entered with `async with`, which closes it at the end."""

    def __init__(self, address: Address, options: Options) -> None:
        self._address = address
        self._options = options
        self._client: Client | None = None

    if not TYPE_CHECKING:  # a type checker finds these mistakes

        def __getattr__(self, name: str) -> Any:
            if hasattr(Client, name):
                raise AttributeError(
                    f"`connect` has not connected yet, so there is no {name!r}: await it, as in "
                    "`client = await fanlight.connect(...)`, or use `async with fanlight.connect(...) as client`; "
                    "in a program without `async` use fanlight.sync.connect"
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

        def __enter__(self) -> None:
            raise TypeError("use `async with fanlight.connect(...)`, or `with fanlight.sync.connect(...)`")

        def __exit__(self, *_: object) -> None:
            """Never reached: it is here so that `with` comes to __enter__."""

    async def open(self) -> "Client":
        """The client, connected."""
        client = Client(self._address, self._options)
        await client.link.open()
        return client

    def __await__(self) -> "Generator[Any, None, Client]":
        return self.open().__await__()

    async def __aenter__(self) -> "Client":
        self._client = await self.open()
        return self._client

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.close()
