"""The store as a part: the log in the folder of `data`, and what is made from it at the start."""

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from fanlight_broker import logs
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.config import Exit, Settings
from fanlight_broker.core_part import Core
from fanlight_broker.net.clock import monotonic
from fanlight_broker.parts import Part, PartError
from fanlight_broker.storage.log import Log
from fanlight_broker.storage.pager import Pager, Read
from fanlight_broker.storage.records import BadRecord
from fanlight_broker.storage.recovery import recover
from fanlight_broker.storage.segments import LogError
from fanlight_broker.storage.store import Store
from fanlight_broker.wire.message import Format

log: Final = logs.get("store")

PROGRESS_SECONDS: Final = 1.0  # between two lines of a long start
RETRY_SECONDS: Final = 1.0  # between two tries of a log that cannot write


class Storing(Part):
    """formats: one of each family that messages may be stored in"""

    name = "store"
    store: Store | None = None  # None if the settings name no folder, and until it is open

    def __init__(self, settings: Settings, core: Core, formats: Sequence[Format]) -> None:
        self._settings, self._broker = settings, core.broker
        self._formats: Mapping[str, Format] = {format.family: format for format in formats}
        self._log: Log | None = None
        self._loop = asyncio.get_running_loop()
        self._retry: asyncio.TimerHandle | None = None
        self._trouble: str | None = None
        self._reader: ThreadPoolExecutor | None = None

    # -- its life -----------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        folder = self._settings.data
        if folder is None:
            return
        try:
            self._log = Log(folder, self._progressed, buffer_bytes_max=self._settings.data_buffer_bytes_max)
            self._open(self._log)
        except (LogError, BadRecord, OSError) as error:
            await self.stop()
            reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
            raise PartError(f"data = {os.fspath(folder)}: {reason}") from error

    def _open(self, opened: Log) -> None:
        started = time.monotonic()
        store = Store(
            opened, self._broker.ledger, now=monotonic, wall=time.time, schedule=self._schedule,
            changed=lambda: self._broker.position_changed(monotonic()),
            durability=self._settings.durability,
        )
        store.pager = Pager(
            opened, self._formats, self._broker.variants, now=monotonic, ahead=lambda: store.records.wall,
            run=self._read, soon=self._loop.call_soon,
        )
        found = recover(
            opened.replay(), store, self._broker, self._formats, now=monotonic(), wall=time.time(),
            progress=Progress().read,
        )
        self.store = store
        for damage in opened.damage:
            log.error("store_damaged", what=str(damage), advice="what is said here is lost; the rest is served")
        self._loop.add_reader(opened.fileno(), opened.collect)
        log.info(
            "store_opened", folder=os.fspath(opened.folder), durability=self._settings.durability.value,
            seconds=round(time.monotonic() - started, 3), **found._asdict(),
        )

    async def start(self) -> None:
        if self.store is None:
            log.info("in_memory_only", advice="nothing survives a restart; --data DIR keeps it in a folder")

    async def stop(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
        if self.store is not None and self._log is not None:
            self.store.seal()
            self._loop.remove_reader(self._log.fileno())
        if self._reader is not None:
            self._reader.shutdown(cancel_futures=True)
        if self._log is not None:
            await self._loop.run_in_executor(None, self._log.close)

    @property
    def exit_code(self) -> Exit:
        return Exit.UNWRITTEN if self._trouble is not None else Exit.OK

    def _read(self, read: Callable[[], Read], then: Callable[[Read], None]) -> None:
        """Read in the reader thread; the loop takes the result."""
        if self._reader is None:
            self._reader = ThreadPoolExecutor(1, "log-reader")
        future = self._loop.run_in_executor(self._reader, read)
        future.add_done_callback(lambda done: then(done.result()))

    # -- the log ------------------------------------------------------------------------------------------------------

    def _schedule(self, seconds: float) -> None:
        # Recovery reports changes, too, before it is known whether the store can be opened.
        if seconds:
            self._loop.call_later(seconds, self._seal)
        else:
            self._loop.call_soon(self._seal)

    def _seal(self) -> None:
        if self.store is not None:
            self.store.seal()

    def _progressed(self) -> None:
        if self.store is None:
            return
        self.store.progress()
        before, self._trouble = self._trouble, self.store.trouble
        if self._trouble is None:
            if before is not None:
                log.info("store_well")
            return
        if before != self._trouble:
            log.error("store_unwell", reason=self._trouble, advice="what needs the store is refused, and tried again")
        if self._retry is None and self._log is not None:
            self._retry = self._loop.call_later(RETRY_SECONDS, partial(self._try_again, self._log))

    def _try_again(self, opened: Log) -> None:
        self._retry = None
        opened.retry()

    # -- inspection ---------------------------------------------------------------------------------------------------

    @property
    def trouble(self) -> str | None:
        return self._trouble

    @property
    def promise(self) -> str:
        return self._settings.durability.value if self.store is not None else "in memory only"

    def metrics(self) -> Sequence[MetricSource]:
        return [MetricSource(COUNTERS, self._counters)] if self.store is not None else []

    def _counters(self) -> Mapping[str, int]:
        assert self.store is not None
        assert self._log is not None
        return {
            "store_messages": self.store.records.messages,
            "store_groups": self._log.groups,
            "store_bytes_written": self._log.bytes_written,
        }


COUNTERS: Final[Mapping[str, str]] = {
    "store_messages": "Messages written to the store",
    "store_groups": "Groups of entries written and synced together",
    "store_bytes_written": "Bytes written to the store",
}


class Progress:
    """Logs how far a start is that takes long."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def read(self, records: int) -> None:
        now = time.monotonic()
        if now - self._said >= PROGRESS_SECONDS:
            self._said = now
            log.info("store_reading", records=records)

