"""Starting a server: what is said when it does not come up."""

import socket
import time

import pytest

from fanlight_bench.__main__ import main as bench
from fanlight_bench.demo.__main__ import NO_BROKER
from fanlight_bench.demo.__main__ import main as demo
from fanlight_bench.launch import START_SECONDS, LaunchError, Patience, Server


@pytest.fixture(autouse=True)
def _patience_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Patience, "seconds", Patience.seconds)


def starting(script: str) -> str:
    """What the error says of a server that is this shell script."""
    with pytest.raises(LaunchError) as raised:
        Server(["sh", "-c", script], listeners=["native"])
    return str(raised.value)


def test_a_broker_is_waited_for_until_its_last_listener_is_open() -> None:
    script = """listening() { echo '{"event": "listening", "listener": "'$1'", "host": "::1", "port": 1}'; }
        listening native; sleep 0.2; listening amqp_tls; echo '{"event": "ready"}'; exec sleep 600"""
    with Server(["sh", "-c", script], listeners=["native"], says_ready=True) as server:
        assert set(server.addresses) == {"native", "amqp_tls"}


def test_a_minute_is_the_default() -> None:
    assert Patience.seconds == START_SECONDS == 60.0


def test_a_server_that_does_not_start_in_time_is_said_so_with_its_last_lines() -> None:
    Patience.parse("2")
    assert starting("echo thinking; echo still thinking >&2; exec sleep 600").endswith(
        "did not start within 2 s (--start-timeout); its last lines:\nthinking\nstill thinking"
    )


def test_a_server_that_has_written_nothing_is_said_to_have_written_nothing() -> None:
    Patience.parse("0.01")
    assert starting("exec sleep 600").endswith("did not start within 0.01 s (--start-timeout), and wrote nothing")


def test_a_server_that_ends_is_not_waited_for() -> None:
    began = time.monotonic()
    assert starting("echo sorry; exit 3").endswith("ended before it listened; its last lines:\nsorry")
    assert time.monotonic() - began < Patience.seconds


@pytest.mark.parametrize("command", ["demo", "bench"])
def test_the_time_out_is_settable_from_the_command_line(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = {"demo": lambda words: demo([*words, "--plain"]), "bench": lambda words: bench(["load", *words])}[command]
    assert run(["--start-timeout", "0.001"]) == NO_BROKER
    assert "did not start within 0.001 s (--start-timeout)" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["long", "0", "-1", "nan"])
def test_a_time_out_that_is_none_is_refused(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        demo(["--start-timeout", word])
    assert "must be a number of seconds above 0" in capsys.readouterr().err


@pytest.mark.parametrize("scheme", ["fanlight", "mqtt", "nats"])
def test_a_load_without_a_broker_names_the_address(scheme: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("fanlight_bench.load.generator", reason="needs epoll")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert bench(["load", "one-to-one", "--url", f"{scheme}://127.0.0.1:{port}"]) == NO_BROKER
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == f"bench: cannot connect to 127.0.0.1:{port}: Connection refused. Is the broker there?"
