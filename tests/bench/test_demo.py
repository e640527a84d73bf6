"""The demo: its sample, its bookkeeping, and a whole run against a real broker."""

import gzip
import os
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fanlight_archive import Archive
from fanlight_bench.data import make_sample
from fanlight_bench.demo import quotes, screen
from fanlight_bench.demo.__main__ import FAULTY, NO_BROKER, OK, accounts, main
from fanlight_bench.demo.hints import WHERE, hints
from fanlight_bench.demo.ledger import Account, Ledger
from fanlight_bench.demo.ports import usual_if_free
from fanlight_bench.demo.quotes import Quote
from tests import require
from tests.conftest import TestBroker

APPLE = Quote("2018-01-02", "stock.nasdaq.AAPL", "amqp", b"{}")
BERKSHIRE = Quote("2018-01-02", "stock/nyse/BRK.B", "mqtt", b"{}")


def test_a_ticker_with_a_dot_is_one_word() -> None:
    assert quotes.topic("nasdaq", "AAPL") == ("stock.nasdaq.AAPL", "amqp")
    assert quotes.topic("nyse", "BRK.B") == ("stock/nyse/BRK.B", "mqtt")


def test_the_sample_has_every_ticker_of_every_day() -> None:
    sample = list(quotes.read())
    assert len(sample) == 13_130
    assert len({quote.day for quote in sample}) == 26
    assert len({quote.topic for quote in sample}) == 505
    assert [quote.day for quote in sample] == sorted(quote.day for quote in sample)


def test_the_sample_is_what_its_script_makes(tmp_path: Path) -> None:
    folder = require.data("market").parent
    sample = tmp_path / "sample.csv.gz"
    make_sample.make(folder, sample)
    assert gzip.decompress(sample.read_bytes()) == gzip.decompress(make_sample.SAMPLE.read_bytes())


def test_the_ledger_expects_what_the_filters_match() -> None:
    ledger = Ledger(accounts())
    ledger.publish(APPLE)
    ledger.publish(BERKSHIRE)
    due = {account.filter: [quote.topic for quote in account.due] for account in ledger.accounts}
    assert due == {
        "stock.#": [APPLE.topic, BERKSHIRE.topic],
        "stock.nasdaq.*": [APPLE.topic],
        "stock/nyse/+": [BERKSHIRE.topic],
        "stock.*.AAPL": [APPLE.topic],
        "stock.nasdaq.MSFT": [],
        "stock/nyse/BRK.B": [BERKSHIRE.topic],
    }


def test_the_ledger_sees_what_is_missing_doubled_and_out_of_order() -> None:
    ledger = Ledger([Account("#", "amqp", "everything")])
    ledger.publish(APPLE)
    ledger.publish(BERKSHIRE)
    account = ledger.accounts[0]
    account.receive(BERKSHIRE.topic, BERKSHIRE.payload)
    assert (ledger.due, ledger.wrong) == (2, 1)
    account.receive(APPLE.topic, APPLE.payload)
    account.receive(APPLE.topic, APPLE.payload)
    assert (ledger.due, ledger.wrong) == (1, 2)


def test_the_screen_shows_messages_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    rich = pytest.importorskip("rich", reason="the table needs rich")
    ledger = Ledger([Account("#", "amqp", "everything")])
    ledger.publish(APPLE)
    ledger.accounts[0].receive(APPLE.topic, b"[bold]189.95[/]")
    rich.print(screen.page(ledger, screen.Rates().look(ledger)))
    shown = capsys.readouterr().out
    assert "stock.nasdaq.AAPL [bold]189.95[/]" in shown
    assert "everything" in shown


def test_the_demo_replays_the_sample_and_loses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--speed", "0", "--plain"]) == OK
    said = capsys.readouterr().out
    assert "13,130 published" in said
    assert "nothing lost, nothing twice, all in order" in said


def test_the_demo_keeps_all_of_it_in_an_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "archive"
    assert main(["--speed", "0", "--plain", "--archive", str(folder)]) == OK
    assert f"in the archive {folder}" in capsys.readouterr().out
    with Archive(folder) as kept:
        rows = [row for batch in kept.read() for row in batch.select(["topic", "syntax", "value"]).to_pylist()]
    assert rows == [{"topic": q.topic, "syntax": q.syntax, "value": q.payload} for q in quotes.read()]


def test_the_demo_takes_the_usual_ports_where_all_are_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        ports = {"native_port": one.getsockname()[1], "http_port": other.getsockname()[1]}
        other.close()
        assert usual_if_free(ports) == {}
    assert usual_if_free(ports) == ports


def test_the_commands_that_the_demo_shows_have_the_addresses_they_need() -> None:
    usual = hints("fanlight://127.0.0.1:7420", "http://127.0.0.1:7421", 1883)
    assert not any("--url" in line or "--http" in line or " -p " in line for line in usual)
    other = hints("fanlight://127.0.0.1:7", "http://127.0.0.1:8", 9)
    assert [part in line for part, line in zip(("--url", "-p 9", "--http"), other[1:], strict=True)] == [True] * 3


def test_the_readme_has_the_same_condition() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    assert f"""fanlight sub 'stock.#' --where "{WHERE}\"""" in readme
    assert f"user-property where '{WHERE}'" in readme


def test_the_commands_that_the_demo_shows_work(broker: TestBroker) -> None:
    _, subscribe, _, explain = hints(broker.url, broker.http_url, broker.mqtt_port)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = [*shlex.split(subscribe), "--count", "1", "--ready"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as subscriber:
        assert subscriber.stderr is not None
        assert "subscribed" in subscriber.stderr.readline()
        said = subprocess.run(shlex.split(explain), env=environment, check=True, capture_output=True, text=True).stdout
        assert "close is 172.26; the selector wants > 500" in said
        assert main(["--url", broker.url, "--speed", "0", "--plain"]) == OK
        shown, _ = subscriber.communicate()
    first = next(
        quote for quote in quotes.read() if (quote.headers["close"] or 0) > 500 and quote.headers["volume"] > 1_000_000
    )
    assert shown == f"{first.topic} {first.payload.decode()}\n"


def test_an_archive_is_not_asked_of_a_broker_that_is_running(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--archive", "somewhere", "--url", "fanlight://127.0.0.1:1"])
    assert "fanlightd serve --archive" in capsys.readouterr().err


def test_the_demo_uses_a_broker_that_is_running(broker: TestBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--url", broker.url, "--speed", "20", "--seconds", "0.3", "--plain"]) == OK
    assert "nothing lost" in capsys.readouterr().out
    assert any('"client": "demo publisher"' in line for line in broker.lines)


def test_the_demo_says_so_when_there_is_no_broker(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--url", "fanlight://127.0.0.1:1", "--plain"]) == NO_BROKER
    assert "127.0.0.1:1" in capsys.readouterr().err


def test_a_fault_is_the_exit_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    # An account that books one message twice: what the demo would see of a broker that did.
    receive = Account.receive

    def twice(account: Account, topic: str | bytes, payload: bytes) -> None:
        receive(account, topic, payload)
        if account.received == 1:
            receive(account, topic, payload)

    monkeypatch.setattr(Account, "receive", twice)
    assert main(["--speed", "0", "--plain"]) == FAULTY
    assert "not in their turn" in capsys.readouterr().out
