"""Programs with a Spark of their own that are killed where they stand."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

STUCK_SECONDS = 240  # to get there: the start of a JVM on a busy machine takes a minute


def environment() -> dict[str, str]:
    """For another Python that is to find what this one finds."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def run_until_stuck(program: str, *arguments: object, work: Path) -> None:
    """Run a program until it has written "reached" into the FIFO work/reached, then kill it: SIGKILL to the driver, its
    JVM and its workers."""
    os.mkfifo(work / "reached")
    with (work / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=environment(),
        )  # fmt: skip
    reached = os.open(work / "reached", os.O_RDONLY | os.O_NONBLOCK)
    try:
        ready, _, _ = select.select([reached], [], [], STUCK_SECONDS)  # it ends, too, when the last writer has gone
        assert ready, (work / "log").read_text(errors="replace")[-4000:]
        assert os.read(reached, 100) == b"reached"
    finally:
        os.close(reached)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
