"""The first moments of fanlightd: closed standard streams, and a SIGTERM before there is a broker."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fanlight_broker import health
from fanlight_broker.config import Exit

SECONDS = 120  # a safety net
LISTENERS = ("native", "native-websocket", "http", "mqtt", "mqtt-websocket", "amqp")
PORTS = [word for name in LISTENERS for word in (f"--{name}-port", "0")]

# Imported by every interpreter that finds it: it says on one pipe that the import named in HOLD has begun, and waits.
HOLDING = """\
import os, sys

class Hold:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["HOLD"]:
            sys.meta_path.remove(self)
            os.write(int(os.environ["SAYS"]), b"here")
            os.read(int(os.environ["WAITS"]), 1)
        return None

sys.meta_path.insert(0, Hold())
"""


class Held:
    """A fanlightd that stands still: where it begins to import a module, or where another `script` has it wait."""

    def __init__(
        self, folder: Path, where: str, *arguments: str, before: tuple[str, ...] = (), script: str = HOLDING,
        wait: bool = True,
    ) -> None:
        (folder / "sitecustomize.py").write_text(script)
        self._says, says = os.pipe()
        waits, self._go = os.pipe()
        paths = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
        clean = {name: value for name, value in os.environ.items() if not name.startswith("FANLIGHT_")}
        self.process = subprocess.Popen(
            [*before, sys.executable, "-m", "fanlight_broker", *arguments],
            env={**clean, "PYTHONPATH": paths, "HOLD": where, "SAYS": str(says), "WAITS": str(waits)},
            pass_fds=(says, waits), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        os.close(says)
        os.close(waits)
        if wait:
            self.wait()

    def wait(self) -> None:
        """Until it stands still."""
        with open(self._says, closefd=False) as pipe:
            assert pipe.read(4) == "here", self.process.communicate()

    def go_on(self) -> None:
        os.write(self._go, b"!")

    def ended(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, out, err

    def close(self) -> None:
        os.close(self._go)  # whoever still waits goes on
        os.close(self._says)
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


@pytest.mark.parametrize("module", ["fanlight_broker.cli", "fanlight_broker.app", "uvloop", "fanlight_broker.logs"])
def test_a_sigterm_while_serve_imports_is_a_stop_in_order(tmp_path: Path, module: str) -> None:
    held = Held(tmp_path, module, "serve", *PORTS)
    try:
        held.process.send_signal(signal.SIGTERM)
        assert held.ended() == (Exit.OK, "", "")
    finally:
        held.close()


def test_a_sigterm_ends_another_command_as_shells_have_it(tmp_path: Path) -> None:
    held = Held(tmp_path, "fanlight_broker.cli", "check-config")
    try:
        held.process.send_signal(signal.SIGTERM)
        assert held.ended() == (Exit.TERMINATED, "", "")
    finally:
        held.close()


def test_an_interrupt_while_it_imports_leaves_no_traceback(tmp_path: Path) -> None:
    held = Held(tmp_path, "fanlight_broker.cli", "serve", *PORTS)
    try:
        held.process.send_signal(signal.SIGINT)
        assert held.ended() == (Exit.INTERRUPTED, "", "")
    finally:
        held.close()


def test_a_sigterm_is_ignored_where_whoever_started_it_ignores_it(tmp_path: Path) -> None:
    program = "from fanlight_broker import early; early.prepare([]); import signal; "
    command = f"trap '' TERM; exec {sys.executable} -c '{program}" \
              "print(signal.getsignal(signal.SIGTERM) is signal.SIG_IGN)'"  # fmt: skip
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=SECONDS)
    assert (done.stdout, done.stderr) == ("True\n", "")


UNSHARE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc")


def _may_unshare() -> bool:
    return shutil.which("unshare") is not None and subprocess.run(
        [*UNSHARE, "true"], capture_output=True, timeout=SECONDS
    ).returncode == 0  # fmt: skip


def test_a_sigterm_reaches_it_as_process_1_of_a_container(tmp_path: Path) -> None:
    # The kernel gives process 1 of a namespace only the signals that it handles: the others are lost.
    if not _may_unshare():
        pytest.skip("no PID namespaces for us here")
    held = Held(tmp_path, "fanlight_broker.cli", "serve", *PORTS, before=UNSHARE)
    try:
        (child,) = Path(f"/proc/{held.process.pid}/task/{held.process.pid}/children").read_text().split()
        os.kill(int(child), signal.SIGTERM)
        assert held.ended() == (Exit.OK, "", "")
    finally:
        held.close()


def test_it_handles_sigterm_before_it_imports_anything_else_of_the_broker(tmp_path: Path) -> None:
    held = Held(tmp_path, "fanlight_broker.cli", "serve", *PORTS)
    try:
        status = Path(f"/proc/{held.process.pid}/status").read_text()
        caught = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigCgt"))
        assert caught >> (signal.SIGTERM - 1) & 1
    finally:
        held.close()


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_it_serves_and_stops_in_order_with_a_closed_standard_stream(closed: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = f"exec {sys.executable} -m fanlight_broker serve {' '.join(PORTS)} --http-port {port}"
    process = subprocess.Popen(["sh", "-c", f"{command} {closed}"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while health.check(f"http://127.0.0.1:{port}", SECONDS) != Exit.OK:  # its log may go to a stream that is closed
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=SECONDS)
    assert (process.returncode, b"Assertion" in said) == (Exit.OK, False)


# Patches the interpreter that finds it: where HOLD says, the process says on one pipe that it is there, and waits.
HELD_AT_ITS_END = """\
import atexit, os, sys

def hold():
    os.write(int(os.environ["SAYS"]), b"here")
    os.read(int(os.environ["WAITS"]), 1)

class Stream:
    def __init__(self, below):
        self.below = below

    def write(self, text):
        if text.startswith("fanlightd:"):
            hold()
        return self.below.write(text)

    def __getattr__(self, name):
        return getattr(self.below, name)

class Last:  # deleted with the modules, when Python has taken its signal handlers away
    def __init__(self):
        says, waits, write, read = int(os.environ["SAYS"]), int(os.environ["WAITS"]), os.write, os.read
        self.hold = lambda: (write(says, b"here"), read(waits, 1))

    def __del__(self):
        self.hold()

match os.environ["HOLD"]:
    case "stderr":
        sys.stderr = Stream(sys.stderr)
    case "atexit":
        atexit.register(hold)
    case "teardown":
        last = Last()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("where", ["stderr", "atexit", "teardown"])
def test_a_signal_while_a_failed_start_exits_does_not_change_its_exit_code(
    tmp_path: Path, where: str, number: signal.Signals
) -> None:
    """It could be 143: Python gives signals back to the system before it takes itself down."""
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        port = str(occupied.getsockname()[1])
        held = Held(tmp_path, where, "serve", *PORTS, "--native-port", port, script=HELD_AT_ITS_END)
        try:
            held.process.send_signal(number)
            held.go_on()
            code, _, said = held.ended()
        finally:
            held.close()
    assert (code, port in said, "Traceback" in said) == (Exit.UNAVAILABLE, True, False)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("serve", "--frame-bytes-max", "x"), Exit.USAGE), (("check-config", "--frame-bytes-max", "x"), Exit.FAILED),
     (("version",), Exit.OK)],
)  # fmt: skip
def test_a_sigterm_at_the_end_of_any_command_does_not_change_its_exit_code(
    tmp_path: Path, arguments: tuple[str, ...], code: Exit
) -> None:
    for where in ("stderr", "atexit", "teardown"):
        if where == "stderr" and code is Exit.OK:
            continue  # it has nothing to complain about
        held = Held(tmp_path, where, *arguments, script=HELD_AT_ITS_END)
        try:
            held.process.send_signal(signal.SIGTERM)
            held.go_on()
            assert held.ended()[0] == code
        finally:
            held.close()


def test_a_second_sigterm_at_the_end_of_a_stop_in_order_leaves_it_one(tmp_path: Path) -> None:
    held = Held(tmp_path, "atexit", "serve", *PORTS, script=HELD_AT_ITS_END, wait=False)
    try:
        assert held.process.stdout is not None
        while '"ready"' not in (line := held.process.stdout.readline()):
            assert line, held.process.communicate()
        held.process.send_signal(signal.SIGTERM)
        held.wait()
        held.process.send_signal(signal.SIGTERM)
        held.go_on()
        code, _, said = held.ended()
    finally:
        held.close()
    assert (code, said) == (Exit.OK, "")
