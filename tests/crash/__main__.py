"""Kill a broker many times and print JSON: `make crash-test KILLS=1000`.

    python -m tests.crash 1000 --seed 7 --folder /tmp/crash

The log of the broker stays in the folder when a promise was broken. Exit code 1: one was.
"""

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

from fanlight_bench.launch import Patience
from tests.crash.harness import CrashRun

START_SECONDS = 120.0  # that a start may take: the machine may have other work for an hour


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("kills", nargs="?", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="of the store; default: a new one, removed if all is well")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="fanlight-crash-"))
    Patience.seconds = START_SECONDS
    run = CrashRun(folder, options.kills, options.seed, lambda line: print(line, file=sys.stderr, flush=True))
    began, broken = time.monotonic(), ""
    try:
        asyncio.run(run.run())
    except Exception:  # whatever it is, it is the result
        broken = traceback.format_exc()
    summary = {
        "seed": options.seed, **run.history.summary, "rounds": run.rounds, **run.network.queues.summary,
        "seconds": round(time.monotonic() - began), "broker complaints": run.complaints[:20], "broken": broken,
    }  # fmt: skip
    json.dump(summary, sys.stdout, indent=1)
    print()
    if not (broken or run.complaints) and options.folder is None:
        shutil.rmtree(folder)
    return 1 if broken or run.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
