"""What systemd learns from a broker whose unit is `Type=notify` (sd_notify(3))."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import StartBroker

WAIT_SECONDS = 60  # for a datagram that must come


class Systemd:
    """The other end of NOTIFY_SOCKET."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._end.bind(str(path))
        self._end.settimeout(WAIT_SECONDS)

    def next(self) -> dict[str, str]:
        """The next datagram, as names and values."""
        return dict(line.split("=", 1) for line in self._end.recv(4096).decode().splitlines())

    def next_but_watchdog(self) -> dict[str, str]:
        while "WATCHDOG" in (said := self.next()):
            pass
        return said

    def close(self) -> None:
        self._end.close()


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[Systemd]:
    end = Systemd(tmp_path / "notify")
    yield end
    end.close()


def test_ready_reloading_and_stopping_are_reported(start_broker: StartBroker, systemd: Systemd) -> None:
    broker = start_broker(environment={"NOTIFY_SOCKET": str(systemd.path)})
    assert systemd.next() == {"READY": "1", "STATUS": "accepts clients"}
    os.kill(broker.pid, signal.SIGHUP)
    reloading = systemd.next()
    assert reloading["RELOADING"] == "1"
    assert int(reloading["MONOTONIC_USEC"]) > 0
    assert systemd.next()["READY"] == "1"
    os.kill(broker.pid, signal.SIGTERM)
    assert systemd.next()["STOPPING"] == "1"


def test_a_reload_that_changes_nothing_ends_as_well(
    start_broker: StartBroker, systemd: Systemd, tmp_path: Path
) -> None:
    file = tmp_path / "fanlight.toml"
    file.write_text("", encoding="utf-8")
    broker = start_broker(config=str(file), environment={"NOTIFY_SOCKET": str(systemd.path)})
    broker.may_complain = True  # of the setting
    assert systemd.next()["READY"] == "1"
    file.write_text("no_such_setting = 1\n", encoding="utf-8")
    os.kill(broker.pid, signal.SIGHUP)
    assert systemd.next()["RELOADING"] == "1"
    assert systemd.next()["READY"] == "1"


def test_the_watchdog_hears_from_the_loop_until_the_end(start_broker: StartBroker, systemd: Systemd) -> None:
    broker = start_broker(environment={"NOTIFY_SOCKET": str(systemd.path), "WATCHDOG_USEC": "100000"})
    assert systemd.next()["READY"] == "1"
    assert [systemd.next() for _ in range(5)] == [{"WATCHDOG": "1"}] * 5
    os.kill(broker.pid, signal.SIGTERM)
    assert systemd.next_but_watchdog()["STOPPING"] == "1"


def test_a_watchdog_of_another_process_hears_nothing(start_broker: StartBroker, systemd: Systemd) -> None:
    broker = start_broker(
        environment={"NOTIFY_SOCKET": str(systemd.path), "WATCHDOG_USEC": "1", "WATCHDOG_PID": str(os.getpid())}
    )
    assert systemd.next()["READY"] == "1"
    os.kill(broker.pid, signal.SIGTERM)
    assert systemd.next()["STOPPING"] == "1"


def test_a_socket_that_nobody_reads_from_is_logged_and_no_more(start_broker: StartBroker, tmp_path: Path) -> None:
    broker = start_broker(environment={"NOTIFY_SOCKET": str(tmp_path / "nobody")})
    assert broker.terminate() == 0
    assert [line for line in broker.lines if "supervisor_not_notified" in line and "READY=1" in line]
