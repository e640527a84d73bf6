"""The large rows, small: a backlog and a restart of Fanlight. In memory, all that waited is lost with the process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fanlight_bench.load.generator", reason="needs epoll")
from fanlight_bench.durable import waiting
from fanlight_bench.durable.brokers import KEEPERS, Keeper
from fanlight_bench.durable.disk import Device, Written
from fanlight_bench.durable.rows import Bounds

SMALL = Bounds(
    duration=0.05, warmup=0.01, backlog=200, backlog_sessions=20, shared_sessions=5, sessions=30, retained=40
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
    assert row["restart_seconds"] > 0


def test_messages_for_many_sessions_come_to_each(keeper: Keeper, tmp_path: Path) -> None:
    row = waiting.shared_backlog(keeper, tmp_path, SMALL)
    assert (row["checked"], row["faults"]) == (1_000, {})
    assert row["stored_per_second"] > 0


def test_a_restart_is_timed_with_sessions_and_retained_messages(keeper: Keeper, tmp_path: Path) -> None:
    row = waiting.restart(keeper, tmp_path, DEVICE, SMALL)
    assert row["faults"] == {}
    assert row["restart_seconds"] > 0
    assert (row["disk_bytes"] > 0) is (keeper.name == "fanlight")
