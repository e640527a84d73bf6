"""`python -m fanlight_bench amqp`: its loads against a broker, its counting, its ratios."""

import json
import socket
import struct

import pytest

from fanlight_bench.amqp import __main__ as amqp
from fanlight_bench.amqp.holding import HOLDING, bars_of
from fanlight_bench.amqp.link import CONFIRM, AmqpLink, BrokerAnswered, Confirms, Deliveries
from fanlight_bench.amqp.loads import LOADS
from fanlight_bench.amqp.tables import tables
from fanlight_bench.load import command


def test_loads_run_and_the_report_has_each(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["one-to-one", "acknowledged", "fan-out-stored", "durable", "headers-100"]
    assert amqp.main(["--only", "fanlight", "--rounds", "1", "--scale", "0.005", "--loads", ",".join(names)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [row["load"] for row in report["runs"]] == names
    assert all(row["us_per_delivery"] > 0 for row in report["runs"])
    # Of the disk, where the folder is on one.
    assert {row["load"] for row in report["runs"] if "flushes" in row} <= {"durable"}
    assert all(row["messages_per_flush"] > 0 for row in report["runs"] if row.get("flushes"))
    assert set(report["ratios"]) == set(names)


def test_what_a_broker_holds_is_measured_and_has_its_bars(capsys: pytest.CaptureFixture[str]) -> None:
    names = [load.name for load in HOLDING if load.name != "ready"]  # "ready-no-data" is the same, but for the folder
    assert amqp.main(["--only", "fanlight", "--rounds", "1", "--scale", "0.002", "--loads", ",".join(names)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {name: set(figures) for name, figures in report["bars"].items()} == {
        load.name: {bar.figure for bar in load.bars} for load in HOLDING if load.name != "ready"
    }
    assert report["bars"]["bindings"]["seconds"]["most"] == 2.0
    assert report["bars"]["ready-durable"]["drained_per_second"]["fanlight"] > 0


def test_bars_beside_another_broker() -> None:
    (ready,) = (load for load in HOLDING if load.name == "ready")
    runs = [
        {"load": "ready", "broker": broker, "drained_per_second": figure, "resident_bytes": 5.0}
        for broker, figure in (("fanlight", 50.0), ("fanlight", 70.0), ("rabbitmq", 6.0))
    ] + [{"load": "ready", "broker": "rabbitmq", "error": "closed"}]
    assert bars_of(runs, ready, amqp.BROKERS) == {
        "drained_per_second": {"fanlight": 60.0, "rabbitmq": 6.0, "ratio": 10.0, "bar": 10},
        "resident_bytes": {"fanlight": 5.0, "rabbitmq": 5.0, "most": 100 * 1024 * 1024},
    }


def test_a_ratio_is_that_of_the_medians_and_a_failed_run_has_none() -> None:
    runs = [
        {"load": "one-to-one", "broker": broker, "us_per_delivery": figure}
        for broker, figures in (("fanlight", (1.0, 2.0, 9.0)), ("rabbitmq", (100.0, 50.0, 60.0)))
        for figure in figures
    ]
    runs += [{"load": "durable", "broker": "fanlight", "error": "closed"}]
    assert amqp.ratios(runs) == {
        "one-to-one": {"fanlight": 2.0, "rabbitmq": 60.0, "ratio": 30.0, "bar": 40}
    }


def test_of_two_configurations_of_rabbitmq_the_better_one_is_compared() -> None:
    runs = [
        {"load": "durable", "broker": broker, "us_per_delivery": us, "messages_per_second": rate}
        for broker, us, rate in zip(amqp.BROKERS, (2.0, 60.0, 40.0), (500.0, 100.0, 50.0), strict=True)
    ]
    durable = amqp.ratios(runs)["durable"]
    assert (durable["ratio"], durable["rate_ratio"], durable["rate_bar"]) == (20.0, 5.0, 4)
    (ready,) = (load for load in HOLDING if load.name == "ready")
    runs = [
        {"load": "ready", "broker": broker, "drained_per_second": rate, "resident_bytes": 4.0 * 1024 * 1024}
        for broker, rate in zip(amqp.BROKERS, (60.0, 3.0, 4.0), strict=True)
    ]
    bars = {"ready": bars_of(runs, ready, amqp.BROKERS)}
    assert bars["ready"]["drained_per_second"]["ratio"] == 15.0
    said = tables({"ratios": {"durable": durable}, "bars": bars}).splitlines()
    assert said[2:4] == [
        "| durable, persistent, confirms by 100, acknowledged by 50 | 2 µs | 60 µs | 40 µs | 20 | 10 |",
        "| the same, messages a second | 500 | 100 | 50 | 5 | 4 |",
    ]
    load = "1,000,000 ready messages (RabbitMQ: 300,000), transient"
    assert said[-2:] == [
        f"| {load} | drained a second | 60 | 3 | 4 | 15 times, of 10 |",
        f"| {load} | process with them | 4 MiB | 4 MiB | 4 MiB | ≤ 100 MiB |",
    ]


def test_each_load_has_its_row_in_the_tables() -> None:
    ratios = {load.name: {"fanlight": 1.5} for load in LOADS}
    bars = {load.name: {bar.figure: {"fanlight": 5.0} for bar in load.bars} for load in HOLDING}
    rows = [line for line in tables({"ratios": ratios, "bars": bars}).splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(ratios) + 1 + 2 + sum(map(len, bars.values()))


def test_a_load_that_nobody_knows_is_a_wrong_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert amqp.main(["--loads", "no-such"]) == 2
    assert "no load is called 'no-such'" in capsys.readouterr().err


def test_bench_load_speaks_amqp(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--protocol", "amqp", "--duration", "0.2", "--warmup", "0", "--subscribers", "3", "--topics", "2"]
    assert command.main(["fan-out", *arguments]) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert result["delivered"] > 0
    assert command.main(["requests", *arguments[:2]]) == 3
    assert "by amqp:// there are streams alone" in capsys.readouterr().err


class Fed(AmqpLink):
    """A connection whose input is in the test's hand."""

    def __init__(self) -> None:
        self.socket, self.other = socket.socketpair()
        self.socket.setblocking(False)
        self._buffer = b""


def test_confirms_count_once_in_any_order() -> None:
    link = Fed()
    confirms = Confirms(link)

    def confirm(tag: int, multiple: int, number: int = 80) -> bytes:
        return CONFIRM.pack(1, 1, 13, 60, number, tag, multiple, 0xCE)

    octets = confirm(3, 0) + confirm(2, 1) + confirm(5, 0)
    link.other.sendall(octets[:30])
    confirms.read()
    assert confirms.count == 1
    link.other.sendall(octets[30:])
    confirms.read()
    assert confirms.count == 4
    link.other.sendall(confirm(6, 0, 120))
    with pytest.raises(BrokerAnswered, match="method 60,120"):
        confirms.read()
    for each in (link.socket, link.other):
        each.close()


def test_deliveries_are_acknowledged_together() -> None:
    link = Fed()
    deliveries = Deliveries(link, 10, 2, others=5)
    link.other.sendall(bytes(5 + 10 + 7))
    deliveries.read()
    assert deliveries.count == 1
    link.other.sendall(bytes(3))
    deliveries.read()
    assert deliveries.count == 2
    assert link.other.recv(100)[11:20] == struct.pack(">QB", 2, 1)
    for each in (link.socket, link.other):
        each.close()
