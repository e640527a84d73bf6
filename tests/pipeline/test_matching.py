"""`match_topics`: the same subscriptions as the broker's core finds, on real topics, whatever way they come in."""

from pathlib import Path
from typing import Any

import pytest

import matchcore
from tests import realdata
from tests.broker.core.parts import broker_with, connect, subscribe

Spelled = tuple[str, str]  # text, syntax


def real_topics() -> list[Spelled]:
    """All of the real data's: stocks in both spellings, vehicles, and devices with odd names; and the reserved ones."""
    devices = [("/".join(words), "mqtt") for words in realdata.device_topics()]
    return [
        *((topic, "amqp") for topic in realdata.stock_topics(".")),
        *((topic, "mqtt") for topic in realdata.stock_topics("/")),
        *((topic, "mqtt") for topic in realdata.transit_topics()),
        *devices,
        ("$SYS/broker/uptime", "mqtt"), ("$inbox.7", "amqp"), ("$inbox", "mqtt"), ("$stream.q.0.x", "amqp"),
        ("", "amqp"),
    ]  # fmt: skip


def filters_for(topics: list[Spelled]) -> list[Spelled]:
    """Filters as people write them: exact, with words left open at either end and in the middle, and for everything."""
    found = [("#", "amqp"), ("#", "mqtt"), ("*.*.*", "amqp"), ("#.BRK.B", "amqp")]
    found += [("$SYS/#", "mqtt")]
    for number, (topic, syntax) in enumerate(topics):
        separator, one = (".", "*") if syntax == "amqp" else ("/", "+")
        words = topic.split(separator)
        if number % 5 or len(words) < 3 or set(topic) & set("*#+"):
            continue
        match number // 5 % 4:
            case 0:
                found.append((topic, syntax))
            case 1:
                found.append((separator.join([*words[:-1], one]), syntax))
            case 2:
                found.append((separator.join([*words[:2], "#"]), syntax))
            case 3:
                found.append((separator.join([words[0], one, *words[2:]]), syntax))
    return list(dict.fromkeys(found))  # `stock.nasdaq.#` once, not a thousand times


@pytest.fixture(scope="module")
def cases() -> tuple[list[Spelled], list[Spelled], set[tuple[str, str, int]]]:
    """(topics, filters, what the broker's core says: topic, syntax, number of the filter)."""
    topics = real_topics()
    filters = filters_for(topics)
    broker = broker_with(subscriptions_per_client_max=len(filters))
    client, _ = connect(broker)
    for number, (text, syntax) in enumerate(filters):
        subscribe(broker, client, number, text.encode(), syntax)
    found = {
        (topic, syntax, subscription.number)
        for topic, syntax in topics
        for subscription in broker.router.matching(topic.encode(), syntax)
    }
    assert len(found) > len(topics)
    return topics, filters, found


def pairs(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def test_it_finds_what_the_broker_finds_on_all_of_the_real_data(
    spark: Any, cases: tuple[list[Spelled], list[Spelled], set[tuple[str, str, int]]]
) -> None:
    from fanlight_spark.matching import match_topics

    topics, filters, expected = cases
    rows = [(*each, n) for n, each in enumerate(topics * 2)]
    messages = spark.createDataFrame(rows, "topic STRING, syntax STRING, n INT")
    subscriptions = [(text, number, syntax) for number, (text, syntax) in enumerate(filters)]
    matched = match_topics(messages, subscriptions, syntax_col="syntax")
    assert matched.columns == ["topic", "syntax", "n", "subscription"]
    columns = matched.select("topic", "syntax", "subscription", "n").toArrow().to_pydict()
    # Each of the two messages on a topic, once with each subscription.
    assert len(columns["n"]) == 2 * len(expected) == len(set(zip(columns["n"], columns["subscription"], strict=True)))
    assert set(zip(columns["topic"], columns["syntax"], columns["subscription"], strict=True)) == expected


SUBSCRIPTIONS = [("a.#", 7, "amqp"), ("a/+", 4_000_000_000, "mqtt"), ("*", 9, "amqp")]
MESSAGES = [("a.b", 1), ("a.b", 2), ("c", 3), ("d.e", 4), (None, 5), ("", 6), ("x" * 70_000, 7), ("c", 8)]
EXPECTED = [(1, 7), (1, 4_000_000_000), (2, 7), (2, 4_000_000_000), (3, 9), (8, 9)]


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("given", ["triples", "a frame", "an index", "a file"])
def test_subscriptions_come_in_several_ways(spark: Any, tmp_path: Path, given: str, few: bool) -> None:
    """A topic that is null or none (here too long) matches nothing, and breaks nothing."""
    from fanlight_spark.matching import match_topics

    index = matchcore.FilterIndex()
    for text, number, syntax in SUBSCRIPTIONS:
        index.insert(text, number, syntax=syntax)
    matchcore.freeze(index).save(tmp_path / "frozen")
    ways = {
        "triples": iter(SUBSCRIPTIONS),
        "a frame": spark.createDataFrame(SUBSCRIPTIONS, "filter STRING, id BIGINT, syntax STRING"),
        "an index": matchcore.freeze(index),
        "a file": tmp_path / "frozen",
    }
    messages = spark.createDataFrame(MESSAGES, "name STRING, n INT")
    matched = match_topics(messages, ways[given], topic_col="name", few_topics=few)
    assert pairs(matched.select("n", "subscription")) == sorted(EXPECTED)


def test_topic_matches_names_the_topics_that_nobody_wants_as_well(spark: Any) -> None:
    from fanlight_spark.matching import topic_matches

    messages = spark.createDataFrame(MESSAGES[:4], "topic STRING, n INT")
    assert pairs(topic_matches(messages, SUBSCRIPTIONS).select("topic", "ids")) == [
        ("a.b", [7, 4_000_000_000]), ("c", [9]), ("d.e", []),
    ]  # fmt: skip


def test_a_stream_is_matched_as_it_passes(spark: Any, folder: Path, tmp_path: Path) -> None:
    from fanlight_spark.matching import match_topics

    stream = spark.readStream.format("fanlight").option("startingOffsets", "earliest").load(str(folder))
    matched = match_topics(stream, [("stock.#", 1, "amqp"), ("*.*.2", 2, "amqp")], syntax_col="syntax")
    query = (
        matched.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True).start(str(tmp_path / "out"))
    )  # fmt: skip
    query.awaitTermination()
    found = spark.read.parquet(str(tmp_path / "out")).select("offset", "subscription")
    assert pairs(found) == sorted([*((n, 1) for n in range(1000)), *((n, 2) for n in range(2, 1000, 3))])


def test_what_makes_no_sense_is_refused_before_anything_runs(spark: Any) -> None:
    from fanlight_spark.matching import match_topics

    messages = spark.createDataFrame([("a", 1)], "topic STRING, subscription INT")
    with pytest.raises(ValueError, match="name another with id_col"):
        match_topics(messages, [])
    with pytest.raises(ValueError, match="need the columns filter and id"):
        match_topics(messages, spark.createDataFrame([("a",)], "filter STRING"), id_col="id")
    with pytest.raises(matchcore.InvalidFilter):
        match_topics(messages, [("a/#/b", 1, "mqtt")], id_col="id")


def test_workers_map_a_large_index_and_have_no_copy_of_it(spark: Any) -> None:
    """One file for the session, however often it is sent; a small index goes with the function."""
    from pyspark.core.files import SparkFiles

    from fanlight_spark.matching import match_topics, topic_matches
    from fanlight_spark.shared import LARGE, SharedIndex
    from fanlight_spark.topics import index_of

    index = index_of([("stock.#", 7, "amqp"), *((f"a.b{number}.c", number + 8, "amqp") for number in range(40_000))])
    assert len(memoryview(index)) > LARGE
    frame = spark.createDataFrame([("stock.X",), ("a.b5.c",), ("b",)], "topic string")
    found = match_topics(frame, index).collect()
    assert sorted((row.topic, row.subscription) for row in found) == [("a.b5.c", 13), ("stock.X", 7)]
    assert topic_matches(frame, index).count() == 3
    (file,) = Path(SparkFiles.getRootDirectory()).glob("fanlight-*.index")
    assert file.read_bytes() == index.to_bytes()

    shared = SharedIndex(spark, index)
    small = SharedIndex(spark, index_of([("stock.#", 7, "amqp")]))

    def maps(_: Any) -> Any:
        assert (len(shared.index), len(small.index)) == (40_001, 1)
        yield from [line for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith(file.name)]

    (line,) = spark.sparkContext.parallelize([0], 1).mapPartitions(maps).collect()
    assert line.split()[1] in ("r--p", "r--s")
    assert list(Path(SparkFiles.getRootDirectory()).glob("fanlight-*.index")) == [file]
