r"""The application: the life of a broker process, and the signals that end or reload it.

    start -> ready -> SIGTERM or SIGINT -> draining (say goodbye, flush) -> stopped
                  \-> SIGHUP -> settings and the files that they name are read again

What is started and stopped is a list of parts (parts.py), which assembly.py makes. No part is named here.
"""

import asyncio
import signal
from types import FrameType
from typing import Any, Final

import uvloop

from fanlight_broker import __version__, audit, early, logs
from fanlight_broker.assembly import Assembly, assemble
from fanlight_broker.config import Settings, SettingsError, apply_reload, reload, reloadable_changes
from fanlight_broker.parts import PartError
from fanlight_broker.supervisor import Supervisor

log: Final = logs.get("app")


class Application:
    """One broker process."""

    def __init__(self, settings: Settings, assembly: Assembly) -> None:
        self.settings = settings
        self.parts = assembly.parts
        self._summary = assembly.summary
        self._stopping = asyncio.Event()
        self._stop_now = asyncio.Event()
        self._reloading: asyncio.Future[None] | None = None
        self._reloads_wanted = False
        self._supervisor = Supervisor()
        self._one_reload = asyncio.Lock()
        self.parts.offer("reload", self.reload)

    async def run(self) -> int:
        """Serve until a stop is requested. Returns the exit code. Raises PartError."""
        await self.parts.open()
        self._handle_signals(asyncio.get_running_loop())
        if early.stop_requested():
            self._stopping.set()
        try:
            await self.parts.start()
            log.info("ready", version=__version__, slow_policy=self.settings.limits.slow_policy.value)
            self._supervisor.ready("accepts clients")
            await self._stopping.wait()
            await self._end_reload()
            self._supervisor.stopping("drains: says goodbye to clients, and sends what waits for them")
            await self._drain()
        finally:
            await self.parts.stop()
            self._supervisor.ended()
            log.info("stopped", **self._summary())
        return self.parts.exit_code

    def _handle_signals(self, loop: asyncio.AbstractEventLoop) -> None:
        """As `loop.add_signal_handler` would, but not undone when the loop closes: the process still has to end then,
        with its own exit code.
        """
        def on_stop(number: int, _: FrameType | None) -> None:
            loop.call_soon_threadsafe(self._on_stop_signal, signal.Signals(number).name)

        signal.signal(signal.SIGTERM, on_stop)
        signal.signal(signal.SIGINT, on_stop)
        signal.signal(signal.SIGHUP, lambda number, frame: loop.call_soon_threadsafe(self.request_reload))

    def _on_stop_signal(self, name: str) -> None:
        if self._stopping.is_set():
            self._stop_now.set()
        log.info("signal", signal=name)
        self._stopping.set()

    async def _drain(self) -> None:
        """Drain until all is done, the grace period is over, or a second signal comes."""
        drain = asyncio.ensure_future(self.parts.drain(self.settings.limits.grace_seconds))
        at_once = asyncio.ensure_future(self._stop_now.wait())
        await asyncio.wait({drain, at_once}, return_when=asyncio.FIRST_COMPLETED)
        at_once.cancel()
        if drain.done():
            drain.result()
            return
        drain.cancel()
        await asyncio.wait({drain})
        log.warning("stopped_at_once", reason="a second signal")

    def request_reload(self) -> None:
        """SIGHUP. One that comes while another is under way is done after it, and none once the broker stops."""
        if self._stopping.is_set():
            return
        self._reloads_wanted = True
        if self._reloading is None or self._reloading.done():
            self._reloading = asyncio.ensure_future(self._reload_all())

    async def _reload_all(self) -> None:
        self._supervisor.reloading()
        try:
            while self._reloads_wanted:
                self._reloads_wanted = False
                await self.reload()
        finally:
            if not self._stopping.is_set():  # STOPPING=1 has the last word
                self._supervisor.ready("accepts clients")

    async def reload(self) -> dict[str, Any]:
        """Read the settings again, and the files that they name. If anything is wrong, nothing changes.

        Returns what is in force now, and what needs a restart; or why nothing has changed.
        """
        async with self._one_reload:  # one is asked for by a signal, others by HTTP
            return await self._reload()

    async def _reload(self) -> dict[str, Any]:
        try:
            loaded = reload(self.settings)
            changes = reloadable_changes(self.settings, loaded.settings)
            settings = apply_reload(self.settings, loaded.settings)
            await self.parts.prepare(settings)
            apply = self.parts.reload(settings)
        except (SettingsError, PartError) as error:
            problems = error.problems if isinstance(error, SettingsError) else (error,)
            reason = "; ".join(map(str, problems))
            audit.note("reload_failed", reason=reason)
            log.error("reload_failed", reason=reason, advice="the settings in force stay as they are")
            return {"problems": [str(problem) for problem in problems]}
        for warning in loaded.warnings:
            log.warning("setting_ignored", reason=warning)
        self.settings = settings
        apply()
        applied, needs_restart = map(str, changes.applied), map(str, changes.needs_restart)
        done = {"applied": list(applied), "needs_restart": list(needs_restart)}
        audit.note("reloaded", applied=done["applied"])
        log.info("reloaded", **done)
        return done

    async def _end_reload(self) -> None:
        if self._reloading is not None and not self._reloading.done():
            self._reloading.cancel()
            await asyncio.wait({self._reloading})


def run(settings: Settings) -> int:
    """Run a broker until a signal stops it. Returns the exit code (config/exits.py). Raises PartError."""

    async def main() -> int:
        try:
            return await Application(settings, assemble(settings)).run()
        finally:
            early.exit_decided()  # while the loop is still there to take a signal

    return uvloop.run(main())


