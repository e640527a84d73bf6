"""Simulate many seeds and print JSON: `make simulate SEEDS=1000`, or FROM:TO for seeds from and up to.

A seed that fails is printed with what was broken, and fails again in the same way when it is run alone: SEEDS=17:18.
"""

import argparse
import json
import sys
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory

from fanlight_broker import event_log
from tests.captured_logs import Silence
from tests.simulation.simulation import Simulation

# Syncs are simulated: a file system in memory is as good, and quicker.
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("seeds", nargs="?", default="1000", help="how many, or FROM:TO")
    arguments = parser.parse_args()
    first, _, end = arguments.seeds.rpartition(":")
    event_log.use(Silence())
    counted = "seeds", "events", "deliveries_due", "cuts", "standstills", "clocks", "kills", "rounds", "compactions"
    totals = dict.fromkeys(counted, 0)
    failed: dict[int, str] = {}
    for seed in range(int(first or 0), int(end)):
        totals["seeds"] += 1
        with TemporaryDirectory(prefix="fanlight-simulation-", dir=IN_MEMORY) as folder:
            simulation = Simulation(seed, Path(folder))
            try:
                totals["deliveries_due"] += simulation.run()
            except Exception:  # whatever it is, it is this seed's result
                failed[seed] = traceback.format_exc(limit=-3)
        totals["events"] += simulation.events
        totals["cuts"] += simulation.cuts
        totals["standstills"] += simulation.standstills
        totals["clocks"] += simulation.clocks
        totals["kills"] += simulation.kills
        totals["rounds"] += simulation.rounds
        totals["compactions"] += simulation.compactions
    json.dump({**totals, "failed": failed}, sys.stdout, indent=1)
    print()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
