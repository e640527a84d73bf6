"""`audience` and `whatif`: figures that were worked out by hand.

The shares that they count with need no Spark, and are tested in tests/without_spark/test_shares.py.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from fanlight_spark.snapshot import Snapshot, Subscription

BEFORE = Snapshot(
    (
        Subscription("stock.#", client="desk", user="ann"),
        Subscription("stock.nyse.*", client="desk", user="ann"),  # a second copy
        Subscription("stock.nasdaq.#", client="w1", group="workers"),
        Subscription("stock.nasdaq.#", client="w2", group="workers"),
        Subscription("home/#", "mqtt", client="hub", session=True),
        Subscription("home/+/temp", "mqtt", client="hub", session=True),
        Subscription("forex.#", client="idle"),
    )
)
#: topic, syntax, messages, bytes of each
PASSED = [
    ("stock.nyse.IBM", "amqp", 4, 10), ("stock.nasdaq.AAPL", "amqp", 6, 5), ("home/k/temp", "mqtt", 2, 8),
    ("x", "amqp", 3, 1),
]  # fmt: skip


@pytest.fixture(scope="module")
def messages(spark: Any) -> Any:
    rows = [(t, s, "c", b"x" * size) for t, s, count, size in PASSED for _ in range(count)]
    return spark.createDataFrame(rows, "topic STRING, syntax STRING, client STRING, value BINARY").coalesce(1)


def test_who_published_is_asked_for_only_where_a_subscription_has_no_echo(spark: Any) -> None:
    """A broker does not tell it."""
    from fanlight_spark.deliveries import columns_for, volumes

    wanting = Snapshot((Subscription("a"), Subscription("a", no_echo=True)))
    assert columns_for(BEFORE, BEFORE) == ["topic", "syntax", "value"]
    assert columns_for(BEFORE, wanting) == ["topic", "syntax", "value", "client"]
    told = spark.createDataFrame([("x", "amqp", b"12")], "topic STRING, syntax STRING, value BINARY")
    assert [tuple(row) for row in volumes(told, BEFORE).collect()] == [("x", "amqp", None, 1, 2)]


def test_audience_gives_each_its_share(messages: Any) -> None:
    from fanlight_spark.jobs.audience import audience

    found = audience(messages, BEFORE)
    filters = {row.subscription: row for row in found.filters.collect()}
    assert {at: (row.topics, row.messages, row.bytes) for at, row in filters.items()} == {
        0: (2, 10, 70), 1: (1, 4, 40), 2: (1, 3, 15), 3: (1, 3, 15), 4: (1, 1, 8), 5: (1, 1, 8), 6: (0, 0, 0),
    }  # fmt: skip
    assert sum(row.bytes_share for row in filters.values()) == pytest.approx(1)
    assert filters[0].bytes_share == pytest.approx(70 / 156)
    assert {at: (row.covered_by_own, row.covered_by, row.same) for at, row in filters.items()} == {
        0: (None, None, 1), 1: ("stock.#", "stock.#", 1), 2: (None, "stock.#", 2), 3: (None, "stock.#", 2),
        4: (None, None, 1), 5: ("home/#", "home/#", 1), 6: (None, None, 1),
    }  # fmt: skip
    clients = found.clients.collect()
    assert {r.client: (r.user, r.subscriptions, r.idle, r.redundant, r.messages, r.bytes) for r in clients} == {
        "desk": ("ann", 2, 0, 1, 14, 110), "w1": ("", 1, 0, 0, 3, 15), "w2": ("", 1, 0, 0, 3, 15),
        "hub": ("", 2, 0, 1, 2, 16), "idle": ("", 1, 1, 0, 0, 0),
    }  # fmt: skip
    assert sorted((r.client, r.root, r.messages, r.bytes) for r in found.spread.collect()) == [
        ("desk", "stock", 14, 110), ("hub", "home", 2, 16), ("w1", "stock", 3, 15), ("w2", "stock", 3, 15),
    ]  # fmt: skip
    assert sorted(tuple(row) for row in found.roots.collect()) == [
        ("home", 1, 2, 16, 2, 16, 0), ("stock", 2, 10, 70, 20, 140, 0), ("x", 1, 3, 3, 0, 0, 3),
    ]  # fmt: skip


def test_what_if_says_who_gets_more_who_less_and_what_nobody_gets_any_more(messages: Any) -> None:
    from fanlight_spark.jobs.whatif import AMOUNTS, what_if

    after = Snapshot(
        (
            Subscription("stock.nyse.*", client="desk"),
            Subscription("stock.nasdaq.#", client="w1", group="workers"),
            Subscription("x", client="new"),
        )
    )
    found = what_if(messages, BEFORE, after)
    columns = [f"{name}_{side}" for name in AMOUNTS for side in ("before", "after", "more")]
    assert {row.client: [row[name] for name in columns] for row in found.clients.collect()} == {
        "desk": [2, 1, -1, 14, 4, -10, 110, 40, -70],
        "w1": [1, 1, 0, 3, 6, 3, 15, 30, 15],
        "w2": [1, 0, -1, 3, 0, -3, 15, 0, -15],
        "hub": [1, 0, -1, 2, 0, -2, 16, 0, -16],
        "new": [0, 1, 1, 0, 3, 3, 0, 3, 3],
    }
    by_filter = {(r.client, r.filter, r.group): (r.messages_before, r.messages_after) for r in found.filters.collect()}
    assert by_filter == {
        ("desk", "stock.#", None): (10, 0), ("desk", "stock.nyse.*", None): (4, 4),
        ("w1", "stock.nasdaq.#", "workers"): (3, 6), ("w2", "stock.nasdaq.#", "workers"): (3, 0),
        ("hub", "home/#", None): (1, 0), ("hub", "home/+/temp", None): (1, 0), ("new", "x", None): (0, 3),
    }  # fmt: skip
    assert [tuple(row) for row in found.lost.collect()] == [("home/k/temp", "mqtt", 2, 16)]
    assert [tuple(row) for row in found.gained.collect()] == [("x", "amqp", 3, 3)]


def test_both_from_the_command_line_over_an_archive(spark: Any, folder: Path, tmp_path: Path) -> None:
    from fanlight_spark.jobs import audience, whatif

    before, after = tmp_path / "before", tmp_path / "after"
    odd, usual = {"filter": "stock.<b>", "client": "<script>"}, {"filter": "stock.#", "client": "c", "no_echo": True}
    before.write_text(f"{json.dumps(odd)}\n{json.dumps(usual)}\n")
    after.write_text("")
    assert audience.main([str(folder), "--subscriptions", str(before), "--out", str(tmp_path / "a")], spark) == 0
    page = (tmp_path / "a" / "report.html").read_text()
    assert "stock.&lt;b&gt;" in page
    assert '<td><script>' not in page
    assert "1 of 2 subscriptions could go: 1 got nothing, 0 are covered" in page
    assert "<dt>subscriptions that got nothing</dt><dd>1</dd>" in page
    assert spark.read.parquet(str(tmp_path / "a" / "clients")).where("messages > 0").count() == 1
    arguments = [str(folder), "--before", str(before), "--after", str(after), "--out", str(tmp_path / "w")]
    assert whatif.main([*arguments, "--fail-above", "0"], spark) == 1
    lost = spark.read.parquet(str(tmp_path / "w" / "lost")).collect()
    assert sum(row.messages for row in lost) == 1_000
    assert "What nobody gets any more" in (tmp_path / "w" / "report.html").read_text()
    before.write_text('{"filter": "a/#/b", "syntax": "mqtt"}\n')
    assert audience.main([str(folder), "--subscriptions", str(before), "--out", str(tmp_path / "b")], spark) == 2
