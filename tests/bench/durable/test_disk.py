"""The disk below a folder: its counters, a bare sync, sizes."""

import os
from pathlib import Path

import pytest

pytest.importorskip("fanlight_bench.load.generator", reason="needs epoll")
from fanlight_bench.durable import disk
from fanlight_bench.durable.disk import (
    PLACE_BYTES,
    RECORD_BYTES,
    RECYCLED_BYTES,
    BareSync,
    Device,
    Written,
    bare_reads,
    bytes_in,
    drop_cache,
)

PLACE = Path(__file__).parent


def device() -> Device:
    try:
        return Device.below(PLACE)
    except ValueError as error:
        pytest.skip(f"needs a checkout on a disk: {error}")


def test_a_device_has_a_name_and_a_file_system() -> None:
    about = device().about()
    assert about["device"]
    assert about["file_system"].split(" ")[0].isalnum()


def test_its_counters_never_fall() -> None:
    before = device().written()
    later = device().written().since(before)
    assert later.octets >= 0
    assert later.flushes is None or later.flushes >= 0


def test_flushes_that_the_kernel_does_not_count_are_not_known() -> None:
    assert Written(1_024, None).since(Written(512, None)) == Written(512, None)
    assert Written(1_024, 7).since(Written(512, 3)) == Written(512, 4)


def test_a_folder_without_a_disk_is_refused() -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir() or os.major(memory.stat().st_dev):
        pytest.skip("needs /dev/shm in memory")
    with pytest.raises(ValueError, match="choose another --folder"):
        Device.below(memory)


@pytest.mark.parametrize("recycled", [False, True])
def test_a_bare_sync_has_a_latency_and_leaves_nothing(tmp_path: Path, recycled: bool) -> None:
    with BareSync(tmp_path, recycled=recycled) as bare:
        bare.run(0.0)
        bare.run(0.0)
        (file,) = tmp_path.iterdir()
        assert file.stat().st_size == (RECYCLED_BYTES if recycled else 2 * RECORD_BYTES)
    figures = bare.figures()
    assert bare.times.total == 2
    assert 0 < figures["p50_us"] <= figures["p99_us"]
    assert figures["per_second"] > 0
    assert not list(tmp_path.iterdir())


def test_a_recycled_file_is_written_from_the_beginning_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "RECYCLED_BYTES", 2 * RECORD_BYTES)
    with BareSync(tmp_path, recycled=True) as bare:
        for _ in range(5):
            bare.run(0.0)
        (file,) = tmp_path.iterdir()
        assert file.stat().st_size == 2 * RECORD_BYTES


def test_bytes_in_a_folder_are_blocks_not_lengths(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    with (tmp_path / "below" / "sparse").open("wb") as file:
        file.truncate(2**30)
        file.write(b"x")
        file.flush()
        os.fsync(file.fileno())
    assert 0 < bytes_in(tmp_path) < 2**20


def test_dropping_the_cache_keeps_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 10_000)
    drop_cache(tmp_path)
    assert (tmp_path / "file").read_bytes() == b"x" * 10_000


@pytest.mark.parametrize("count", [1, 7])
def test_bare_reads_are_spread_over_all_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    paths = [tmp_path / name for name in ("first", "second")]
    for path in paths:
        path.write_bytes(bytes(10 * PLACE_BYTES))
    read: list[tuple[int, int]] = []
    pread = os.pread

    def noted(file: int, size: int, offset: int) -> bytes:
        read.append((file, offset))
        return pread(file, size, offset)

    monkeypatch.setattr(os, "pread", noted)
    assert bare_reads(paths, count) > 0
    assert len(set(read)) == count
    assert len({file for file, _ in read}) == min(count, len(paths))
