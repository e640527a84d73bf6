"""`python -m fanlight_bench start`: how long a broker takes to listen, what that costs, and its memory at rest.

    python -m fanlight_bench start                       ten starts with the default listeners: JSON on standard output
    python -m fanlight_bench start --runs 3 --no-http    what follows the options goes to `fanlightd serve`

The time is from before the process is started until it has said that it listens everywhere. Its modules are compiled
before, as those of an installed broker are. On a busy machine its minimum says more than its median, and processor time
more than both. Memory is measured when it is ready and nobody has connected.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

from fanlight_bench.launch import PORTS, Server, byte_code, fanlightd
from fanlight_bench.machine import machine
from fanlight_bench.procfs import process_seconds, resident_bytes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m fanlight_bench start", description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--runs", type=int, default=10, help="how many starts (%(default)d)")
    options, rest = parser.parse_known_args(arguments)
    if options.runs < 1:
        parser.error("--runs must be 1 or more")
    runs = [start(rest) for _ in range(options.runs)]
    report: dict[str, Any] = {"machine": machine(), "runs": len(runs), "arguments": rest}
    for name in runs[0]:
        values = [value for run in runs if (value := run[name]) is not None]
        report[name] = {"least": min(values), "median": statistics.median(values)} if values else None
    json.dump(report, sys.stdout, indent=1)
    sys.stdout.write("\n")
    return 0


def start(arguments: Sequence[str]) -> dict[str, float | None]:
    """Start a broker and stop it. Raises LaunchError."""
    command = [fanlightd(), "serve", *(f"--{name.replace('_', '-')}=0" for name in PORTS), "--log-format", "json"]
    environment = byte_code()
    begun = time.perf_counter()
    with Server([*command, *arguments], listeners=(), environment=environment) as server:
        server.wait_for(lambda: any('"event": "ready"' in line for line in server.lines), 60.0)
        seconds = time.perf_counter() - begun
        resident = resident_bytes(server.pid)
        return {
            "seconds_to_listening": round(seconds, 4),
            "cpu_seconds": _rounded(process_seconds(server.pid)),
            "resident_mb": None if resident is None else round(resident / 1e6, 2),
        }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)


if __name__ == "__main__":
    raise SystemExit(main())
