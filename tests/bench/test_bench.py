"""`python -m bench`: scenarios against the broker and the null broker, its figures and its exit codes."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from bench import frames, procfs, report

pytest.importorskip("bench.generator", reason="needs epoll")
from bench.__main__ import FAULTY, NO_SERVER, OK, main
from bench.measure import Run, measure
from bench.null_server import start
from bench.scenarios import SCENARIOS
from bench.session import Target, expected
from tests.conftest import TestBroker

SHORT = ["--duration", "0.05", "--warmup", "0.02"]


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_every_scenario_runs_without_a_fault_against_the_null_broker(name: str) -> None:
    with start() as server:
        target = Target("127.0.0.1", server.addresses["native"][1], server.pid, null=True)
        run = measure(target, SCENARIOS[name], server=report.NULL, duration=0.05, warmup=0.02)
    assert run.ok, run
    assert run.checked > 0
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


def test_all_measures_the_broker_beside_the_null_broker(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["all", "fan-out", "receipts", "--repeats", "1", *SHORT]) == OK
    printed = json.loads(capsys.readouterr().out)
    ran = [(run["scenario"], run["server"]) for run in printed["runs"]]
    assert ran == [("fan-out", "null"), ("fan-out", "broker"), ("receipts", "null"), ("receipts", "broker")]
    assert all(run["checked"] > 0 for run in printed["runs"])
    assert {name: set(each["servers"]) for name, each in printed["scenarios"].items()} == {
        "fan-out": {"null", "broker"}, "receipts": {"null", "broker"},
    }  # fmt: skip


def test_figures_are_medians_and_ratios_to_the_null_broker() -> None:
    def run(server: str, rate: float, busy: float) -> Run:
        return Run(
            scenario="fan-out", server=server, seconds=1.0, messages=10, deliveries=1_000, checked=1_000,
            messages_per_second=rate / 100, deliveries_per_second=rate, broker_us_per_delivery=busy,
            broker_busy=0.5, generator_busy=0.95, generator_bound=True, others_busy=0.0,
            broker_resident_bytes=50_000_000, latency_us=None, faults={"lost": 0}, complaint="",
        )  # fmt: skip

    runs = [run("null", 4e6, 0.1), run("broker", 1e6, 0.3), run("broker", 2e6, 0.2), run("broker", 9e6, 0.9)]
    figures = report.summary(runs)
    assert figures["fan-out"]["servers"]["broker"]["deliveries_per_second"] == 2e6
    assert figures["fan-out"]["ratio_to_null"]["deliveries_per_second"] == pytest.approx(0.5)
    assert figures["fan-out"]["ratio_to_null"]["broker_us_per_delivery"] == pytest.approx(3.0)
    assert "95%*" in "\n".join(report.table(figures))


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_every_scenario_runs_without_a_fault_against_the_broker(module_broker: TestBroker, name: str) -> None:
    target = Target("127.0.0.1", module_broker.port, module_broker.pid)
    run = measure(target, SCENARIOS[name], server="broker", duration=0.1, warmup=0.02)
    assert run.ok, run
    assert run.checked > 0


def test_a_topic_in_the_other_spelling_is_measured_as_well(module_broker: TestBroker) -> None:
    scenario = replace(
        SCENARIOS["pairs"], topic=lambda i: f"dev/{i}.5/temp", filter=lambda i: f"+/{i}.5/#", syntax="mqtt"
    )
    run = measure(Target("127.0.0.1", module_broker.port), scenario, server="broker", duration=0.1, warmup=0.02)
    assert run.ok, run
    assert run.checked > 0


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
