"""pip, quietly, but for a line for each compiled module: `make: building 7 of 31: fanlight_broker.wire.fanout`.

    pip_progress.py install [what pip takes]

A build takes minutes, and pip says either nothing of it or everything. When pip fails, what it said last is shown.
"""

import os
import re
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path

BUILDING = re.compile(r"building '([\w.]+)' extension")  # setuptools' words, which pip passes on with --verbose
LINES_SHOWN = 100  # of a failed pip: a compiler's error and what led to it


def modules(arguments: Sequence[str]) -> int:
    """How many compiled modules there are in the projects that pip is asked to install: each .pyx is one."""
    folders = {Path(argument.partition("[")[0]) for argument in arguments}
    return sum(len([*folder.rglob("*.pyx")]) for folder in folders if (folder / "pyproject.toml").is_file())


def main(arguments: Sequence[str]) -> int:
    """Run pip with these arguments in the working directory; its exit code."""
    total, begun = modules(arguments), 0
    last: deque[str] = deque(maxlen=LINES_SHOWN)
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--verbose", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as pip:  # fmt: skip
        assert pip.stdout is not None
        for line in pip.stdout:
            last.append(line)
            if found := BUILDING.search(line):
                begun += 1
                print(f"make: building {begun} of {max(begun, total)}: {found[1]}", flush=True)
    if pip.returncode:
        sys.stderr.write("".join(last))
        print(f"make: pip failed with exit code {pip.returncode}; above are its last lines", file=sys.stderr)
    return pip.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
