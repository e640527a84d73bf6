"""A process that has imported the broker, and forks for each broker that a test starts.

    test process -- command, environment, folder, processors; the ends of two pipes --> fork server --fork--> fanlightd
         ^                                                                                   |                    |
         +<----------------------- process id; exit status ----------------------------------+                    |
         +<----------------------- output ------------------------------------------------------------------------+

A broker takes 0.4 s of processor to start, nearly all of it imports, and the tests start more than a thousand. What is
forked runs the same `main` with the same arguments as the command that is installed; but for the imports nothing is
different. What is read before the first import (PYTHON..., LD_..., a loader's or coverage's variables) cannot be given
to it: a broker with such an environment is started by its command (`can_fork`), and so are those of the benches and of
tests of the start itself.

It ends when its socket is closed, that is, with the process that started it.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

REQUEST_BYTES_MAX = 1 << 20
BEFORE_IMPORTS = ("PYTHON", "LD_", "MALLOC_", "GLIBC_", "OPENBLAS_", "OMP_", "COVERAGE", "ASAN_", "UBSAN_")


def can_fork(environment: Mapping[str, str]) -> bool:
    """Whether a broker with these variables, beside those of this process, is the same when it is forked."""
    here = any(name.startswith("COVERAGE") for name in os.environ)
    return sys.platform == "linux" and not here and not any(name.startswith(BEFORE_IMPORTS) for name in environment)


class ForkedProcess(subprocess.Popen[str]):
    """As Popen of a command with its output in one pipe; it is the fork server's child, not ours."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._child_created = False  # nothing for Popen to wait for
        self.args = list(command)
        self.returncode = None
        self.stdin = self.stderr = None
        self._asking = threading.Lock()
        output, output_end = os.pipe()
        self._status, status_end = os.pipe()
        request = json.dumps({
            "command": self.args, "environment": dict(environment), "folder": os.getcwd(),
            "processors": sorted(os.sched_getaffinity(0)),
        }).encode()  # fmt: skip
        try:
            socket.send_fds(_server(), [request], [output_end, status_end])
        finally:
            os.close(output_end)
            os.close(status_end)
        self.stdout = open(output, encoding="utf-8", errors="replace")  # noqa: SIM115 - closed as Popen's is
        self.pid = int(self._told())
        self._ended = select.poll()  # a test may have more descriptors open than select takes
        self._ended.register(self._status, select.POLLIN)

    def poll(self) -> int | None:
        """Its exit status as Popen has it, or None."""
        with self._asking:
            if self.returncode is None and self._ended.poll(0):
                self._end()
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        until = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            left = None if until is None else max(0.0, until - time.monotonic())
            if left == 0.0:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self._ended.poll(None if left is None else 1_000 * left)
        return code

    def _end(self) -> None:
        self.returncode = os.waitstatus_to_exitcode(int(self._told()))
        os.close(self._status)

    def _told(self) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            piece = os.read(self._status, 1)
            if not piece:
                raise RuntimeError("the fork server has ended (tests/fork_server.py)")
            line += piece
        return line


@cache
def _server() -> socket.socket:
    """The socket of this process's fork server, which is started here."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for side in (ours, theirs):
        side.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, REQUEST_BYTES_MAX)
    server = subprocess.Popen([sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()])
    theirs.close()

    def end() -> None:
        ours.close()
        server.wait()

    atexit.register(end)
    return ours


def serve(asked: socket.socket) -> None:
    """Fork for each request, and tell how those that were forked have ended. Returns only in a forked process."""
    import fanlight_broker.app
    import fanlight_broker.assembly
    import fanlight_broker.cli  # noqa: F401

    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: for the tests, which end their brokers
    running: dict[int, int] = {}  # process -> its pipe
    while True:
        if asked.fileno() in select.select([asked.fileno(), ended], [], [])[0]:
            request, ends, _, _ = socket.recv_fds(asked, REQUEST_BYTES_MAX, 2)
            if not request:
                os._exit(0)
            output, status = ends
            pid = os.fork()
            if pid == 0:
                asked.detach()
                _become(json.loads(request), output)
                return
            running[pid] = status
            os.close(output)
            os.write(status, b"%d\n" % pid)
        else:
            os.read(ended, 4096)
        while running:
            pid, how = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            status = running.pop(pid)
            with suppress(BrokenPipeError):  # nobody asks any more
                os.write(status, b"%d\n" % how)
            os.close(status)


def _become(request: dict[str, Any], output: int) -> None:
    """Be as if this process had been started by the command: signals, files, environment, arguments."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.closerange(3, 1 << 20)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    os.sched_setaffinity(0, request["processors"])
    sys.argv = request["command"]
    sys.path[0] = os.path.dirname(sys.argv[0])


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
    # Here is a broker.
    from fanlight_broker.__main__ import main

    sys.exit(main())
