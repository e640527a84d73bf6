"""Starting a server as a subprocess, on free ports, and knowing when it is ready: by its own words.

A server says where it listens in lines of JSON, one per listener:

    {"event": "listening", "listener": "native", "host": "127.0.0.1", "port": 40123, ...}

The harness, the demo and the tests all start their servers here.
"""

import argparse
import atexit
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

START_SECONDS = 60.0  # to say that it listens: two on a busy machine, ten on a small board's first start
STOP_SECONDS = 15.0   # to end after SIGTERM, which is more than its grace period; then it is killed
LINES_MAX = 20_000    # of its output that are kept; older ones are forgotten


class LaunchError(Exception):
    """The server did not start, or did not say where it listens."""


class Patience:
    """How long servers may take to start, in seconds: one for the process, set by `--start-timeout`."""

    seconds = START_SECONDS

    @classmethod
    def parse(cls, word: str) -> float:
        """An argparse type. Takes the number of seconds into use."""
        try:
            seconds = float(word)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds <= 3_600:
            raise argparse.ArgumentTypeError(f"must be a number of seconds above 0, up to 3600; got {word!r}")
        cls.seconds = seconds
        return seconds


class Server:
    """A server process that says where it listens. Use it as a context manager: it is stopped at the end.

    lines: its output, standard error included, oldest first, at most LINES_MAX
    says_ready: it reports when all of its listeners are open, those that are not named here included
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        listeners: Sequence[str],
        says_ready: bool = False,
        cpu: int | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.command = list(command)
        self.lines: deque[str] = deque(maxlen=LINES_MAX)
        self.addresses: dict[str, tuple[str, int]] = {}
        self._listeners = list(listeners)
        self._ready = not says_ready
        self._changed = threading.Condition()
        self._at_end = False
        with on_cpu(cpu):
            self.process = self._start(environment or {})
        self._reader = threading.Thread(target=self._read, name=f"output of {self.command[0]}", daemon=True)
        self._reader.start()
        try:
            if met := self._met(self._listens, Patience.seconds):
                return
        except BaseException:
            self.kill()
            raise
        self.kill()  # and all that it has written is read
        within = f"did not start within {Patience.seconds:g} s (--start-timeout)"
        raise LaunchError(self._complaint(within if met is None else "ended before it listened"))

    def _listens(self) -> bool:
        return self._ready and all(name in self.addresses for name in self._listeners)

    def _start(self, environment: dict[str, str]) -> subprocess.Popen[str]:
        """Its process, with all that it writes in one pipe."""
        return subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**clean_environment(), **environment},
            text=True,
            errors="replace",
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait_for(self, condition: Callable[[], bool], seconds: float) -> None:
        """Return once `condition`, asked anew after each line of output, holds.

        Raises LaunchError, with the last lines of output, when the time is over or the output has ended.
        """
        if not (met := self._met(condition, seconds)):
            raise LaunchError(
                self._complaint("ended" if met is False else f"did not do what was waited for within {seconds:g} s")
            )

    def _met(self, condition: Callable[[], bool], seconds: float) -> bool | None:
        """Whether the condition came to hold; None: the time is over, and the output has not ended."""
        with self._changed:
            changed = self._changed.wait_for(lambda: condition() or self._at_end, seconds)
            return True if condition() else False if changed else None

    def _complaint(self, why: str) -> str:
        command = " ".join(self.command)
        return f"{command} {why}; its last lines:\n{words}" if (words := self._last_words()) else (
            f"{command} {why}, and wrote nothing"
        )

    def wait_for_line(self, text: str, seconds: float = 60.0) -> None:
        """Return once a line of output contains `text`. Raises LaunchError as wait_for does."""
        self.wait_for(lambda: any(text in line for line in self.lines), seconds)

    def terminate(self) -> int:
        """Ask it to stop, wait until it has, and return its exit code; kill it when it does not."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """Wait for its end and return its exit code. Kills it and raises LaunchError when it does not end."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            why = f"did not end within {seconds:g} s"
            raise LaunchError(self._complaint(why)) from None
        self._close()
        return code

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()
        self._close()

    def _last_words(self) -> str:
        return "\n".join(list(self.lines)[-20:])

    def _close(self) -> None:
        self._reader.join(STOP_SECONDS)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def _read(self) -> None:
        # A thread, not a poll: a pipe that nobody reads fills, and then the server stands still.
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._note(line)
                self._changed.notify_all()
        with self._changed:
            self._at_end = True
            self._changed.notify_all()

    def _note(self, line: str) -> None:
        if not line.startswith("{"):
            return
        try:
            entry: dict[str, Any] = json.loads(line)
        except ValueError:
            return
        if entry.get("event") == "listening":
            self.addresses[entry["listener"]] = (entry["host"], entry["port"])
        elif entry.get("event") == "ready":
            self._ready = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.terminate()
        else:
            self._close()


PORTS = (
    "native_port", "native_websocket_port", "native_websocket_tls_port", "http_port", "mqtt_port",
    "mqtt_websocket_port", "mqtt_tls_port", "mqtt_websocket_tls_port", "amqp_port", "amqp_tls_port",
)  # fmt: skip


class Broker(Server):
    """`fanlightd serve` on free ports of 127.0.0.1.

    settings: flags of `fanlightd serve` without their dashes: outbox_bytes_max=65536 is
    --outbox-bytes-max 65536, True a flag without a value. Raises LaunchError when it does not start.
    command: what is run in place of `fanlightd`
    """

    def __init__(
        self, *, cpu: int | None = None, environment: dict[str, str] | None = None,
        command: Sequence[str] = (), **settings: object,
    ) -> None:
        flags = {**dict.fromkeys(PORTS, 0), "log_format": "json", **settings}
        line = [*(command or (fanlightd(),)), "serve"]
        for name, value in flags.items():
            line.append("--" + name.replace("_", "-"))
            if value is not True:
                line.append(str(value))
        super().__init__(
            line, listeners=("native", "mqtt", "http"), says_ready=True, cpu=cpu, environment=environment
        )

    @property
    def port(self) -> int:
        return self.addresses["native"][1]

    @property
    def mqtt_port(self) -> int:
        return self.addresses["mqtt"][1]

    @property
    def amqp_port(self) -> int:
        return self.addresses["amqp"][1]

    @property
    def url(self) -> str:
        return f"fanlight://127.0.0.1:{self.port}"

    @property
    def http_url(self) -> str:
        return f"http://127.0.0.1:{self.addresses['http'][1]}"

    def complaints(self) -> list[str]:
        """What it said that a healthy broker does not say: tracebacks and errors."""
        return [line for line in self.lines if "Traceback" in line or _level(line) in ("error", "critical")]


def program() -> str:
    """As what the harness was called: `fanlight bench` or `python -m fanlight_bench`."""
    script = Path(sys.argv[0])
    ours = script.name == "fanlight" or script.parts[-3:-1] == ("fanlight", "cli")  # python -m fanlight.cli
    return "fanlight bench" if ours else "python -m fanlight_bench"


def fanlightd() -> str:
    """The broker's command: the one beside this interpreter, not that of another installation."""
    return str(Path(sys.executable).parent / "fanlightd")


@cache
def byte_code() -> dict[str, str]:
    """For the environment of a broker that starts as an installed one does: with its modules compiled.

    Where Python may write no byte code (PYTHONDONTWRITEBYTECODE), a broker from a checkout would compile them anew at
    each start, which doubles it: they are in a folder then, for as long as this process lives.
    """
    environment = {}
    if sys.dont_write_bytecode:
        folder = tempfile.mkdtemp(prefix="fanlight-byte-code-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        environment = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": folder}
    everything = [sys.executable, "-c", "import fanlight_broker.app, fanlight_broker.cli"]
    subprocess.run(everything, env={**clean_environment(), **environment}, check=False)  # the start says what is wrong
    return environment


def _level(line: str) -> str:
    try:
        entry = json.loads(line)
    except ValueError:
        return ""
    return str(entry.get("level", "")).lower() if isinstance(entry, dict) else ""


def clean_environment() -> dict[str, str]:
    """Ours, without settings: those of whoever runs this are not for the servers that are started here."""
    return {name: value for name, value in os.environ.items() if not name.startswith("FANLIGHT_")}


@contextlib.contextmanager
def on_cpu(cpu: int | None) -> Iterator[None]:
    """This thread, and what it starts, on one processor, if there is such a one; None leaves it as it is."""
    # A child inherits the processors of the thread that starts it: no code between fork and exec.
    if cpu is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
