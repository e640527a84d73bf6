"""Bars and pages from a report of durable rows."""

import pytest

pytest.importorskip("fanlight_bench.load.generator", reason="needs epoll")
from fanlight_bench.durable import document
from fanlight_bench.durable.bars import bars
from tests.bench.durable.reports import report, run

RATES = [
    run("100x10", "fanlight", messages_per_second=100_000, us_per_message=3.0, device_bytes_per_byte=1.5, flushes=50),
    run("100x10", "fanlight-memory", messages_per_second=200_000, us_per_message=2.5),
    run("100x10", "rabbitmq-quorum", messages_per_second=10_000, us_per_message=50.0),
    run("100x10", "jetstream", messages_per_second=60_000),
    run("100x10", "jetstream-2.9", messages_per_second=40_000),
]


def verdicts(*runs: dict[str, object]) -> dict[str, bool | None]:
    return {f"{bar.scenario}: {bar.what}": bar.met for bar in bars(report(*runs))}


def test_rates_are_compared_with_the_best_of_the_same_runs() -> None:
    met = verdicts(*RATES)
    assert met["100x10: messages/s, to rabbitmq-quorum"] is True          # 10x
    assert met["100x10: messages/s, to jetstream or jetstream-2.9"] is False  # 1.67x of the better
    assert met["100x10: messages/s, to fanlight-memory"] is False         # 50 %
    assert met["100x10: processor time a message, above memory"] is True  # 0.5 µs
    assert met["100x10: device bytes a payload byte"] is True


def test_a_bar_without_figures_is_not_measured() -> None:
    assert set(verdicts(run("1x1", "mosquitto", p50_us=50.0)).values()) == {None}


def test_a_pair_is_compared_within_its_round() -> None:
    rounds = [
        run("A", name, number, us_per_delivery=cost)
        for number, costs in enumerate([(1.0, 1.0), (5.0, 4.0), (2.02, 2.0)])
        for name, cost in zip(("fanlight", "fanlight-memory"), costs, strict=True)
    ]
    (bar,) = [bar for bar in bars(report(*rounds)) if bar.scenario == "A"]
    assert bar.reached == pytest.approx(1.01)
    assert bar.met


def test_a_run_with_faults_counts_for_no_bar() -> None:
    bad = run("100x10", "fanlight", messages_per_second=100_000, faults={"lost": 1}, complaint="")
    assert set(verdicts(bad, *RATES[1:]).values()) == {None}


def test_every_part_of_the_page_is_made() -> None:
    figures = {f"bare_{kind}_{what}": 100.0 for kind in ("growing", "recycled") for what in ("p50_us", "p99_us")}
    rates = {f"bare_{kind}_per_second": 9_000 for kind in ("growing", "recycled")}
    one = run("1x1", "fanlight", p50_us=150.0, p50_to_growing=1.5, messages_per_second=6_000, **figures, **rates)
    broken = run("1x1", "mosquitto", error="Refused: no")
    text = document.DOCUMENT.read_text(encoding="utf-8")
    page = document.rewritten(text, report(one, broken, *RATES, missing={"rabbitmq-classic": "it is not installed"}))
    assert "Not measured yet" not in page
    assert "Data on vda, ext4 (rw), write cache write back." in page.replace("\n", " ")
    assert "| beside fanlight | 100 / 100 | 9,000 | 100 / 100 | 9,000 |" in page
    assert "| rabbitmq-classic | not measured: it is not installed | - | - |" in page
    assert "Refused: no (0 of 1 runs good)" in page
    assert "| fanlight |  |  | 50% |" in page
    assert document.rewritten(page, report(one, broken, *RATES)) != page
