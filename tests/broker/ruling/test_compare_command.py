"""`fanlightd rules compare`, as an operator runs it, against the same rules in plain Python."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pytest

from fanlight_archive import MESSAGE, Writer
from tests.archive.messages import batch
from tests.broker.ruling.test_command import run

OLD = """\
[[rules]]
name = "dear"
topic = "orders.*.new"
where = "payload.price > 100"
to = "stock.$2.$1"

[[rules]]
name = "tests"
topic = "orders.test.#"
drop = true
"""
NEW = """\
[[rules]]
name = "dear"
topic = "orders.*.new"
where = "payload.price > 50"
to = "stock.$2.$1"

[[rules]]
name = "seen"
topic = "stock.#"
set = { seen = true }

[[rules]]
name = "moved"
topic = "orders.us.#"
replace = "us.$3"
salience = 1

[[rules]]
name = "idle"
topic = "nowhere.#"
drop = true

[[rules]]
name = "short"
topic = "orders.eu.#"
to = "far.$9"
"""
SUBSCRIPTIONS = [
    {"filter": "#", "client": "all", "user": "ann"}, {"filter": "stock.#", "client": "s", "user": "bob"},
    {"filter": "orders.#", "client": "<o>", "user": ""},
]  # fmt: skip
Outputs = Counter[tuple[str, bool]]  # (topic, has the header `seen`)


def oracle(topic: str, price: int) -> tuple[Outputs, Outputs]:
    words = topic.split(".")
    new_order = len(words) == 3 and words[0] == "orders" and words[2] == "new"
    old: Outputs = Counter() if topic.startswith("orders.test.") else Counter([(topic, False)])
    after = (topic, topic.startswith("stock."))
    if topic.startswith("orders.us."):
        after = (f"us.{words[2]}", False)
    new: Outputs = Counter([after])
    # `dear` is as salient as `tests`, and comes before it.
    if new_order and price > 100:
        old[f"stock.{words[1]}.orders", False] += 1
    if new_order and price > 50:
        new[f"stock.{words[1]}.orders", True] += 1
    return old, new


def expected(messages: list[tuple[str, int]]) -> tuple[int, Counter[Any], Counter[Any]]:
    different, topics, users = 0, Counter[Any](), Counter[Any]()
    for topic, price in messages:
        old, new = oracle(topic, price)
        different += old != new
        for filter in ("#", "stock.#", "orders.#"):
            sides = old - new, new - old
            counts = [Counter(at for at, _ in each.elements() if matches(filter, at)) for each in sides]
            less, more = (each.total() for each in counts)
            for what, count in (("lost", less - more), ("gained", more - less), ("changed", min(less, more))):
                users[what, filter] += max(count, 0)
            for at in counts[0] | counts[1] if filter == "#" else ():
                gone, come = counts[0][at], counts[1][at]
                for what, count in (("lost", gone - come), ("gained", come - gone), ("changed", min(gone, come))):
                    topics[what, topic, at] += max(count, 0)
    return different, +topics, +users


def matches(filter: str, topic: str) -> bool:
    return filter == "#" or topic.startswith(filter[:-1])


@pytest.fixture
def line(tmp_path: Path) -> list[Any]:
    for name, text in (("old.toml", OLD), ("new.toml", NEW)):
        (tmp_path / name).write_text(text)
    (tmp_path / "now.jsonl").write_text("\n".join(map(json.dumps, SUBSCRIPTIONS)))
    return ["rules", "compare", tmp_path / "archive", "--old", tmp_path / "old.toml", "--new", tmp_path / "new.toml"]


def archived(folder: Path, messages: list[tuple[str, int]]) -> None:
    columns = batch(0, len(messages)).to_pydict()
    columns["topic"] = [topic for topic, _ in messages]
    columns["value"] = [json.dumps({"price": price}).encode() for _, price in messages]
    columns["content_type"] = ["application/json"] * len(messages)
    writer = Writer(folder)
    writer.append(pa.RecordBatch.from_pydict(columns, schema=MESSAGE))
    writer.close()


def test_what_new_rules_do_differently_is_what_plain_python_says(tmp_path: Path, line: list[Any]) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)  # pytest shows it of a test that fails
    chance = random.Random(seed)
    topics = [f"{root}.{where}.{what}" for root in ("orders", "stock", "other") for where in ("eu", "us", "test")
              for what in ("new", "old")]  # fmt: skip
    messages = [(chance.choice(topics), chance.choice((10, 75, 150))) for _ in range(400)]
    archived(tmp_path / "archive", [*messages, ("$SYS.orders", 200)])
    code, out, _ = run(*line, "--subscriptions", tmp_path / "now.jsonl", "--json", "--html", tmp_path / "report.html")
    view = json.loads(out)
    different, by_topic, by_filter = expected(messages)
    assert (code, view["messages"], view["different"]) == (1, 400, different)
    found: Counter[Any] = Counter()
    for row in view["topics"]:
        found[row["what"], row["topic"], row["at"]] += row["messages"]
    assert found == by_topic
    assert {(row["what"], row["filter"]): row["messages"] for row in view["subscribers"]} == by_filter
    assert view["never_hit"] == ["idle", "short"]
    assert view["failed"] == {"short": sum(topic.startswith("orders.eu.") for topic, _ in messages)}
    assert view["hits"]["dear"] == sum(t.startswith("orders.") and t.endswith(".new") and p > 50 for t, p in messages)
    page = (tmp_path / "report.html").read_text()
    assert f"{different:,} of 400 messages" in page
    assert "&lt;o&gt;" in page
    assert "<o>" not in page


def test_rules_and_topics_are_named_and_equal_rules_are_no_difference(tmp_path: Path, line: list[Any]) -> None:
    archived(tmp_path / "archive", [("orders.eu.new", 75), ("orders.us.new", 10)])
    code, out, _ = run(*line, "--subscriptions", tmp_path / "now.jsonl")
    assert code == 1
    assert out.splitlines()[:4] == [
        "2 of 2 messages go elsewhere, or as something else",
        "  1 gained on stock.eu.orders, of orders.eu.new (no rule -> dear, seen)",
        "  1 gained on us.new, of orders.us.new (no rule -> moved)",
        "  1 lost on orders.us.new, of orders.us.new (no rule -> moved)",
    ]
    assert "  1 lost for anonymous <o>, by orders.#" in out
    same = [*line[:-1], tmp_path / "old.toml"]
    assert run(*same)[0] == 0
    assert run(*line, "--from", "1970-01-02")[0] == 0  # all of it is older


def test_mistakes_are_sentences(tmp_path: Path, line: list[Any]) -> None:
    assert run(*line)[0] == 2  # no archive
    archived(tmp_path / "archive", [("a", 1)])
    (tmp_path / "cut.jsonl").write_text('{"snapshot": 2}\n{"filter": "#"}\n')
    code, _, error = run(*line, "--subscriptions", tmp_path / "cut.jsonl")
    assert (code, "has 1 subscriptions, and its end says None" in error) == (2, True)
    (tmp_path / "cut.jsonl").write_text('{"client": "a"}\n')
    assert "line 1: no line of a snapshot" in run(*line, "--subscriptions", tmp_path / "cut.jsonl")[2]
    (tmp_path / "new.toml").write_text("[[rules]]\n")
    assert run(*line)[0] == 2
