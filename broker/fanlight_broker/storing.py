"""The store as a part: the log in the folder of `data`, and what is made from it at the start."""

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

from fanlight_broker import logs
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.children import command_line
from fanlight_broker.config import Exit, Settings
from fanlight_broker.config.settings import listener_durabilities
from fanlight_broker.core_part import Core
from fanlight_broker.net.clock import monotonic
from fanlight_broker.parts import Apply, Part, PartError
from fanlight_broker.storage import store_metrics
from fanlight_broker.storage.checkpoint import Checkpoint
from fanlight_broker.storage.free_space import FreeSpace
from fanlight_broker.storage.live_marking import LiveMarking
from fanlight_broker.storage.log import Log
from fanlight_broker.storage.page_file import PageFile
from fanlight_broker.storage.pager import Pager, Read
from fanlight_broker.storage.records import BadRecord
from fanlight_broker.storage.recovery import Recovered, recover
from fanlight_broker.storage.segments import LogError
from fanlight_broker.storage.store import Store
from fanlight_broker.storage.stored_queue import AT_ONCE
from fanlight_broker.wire.message import Format

log: Final = logs.get("store")

PROGRESS_SECONDS: Final = 1.0  # between two lines of a long start
RETRY_SECONDS: Final = 1.0  # between two tries of a log that cannot write
SYNC_SECONDS: Final = 1.0  # between two syncs that nobody waits for
LOOK_SECONDS: Final = 1.0  # between two looks at the free space
RESERVES: Final = 2  # files for what makes room on a full disk: a round needs two, see Checkpoint


class Storing(Part):
    """folder: the setting `data`; without one there is an InMemory in its place
    formats: one of each family that messages may be stored in
    """

    name = "store"
    store: Store | None = None  # None until it is open

    def __init__(self, settings: Settings, folder: Path, core: Core, formats: Sequence[Format]) -> None:
        self._settings, self._folder = settings, folder
        self._broker, self._flusher = core.broker, core.flusher
        self._durabilities = listener_durabilities(settings)
        self._formats: Mapping[str, Format] = {format.family: format for format in formats}
        self._log: Log | None = None
        self._checkpoint: Checkpoint | None = None
        self._marking: LiveMarking | None = None
        self._loop = asyncio.get_running_loop()
        self._retry: asyncio.TimerHandle | None = None
        self._late: asyncio.TimerHandle | None = None  # the one timer of what nobody waits for
        self._late_at = 0.0  # when the loop's clock says that it is to be sealed
        self._sync: asyncio.TimerHandle | None = None
        self._space: FreeSpace | None = None
        self._look: asyncio.TimerHandle | None = None
        self._trouble: str | None = None
        self._reader: ThreadPoolExecutor | None = None
        self._stopped = False

    # -- its life -----------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        folder = self._folder
        try:
            self._log = Log(
                folder, self._progressed, segment_bytes=self._settings.data_segment_bytes,
                buffer_bytes_max=self._settings.data_buffer_bytes_max, reserves=RESERVES,
            )
            self._space = FreeSpace(folder, self._settings.data_free_bytes_min)
            self._open(self._log, self._space)
        except (LogError, BadRecord, OSError) as error:
            await self.stop()
            reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
            raise PartError(f"data = {os.fspath(folder)}: {reason}") from error

    def _open(self, opened: Log, space: FreeSpace) -> None:
        started = time.monotonic()
        store = Store(
            opened, self._broker.ledger, now=monotonic, wall=time.time, schedule=self._schedule,
            changed=partial(self._flusher.call, lambda: self._broker.position_changed(monotonic())),
            durability=self._settings.durability, durabilities=self._durabilities.values(),
        )
        store.pager = Pager(
            opened, self._formats, self._broker.variants, now=monotonic, ahead=lambda: store.records.wall,
            run=self._read, soon=self._loop.call_soon,
        )
        if self._settings.data_pages_bytes_max:
            store.pages = PageFile(
                self._folder, self._settings.data_pages_bytes_max, self._settings.data_free_bytes_min
            )
        found = recover(
            store, self._broker, self._formats, now=monotonic(), wall=time.time(), progress=StartLog().note
        )
        self.store = store
        self._checkpoint = Checkpoint(store, self._broker, self._broker.turns.later, round_bytes=found.bytes)
        self._marking = LiveMarking(store, self._broker, self._broker.turns.later)
        for damage in opened.damage:
            log.error("store_damaged", what=str(damage), advice="what is said here is lost; the rest is served")
        self._loop.add_reader(opened.fileno(), opened.collect)
        log.info(
            "store_opened", folder=os.fspath(opened.folder), durability=self._settings.durability.value,
            seconds=round(time.monotonic() - started, 3), **found._asdict(),
        )
        self._look_at(space)

    def actions(self) -> Mapping[str, Callable[..., Any]]:
        return {"backup": self._copy}

    async def _copy(self, target: Path) -> str | None:
        """Copy the store, by a process of its own, so that the loop does nothing for it. Returns why not, or None."""
        process = await asyncio.create_subprocess_exec(
            *command_line("backup", os.fspath(self._folder), os.fspath(target)),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        )
        try:
            _, said = await process.communicate()
        except BaseException:
            process.kill()
            raise
        lines = said.decode(errors="replace").strip().splitlines()
        return None if process.returncode == 0 else (lines[-1] if lines else f"exit code {process.returncode}")

    async def stop(self) -> None:
        for timer in (self._retry, self._sync, self._late, self._look):
            if timer is not None:
                timer.cancel()
        if self.store is not None and self._log is not None:
            self.store.close()
            if self.store.pages is not None:
                self.store.pages.close()
            self._loop.remove_reader(self._log.fileno())
        self._stopped = True
        if self._reader is not None:
            await self._loop.run_in_executor(None, partial(self._reader.shutdown, cancel_futures=True))
        if self._log is not None:
            await self._loop.run_in_executor(None, self._log.close)

    @property
    def exit_code(self) -> Exit:
        return Exit.UNWRITTEN if self.store is not None and self.store.failure is not None else Exit.OK

    def reload(self, settings: Settings) -> Apply:
        return partial(self._use, settings.data_free_bytes_min)

    def _use(self, least: int) -> None:
        if self._space is not None:
            self._space.least = least

    def _read(self, read: Callable[[], Read], then: Callable[[Read], None]) -> None:
        """Read in the reader thread; the loop takes the result. During a stop nobody is left to take it."""
        if self._stopped:
            return
        if self._reader is None:
            self._reader = ThreadPoolExecutor(1, "log-reader")
        future = self._loop.run_in_executor(self._reader, read)

        def take(done: asyncio.Future[Read]) -> None:
            if not self._stopped:
                then(done.result())
            elif not done.cancelled() and (error := done.exception()) is not None:
                log.warning("store_read_dropped", reason=repr(error))

        future.add_done_callback(take)

    # -- the log ------------------------------------------------------------------------------------------------------

    def _schedule(self, seconds: float) -> None:
        # Recovery reports changes, too, before it is known whether the store can be opened.
        if not seconds:
            if not self._flusher.at_end(self._seal):
                self._loop.call_soon(self._seal)
            return
        self._late_at = self._loop.time() + seconds
        if self._late is None:
            self._late = self._loop.call_later(seconds, self._seal_late)

    def _seal_late(self) -> None:
        """Seal what nobody waits for. What came after another seal has its own time."""
        left = self._late_at - self._loop.time()
        self._late = self._loop.call_later(left, self._seal_late) if left > 0 else None
        if self._late is None and self.store is not None:
            self.store.seal()

    def _seal(self) -> None:
        """The turn is over. If it was sealed before its end, what has come since may be what nobody waits for."""
        if self.store is not None and self.store.records.haste == AT_ONCE:
            self.store.seal()

    def _progressed(self) -> None:
        if self.store is None or self.store.records.closed:  # which the thread that closes the log calls, too
            return
        self.store.progress()
        self._sync_later()
        if self._checkpoint is not None:
            self._checkpoint.progress()
            if self._marking is not None:
                self._marking.progress(self._checkpoint.rounds)
        before, self._trouble = self._trouble, self.store.trouble
        if self._trouble is None:
            if before is not None:
                log.info("store_well")
            return
        if before is None or (before != self._trouble and self.store.failure is not None):
            log.error("store_unwell", reason=self._trouble, advice="what needs the store is refused, and tried again")
        if self._retry is None and self._log is not None and self.store.failure is not None:
            self._retry = self._loop.call_later(RETRY_SECONDS, partial(self._try_again, self._log))

    def _try_again(self, opened: Log) -> None:
        self._retry = None
        opened.retry()

    def _sync_later(self) -> None:
        """What nobody waits for is synced all the same, so that a power cut costs no more than SYNC_SECONDS."""
        if self._log is None or self._log.syncing or self._sync is not None or self._log.synced == self._log.written:
            return
        self._sync = self._loop.call_later(SYNC_SECONDS, partial(self._sync_now, self._log))

    def _sync_now(self, opened: Log) -> None:
        self._sync = None
        opened.sync()

    def _look_at(self, space: FreeSpace) -> None:
        """See whether there is room, and again in a second."""
        self._look = self._loop.call_later(LOOK_SECONDS, self._look_at, space)
        try:
            space.look()
        except OSError as error:
            log.error("store_space_unknown", folder=os.fspath(space.folder), reason=error.strerror or str(error))
        if self.store is not None and self.store.low != space.low:
            self.store.low = space.low
            self._progressed()
        opened = self._log
        if opened is not None and opened.short is not None and space.free > opened.segment_bytes:
            opened.prepare_again()

    # -- inspection ---------------------------------------------------------------------------------------------------

    @property
    def trouble(self) -> str | None:
        return self._trouble

    @property
    def promise(self) -> str:
        own = (f"{name} {durability.value}" for name, durability in self._durabilities.items())
        return ", ".join([self._settings.durability.value, *own])

    def metrics(self) -> Sequence[MetricSource]:
        store, opened, space = self.store, self._log, self._space
        if store is None or opened is None or space is None:
            return []
        return [MetricSource(
            {**store_metrics.COUNTERS, **store_metrics.GAUGES},
            partial(store_metrics.counters, store),
            partial(store_metrics.gauges, store, self._broker.ledger, space),
            families=partial(store_metrics.families, opened),
        )]


class StartLog:
    """Logs how far a start is that takes long."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def note(self, doing: str, share: float, found: Callable[[], Recovered]) -> None:
        now = time.monotonic()
        if now - self._said >= PROGRESS_SECONDS:
            self._said = now
            log.info(f"store_{doing}", percent=round(100 * share), **found()._asdict())
