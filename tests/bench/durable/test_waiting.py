"""The large rows, small: a backlog and a restart of Fanlight. In memory, all that waited is lost with the process."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("fanlight_bench.load.generator", reason="needs epoll")
from fanlight_bench.durable import rows, waiting
from fanlight_bench.durable.brokers import KEEPERS, Keeper
from fanlight_bench.durable.disk import BareSync, Device, Written
from fanlight_bench.durable.rows import Bounds
from fanlight_bench.load.speaker import Refused

pytestmark = pytest.mark.release

SMALL = Bounds(
    duration=0.05, warmup=0.01, fill_bytes=100_000, backlog=200, backlog_sessions=20, shared=200, shared_sessions=5,
    sessions=30, retained=40, restart_backlog=200,
)  # fmt: skip
AT_ONCE = Bounds(duration=0.05, warmup=0.01, drain=0.0, backlog=200, backlog_sessions=20)



class Still(Device):
    """A device that writes nothing, for folders that are on no disk."""

    def written(self) -> Written:
        return Written(0, 0)


DEVICE = Still(Path("/nowhere"), "none", "none")


@pytest.fixture(params=[name for name in ("fanlight", "fanlight-memory") if KEEPERS[name].there()])
def keeper(request: pytest.FixtureRequest) -> Iterator[Keeper]:
    return KEEPERS[request.param]


def test_a_backlog_is_there_after_a_kill_or_is_reported_lost(keeper: Keeper, tmp_path: Path) -> None:
    kept = keeper.name == "fanlight"
    row = waiting.backlog(keeper, tmp_path, DEVICE, SMALL if kept else AT_ONCE)
    assert (row["faults"] == {}) is kept
    assert row["faults"].get("lost", 0) >= (0 if kept else 200)
    assert row["checked"] == (200 if kept else 0)
    assert kept or row["disk_bytes_per_byte"] <= 0  # few messages fit into segments that are there already
    assert ("bare_reads_per_second" in row) is kept
    assert row["restart_seconds"] > 0


def test_messages_for_many_sessions_come_to_each(keeper: Keeper, tmp_path: Path) -> None:
    row = waiting.shared_backlog(keeper, tmp_path, SMALL)
    assert (row["checked"], row["faults"]) == (1_000, {})
    assert row["stored_per_second"] > 0


def test_a_rate_is_measured_when_the_store_has_written_so_much(keeper: Keeper, tmp_path: Path) -> None:
    with keeper.peer.start(tmp_path, None) as up:
        row = rows.rates(keeper, up, DEVICE, SMALL, "filled", 2, 5, filled=True)
        assert row["faults"] == {}
        assert row.get("device_bytes_per_byte_first") == (0 if keeper.name == "fanlight" else None)
        written = rows.metric(up, rows.WRITTEN)
        assert written is None if keeper.name == "fanlight-memory" else (written or 0) >= SMALL.fill_bytes


class Halt(BareSync):
    """Halts the broker where a bare fdatasync would take its turn."""

    def __init__(self, folder: Path, pid: int) -> None:
        super().__init__(folder, recycled=False)
        self._pid = pid

    def run(self, seconds: float) -> None:
        os.kill(self._pid, signal.SIGSTOP)


def test_there_is_no_rate_of_no_message(keeper: Keeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "SLICES", 1)
    hasty = replace(SMALL, patience=0.0)
    with keeper.peer.start(tmp_path, None) as up, Halt(tmp_path, up.pid) as halt:
        try:
            with pytest.raises(Refused, match="no message acknowledged within 0 s"):
                rows.rates(keeper, up, DEVICE, hasty, "halted", 2, 5, [halt])
        finally:
            os.kill(up.pid, signal.SIGCONT)


def test_a_rate_is_measured_until_a_message_is_acknowledged(keeper: Keeper, tmp_path: Path) -> None:
    no_time = replace(SMALL, duration=0.0, warmup=0.0)
    with keeper.peer.start(tmp_path, None) as up:
        row = rows.rates(keeper, up, DEVICE, no_time, "short", 2, 5)
    assert row["messages_per_second"] > 0
    assert row["faults"] == {}


def test_a_log_that_is_not_filled_in_time_is_an_error(tmp_path: Path) -> None:
    keeper, hasty = KEEPERS["fanlight"], replace(SMALL, filling=0.0)
    with keeper.peer.start(tmp_path, None) as up, pytest.raises(Refused, match="not filled within 0 s"):
        rows.rates(keeper, up, DEVICE, hasty, "filled", 2, 5, filled=True)


def test_a_restart_is_timed_with_sessions_and_retained_messages(keeper: Keeper, tmp_path: Path) -> None:
    row = waiting.restart(keeper, tmp_path, DEVICE, SMALL)
    assert row["faults"] == {}
    assert row["restart_seconds"] > 0
    assert (row["disk_bytes"] > 0) is (keeper.name == "fanlight")
