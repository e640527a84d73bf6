"""The audit log as a part: a file of JSON lines, rotated by size, written by a thread of its own.

    note --> bounded queue --> thread --> FILE, and at its bound: FILE --> FILE.1 --> FILE.2 ... the last one is deleted

A note never waits: where the queue is full, or the file cannot be written, it is counted, and a line of kind `lost`
says how many are missing. The disk may stand still without the broker doing so.
"""

import json
import os
import queue
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from fanlight_broker import __version__, audit, logs
from fanlight_broker.admin.metric_source import MetricSource
from fanlight_broker.config import Settings
from fanlight_broker.parts import Apply, Part, PartError

COUNTERS: Final = {
    "audit_notes": "Notes for the audit log",
    "audit_lost": "Notes that could not be written: the queue was full (audit_log_queue_max), or the disk failed",
    "audit_rotations": "Times the audit log was full and a new file was begun",
}
GAUGES: Final = {"audit_waiting": "Notes that wait to be written"}
CLOSE_SECONDS: Final = 5.0  # for what waits, at the end
REOPEN: Final = object()  # in the queue

log: Final = logs.get("audit")


class AuditFile:
    """The sink of audit.py. Raises OSError if the file cannot be opened."""

    def __init__(self, path: Path, *, bytes_max: int, files_max: int, queue_max: int) -> None:
        self.notes = self.rotations = 0
        self._full = self._unwritten = 0  # lost: by callers, by the thread
        self._path, self._bytes_max, self._files_max = path, bytes_max, files_max
        self._queue: queue.Queue[Any] = queue.Queue(queue_max)
        self._said = 0  # of those that are lost
        self._failing = False
        self._fd, self._size = _open(path)
        # A daemon, so that a disk that stands still cannot keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="audit writer", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        return self._full + self._unwritten

    @property
    def waiting(self) -> int:
        return self._queue.qsize()

    def note(self, kind: str, keys: dict[str, Any]) -> None:
        self.notes += 1
        try:
            self._queue.put_nowait(_line(kind, keys))
        except queue.Full:
            self._full += 1

    def hears(self, kind: str) -> bool:
        return True

    def reopen(self) -> None:
        """Open the file again: another program may have renamed it."""
        try:
            self._queue.put_nowait(REOPEN)
        except queue.Full:
            log.warning("audit_not_reopened", reason="too many notes wait")

    def close(self) -> None:
        """Write what waits, for CLOSE_SECONDS at most."""
        try:
            self._queue.put(None, timeout=CLOSE_SECONDS)
        except queue.Full:
            return
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        while (line := self._queue.get()) is not None:
            try:
                if line is REOPEN:
                    self._open_again()
                else:
                    self._write(line)
            except OSError as error:
                self._unwritten += line is not REOPEN
                if not self._failing:
                    self._failing = True
                    log.error("audit_failed", file=str(self._path), reason=error.strerror or str(error))
        if self._fd >= 0:
            os.close(self._fd)

    def _write(self, line: bytes) -> None:
        if self._fd < 0:
            self._open_again()
        if self._said < (lost := self.lost):
            self._put(_line("lost", {"count": lost - self._said}))
            self._said = lost
        self._put(line)
        if self._failing:
            self._failing = False
            log.info("audit_works")

    def _put(self, line: bytes) -> None:
        if self._size and self._size + len(line) > self._bytes_max:
            self._rotate()
        written = os.write(self._fd, line)
        self._size += written
        if written < len(line):  # the disk is full: half a line must not become one with the next
            os.ftruncate(self._fd, self._size - written)
            self._size -= written
            raise OSError(None, "the line was not written whole")

    def _open_again(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._fd, self._size = _open(self._path)

    def _rotate(self) -> None:
        if self._files_max == 1:
            os.ftruncate(self._fd, 0)
        else:
            for number in range(self._files_max - 1, 0, -1):
                older = self._numbered(number - 1) if number > 1 else self._path
                if older.exists():
                    os.replace(older, self._numbered(number))
            self._open_again()
        self._size = 0
        self.rotations += 1

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


def _open(path: Path) -> tuple[int, int]:
    """Descriptor and size. Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    return fd, os.fstat(fd).st_size


def _line(kind: str, keys: dict[str, Any]) -> bytes:
    shown = {"time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"), "kind": kind}
    for key, value in keys.items():
        shown[key] = logs.present(key, sorted(value) if isinstance(value, frozenset) else value)  # type: ignore[assignment]
    return json.dumps(shown, default=str).encode() + b"\n"


class Auditing(Part):
    name = "audit log"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._file: AuditFile | None = None
        self._before: audit.AuditSink | None = None

    async def open(self) -> None:
        settings = self._settings
        if settings.audit_log is None:
            return
        try:
            self._file = AuditFile(
                settings.audit_log, bytes_max=settings.audit_log_bytes_max, files_max=settings.audit_log_files_max,
                queue_max=settings.audit_log_queue_max,
            )
        except OSError as error:
            raise PartError(f"audit_log: {settings.audit_log}: cannot be opened: {error.strerror}") from error
        self._before = audit.use(self._file)
        audit.note("started", version=__version__)

    async def stop(self) -> None:
        if self._file is not None:
            audit.note("stopped")
            audit.use(self._before)
            self._file.close()

    def reload(self, settings: Settings) -> Apply:
        return self._file.reopen if self._file is not None else super().reload(settings)

    def metrics(self) -> Sequence[MetricSource]:
        return [MetricSource({**COUNTERS, **GAUGES}, self._counters, self._gauges)]

    def _counters(self) -> dict[str, int]:
        file = self._file
        if file is None:
            return dict.fromkeys(COUNTERS, 0)
        return {"audit_notes": file.notes, "audit_lost": file.lost, "audit_rotations": file.rotations}

    def _gauges(self) -> dict[str, float]:
        return {"audit_waiting": float(self._file.waiting) if self._file is not None else 0.0}
