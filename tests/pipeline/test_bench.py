"""`python -m fanlight_bench pipeline` on Spark: each bench runs, and its ways agree. The rest is in tests/bench."""

import argparse
import re
from pathlib import Path
from typing import Any

import pytest

from fanlight_bench.pipeline import tables
from fanlight_bench.pipeline.__main__ import FAULTY, MISSING, SPARKS, main, measure
from fanlight_bench.pipeline.case import Bench
from tests import require


@pytest.fixture
def shared(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bench takes the tests' Spark, and leaves it running."""
    monkeypatch.setattr(Bench, "session", property(lambda _: spark))
    monkeypatch.setattr(Bench, "stop", lambda _: None)


def options(tmp_path: Path) -> argparse.Namespace:
    return argparse.Namespace(rows=1_000, turns=1, quick=True, cores=2, set=[], folder=str(tmp_path))


@pytest.mark.release
def test_each_case_has_a_rate_and_each_baseline_a_ratio(shared: None, tmp_path: Path) -> None:
    report = measure(SPARKS, options(tmp_path))
    assert not list(tmp_path.iterdir())
    for name in SPARKS:
        assert report["benches"][name], name
        for group in report["benches"][name].values():
            assert all(found["rows_per_second"] > 0 for found in group["cases"].values())
    source = report["benches"]["source"]["source"]
    assert set(source["cases"]["archive"]["beside"]) == {"parquet", "tuples"}
    assert source["facts"]["archive_bytes_per_message"] > 100
    assert set(report["benches"]["live"]) == {"read", "publish"}
    matching = report["benches"]["matching"]
    beside = matching["100 filters"]["cases"]["match_topics"]["beside"]
    assert {"scan", "rlike", "rlike, topics", "join, topics", "mapInPandas", "paho"} <= set(beside)
    page = tables.rewritten(tables.DOCUMENT.read_text(encoding="utf-8"), report)
    assert "| match_topics |" in page
    assert "Not measured in this run." in page  # archived


def test_ways_that_do_not_agree_are_an_error(
    shared: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fanlight_bench.pipeline.baselines.expression", lambda filter: "^nothing$")
    assert main(["--quick", "--only", "matching", "--folder", str(tmp_path), "--rows", "1000"]) == FAULTY
    assert re.search(r"rlike finds 0 matches, and not \d+", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("filter", "yes", "no"),
    [
        ("a/b", ["a/b"], ["a/b/c", "a", "xa/b"]),
        ("a/+/c", ["a/b/c", "a//c"], ["a/b/d", "a/b/b/c"]),
        ("a/#", ["a", "a/b", "a/b/c"], ["ab", "b/a"]),
        ("a/B.C", ["a/B.C"], ["a/BxC"]),
    ],
)
def test_a_filter_as_a_regular_expression_means_the_same(filter: str, yes: list[str], no: list[str]) -> None:
    require.spark()
    from fanlight_bench.pipeline.baselines import expression

    pattern = re.compile(expression(filter))
    assert all(pattern.search(topic) for topic in yes)
    assert not any(pattern.search(topic) for topic in no)


def test_without_java_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require.spark()
    monkeypatch.setattr("fanlight_spark.session.has_java", lambda: False)
    assert main(["--only", "matching"]) == MISSING
    assert "needs a Java 17" in capsys.readouterr().err
