"""`make fuzz`: the state machines of the matcher, for as long as one likes.

    python -m tests.fuzz.machines SECONDS

They are those of tests/matchcore/test_against_reference.py, with longer runs and other seeds each time: every call is
made to the index and to the plain oracle. Each machine forces what is rare with few filters: a bucket for each filter,
a pool of four; all of them make words die and their numbers be used again, ask topics that repeat words, of more words
than rows are kept for, with long, empty and `$` words, and let memory run out in the middle of an insert. What breaks
is made as short as it can be (that takes up to five minutes) and printed as a program, and the exit code is not 0; a
run that hangs for two minutes ends with a traceback.
"""

import faulthandler
import sys
import time
from itertools import cycle

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.matchcore.test_against_reference import MACHINES, Indexes

BATCH = 10  # examples of a machine, then the next one's turn
HANGS = 120  # seconds; a run takes half of one

LONG_RUNS = settings(
    max_examples=BATCH, stateful_step_count=60, deadline=None, database=None, print_blob=True,
    phases=[Phase.generate, Phase.shrink], suppress_health_check=list(HealthCheck),
)  # fmt: skip


def watched(machine: type[Indexes]) -> type[Indexes]:
    class Watched(machine):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            faulthandler.dump_traceback_later(HANGS, exit=True)
            super().__init__()

    return Watched


def main() -> None:
    """Runs the machines in turn until the time is over; raises what the first failure raises."""
    end = time.monotonic() + int(sys.argv[1])
    examples = 0
    for machine in cycle(MACHINES):
        if time.monotonic() > end:
            break
        run_state_machine_as_test(watched(machine), settings=LONG_RUNS)  # type: ignore[no-untyped-call]
        examples += BATCH
    faulthandler.cancel_dump_traceback_later()
    print(f"{examples} runs of {len(MACHINES)} machines, no difference")


if __name__ == "__main__":
    main()
