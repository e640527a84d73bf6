"""`python -m fanlight_bench isolation`: what is kept, what the interval says, and that it runs and says so."""

import contextlib
import json
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from fanlight_bench import isolation
from fanlight_bench.isolation import Part, interval, kept
from fanlight_bench.isolation_pots import COMPUTING, IDLE, POTS, Peers

ALONE = Part(1_000, 1.0, 1.0)  # the broker was busy all the time


def test_what_a_busy_broker_keeps_is_the_part_of_the_messages() -> None:
    pairs = [(ALONE, Part(messages, 1.0, 1.0)) for messages in (900, 980, 970)]
    found = kept(pairs)
    assert (found["pairs"], found["kept"], found["kept_wall"]) == (3, 0.97, 0.97)
    assert found["interval"] == [0.9, 0.98]
    assert found["loss_below_5_percent"] is None


def test_of_a_broker_with_time_to_spare_what_the_other_took_is_lost() -> None:
    """It does as much for `b` as alone, and a tenth of a second a second for `a`."""
    pairs = [(Part(1_000, 0.2, 1.0), Part(1_000, 0.3, 1.0))] * 9
    found = kept(pairs)
    assert (found["kept"], found["kept_wall"], found["loss_below_5_percent"]) == (0.9, 1.0, False)


def test_a_loss_of_5_percent_is_excluded_by_the_whole_interval() -> None:
    steady = [(ALONE, Part(messages, 1.0, 1.0)) for messages in (975, 980, 985) * 10]
    assert kept(steady)["loss_below_5_percent"] is True
    unsteady = [(ALONE, Part(messages, 1.0, 1.0)) for messages in (800, 970, 1_200)]
    assert kept(unsteady)["loss_below_5_percent"] is None


def test_the_interval_is_narrower_with_more_pairs() -> None:
    values = [0.9, 0.95, 1.0, 1.05, 1.1]
    (low, high), (low_of_many, high_of_many) = interval(values), interval(values * 40)
    assert low <= low_of_many <= 1.0 <= high_of_many <= high
    assert high_of_many - low_of_many < high - low


@pytest.mark.parametrize("pot", [pot for pot in POTS if pot not in (IDLE, COMPUTING, "rate")])
def test_each_pot_is_used_beside_somebody_who_loses_nothing(pot: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert isolation.main(["--pots", pot, "--seconds", "0.01", "--slice", "0.02"]) == 0
    report = json.loads(capsys.readouterr().out)
    (row,) = report["pots"]
    assert (row["pot"], row["pairs"]) == (pot, 1)
    assert row["messages_per_second_alone"] > 0 < row["messages_per_second_beside"]
    assert "error" not in row


@pytest.mark.parametrize("pot", [IDLE, COMPUTING])
def test_what_shows_the_error_of_the_bench_is_connected_and_sends_nothing(pot: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as answering:
        peers = Peers(server.getsockname()[1])
        at_work = POTS[pot](peers)
        accepted = answering.submit(lambda: server.accept()[0])
        begun = answering.submit(lambda: accepted.result().sendall(b"\x20\x02\0\0"))
        for _ in range(3):
            next(at_work)
        begun.result()
        with accepted.result() as peer:
            assert peer.recv(1 << 16).startswith(b"\x10")
            peers.close_all()
            with contextlib.suppress(ConnectionResetError):
                assert peer.recv(1) == b""


def test_an_unknown_pot_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert isolation.main(["--pots", "rate,gold"]) == 2
    assert "there is no pot gold" in capsys.readouterr().err
