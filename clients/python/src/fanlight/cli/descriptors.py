"""The standard streams, all three of them, before anything else is opened.

A supervisor may start a program with one of them closed. The next file or socket then gets its number, and what was
meant for a terminal goes into it; uvloop, which asserts that it closes none of the three, aborts the process.
"""

import os
import sys

MODES = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


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
