"""The broker as the tests get it: a real process, on free ports of the loopback interface.

    def test_something(broker): ...                        a broker of its own, with default settings
    def test_other(start_broker): start_broker(slow_policy="drop_newest", outbox_bytes_max=65536)
    def test_third(module_broker): ...                     one for all tests of the file

At the end it is sent SIGTERM and must exit within fanlight_bench.launch.STOP_SECONDS with code 0; a test also fails
when its broker logged an error or a traceback. A test that provokes one sets `may_complain` on its broker.
"""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fanlight_bench.launch import Broker, clean_environment, fanlightd
from fanlight_broker import event_log
from tests.certificates import Certificates
from tests.fork_server import ForkedProcess, can_fork

StartBroker = Callable[..., "TestBroker"]


class TestBroker(Broker):
    """A broker under test."""

    __test__ = False
    may_complain = False

    def _start(self, environment: dict[str, str]) -> subprocess.Popen[str]:
        if self.command[0] != fanlightd() or not can_fork(environment):
            return super()._start(environment)
        return ForkedProcess(self.command, clean_environment() | environment)

    def finish(self) -> None:
        """Stop it, unless the test has; fail when it did not stop cleanly or has complained."""
        if self.process.poll() is None:
            code = self.terminate()
            assert code == 0, f"the broker exited with {code}:\n" + "\n".join(self.lines)
        else:
            self.wait()
        if not self.may_complain:
            complaints = self.complaints()
            assert not complaints, "the broker complained:\n" + "\n".join(complaints)


def _factory(stack: ExitStack) -> StartBroker:
    def start(**settings: object) -> TestBroker:
        broker = TestBroker(**settings)  # type: ignore[arg-type]
        stack.callback(broker.finish)
        return broker

    return start


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the workers of a run of tests share."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"


@pytest.fixture
def start_broker() -> Iterator[StartBroker]:
    """Starts brokers: keywords are flags of `fanlightd serve`, and `cpu`, `environment`."""
    with ExitStack() as stack:
        yield _factory(stack)


@pytest.fixture
def broker(start_broker: StartBroker) -> TestBroker:
    """A broker of this test's own."""
    return start_broker()


@pytest.fixture(scope="module")
def start_module_broker() -> Iterator[StartBroker]:
    """Starts brokers that live as long as the tests of this file."""
    with ExitStack() as stack:
        yield _factory(stack)


@pytest.fixture(scope="module")
def module_broker(start_module_broker: StartBroker) -> TestBroker:
    """One broker for all tests of this file: they keep apart by their topics."""
    return start_module_broker()


@pytest.fixture(scope="session")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """A CA and its certificates for all tests, which leave the files as they are."""
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    """A CA and its certificates for this test, which may change the files."""
    return Certificates(tmp_path)


@pytest.fixture(autouse=True)
def logs_are_nobody_elses() -> Iterator[None]:
    """A test that sets up logging does so for itself: the next one in this process finds it as it was."""
    yield
    event_log.use(None)
