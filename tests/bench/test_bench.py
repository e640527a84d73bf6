"""`python -m bench`: scenarios against the null broker, and what its exit code says."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench import frames, procfs, report

pytest.importorskip("bench.generator", reason="needs epoll")
from bench.__main__ import FAULTY, NO_SERVER, OK, main
from bench.measure import measure
from bench.null_server import start
from bench.scenarios import SCENARIOS
from bench.session import Target, expected

SHORT = ["--duration", "0.05", "--warmup", "0.02"]


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_every_scenario_runs_without_a_fault_against_the_null_broker(name: str) -> None:
    with start() as server:
        target = Target("127.0.0.1", server.addresses["native"][1], server.pid, null=True)
        run = measure(target, SCENARIOS[name], server=report.NULL, duration=0.05, warmup=0.02)
    assert run.ok, run
    assert run.deliveries > 0
    assert server.process.returncode == 0


def test_five_of_the_wildcard_subscribers_match_each_topic() -> None:
    scenario = SCENARIOS["wildcard"]
    filters = [scenario.filter(number) for number in range(scenario.subscribers)]
    reached = [expected(scenario.topic(number), filters, "amqp") for number in range(scenario.topics)]
    assert {len(subscribers) for subscribers in reached} == {5}
    assert {subscriber for subscribers in reached for subscriber in subscribers} == set(range(50))


def test_the_command_prints_json_and_exits_with_zero(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["null", "pairs", "--publishers", "3", "--subscribers", "3", "--topics", "3", *SHORT]) == OK
    printed = json.loads(capsys.readouterr().out)
    figures = printed["scenarios"]["pairs"]["servers"]["null"]
    assert figures["runs"] == 1
    assert figures["faults"] == 0
    assert printed["runs"][0]["faults"]["lost"] == 0


def test_the_command_fails_when_something_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    with forgetful_server() as port:
        assert main(["native", "one-to-one", "--port", str(port), *SHORT]) == FAULTY
    assert "closed_by_broker" in capsys.readouterr().err


def test_the_command_says_so_when_there_is_no_server(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert main(["native", "one-to-one", "--port", str(port), *SHORT]) == NO_SERVER
    assert "refused" in capsys.readouterr().err


def test_what_the_server_says_on_refusing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with forgetful_server(welcome=frames.encode(frames.ERROR, None, "authentication_failed", "who?")) as port:
        assert main(["native", "one-to-one", "--port", str(port), *SHORT]) == NO_SERVER
    assert "authentication_failed" in capsys.readouterr().err


def test_the_processor_time_of_a_process_is_known() -> None:
    with start() as server:
        before = procfs.process_seconds(server.pid)
        target = Target("127.0.0.1", server.addresses["native"][1], server.pid, null=True)
        measure(target, SCENARIOS["fan-out"], server=report.NULL, duration=0.05, warmup=0.0)
        after = procfs.process_seconds(server.pid)
        assert before is not None
        assert after is not None
        assert after > before
    assert procfs.process_seconds(server.pid) is None


@contextmanager
def forgetful_server(welcome: bytes | None = None) -> Iterator[int]:
    """A server that completes the handshakes and closes when a message comes, without delivering it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener:
            subscriber, _ = listener.accept()
            with subscriber:
                frames.expect(subscriber, frames.HELLO)
                subscriber.sendall(welcome or frames.encode(frames.WELCOME, 1, {}))
                if welcome:
                    return
                frames.expect(subscriber, frames.SUBSCRIBE)
                subscriber.sendall(frames.encode(frames.OK, 1))
                publisher, _ = listener.accept()
                with publisher:
                    frames.expect(publisher, frames.HELLO)
                    publisher.sendall(frames.encode(frames.WELCOME, 1, {}))
                    frames.expect(publisher, frames.PUBLISH)

    thread = threading.Thread(target=serve)
    thread.start()
    yield listener.getsockname()[1]
    thread.join(10)
    assert not thread.is_alive()
