"""The exit codes of fanlightd, and what each one means for the program that started it."""

from enum import IntEnum


class Exit(IntEnum):
    """As in sysexits.h where that has a word for it."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNAVAILABLE = 69
    INTERNAL = 70
    UNWRITTEN = 74
    INTERRUPTED = 130
    TERMINATED = 143


MEANINGS = {
    Exit.OK: "did what it was asked to; `serve`: stopped by SIGTERM or SIGINT, in order, or by SIGTERM as it started",
    Exit.FAILED: "`check-config`: wrong settings. `healthcheck`: unhealthy. `passwd`: no change. `check`: damaged",
    Exit.USAGE: "wrong settings or flags: starting it again will not help. `check`, `repair`, `backup`: not possible",
    Exit.UNAVAILABLE: "`serve`: could not listen: an address is in use, not this machine's, or needs root",
    Exit.INTERNAL: "an error in fanlightd itself; the log has the traceback",
    Exit.UNWRITTEN: "`serve`: stopped in order, but messages are not in the archive; the log says how many",
    Exit.INTERRUPTED: "interrupted by Ctrl-C before there was anything to stop in order",
    Exit.TERMINATED: "another command than `serve`: ended by SIGTERM",
}
