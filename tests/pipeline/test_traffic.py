"""`traffic`: counts by topic root and time against sums in plain Python over real topics."""

import importlib
import json
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pytest

from fanlight_archive import MESSAGE, Writer
from fanlight_spark.jobs import charts
from matchcore.reference import matches
from tests import realdata, require
from tests.archive.messages import batch

MINUTE = 60_000_000


def real_messages() -> list[tuple[int, str, str, str, bytes]]:
    """(microseconds, topic, syntax, client, payload) of real topics: some often, some once, over four hours."""
    topics = [(topic, "amqp") for topic in realdata.stock_topics(".")[::97]]
    topics += [(topic, "mqtt") for topic in realdata.stock_topics("/")[::501]]
    topics += [(topic, "mqtt") for topic in realdata.transit_topics()[::7]]
    topics += [("/".join(words), "mqtt") for words in realdata.device_topics()[::151]]
    topics += [("/", "mqtt"), ("stock", "amqp"), ("stock/nyse", "amqp")]
    rows = [
        ((number * 37 % 240) * MINUTE + copy, topic, syntax, f"client {number % 3}", b"x" * (number % 50))
        for number, (topic, syntax) in enumerate(topics)
        for copy in range(1 + number % 4)
    ]
    assert len(rows) > 500
    return sorted(rows)


def archived(folder: Path, rows: list[tuple[int, str, str, str, bytes]]) -> Path:
    columns = batch(0, len(rows)).to_pydict()
    for at, name in enumerate(("timestamp", "topic", "syntax", "client", "value")):
        columns[name] = [row[at] for row in rows]
    writer = Writer(folder)
    for part in pa.Table.from_pydict(columns, schema=MESSAGE).to_batches(max_chunksize=1000):
        writer.append(part)
    writer.close()
    return folder


def first_word(topic: str, syntax: str) -> str:
    return topic.split("/" if syntax == "mqtt" else ".")[0]


def summed(rows: list[Any], key: Any) -> dict[Any, tuple[int, int, int]]:
    """(messages, bytes, distinct topics) by a key, one message after the other."""
    found: dict[Any, list[Any]] = defaultdict(lambda: [0, 0, set()])
    for row in rows:
        one = found[key(row)]
        one[0] += 1
        one[1] += len(row[4])
        one[2].add(row[1:3])
    return {key: (messages, octets, len(topics)) for key, (messages, octets, topics) in found.items()}


def test_counts_are_those_of_the_messages_one_by_one(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fanlight_spark.jobs import traffic

    rows = real_messages()
    out = tmp_path / "out"
    line = [str(archived(tmp_path / "archive", rows)), "--out", str(out), "--every", "30 minutes", "--top", "50"]
    assert traffic.main(line, spark) == 0

    def kept(name: str) -> list[Any]:
        return spark.read.parquet(str(out / name)).collect()  # type: ignore[no-any-return]

    windows = summed(rows, lambda row: (row[0] // (30 * MINUTE), first_word(row[1], row[2])))
    assert {
        (int(row.start.timestamp()) // 1800, row.root): (row.messages, row.bytes, row.topics) for row in kept("windows")
    } == windows
    roots = summed(rows, lambda row: first_word(row[1], row[2]))
    assert {row.root: (row.messages, row.bytes, row.topics) for row in kept("roots")} == roots
    often = Counter(row[1:3] for row in rows)
    hottest = sorted(often, key=lambda topic: (-often[topic], topic))[:50]
    assert {(row.topic, row.syntax): row.messages for row in kept("topics")} == {one: often[one] for one in hottest}

    page = (out / "report.html").read_text()
    assert f"<dd>{len(rows):,}</dd>" in page
    assert f"<dd>{sum(len(row[4]) for row in rows):,}</dd>" in page
    assert page.count("<figure") == 3
    assert "transit" in capsys.readouterr().out


SNAPSHOT = [
    {"filter": "stock.#", "client": "desk"},
    {"filter": "stock.*.*", "client": "desk"},  # a second copy
    {"filter": "#", "syntax": "mqtt", "client": "client 1", "no_echo": True},
    {"filter": "transit/#", "syntax": "mqtt", "client": "w1", "group": "workers"},
    {"filter": "transit/#", "syntax": "mqtt", "client": "w2", "group": "workers"},
    {"filter": "home/#", "syntax": "mqtt", "client": "hub", "session": True},
    {"filter": "home/+/#", "syntax": "mqtt", "client": "hub", "session": True},
]


def copies(topic: str, syntax: str, client: str) -> int:
    """What the broker sends of a message with that snapshot, by the plain matcher."""

    def wanted(text: str, of: str) -> bool:
        return matches(text, "mqtt" if of == "mqtt" else "amqp", topic, "mqtt" if syntax == "mqtt" else "amqp")

    return (
        wanted("stock.#", "amqp") + wanted("stock.*.*", "amqp") + (client != "client 1")
        + wanted("transit/#", "mqtt") + wanted("home/#", "mqtt")
    )  # fmt: skip


def test_deliveries_are_the_copies_that_a_broker_makes(spark: Any, tmp_path: Path) -> None:
    """Of a queue group one, of a session's filters one, and none to who publishes and wants no echo."""
    from fanlight_spark.jobs import traffic

    rows = real_messages()
    file, out = tmp_path / "subscriptions.jsonl", tmp_path / "out"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in SNAPSHOT))
    line = [str(archived(tmp_path / "archive", rows)), "--out", str(out), "--subscriptions", str(file)]
    assert traffic.main(line, spark) == 0
    expected: Counter[Any] = Counter()
    for at, topic, syntax, client, _ in rows:
        expected[at // (60 * MINUTE), first_word(topic, syntax)] += copies(topic, syntax, client)
    found = spark.read.parquet(str(out / "windows")).collect()
    assert {(int(row.start.timestamp()) // 3600, row.root): row.deliveries for row in found} == expected
    page = (out / "report.html").read_text()
    assert f"<dd>{expected.total():,}</dd>" in page
    assert page.count("<figure") == 4


def test_an_archive_without_a_message_has_a_report_that_says_so(spark: Any, tmp_path: Path) -> None:
    from fanlight_spark.jobs import traffic

    folder = archived(tmp_path / "archive", real_messages()[:3])
    out = tmp_path / "out"
    assert traffic.main([str(folder), "--out", str(out), "--from", "2030-01-01"], spark) == 0
    assert "There are no messages." in (out / "report.html").read_text()


def test_a_line_is_at_nothing_where_others_passed_and_broken_where_nothing_did() -> None:
    from collections import namedtuple

    from fanlight_spark.jobs.local_time import Windows
    from fanlight_spark.jobs.traffic import OTHERS, _series

    Row = namedtuple("Row", "start root messages")
    one, two = datetime(2026, 11, 21, 20), datetime(2026, 11, 21, 21)

    class Named(Row):  # rows of Spark are asked by name, too
        def __getitem__(self, name: Any) -> Any:
            return getattr(self, name) if isinstance(name, str) else super().__getitem__(name)

    rows = [Named(one, OTHERS, 9), Named(one, "a", 1), Named(two, "b", 5)]
    assert _series(rows, "messages") == {
        "b": [(one, 0), (two, 5)], "a": [(one, 1), (two, 0)], OTHERS: [(one, 9), (two, 0)],
    }  # fmt: skip
    # An outage of all: a minute of silence, then an hour of it.
    minute = timedelta(minutes=1)
    starts = [one, one + minute, one + 3 * minute, one + 64 * minute]
    drawn = charts.lines(_series([Named(at, "a", 100) for at in starts], "messages"), step=minute).data["series"][0]
    assert drawn["y"] == [100, 100, None, 100, None, 100]
    assert Windows(minute).outages(starts) == [
        (one + 2 * minute, one + 3 * minute), (one + 4 * minute, one + 64 * minute)
    ]  # fmt: skip


def test_an_outage_is_the_answer_and_a_finding(spark: Any, tmp_path: Path) -> None:
    """Half an hour without a message, of one hour that has one each minute."""
    from fanlight_spark.jobs import traffic

    rows = [(at * MINUTE, "a.b", "amqp", "c", b"x") for at in range(60) if not 20 <= at < 50]
    line = [str(archived(tmp_path / "archive", rows)), "--out", str(tmp_path / "out"), "--every", "1 minute"]
    assert traffic.main([*line, "--fail-above", "29"], spark) == 1
    page = (tmp_path / "out" / "report.html").read_text()
    assert "30 messages passed" in page
    assert "none at all in one stretch, from 1970-01-01 00:20 to 1970-01-01 00:50" in page


ZONE = ZoneInfo("America/New_York")


def test_hours_of_day_and_days_are_those_of_a_zone_whose_clocks_are_set_forward(spark: Any, tmp_path: Path) -> None:
    from fanlight_spark.jobs import traffic

    # From Saturday evening to Monday noon; on Sunday, 11 March 2018, 02:00 was 03:00.
    first = datetime(2018, 3, 10, 22, tzinfo=UTC)
    times = [first + timedelta(minutes=7 * number) for number in range(340)]
    rows = [(int(at.timestamp() * 1e6), "a.b", "amqp", "c", b"x" * (at.hour + 1)) for at in times]
    folder, out = str(archived(tmp_path / "archive", rows)), tmp_path / "out"
    assert traffic.main([folder, "--out", str(out), "--every", "1 hour", "--zone", ZONE.key], spark) == 0
    messages, octets, minutes = Counter(), Counter(), Counter()  # type: ignore[var-annotated]
    for at, row in zip(times, rows, strict=True):
        messages[at.astimezone(ZONE).hour] += 1
        octets[at.astimezone(ZONE).hour] += len(row[4])
    for minute in range(40 * 60):  # 340 messages are 39 hours and a half: 40 windows
        minutes[(first + timedelta(minutes=minute)).astimezone(ZONE).hour] += 1
    assert minutes[2] == minutes[3] / 2 == 60  # on Monday only
    found = {row.hour: (row.hours, row.messages, row.bytes) for row in spark.read.parquet(str(out / "hours")).collect()}
    assert found == {hour: (minutes[hour] / 60, messages[hour], octets[hour]) for hour in range(24)}
    page = (out / "report.html").read_text()
    assert "340 messages passed from 2018-03-10 17:00 to 2018-03-12 10:00 America/New_York, some in each window" in page
    assert page.count("<figure") == 4
    # Days are from midnight to midnight there: Saturday's 7 hours, Sunday's 23, and Monday's.
    frame = spark.read.format("fanlight").load(folder)
    days = traffic.per_topic(frame, "1 day", ZONE.key).orderBy("start").collect()
    assert [row.start for row in days] == [datetime(2018, 3, 10, 5), datetime(2018, 3, 11, 5), datetime(2018, 3, 12, 4)]
    assert [row.messages for row in days] == list(Counter(at.astimezone(ZONE).date() for at in times).values())


def test_a_day_of_25_hours_is_no_outage_and_the_hour_that_is_repeated_counts_twice() -> None:
    from fanlight_spark.jobs.local_time import Windows, hours_of_day

    saturday, sunday, monday = datetime(2018, 11, 3, 4), datetime(2018, 11, 4, 4), datetime(2018, 11, 5, 5)
    days = Windows.of(timedelta(days=1), "1 day", ZONE.key)
    assert days.outages([saturday, sunday, monday]) == []
    assert days.outages([saturday, monday]) == [(sunday, monday)]
    assert days.count(sunday, datetime(2018, 11, 8, 5)) == 4
    there = hours_of_day(sunday, monday, ZONE.key)
    assert (sum(there), there[0], there[1], there[2]) == (25, 1, 2, 1)
    # India is five hours and a half from UTC.
    half = hours_of_day(datetime(2018, 11, 4, 4, 10), datetime(2018, 11, 4, 5, 20), "Asia/Kolkata")
    assert [round(60 * hours) for hours in half[9:12]] == [20, 50, 0]


@pytest.mark.parametrize("job", ["traffic", "capacity", "bars", "silence", "headways"])
def test_a_zone_that_there_is_not_is_an_error(job: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At once, before a Spark is started."""
    require.spark()
    main = importlib.import_module(f"fanlight_spark.jobs.{job}").main
    with pytest.raises(SystemExit, match="2"):
        main(["archive", "--out", str(tmp_path), "--zone", "Mars/Olympus"])
    assert "'Mars/Olympus' is no time zone, such as America/New_York" in capsys.readouterr().err


def test_windows_of_reports_are_those_of_bars(spark: Any) -> None:
    """Over the hour that clocks repeat, and in a zone that is half an hour off."""
    from pyspark.sql import functions as F

    from fanlight_spark.bars import Every, TickColumns, bars, ticks
    from fanlight_spark.jobs.local_time import window_start

    first = int(datetime(2018, 11, 3, 22, tzinfo=UTC).timestamp())
    at = F.timestamp_seconds(F.lit(first) + F.col("id") * 900).alias("at")
    times = spark.range(0, 48 * 4).select(at, "id")
    decoded = times.select(F.lit("k").alias("key"), "at", F.col("id").alias("_offset"), F.lit(1.0).alias("price"))
    made = ticks(decoded, TickColumns("key", "price", time="at"))
    for every, zone in [("1 hour", ZONE.key), ("1 day", ZONE.key), ("1 week", ZONE.key), ("1 hour", "Asia/Kolkata")]:
        starts = times.groupBy(window_start(every, zone, "at").alias("start")).count()
        of_bars = bars(made, Every.of(every), zone).select("start", "count")
        assert sorted(map(tuple, starts.collect())) == sorted(map(tuple, of_bars.collect()))


def test_the_ends_are_partial_unless_what_was_asked_for_reaches_beyond_them() -> None:
    from fanlight_spark.jobs.traffic import partial

    hour = timedelta(hours=1)
    first, last = datetime(2026, 11, 21, 20), datetime(2026, 11, 21, 23)
    zone = {"tzinfo": UTC}
    assert partial(first, last, hour, (None, None)) == (True, True)
    assert partial(first, last, hour, (first.replace(**zone), (last + hour).replace(**zone))) == (False, False)
    inside = (first + hour / 2).replace(**zone), (last + hour / 2).replace(**zone)
    assert partial(first, last, hour, inside) == (True, True)

