"""A broker to read from or to publish to: the options that say which, and a connection to it in a task.

The SDK's asyncio client runs in a thread of its own, because a task that waits for Spark's next rows must still answer
the broker's PINGs. A broker that is not there is waited for, `timeout` seconds: it may be starting again.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

if TYPE_CHECKING:
    import fanlight

T = TypeVar("T")

OPTIONS: Final = ("url", "user", "password", "ca", "certificate", "key", "timeout")
PENDING: Final = 1_000_000  # receipts awaited at once, for the SDK; who publishes has a bound of his own
TIMEOUT: Final = 60.0  # seconds: a broker that opens a large archive after a crash takes some of them


@dataclass(frozen=True, slots=True)
class Address:
    """The options of `OPTIONS`, read. The files of TLS are looked for where the task runs."""

    url: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    timeout: float = TIMEOUT

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "Address":
        """Raises ValueError (the SDK's InvalidURL is one), ImportError."""
        from_options = {name: options[name] for name in OPTIONS if name in options and name != "timeout"}
        made = cls(**from_options, timeout=_seconds(options))
        sdk().url.parse(made.url)  # what is wrong with it is said on the driver, before anything is begun
        return made

    def connecting(self, name: str) -> Any:
        """The SDK's `connect`, not awaited yet. Raises ValueError, ConnectError for files of TLS."""
        fanlight = sdk()
        return fanlight.connect(
            self.url, name=name, user=self.user, password=self.password, ca=self.ca, certificate=self.certificate,
            key=self.key, retry_first_connect=True, timeout=self.timeout,
            reconnect=fanlight.Backoff(maximum=1.0),  # a task does nothing else meanwhile
            pending_requests=PENDING,
        )  # fmt: skip


class Connection:
    """A client in a thread, for the time of a `with`. Raises the SDK's errors, RequestTimeout if nobody is there."""

    def __init__(self, address: Address, name: str) -> None:
        from fanlight.background import LoopThread

        self.address = address
        connecting = address.connecting(name)
        self._thread = LoopThread()
        try:
            self.client: fanlight.Client = self.run(self._open(connecting))
        except BaseException:
            self._thread.stop()
            raise

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it in the client's thread, and wait."""
        return self._thread.run(work)

    async def _open(self, connecting: Any) -> "fanlight.Client":
        try:
            async with asyncio.timeout(self.address.timeout):
                client: fanlight.Client = await connecting
                return client
        except TimeoutError as error:
            raise _unreachable(self.address) from error

    async def connected(self) -> None:
        """Wait until there is a connection again. Raises RequestTimeout, or why there will be none."""
        try:
            async with asyncio.timeout(self.address.timeout):
                await self.client.link.connected()
        except TimeoutError as error:
            raise _unreachable(self.address) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        try:
            self.run(self.client.close())
        finally:
            self._thread.stop()


def sdk() -> Any:
    """The SDK, which is a package of its own. Raises ImportError that says so."""
    try:
        import fanlight
        import fanlight.url
    except ImportError as error:
        advice = "in a checkout `make setup` installs it, elsewhere `pip install ./clients/python` from its root"
        raise ImportError(f"the option url needs the SDK, on driver and workers: {advice}") from error
    return fanlight


def _unreachable(address: Address) -> Exception:
    fanlight = sdk()
    where = fanlight.url.shown(address.url)
    made: Exception = fanlight.RequestTimeout(
        f"no connection to {where} within {address.timeout:g} s (option timeout): is the broker running there?",
        details={"seconds": address.timeout},
    )
    return made


def _seconds(options: Mapping[str, str]) -> float:
    text = options.get("timeout")
    if text is None:
        return TIMEOUT
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ValueError(f"timeout={text!r}: give seconds, above 0")
    return seconds
