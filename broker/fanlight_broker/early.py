"""What must be done before anything else of fanlightd is imported: open the standard streams, and handle SIGTERM.

While a broker starts, nothing is collected: garbage.py.

A supervisor may start the broker with a standard stream closed. A socket would then get its number, and uvloop, which
asserts that it closes none of the three, would abort the process.

Imports take a fifth of a second, with an archive on a busy machine several seconds. A SIGTERM during that time would
kill the process in an undefined state, and would be lost in a container: to process 1 the kernel delivers only signals
that it handles.

Once the exit code is decided, a signal must not change it (`exit_decided`).
"""

import gc
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Final

MODES: Final = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))
TERMINATED: Final = 128 + signal.SIGTERM
ENDING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_asked = False


def prepare(arguments: Sequence[str]) -> None:
    """To be called first in the process. `arguments` are those of the command line."""
    if "serve" in arguments[:1]:
        gc.disable()  # until the broker is ready: garbage.py
    open_missing()
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # else the parent process had it ignored
        signal.signal(signal.SIGTERM, _on_serve if "serve" in arguments[:1] else _on_other)


def stop_requested() -> bool:
    """Whether SIGTERM was received; for the case in which its exception was lost (see `_stop`)."""
    return _asked


def exit_decided() -> None:
    """The process ends with a known exit code. From now on, signals that ask for its end are ignored.

    Otherwise a signal during the exit after a failed start would replace the exit code of the failure. What remains,
    such as writing the log, is bounded in time.
    """
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def open_missing() -> None:
    """Put the null device where 0, 1 or 2 is closed, and Python's stream on it."""
    for number, (name, mode) in enumerate(MODES):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is taken: this one, for those below it are open by now.
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 - for as long as the process lives


def _on_serve(number: int, frame: FrameType | None) -> None:
    # Counts as an orderly stop: there was no client yet, and nothing is lost.
    _stop(0)


def _on_other(number: int, frame: FrameType | None) -> None:
    _stop(TERMINATED)


def _stop(code: int) -> None:
    global _asked
    _asked = True
    # In a callback of the garbage collector or of the import system an exception is lost: hence `_asked`.
    raise SystemExit(code)
