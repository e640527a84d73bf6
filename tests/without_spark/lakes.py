"""Archives for tests of tables with a log, and what a run of `compact` does with them."""

import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from fanlight_archive import Writer
from fanlight_spark.lakehouse import compacting
from fanlight_spark.lakehouse.delta import MessagesDelta
from tests.archive.messages import batch


def filled(folder: Path, rows: int, *, first: int = 0, size: int = 50, topic: str = "stock.AAPL") -> Path:
    """An archive with closed segments of `size` messages, the last one open."""
    writer = Writer(folder)
    for at in range(first, first + rows, size):
        if at > first:
            writer.roll()
        writer.append(batch(at, size, topic=topic))
    writer.abandon()
    return folder


def run(folder: Path, out: Path, **options: Any) -> list[compacting.Committed]:
    def opened(archive: str) -> MessagesDelta:
        about = {"archive": archive, "filter": options.get("filter"), "syntax": None}
        return MessagesDelta(str(out), about, {})

    return list(compacting.compact(folder, opened, **options))


def rows_of(out: Path) -> Any:
    return DeltaTable(str(out)).to_pyarrow_table().sort_by("offset")


def kill_somewhere(program: str, folder: Path, out: Path, chance: random.Random, lines: int) -> None:
    """Run a program that writes a line for each commit, and kill it behind one of these, or within the next."""
    command = [sys.executable, "-c", program, str(folder), str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        for _ in range(chance.randrange(1, lines)):
            killed.stdout.readline()
        for _ in range(chance.randrange(400_000)):  # some part of a commit's time
            pass
        killed.send_signal(signal.SIGKILL)
