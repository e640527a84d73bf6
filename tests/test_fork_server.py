"""A forked broker is as one that its command has started."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from fanlight_bench.launch import LaunchError, fanlightd
from fanlight_broker.config.exits import Exit
from tests.conftest import StartBroker
from tests.fork_server import ForkedProcess, can_fork


def test_its_place_arguments_and_environment(
    start_broker: StartBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FANLIGHT_NATIVE_PORT", "1")  # ours, not its
    broker = start_broker(data="kept", environment={"FANLIGHT_PASSWORD": "sesame"})
    assert isinstance(broker.process, ForkedProcess)
    assert (tmp_path / "kept").is_dir()
    assert broker.port != 1
    process = Path(f"/proc/{broker.pid}")
    assert {os.readlink(process / "fd" / number) for number in "12"} == {os.readlink(process / "fd" / "1")}
    assert os.readlink(process / "fd" / "0") == os.devnull
    ignored = int((process / "status").read_text().partition("SigIgn:\t")[2].split()[0], 16)
    assert not ignored & 1 << signal.SIGINT - 1
    assert not ignored & 1 << signal.SIGCHLD - 1


def test_how_it_ended(start_broker: StartBroker, tmp_path: Path) -> None:
    assert start_broker().terminate() == 0
    killed = start_broker()
    killed.kill()
    assert killed.process.returncode == -signal.SIGKILL
    with pytest.raises(LaunchError, match="data"):
        start_broker(data="/proc/nowhere/data")
    refused = ForkedProcess([fanlightd(), "serve", "--no-such-flag"], {"PATH": os.environ["PATH"]})
    assert refused.wait() == Exit.USAGE
    assert refused.stdout is not None
    assert "--no-such-flag" in refused.stdout.read()
    refused.stdout.close()


def test_a_wait_has_an_end(start_broker: StartBroker) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        start_broker().process.wait(0.01)


def test_what_is_read_before_the_first_import_is_not_forked(start_broker: StartBroker) -> None:
    assert not can_fork({"PYTHONHASHSEED": "1"})
    broker = start_broker(environment={"PYTHONHASHSEED": "1"})
    assert not isinstance(broker.process, ForkedProcess)
