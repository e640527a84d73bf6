"""Parts: what a broker process is made of, and the order of their life.

    open     take what the settings name: files, folders, plug-ins         in the order of the list
    start    begin to work: threads, ports                                 in the order of the list
    drain    give clients time to read what they are still to get          all together
    stop     end, and give back what was taken                             in reverse order
    reload   prepare what takes long, check new settings, then apply them: see `Parts.prepare`, `Parts.reload`

The list is in assembly.py. app.py runs it, and knows no part by its name.
"""

import asyncio
import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from threading import Event, Lock
from typing import Any, ClassVar, Final, TypeVar

from fanlight_broker import logs
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.admin.view import PartView
from fanlight_broker.config import Exit, Settings

log: Final = logs.get("app")

Apply = Callable[[], None]
Read = TypeVar("Read")

LOOK_SECONDS: Final = 0.1  # how often a thread that waits for the loop looks whether the broker stops
SWITCH_SECONDS: Final = 0.5e-3  # that a thread may keep the interpreter, if it does not pause: one tenth of Python's


class PartError(Exception):
    """A part refuses to open, start or reload. The text says why and what to do; `part` is set by Parts."""

    def __init__(self, reason: str, code: Exit = Exit.USAGE, part: str = "") -> None:
        super().__init__(f"{part}: {reason}" if part else reason)
        self.reason = reason
        self.code = code
        self.part = part


class Part:
    """One part of a broker process. It is made from the settings and from the parts that it needs, before it is open.

    What a part has no use for, it leaves as it is here.
    """

    name: ClassVar[str]

    async def open(self) -> None:
        """Take what the settings name. Raises PartError; it is not stopped then."""

    async def start(self) -> None:
        """Begin to work. Raises PartError; it is stopped then."""

    async def drain(self, seconds: float) -> None:
        """Stop taking work, and give clients `seconds`. When it is cancelled, or returns, no client is left."""

    async def stop(self) -> None:
        """End. It may not have been started."""

    async def prepare(self, settings: Settings) -> None:
        """Read what new settings name and what takes long to read, beside the loop: `reload` follows. Raises PartError.

        Nothing changes. It is called again if another part refuses, or a later reload begins.
        """

    def reload(self, settings: Settings) -> Apply:
        """Check new settings, and what they name. Returns what applies them, which cannot fail. Raises PartError.

        Nothing changes before that is called: another part may refuse.
        """
        return _nothing

    def metrics(self) -> Sequence[MetricSource]:
        """What /stats and /metrics show of it, once it is open."""
        return ()

    def actions(self) -> Mapping[str, Callable[..., Any]]:
        """What a POST makes it do, by the path of the HTTP listener (admin/requests.py has the list). It returns what
        is answered, or raises FanlightError.
        """
        return {}

    def views(self) -> Mapping[str, PartView]:
        """What it shows of itself, by the path of the HTTP listener (admin/inspection.py has the list)."""
        return {}

    @property
    def ready(self) -> bool:
        """Whether clients may come, as far as it is concerned."""
        return True

    @property
    def exit_code(self) -> Exit:
        """What the process says at its end, once the part has stopped."""
        return Exit.OK


class SmallPieces:
    """A block in which something is read or made in a thread, while the loop goes on. There is one for the process.

    Such blocks may overlap: the last one to end leaves the interpreter as the first one found it.
    """

    def __init__(self) -> None:
        self._lock = Lock()  # a block may be in a thread
        self._at_work = 0
        self._before = True, sys.getswitchinterval()  # did the garbage collector work, and how long a thread goes on

    def __enter__(self) -> None:
        with self._lock:
            self._at_work += 1
            if self._at_work == 1:
                self._before = gc.isenabled(), sys.getswitchinterval()
                gc.disable()  # a pass over what is being made cannot be interrupted, and finds nothing
                sys.setswitchinterval(min(self._before[1], SWITCH_SECONDS))

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._at_work -= 1
            if self._at_work == 0:
                collected, seconds = self._before
                sys.setswitchinterval(seconds)
                if collected:
                    gc.enable()


small_pieces: Final = SmallPieces()


class SideThread:
    """Reads what takes long in a thread, which pauses after each millisecond or so until the loop has ended a turn.

    So the loop waits for one piece at the longest, however late the system lets its thread go on: a thread that only
    slept at its pauses often had the interpreter again before the loop's thread was awake on a busy machine.
    """

    def __init__(self) -> None:
        self._stopping = Event()

    async def read(self, function: Callable[[Callable[[], None]], Read]) -> Read:
        """What the function returns, or raises. It calls its argument now and then. Raises PartError after `stop`."""
        with small_pieces:
            return await asyncio.to_thread(function, partial(self._pause, asyncio.get_running_loop(), Event()))

    def _pause(self, loop: asyncio.AbstractEventLoop, turned: Event) -> None:
        """In the thread."""
        turned.clear()
        try:
            loop.call_soon_threadsafe(turned.set)
        except RuntimeError:  # it is closed
            self._stopping.set()
        while not self._stopping.is_set() and not turned.wait(LOOK_SECONDS):
            if loop.is_closed():
                self._stopping.set()
        if self._stopping.is_set():
            raise PartError("the broker stops")

    def stopped(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        """What is being read is given up at its next pause."""
        self._stopping.set()


def _nothing() -> None:
    """What a part applies that reads no setting again."""


@contextmanager
def naming(part: Part, act: str) -> Iterator[None]:
    """Around what a part does: its error says whose it is. A fault of the broker is logged with the part's name."""
    try:
        yield
    except PartError as error:
        raise PartError(error.reason, error.code, part.name) from error
    except Exception:
        log.error("part_failed", part=part.name, act=act, exc_info=True)
        raise


class Parts:
    """The parts of one broker process, in order."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = tuple(parts)
        self._open: list[Part] = []
        self._offered: dict[str, Callable[..., Any]] = {}

    @property
    def ready(self) -> bool:
        return all(part.ready for part in self._parts)

    @property
    def exit_code(self) -> Exit:
        return next((code for part in self._parts if (code := part.exit_code) is not Exit.OK), Exit.OK)

    def metrics(self) -> list[MetricSource]:
        return [source for part in self._parts for source in part.metrics()]

    def actions(self) -> dict[str, Callable[..., Any]]:
        return {**self._offered, **{path: act for part in self._parts for path, act in part.actions().items()}}

    def offer(self, name: str, action: Callable[..., Any]) -> None:
        """Offer an action of what runs the parts, as one of theirs. Before they are open."""
        self._offered[name] = action

    def views(self) -> dict[str, PartView]:
        return {path: view for part in self._parts for path, view in part.views().items()}

    async def open(self) -> None:
        """Open all. If one fails, those that are open are stopped. Raises PartError."""
        try:
            for part in self._parts:
                with naming(part, "open"):
                    await part.open()
                self._open.append(part)
        except BaseException:
            with suppress(Exception):  # it is in the log; the error that is raised came first
                await self.stop()
            raise

    async def start(self) -> None:
        """Start all. If one fails, `stop` is still to be called. Raises PartError."""
        for part in self._parts:
            with naming(part, "start"):
                await part.start()

    async def drain(self, seconds: float) -> None:
        await asyncio.gather(*(part.drain(seconds) for part in self._open))

    async def stop(self) -> None:
        """Stop those that are open, the last one first. One that fails does not keep the others from stopping."""
        failed: Exception | None = None
        while self._open:
            part = self._open.pop()
            try:
                with naming(part, "stop"):
                    await part.stop()
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed

    async def prepare(self, settings: Settings) -> None:
        """Let every part read what new settings name. Raises PartError: nothing changed."""
        for part in self._parts:
            with naming(part, "reload"):
                await part.prepare(settings)

    def reload(self, settings: Settings) -> Apply:
        """Ask every part to check new settings. Returns what applies them to all. Raises PartError: nothing changed."""
        applies: list[tuple[Part, Apply]] = []
        for part in self._parts:
            with naming(part, "reload"):
                applies.append((part, part.reload(settings)))
        return partial(_apply_all, applies)


def _apply_all(applies: Sequence[tuple[Part, Apply]]) -> None:
    """Apply new settings to every part, also behind one that raises. Raises the first error."""
    failed: Exception | None = None
    for part, apply in applies:
        try:
            with naming(part, "reload"):
                apply()
        except Exception as error:
            failed = failed or error
    if failed is not None:
        raise failed
