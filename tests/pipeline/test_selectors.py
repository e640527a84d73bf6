"""Selectors in Spark: `match_topics` with fields, and the functions of SQL, as matchcore has them row by row."""

from pathlib import Path
from typing import Any

import pytest

import matchcore
from tests.conftest import StartBroker

SUBSCRIPTIONS: list[tuple[str, int, str, str | None]] = [
    ("stock.#", 1, "amqp", "price > 100 AND region IN ('eu', 'us')"),
    ("stock.*.a", 2, "amqp", None),
    ("stock/+/+", 3, "mqtt", "price IS NULL OR NOT urgent"),
    ("#", 4, "amqp", "$word[2] = 'nyse' AND payload.size < 1.5"),
    ("$SYS.#", 5, "amqp", "price = 1"),
    ("#", 6, "amqp", "price = 1"),
]
FIELDS = {"price": "price", "region": "region", "urgent": "urgent", "payload.size": "size"}
MESSAGES = [
    (0, "stock.nyse.a", "amqp", 120, "eu", True, 1.0), (1, "stock.nyse.b", "amqp", 120, "asia", False, 2.0),
    (2, "stock.x.a", "amqp", None, None, None, None), (3, "stock/nyse/c", "mqtt", 101, "us", None, 1.0),
    (4, "$SYS.x", "amqp", 1, None, None, None), (5, None, "amqp", 1, None, None, None),
    (6, "a", None, 1, None, None, None),
    (7, "x" * 70_000, "amqp", 1, None, None, None), (8, "other", "amqp", 1, "eu", None, None),
]  # fmt: skip
SCHEMA = "n INT, topic STRING, syntax STRING, price BIGINT, region STRING, urgent BOOLEAN, size DOUBLE"


def expected() -> list[tuple[int, int]]:
    """Row by row; names that begin with $SYS only for filters that do."""
    index = matchcore.FilterIndex()
    for text, number, syntax, where in SUBSCRIPTIONS:
        index.insert(text, number, syntax=syntax, where=where)
    found = []
    for n, topic, of, *values in MESSAGES:
        if topic is not None and of is not None and len(topic) < 60_000:
            ids = index.match(topic, fields=dict(zip(FIELDS, values, strict=True)), syntax=of)
            found += [(n, id) for id in ids if not topic.startswith("$SYS") or id == 5]
    return found


def test_match_topics_asks_selectors_of_the_fields(spark: Any, tmp_path: Path) -> None:
    """As tuples, as a frame, as the file of an index; of a batch and of a stream."""
    from fanlight_spark.matching import match_topics

    index = matchcore.FilterIndex(max_words=1_024)
    for text, number, syntax, where in SUBSCRIPTIONS:
        index.insert(text, number, syntax=syntax, where=where)
    matchcore.freeze(index).save(tmp_path / "frozen")
    frame = spark.createDataFrame(SUBSCRIPTIONS, "filter STRING, id BIGINT, syntax STRING, where STRING")
    messages = spark.createDataFrame(MESSAGES, SCHEMA)
    for given in (SUBSCRIPTIONS, frame, tmp_path / "frozen"):
        matched = match_topics(messages, given, syntax_col="syntax", fields=FIELDS)
        assert matched.columns == [*messages.columns, "subscription"]
        assert sorted(tuple(row) for row in matched.select("n", "subscription").collect()) == expected()
    messages.write.parquet(str(tmp_path / "messages"))
    stream = match_topics(
        spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "messages")), SUBSCRIPTIONS, syntax_col="syntax",
        fields=FIELDS,
    )  # fmt: skip
    query = (
        stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True).start(str(tmp_path / "out"))
    )  # fmt: skip
    query.awaitTermination()
    found = spark.read.parquet(str(tmp_path / "out")).select("n", "subscription").collect()
    assert sorted(tuple(row) for row in found) == expected()


def test_what_cannot_be_matched_is_refused_before_anything_runs(spark: Any) -> None:
    from fanlight_spark.matching import match_topics, topic_matches

    messages = spark.sql("SELECT 'a' topic, current_timestamp() seen, 1 price")
    with pytest.raises(matchcore.InvalidSelector, match=r"byte 8 .*in the subscription 7 to 'a.#'"):
        match_topics(messages, [("a", 1, "amqp", "x = 1"), ("a.#", 7, "amqp", "price = ")])
    with pytest.raises(matchcore.InvalidFilter, match=r"byte 2 .*in the subscription 7 to 'a/#/b'"):
        match_topics(messages, [("a/#/b", 7, "mqtt")])
    with pytest.raises(TypeError, match="the field 'seen' is timestamp, which no selector compares"):
        match_topics(messages, [("a", 1, "amqp", "seen > 1")], fields=["price", "seen"])
    with pytest.raises(TypeError, match=r"for one write \['price'\]"):
        match_topics(messages, [("a", 1, "amqp", "price > 1")], fields="price")
    with pytest.raises(ValueError, match="have selectors: match messages with match_topics"):
        topic_matches(messages, [("a", 1, "amqp", "price > 1")])


def test_the_functions_of_sql_have_its_nulls(spark: Any) -> None:
    import fanlight_spark

    assert fanlight_spark.register(spark) is spark
    spark.createDataFrame(
        [(1, "a.*", "a.b", "amqp"), (2, "a.*", "c", "amqp"), (3, None, "c", "amqp"), (4, "c", None, "amqp"),
         (5, "a/+", "a/b", "mqtt"), (6, "#", "x" * 70_000, "amqp"), (7, "a/+", "a/b", None)],
        "n INT, filter STRING, topic STRING, syntax STRING",
    ).createOrReplaceTempView("nulls_of_topics")  # fmt: skip
    rows = spark.sql(
        "SELECT topic_matches(filter, topic, syntax) one, topic_matches('a.*', topic) two"
        " FROM nulls_of_topics ORDER BY n"
    ).collect()
    assert [tuple(row) for row in rows] == [
        (True, True), (False, False), (None, False), (None, None), (True, False), (False, False), (None, False),
    ]  # fmt: skip
    wheres = ["price > 100", "region LIKE 'e%' AND NOT urgent", "$words = 2", "price IS NULL", None]
    spark.createDataFrame(
        [(n * 10 + m, where, *values) for n, where in enumerate(wheres) for m, values in enumerate([
            ({"price": "120", "region": "eu", "urgent": "false"}, 120, "eu", False),
            ({"price": "80", "$words": "2"}, 80, None, None),
            ({"price": "dear", "region": "us"}, None, "us", True),
            (None, None, None, None),
        ])],
        "n INT, where STRING, fields MAP<STRING, STRING>, price BIGINT, region STRING, urgent BOOLEAN",
    ).createOrReplaceTempView("nulls_of_messages")  # fmt: skip
    rows = spark.sql(
        "SELECT selector_matches(where, fields) one, selector_matches(where, struct(price, region, urgent)) two,"
        " selector_matches('price > 100', struct(price)) <=> (price > 100) three,"
        " selector_matches('price >= 80', map('price', price)) four FROM nulls_of_messages ORDER BY n"
    ).collect()
    assert [row.one for row in rows] == [
        True, False, None, None, True, None, False, None, None, True, None, None, False, False, False, None,
        None, None, None, None,
    ]  # fmt: skip
    assert [row.two for row in rows] == [
        True, False, None, None, True, None, False, None, None, None, None, None, False, False, True, True,
        None, None, None, None,
    ]  # fmt: skip
    assert all(row.three for row in rows)
    assert [row.four for row in rows[:4]] == [True, True, None, None]
    count = spark.sql("SELECT count(*) c FROM nulls_of_messages WHERE NOT selector_matches(where, fields)").first()
    assert count is not None
    assert count.c == [row.one for row in rows].count(False)
    with pytest.raises(Exception, match=r"invalid selector 'price = ', byte 8"):
        spark.sql("SELECT selector_matches('price = ', map('price', 1))").collect()


async def subscribed(url: str) -> Any:
    """A client with subscriptions, one of them with a selector."""
    import fanlight

    client = await fanlight.connect(url, name="desk")
    await client.subscribe("stock.#", where="price > 100")
    await client.subscribe("stock.nyse.*")
    return client


async def test_a_log_is_matched_against_a_brokers_snapshot_as_the_broker_does(
    spark: Any, start_broker: StartBroker, tmp_path: Path
) -> None:
    import asyncio

    from fanlight_spark.matching import match_topics
    from fanlight_spark.snapshot import read, take

    broker = await asyncio.to_thread(start_broker)
    client = await subscribed(broker.url)
    try:
        assert await asyncio.to_thread(take, broker.http_url, tmp_path / "taken") == 2
    finally:
        await client.close()
    snapshot = read(tmp_path / "taken")
    assert [(each.filter, each.where) for each in snapshot.subscriptions] == [
        ("stock.#", "price > 100"), ("stock.nyse.*", None),
    ]  # fmt: skip
    rows = [("stock.nyse.a", 120), ("stock.nyse.b", 80), ("stock.x", 101), ("stock.y", None)]
    messages = spark.createDataFrame(rows, "topic STRING, price INT")
    found = match_topics(messages, snapshot.filters(), fields=["price"]).collect()
    assert sorted((row.topic, snapshot.subscriptions[row.subscription].filter) for row in found) == [
        ("stock.nyse.a", "stock.#"), ("stock.nyse.a", "stock.nyse.*"), ("stock.nyse.b", "stock.nyse.*"),
        ("stock.x", "stock.#"),
    ]  # fmt: skip
