"""The job that proposes permissions, over an archive and a snapshot, beside counts by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.test_recipients import written

RULES = """
[[allow]]
name = "pumps"
user = "pump*"
publish = "site/%u/#"

[[deny]]
name = "never"
publish = "secret/#"

[[allow]]
name = "readers"
subscribe = "site/#"

[[allow]]
name = "wills"
will = "gone/#"

[[allow]]
name = "rest"
publish = "#"
"""


def test_it_proposes_what_was_done_and_names_rules_that_were_not_needed(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fanlight_spark.jobs import privileges

    sent = [
        *((f"site/{pump}/temp", pump) for pump in ("pump7", "pump8", "pump7")),
        *((f"log/{n}/x", "pump7") for n in range(4)), ("log/8/x", "pump8"), ("log/9/x", "desk"), ("news", "desk"),
    ]  # fmt: skip
    folder = written(tmp_path / "archive", *((topic, client, {}) for topic, client in sent))
    snapshot, rules, out = tmp_path / "now.jsonl", tmp_path / "rules.toml", tmp_path / "out"
    snapshot.write_text(json.dumps({"client": "desk", "user": "desk", "filter": "site.#"}))
    rules.write_text(RULES)
    arguments = [str(folder), "--out", str(out), "--as", "%c", "--subscriptions", str(snapshot), "--rules", str(rules)]
    assert privileges.main([*arguments, "--fail-above", "0"], spark) == 1
    said = capsys.readouterr().out
    assert "7 filters are enough for what 3 users did in 10 messages; 1 of 4 rules decided nothing." in said
    rows = spark.read.parquet(str(out / "privileges")).collect()
    assert {(row.user, row.filter): tuple(row[4:]) for row in rows} == {
        ("pump7", "site/%u/temp"): (1, 2, 0, 0), ("pump8", "site/%u/temp"): (1, 1, 0, 0),
        ("pump7", "log/+/x"): (4, 4, 2, 2), ("pump8", "log/8/x"): (1, 1, 0, 0), ("desk", "log/9/x"): (1, 1, 0, 0),
        ("desk", "news"): (1, 1, 0, 0), ("desk", "site.#"): (None, None, None, None),
    }  # fmt: skip
    assert [(row.rule, row.effect) for row in spark.read.parquet(str(out / "unused")).collect()] == [("never", "deny")]
    assert "7 filters are enough" in (out / "report.html").read_text()
    assert 'publish = [\n    "log/+/x",\n    "site/%u/temp",\n]' in (out / "permissions.toml").read_text()


def test_clients_that_nothing_names_are_anonymous_and_said(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fanlight_spark.jobs import privileges

    folder = written(tmp_path / "archive", ("a/1", "p", {}))
    assert privileges.main([str(folder), "--out", str(tmp_path / "out")], spark) == 0
    said = capsys.readouterr().out
    assert "1 messages are of clients that nothing names" in said
    assert "nobody may subscribe" in said
    assert 'group = "anonymous"\npublish = "a/1"' in (tmp_path / "out" / "permissions.toml").read_text()
