"""Overhearing: what is reported to the log and to the audit log, passed on to one more listener.

    event_log, audit --an Overhearing is in between--> their sinks
                                |
                                '--> heard_event, heard_note, in the loop's thread

So what listens needs no calls of its own in all that reports.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from fanlight_broker import audit, event_log


class Overhearing:
    """A sink of both, in between. Several may be started; they are stopped in reverse order."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._log: event_log.EventSink | None = None
        self._audit: audit.AuditSink | None = None

    def overhear(self) -> None:
        """Begin, in the loop that runs."""
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._log = event_log.use(self)
        self._audit = audit.use(self)

    def be_silent(self) -> None:
        """End: the sinks are as they were."""
        if self._loop is not None:
            event_log.use(self._log)
            audit.use(self._audit)
            self._loop = None

    def heard_event(self, event: str, keys: event_log.Keys) -> None:
        """An event of the log, from INFO on, whatever the level of the log is."""

    def heard_note(self, kind: str, keys: dict[str, Any]) -> None:
        """A note for the audit log, whether or not there is one."""

    def wants_note(self, kind: str) -> bool:
        """Does `heard_note` do anything with notes of this kind?"""
        return True

    # -- the sinks ----------------------------------------------------------------------------------------------------

    @property
    def level(self) -> int:
        """Below which nothing comes: the log's own, or what is overheard."""
        return event_log.INFO if self._log is None else min(self._log.level, event_log.INFO)

    def write(self, level: int, logger: str, event: str, keys: event_log.Keys) -> None:
        log = self._log
        if log is not None and level >= log.level:
            log.write(level, logger, event, keys)
        if level >= event_log.INFO:
            self._pass(self.heard_event, event, keys)

    def note(self, kind: str, keys: dict[str, Any]) -> None:
        if self._audit is not None:
            self._audit.note(kind, keys)
        self._pass(self.heard_note, kind, keys)

    def hears(self, kind: str) -> bool:
        return self.wants_note(kind) or (self._audit is not None and self._audit.hears(kind))

    def _pass(self, heard: Callable[[str, dict[str, Any]], None], name: str, keys: dict[str, Any]) -> None:
        """Of any thread."""
        if threading.get_ident() == self._thread:
            heard(name, keys)
        elif self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(heard, name, keys)
