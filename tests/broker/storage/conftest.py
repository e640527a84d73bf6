"""Brokers with an archive or a store, stopped at the end of their test."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker.storage.archived import Archived
from tests.broker.storage.stored_world import OPENED


@pytest.fixture(autouse=True)
def _logs_closed() -> Iterator[None]:
    """A world is part of circles: its files would stay open until the garbage collector runs."""
    yield
    while OPENED:
        OPENED.pop().log.close()


@pytest.fixture
def made(tmp_path: Path) -> Iterator[list[Archived]]:
    """The archives that a test has made, to be stopped at its end."""
    archives: list[Archived] = []
    yield archives
    for archived in archives:
        archived.disk.full = archived.disk.rotten = False
        archived.archive.stop()


@pytest.fixture
def build(made: list[Archived], tmp_path: Path) -> Any:
    def build(*, folder: str = "archive", **options: Any) -> Archived:
        made.append(Archived(tmp_path / folder, **options))
        return made[-1]

    return build
