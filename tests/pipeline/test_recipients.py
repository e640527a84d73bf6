"""The job that says who got it, over an archive with audit topics."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pytest

from fanlight_archive import MESSAGE, Writer
from tests.without_spark.test_trail import row


def written(folder: Path, *given: tuple[str, str, Any]) -> Path:
    """An archive of (topic, publisher, what it says)."""
    writer = Writer(folder)
    columns: dict[str, list[Any]] = {name: [None] * len(given) for name in MESSAGE.names}
    columns |= {
        "timestamp": [number * 1_000_000 for number in range(len(given))], "topic": [each[0] for each in given],
        "client": [each[1] for each in given], "value": [json.dumps(each[2]).encode() for each in given],
        "protocol": ["mqtt 5.0"] * len(given), "syntax": ["mqtt"] * len(given),
        "qos": [0] * len(given), "retain": [False] * len(given),
        "content_type": ["application/json"] * len(given),
    }  # fmt: skip
    writer.append(pa.record_batch(columns, schema=MESSAGE))
    writer.close()
    return folder


def test_it_says_who_got_what_and_what_was_for_no_one(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fanlight_spark.jobs import recipients

    folder = written(
        tmp_path / "archive",
        ("$audit/started", "", {"version": "1"}),
        ("a/1", "p", {"n": 1}),
        ("$audit/subscribe", "", row(0, "desk", "a.#")),
        ("$audit/subscribe", "", row(1, "big", "#", where="payload.n > 5")),
        ("a/1", "p", {"n": 9}),
        ("$audit/unsubscribe", "", row(0, "desk", "a.#")),
        ("a/1", "p", {"n": 3}),
    )
    out = tmp_path / "out"
    assert recipients.main([str(folder), "--out", str(out)], spark) == 0
    got = spark.read.parquet(str(out / "recipients")).orderBy("offset", "client").collect()
    assert [(each.offset, each.client, each.filter, each.outcome) for each in got] == [
        (4, "big", "#", "sent"), (4, "desk", "a.#", "sent")
    ]  # fmt: skip
    left = spark.read.parquet(str(out / "nobody")).orderBy("offset").collect()
    assert [each.offset for each in left] == [1, 6]
    assert "3 messages, 2 of them for no one" in capsys.readouterr().out
    assert (out / "report.html").is_file()
    # Of one client: not everything was for it.
    arguments = [str(folder), "--out", str(out), "--client", "desk", "--until", "1970-01-01T00:00:05"]
    assert recipients.main(arguments, spark) == recipients.NOT_ALL
    assert "2 messages, 1 of them for others than desk" in capsys.readouterr().out


def test_an_archive_without_audit_topics_is_refused_with_advice(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fanlight_spark.jobs import recipients

    folder = written(tmp_path / "archive", ("a/1", "p", {"n": 1}))
    assert recipients.main([str(folder), "--out", str(tmp_path / "out")], spark) == 2
    assert "--archive-topics '#, $audit.#'" in capsys.readouterr().err
