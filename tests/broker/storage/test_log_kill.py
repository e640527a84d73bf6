"""kill -9 of a process that appends: what it had reported as synced is there, in order."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.broker.storage.logs import opened

APPENDER = """
import select, sys
from fanlight_broker.storage.log import Log

def progressed():
    print(log.synced, flush=True)

log = Log(sys.argv[1], progressed, segment_bytes=65536)
list(log.replay())
poll = select.poll()
poll.register(log.fileno(), select.POLLIN)
while True:
    for _ in range(20):
        log.append(1, b"%d " % (log.appended + 1) + bytes(200))
        log.append(2, b"second")
        log.seal()
    poll.poll()
    log.collect()
"""


@pytest.mark.parametrize("reports", [1, 2, 7, 40])
def test_what_was_reported_survives_a_kill(tmp_path: Path, reports: int) -> None:
    """Three lives on one folder; each ends in the middle of its work."""
    synced = 0
    for _ in range(3):
        command = [sys.executable, "-c", APPENDER, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            reported = [int(line) for line in itertools.islice(process.stdout, reports)]
            os.kill(process.pid, 9)
            reported += [int(line) for line in process.stdout if line.endswith("\n")]
        assert len(reported) >= reports
        assert reported == sorted(reported)
        assert reported[0] > synced
        one = opened(tmp_path, segment_bytes=65536)
        assert one.log.damage == []
        assert one.log.appended >= reported[-1]
        assert [sequence for sequence, _, _ in one.found[::2]] == list(range(1, one.log.appended + 1))
        for (sequence, _, first), (again, _, second) in zip(one.found[::2], one.found[1::2], strict=True):
            assert sequence == again
            assert first.startswith(b"%d " % sequence)
            assert second == b"second"
        synced = one.log.appended
        one.log.close()
