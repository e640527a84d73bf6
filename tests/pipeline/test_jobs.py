"""What all jobs have in common: they are listed, and each says how it is used."""

import subprocess
import sys
from pathlib import Path

from pipeline.jobs.__main__ import jobs

FOLDER = Path(__file__).resolve().parents[2] / "pipeline" / "jobs"


def test_the_list_has_every_module_that_can_be_run() -> None:
    runnable = {path.stem for path in FOLDER.glob("*.py") if 'if __name__ == "__main__":' in path.read_text()}
    assert {name for name, _ in jobs()} == runnable - {"__main__"}


def test_the_list_is_printed_without_spark() -> None:
    # -S and a path of our own: no package is there but the project.
    command = [sys.executable, "-S", "-m", "pipeline.jobs"]
    done = subprocess.run(command, cwd=FOLDER.parents[1], capture_output=True, text=True, check=True, timeout=60)
    listed = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")]
    assert listed == [name for name, _ in jobs()]
