"""fanlightd with small files and frequent rounds, so that kills meet them: run by the harness.

With files of 64 MiB and rounds after 256 MiB, a broker that is killed each second never comes to its first round, and
reads its whole log each time.
"""

import sys
from functools import partial

from fanlight_broker import storing
from fanlight_broker.__main__ import main
from fanlight_broker.storage.checkpoint import Checkpoint
from fanlight_broker.storage.log import Log

SEGMENT_BYTES = 16 << 10
GARBAGE_BYTES = 32 << 10

if __name__ == "__main__":
    storing.Log = partial(Log, segment_bytes=SEGMENT_BYTES)  # type: ignore[misc, assignment]
    storing.Checkpoint = partial(Checkpoint, garbage_bytes=GARBAGE_BYTES)  # type: ignore[misc, assignment]
    sys.exit(main())
