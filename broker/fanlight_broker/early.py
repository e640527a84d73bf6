"""What must be in place before anything else of fanlightd is imported: the standard streams, and an answer to SIGTERM.

A supervisor may start the broker with a standard stream closed. A socket would then get its number, and uvloop, which
asserts that it closes none of the three, would abort the process.

Imports take a second, with an archive on a busy machine several. A SIGTERM meanwhile would kill the process with its
traces half made, and be lost in a container: there we are process 1, to which the kernel delivers only what it handles.

And the last: once the exit code is decided, a signal must not change it (`exit_decided`).
"""

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
    """First thing in the process. `arguments` are those of the command line."""
    open_missing()
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # else whoever started us wants it ignored
        signal.signal(signal.SIGTERM, _on_serve if "serve" in arguments[:1] else _on_other)


def stop_requested() -> bool:
    """Whether SIGTERM has come; for the one case in which nobody saw the exception (see `_stop`)."""
    return _asked


def exit_decided() -> None:
    """The process ends, with an exit code that is known. Signals that ask for its end are ignored from now on.

    Else one that comes while a failed start is exiting would hide what the exit code says of the failure. What is
    still to do, such as writing the log, is bounded in time.
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
    # As a stop in order: there was no client yet, and nothing is lost.
    _stop(0)


def _on_other(number: int, frame: FrameType | None) -> None:
    _stop(TERMINATED)


def _stop(code: int) -> None:
    global _asked
    _asked = True
    # In a callback of the garbage collector or of the import system an exception goes nowhere: hence `_asked`.
    raise SystemExit(code)
