"""A Kafka for the tests: librdkafka's own mock cluster, which lives in a client of this process.

It speaks the protocol, and keeps records, offsets of groups and transactional producers. What it does not: abort (the
records of an aborted or broken-off transaction stay visible), fencing, and topics made by the administration API.
docs/pipeline-kafka.md says how the bridges were tried where these are there.
"""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from tests.kafka.peer import MockKafka
from tests.pipeline.conftest import fill

NUMBERS: Final = count()


@pytest.fixture(scope="session")
def mock_kafka() -> Iterator[MockKafka]:
    """One cluster for all tests, which keep apart by the names of topics and bridges."""
    with MockKafka() as cluster:
        yield cluster


@pytest.fixture
def fresh(mock_kafka: MockKafka) -> Callable[[str], str]:
    """Names of topics that are this test's own."""
    number = next(NUMBERS)
    return lambda name: mock_kafka.topic(f"t{number}-{name}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of an archive with 1,000 messages in ten batches and three segments, the last of them open."""
    path = tmp_path / "archive"
    fill(path, 0, 1_000, roll=400)
    return path
