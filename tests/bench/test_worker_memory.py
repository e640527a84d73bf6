"""What `pipeline --only memory` counts as a worker's own: not the pages of a file that somebody has just written."""

import mmap
import tempfile
from pathlib import Path

from fanlight_bench.pipeline.memory import own_memory

MIB = 1 << 20


def test_a_file_that_is_mapped_is_nobody_s_own_and_what_is_changed_in_it_is() -> None:
    with tempfile.NamedTemporaryFile(dir=Path(__file__).parent) as file:  # on a disk: a page that waits for it is dirty
        file.write(b"x" * (32 * MIB))
        file.flush()
        before, others_before = own_memory(Path("/proc/self/smaps").read_text())
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
            assert sum(mapped[:: mmap.PAGESIZE]) > 0
            private, others = own_memory(Path("/proc/self/smaps").read_text())
            assert private - before < 8 * 1024
            assert others - others_before > 24 * 1024
            for at in range(0, 16 * MIB, mmap.PAGESIZE):
                mapped[at] = 1
            changed, _ = own_memory(Path("/proc/self/smaps").read_text())
            assert 12 * 1024 < changed - private < 24 * 1024


def test_a_copy_is_one_s_own() -> None:
    before, _ = own_memory(Path("/proc/self/smaps").read_text())
    copy = bytearray(b"x" * (32 * MIB))
    private, _ = own_memory(Path("/proc/self/smaps").read_text())
    assert len(copy) // 1024 - 8 * 1024 < private - before
