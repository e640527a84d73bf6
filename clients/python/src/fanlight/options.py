"""The options of `connect`, with units, defaults and reasons."""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .backoff import Backoff
from .codec import FRAME_BYTES
from .errors import FanlightError
from .serializers import BYTES, Serializer

if TYPE_CHECKING:
    from .client import Client

SlowPolicy = Literal["drop_newest", "drop_oldest", "disconnect", "pause"]
"""What the broker does when this client falls behind (native-protocol.md, section 6)."""

Overflow = Literal["pause", "drop_newest", "drop_oldest", "error"]
"""What a subscription does when its local queue is full."""

Where = str | Mapping[str, Any]
"""A selector: a text, or a dict in the form of EventBridge (docs/selectors.md)."""

Hook = Callable[..., Any]
"""Called on the loop; may be a coroutine function, which then runs as a task of the client."""


DEFAULT_BACKOFF = Backoff()


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    name: str | None = None
    user: str | None = None
    password: str | None = None
    tls: ssl.SSLContext | None = None  # for fanlights://
    slow_policy: SlowPolicy | None = None
    reconnect: Backoff | None = DEFAULT_BACKOFF
    retry_first_connect: bool = False
    connect_timeout: float = 10.0  # seconds for TCP and handshake; the broker itself allows 5 s for the latter
    timeout: float = 10.0  # seconds to wait for any answer, unless a call says otherwise
    close_timeout: float = 5.0  # seconds that close() gives unsent messages
    ping_interval: float = 15.0  # seconds; a dead peer is noticed within two of them
    pending_bytes: int = 8 * 1024 * 1024  # unsent; a publisher at 100 MB/s rides out 80 ms of a busy loop
    pending_requests: int = 65_536  # answers awaited at once; each holds a future and its caller
    frame_bytes: int = FRAME_BYTES  # largest frame accepted from the broker
    serializer: Serializer = BYTES
    on_disconnect: Callable[[FanlightError], Any] | None = None
    on_reconnect: Callable[["Client"], Any] | None = None
    on_error: Callable[[FanlightError], Any] | None = None

    def __post_init__(self) -> None:
        if self.name is not None and len(self.name.encode()) > 64:
            raise ValueError(f"name may have 64 bytes; {self.name!r} has {len(self.name.encode())}")
        if self.slow_policy not in (None, "drop_newest", "drop_oldest", "disconnect", "pause"):
            raise ValueError(f"slow_policy is drop_newest, drop_oldest, disconnect or pause; got {self.slow_policy!r}")
        for option in ("connect_timeout", "timeout", "close_timeout", "ping_interval", "pending_bytes",
                       "pending_requests", "frame_bytes"):  # fmt: skip
            if getattr(self, option) <= 0:
                raise ValueError(f"{option} must be above 0; got {getattr(self, option)!r}")
