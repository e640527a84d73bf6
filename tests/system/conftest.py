"""What several of the system tests use."""

import os
from collections.abc import Iterator

import pytest

from tests.conftest import TestBroker
from tests.system.shell import Shell


@pytest.fixture
def environment(module_broker: TestBroker) -> dict[str, str]:
    return {
        **os.environ,
        "FANLIGHT_URL": module_broker.url,
        "FANLIGHT_HTTP_URL": module_broker.http_url,
        "PYTHONIOENCODING": "utf-8",
    }


@pytest.fixture
def shell(environment: dict[str, str]) -> Iterator[Shell]:
    shell = Shell(environment)
    yield shell
    for process in shell.started:
        if process.poll() is None:
            process.kill()
        process.communicate()
