"""The job that proposes fewer subscriptions, beside counts by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.test_recipients import written

SUBSCRIPTIONS = [
    *({"client": "native", "filter": f"a.{n}.t"} for n in range(4)),
    {"client": "native", "filter": "b.#"}, {"client": "native", "filter": "b.1"},
    {"client": "idle", "filter": "never"}, *({"client": "w", "filter": "b.#", "where": f"k = {n}"} for n in range(4)),
]  # fmt: skip


def test_what_is_proposed_is_measured_on_the_archive(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fanlight_spark.jobs import subscriptions

    topics = ["a/0/t", "a/0/t", "a/1/t", "a/9/t", "b/1", "b/2"]
    folder = written(tmp_path / "archive", *((topic, "p", {}) for topic in topics))
    file, out = tmp_path / "now.jsonl", tmp_path / "out"
    file.write_text("\n".join(map(json.dumps, SUBSCRIPTIONS)))
    arguments = [str(folder), "--subscriptions", str(file), "--out", str(out)]
    assert subscriptions.main([*arguments, "--fail-above", "3"], spark) == 1
    said = capsys.readouterr().out
    # Before: 3 of a.n.t, 2 of b.#, 1 of b.1; then: 4 of a.*.t, 2 of b.#.
    assert "4 of 7 subscriptions could go: 1 are redundant, and 1 filters would do for 4 others" in said
    assert "of 6 copies that is 0 fewer" in said
    read = {name: spark.read.parquet(str(out / name)).collect() for name in ("redundant", "merges", "idle", "keyed")}
    assert [(row.client, row.filter, row.covered_by, row.messages) for row in read["redundant"]] == [
        ("native", "b.1", "b.#", 1.0)
    ]
    assert [(row.filter, row.instead_of, row.messages, row.more_messages) for row in read["merges"]] == [
        ("a.*.t", 4, 3.0, 1.0)
    ]
    assert {row.filter for row in read["idle"]} == {"never", "a.2.t", "a.3.t"}
    assert [(row.filter, row.field, row.subscriptions, row.values) for row in read["keyed"]] == [("b.#", "k", 4, 4)]
    assert "4 of 7 subscriptions could go" in (out / "report.html").read_text()
