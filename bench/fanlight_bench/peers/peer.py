"""What a broker must be able to do to be compared: be there or not, say its version, start and stop for sure.

A peer starts as a process of its own on ports of 127.0.0.1 that are free, in a folder of its own that is thrown away,
with a configuration that is the same for everybody who runs this; no system service and no file outside the folder is
touched. It is ready when it says so. It ends when the `with` block does, whatever it started with it.
"""

import abc
import contextlib
import os
import random
import select
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from fanlight_bench import procfs
from fanlight_bench.launch import STOP_SECONDS, LaunchError, Server

PORTS = range(20_000, 32_000)
TRIES = 100
LINGER_SECONDS = 0.5    # what a broker started may take to end after it
KILLED_SECONDS = 10.0   # and after it was killed
VERSION_SECONDS = 20.0  # to say its version: Erlang takes one or two
PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/sbin"  # Debian has servers where users do not look


@dataclass(frozen=True)
class Up:
    """A broker that is ready."""

    ports: Mapping[str, int]  # by the scheme of the URL that reaches it
    pid: int                  # of the process that counts, with all below it

    def url(self, scheme: str) -> str:
        return f"{scheme}://127.0.0.1:{self.ports[scheme]}"


class Peer(abc.ABC):
    """One broker, with one configuration."""

    name: ClassVar[str]
    package: ClassVar[str] = ""    # Debian's, "" if it comes otherwise
    one_thread: ClassVar[bool]     # then it has a processor to itself, and the generator the other
    start_seconds: ClassVar[float] = 0.5  # about, for saying beforehand how long everything takes

    @abc.abstractmethod
    def program(self) -> str | None:
        """The path of its program; None: it is not installed."""

    @abc.abstractmethod
    def version(self) -> str:
        """As it says itself; "" when it does not say. Only of one that is installed."""

    @abc.abstractmethod
    def configuration(self) -> str:
        """Its settings as a reader should see them, with PORT for the port and DIR for its folder."""

    def configured(self, settings: Mapping[str, str], module: str = "") -> "Peer":
        """This broker with some of its settings changed, or run by this module.

        ValueError: a scenario asks for what is not ours to set.
        """
        if asked := [*settings, module][: len(settings) + bool(module)]:
            raise ValueError(f"{self.name} is measured as it is configured; {', '.join(asked)} cannot be set")
        return self

    def listening(self, scheme: str) -> "Peer":
        """This broker, with a port for this scheme if it is not one of those it always has (TLS, WebSocket)."""
        return self

    @abc.abstractmethod
    def start(self, folder: Path, cpu: int | None) -> contextlib.AbstractContextManager[Up]:
        """It runs inside the `with`. Raises LaunchError when it does not come up."""


def which(*names: str) -> str | None:
    """The path of the first of these programs that is there."""
    return next((found for name in names if (found := shutil.which(name, path=PATH))), None)


def said(command: list[str]) -> str:
    """What a command prints, standard error included; "" when it cannot be run or takes too long."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=VERSION_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode(errors="replace").strip()


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody has at this moment; for brokers that cannot choose one themselves.

    Below those that the kernel gives to outgoing connections: of these one may be gone before a slow broker listens.
    """
    found: list[int] = []
    with contextlib.ExitStack() as stack:
        for port in random.sample(PORTS, TRIES):
            with contextlib.suppress(OSError):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
                found.append(port)
            if len(found) == count:
                return found
    raise LaunchError(f"{TRIES} ports between {PORTS[0]} and {PORTS[-1]} were tried, and all are taken")


@contextlib.contextmanager
def served(
    command: list[str], ready: str, *, cpu: int | None, environment: dict[str, str] | None = None,
    seconds: float = 20.0,
) -> Iterator[Server]:  # fmt: skip
    """A server that says `ready` in a line of its output when it is; gone at the end, with all that it started.

    Raises LaunchError, with its last lines, when it ends or does not say so within `seconds`.
    """
    try:
        server = Server(command, listeners=(), cpu=cpu, environment=environment)
    except OSError as error:
        raise LaunchError(f"{command[0]}: {error.strerror or error}") from error
    try:
        server.wait_for_line(ready, seconds)
        yield server
    finally:
        with _ended_too(procfs.descendants(server.pid)):
            _terminate(server.process)
        server.wait()  # to the end of its output, which what it started may have held open till now


def _terminate(process: subprocess.Popen[str]) -> None:
    """SIGTERM, and another if nothing comes of it: Mosquitto forgets one that it gets while it starts."""
    for seconds in (STOP_SECONDS / 5, STOP_SECONDS):
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
            return
    process.kill()


@contextlib.contextmanager
def _ended_too(pids: Sequence[int]) -> Iterator[None]:
    """Kills those of these processes that still run shortly after the block.

    By descriptors of the processes, not by their numbers, which may be somebody else's by then.
    """
    with contextlib.ExitStack() as stack:
        running = []
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                running.append(os.pidfd_open(pid))
                stack.callback(os.close, running[-1])
        yield
        for one in _wait(running, LINGER_SECONDS):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(one, signal.SIGKILL)
        if left := _wait(running, KILLED_SECONDS):
            raise LaunchError(f"{len(left)} processes below it did not end when they were killed")


def _wait(descriptors: Sequence[int], seconds: float) -> list[int]:
    """Those that still run after `seconds`."""
    end, left = time.monotonic() + seconds, list(descriptors)
    while left:
        ended, _, _ = select.select(left, [], [], max(0.0, end - time.monotonic()))
        if not ended:
            break
        left = [one for one in left if one not in ended]
    return left
