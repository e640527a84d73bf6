"""What a supervisor learns from the broker: ready, reloading, stopping, and that the loop still turns.

systemd's protocol for services of `Type=notify` (sd_notify(3)): datagrams of lines `NAME=value` to the socket that the
variable NOTIFY_SOCKET names. Without that variable nothing is sent. The protocol is these few lines, and the libraries
for it either need libsystemd or are not kept up.

Where the unit has WatchdogSec, WATCHDOG_USEC says within how many µs systemd wants to hear of the process. It hears
from the loop itself, so a loop that stands still for so long is noticed, and the unit is started again.
"""

import asyncio
import os
import socket
import time
from collections.abc import Mapping
from typing import Final

from fanlight_broker import event_log

_log: Final = event_log.get("app")


class Supervisor:
    """The supervisor of this process, or nobody if none has asked to hear of it."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        if self._address.startswith("@"):
            self._address = "\0" + self._address[1:]  # Linux' abstract namespace
        self._watchdog_seconds = _watchdog_seconds(environment)
        self._beat: asyncio.TimerHandle | None = None

    def ready(self, status: str) -> None:
        """The broker accepts clients; also said when a reload is over."""
        self._send(f"READY=1\nSTATUS={status}")
        if self._beat is None and self._watchdog_seconds:
            self._watchdog(asyncio.get_running_loop())

    def reloading(self) -> None:
        # systemd compares the time with that of its own signal: sd_notify(3), RELOADING=1.
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self, status: str) -> None:
        """The broker drains. The watchdog goes on until `ended`."""
        self._send(f"STOPPING=1\nSTATUS={status}")

    def ended(self) -> None:
        if self._beat is not None:
            self._beat.cancel()

    def _watchdog(self, loop: asyncio.AbstractEventLoop) -> None:
        self._send("WATCHDOG=1")
        # Half of the time, as sd_watchdog_enabled(3) recommends.
        self._beat = loop.call_later(self._watchdog_seconds / 2, self._watchdog, loop)

    def _send(self, lines: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
                end.setblocking(False)  # the loop waits for nobody
                end.sendto(lines.encode(), self._address)
        except OSError as error:
            _log.warning("supervisor_not_notified", reason=error.strerror or str(error), lines=lines.split("\n")[0])


def _watchdog_seconds(environment: Mapping[str, str]) -> float:
    """0 without a watchdog, or if it is for another process than this one."""
    text, process = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", "")
    if not text.isdecimal() or (process and process != str(os.getpid())):
        return 0
    return int(text) / 1_000_000
