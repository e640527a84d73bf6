"""Opening a port: the error that names its setting, and the line in the log that says how to try it."""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fanlight_broker import logs
from fanlight_broker.config import Exit
from fanlight_broker.parts import PartError

log: Final = logs.get("app")


@contextmanager
def opening(setting: str, host: str, port: int) -> Iterator[None]:
    """Around what opens a port. Raises PartError, which says why it cannot be opened, and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            advice = "Is another broker running? Choose another port, or stop the other"
        else:
            advice = "Choose an address of this machine, and a port above 1023 unless you are root"
        # The numbers of gaierror are its own; asyncio puts a text of its own where a bind's reason should be.
        own = isinstance(error, socket.gaierror) or not error.errno
        reason = (error.strerror or str(error)) if own or error.errno is None else os.strerror(error.errno)
        text = f"cannot listen on {host}:{port} ({setting}): {reason}. {advice}"
        raise PartError(text, Exit.UNAVAILABLE) from error


def log_listening(listener: str, host: str, port: int, try_it: str) -> None:
    log.info("listening", listener=listener, host=host, port=port, try_it=try_it)


def reachable(host: str) -> str:
    """An address to connect to for one that was bound to, as it stands in a URL."""
    if host in ("0.0.0.0", "::", ""):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
