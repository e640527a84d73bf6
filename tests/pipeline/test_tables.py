"""Decoded tables in Spark: from the source and from any DataFrame, in batches and as streams, and in SQL."""

from pathlib import Path
from typing import Any

import pytest

from fanlight_archive import MESSAGE, Writer
from fanlight_archive.arrow import pa

DECODERS = """
[[decoder]]
table = "quotes"
filter = "stock/+/+"
syntax = "mqtt"
format = "json"
words = { exchange = 2, ticker = -1 }
time = "at"
[decoder.fields]
price = "double"
at = { type = "timestamp", zone = "America/New_York" }

[[decoder]]
table = "lines"
filter = "log.#"
format = "text"
[decoder.fields]
line = "string"
"""
PAYLOADS = [
    ("stock.nyse.A", b'{"price": 1.5, "at": "2018-07-01T10:00"}'),
    ("stock.nyse.B", b'{"price": "2", "at": "2018-07-01"}'),
    ("log.a", b"started"),
    ("stock.nasdaq.C", b"\xff"),
    ("stock.nasdaq.C", b'{"price": 3, "at": "2018-01-01", "venue": "x"}'),
    ("stock.nyse.A", b'{"price": 4}'),
]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Six messages, and decoders.toml beside the archive."""
    rows = len(PAYLOADS)
    columns = {
        "timestamp": pa.array(range(rows), pa.timestamp("us", tz="UTC")),
        "topic": pa.array([topic for topic, _ in PAYLOADS]),
        "value": pa.array([value for _, value in PAYLOADS], pa.binary()),
        "protocol": pa.array(["native"] * rows), "syntax": pa.array(["amqp"] * rows),
        "qos": pa.array([0] * rows, pa.int8()), "retain": pa.array([False] * rows),
    }  # fmt: skip
    writer = Writer(tmp_path / "archive")
    whole = [columns.get(field.name, pa.nulls(rows, field.type)) for field in MESSAGE]
    writer.append(pa.record_batch(whole, schema=MESSAGE))
    writer.close()
    (tmp_path / "decoders.toml").write_text(DECODERS, encoding="utf-8")
    return tmp_path / "archive"


def reader(spark: Any, archive: Path, table: str = "quotes") -> Any:
    options = {"decoders": str(archive.with_name("decoders.toml")), "table": table}
    return spark.read.format("fanlight").options(**options)


def plain(frame: Any) -> list[Any]:
    return sorted((row.asDict(recursive=True) for row in frame.collect()), key=str)


def test_the_source_and_decode_give_the_same_rows_letters_and_drift(spark: Any, archive: Path) -> None:
    import fanlight_spark
    from fanlight_spark import tables

    read = reader(spark, archive).load(str(archive)).cache()
    messages = spark.read.format("fanlight").load(str(archive))
    decoded = fanlight_spark.decode(messages, archive.with_name("decoders.toml"), "quotes")
    assert read.schema == decoded.schema
    assert plain(read) == plain(decoded)
    found = tables.rows(read).orderBy("_offset").selectExpr("ticker", "exchange", "price", "string(at)", "_offset")
    assert [tuple(row) for row in found.collect()] == [
        ("A", "nyse", 1.5, "2018-07-01 14:00:00", 0), ("C", "nasdaq", 3.0, "2018-01-01 05:00:00", 4),
        ("A", "nyse", 4.0, None, 5),
    ]  # fmt: skip
    dead = tables.dead_letters(read).orderBy("offset").select("offset", "reason", "value").collect()
    assert [(row.offset, row.reason, bytes(row.value)) for row in dead] == [
        (1, "price: string in place of double", PAYLOADS[1][1]), (3, "not UTF-8, byte 0", b"\xff"),
    ]  # fmt: skip
    assert {tuple(row) for row in tables.drift(read).collect()} == {
        ("price", "type", "string", 1, 1, 1), ("venue", "new", "string", 1, 4, 4), ("at", "missing", None, 1, 5, 5),
    }  # fmt: skip


def test_a_stream_has_its_letters_beside_its_rows(spark: Any, archive: Path, tmp_path: Path) -> None:
    from fanlight_spark import tables

    decoders = str(archive.with_name("decoders.toml"))
    stream = spark.readStream.format("fanlight").option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 2)
    decoded = stream.option("decoders", decoders).option("table", "quotes").load(str(archive))

    def write(batch: Any, number: int) -> None:
        tables.rows(batch).write.parquet(str(tmp_path / f"rows-{number}"))
        tables.dead_letters(batch).write.parquet(str(tmp_path / f"dead-{number}"))

    query = decoded.writeStream.foreachBatch(write).trigger(availableNow=True).start()
    query.awaitTermination()
    assert spark.read.parquet(str(tmp_path / "rows-*")).count() == 3
    assert spark.read.parquet(str(tmp_path / "dead-*")).count() == 2


def test_a_table_of_the_catalog_keeps_its_options(spark: Any, archive: Path) -> None:
    decoders = archive.with_name("decoders.toml")
    of = f"path '{archive}', decoders '{decoders}'"
    spark.sql(f"CREATE TABLE quotes USING fanlight OPTIONS ({of}, table 'quotes')")
    spark.sql(f"CREATE TABLE messages USING fanlight OPTIONS (path '{archive}', filter 'stock.#')")
    spark.sql(f"CREATE TEMPORARY VIEW lines USING fanlight OPTIONS ({of}, table 'lines')")
    try:
        found = spark.sql("SELECT sum(price) FROM quotes WHERE topic_matches('stock.nyse.*', _topic)").first()
        assert tuple(found) == (5.5,)
        dear = spark.sql("SELECT count(*) FROM quotes WHERE selector_matches('price > 2', struct(price))")
        assert dear.first()[0] == 2
        words = spark.sql("SELECT DISTINCT topic_word(topic, 2), topic_word(topic, -1) FROM messages").collect()
        assert {tuple(row) for row in words} == {("nyse", "A"), ("nyse", "B"), ("nasdaq", "C")}
        assert spark.sql("SELECT line FROM lines").collect() == [("started",)]
        assert spark.readStream.table("quotes").isStreaming
        with pytest.raises(Exception, match="no option of the source fanlight: fliter;"):
            spark.sql(f"CREATE TABLE other USING fanlight OPTIONS (path '{archive}', fliter 'stock.#')")
        with pytest.raises(Exception, match="password: not of a table in a catalog"):
            spark.sql("CREATE TABLE other USING fanlight OPTIONS (url 'fanlight://127.0.0.1', password 'x')")
    finally:
        for table in ("quotes", "messages"):
            spark.sql(f"DROP TABLE {table}")
        spark.catalog.dropTempView("lines")


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"table": "x"}, "has no table 'x': it has quotes, lines"), ({}, "say which table"),
     ({"table": "quotes", "filter": "#"}, "filter: not with decoders")],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(spark: Any, archive: Path, options: dict[str, str], reason: str) -> None:
    asked = spark.read.format("fanlight").option("decoders", str(archive.with_name("decoders.toml")))
    with pytest.raises(Exception, match=reason):
        asked.options(**options).load(str(archive)).count()


def test_a_narrower_schema_is_taken_and_a_wrong_one_refused(spark: Any, archive: Path) -> None:
    whole = reader(spark, archive).load(str(archive))
    for names in (["price"], ["_value", "ticker", "_offset", "_drift"]):
        schema = whole.select(names).schema
        assert plain(reader(spark, archive).schema(schema).load(str(archive))) == plain(whole.select(names))
    with pytest.raises(Exception, match="price is double in the table quotes, and not bigint"):
        reader(spark, archive).schema("price BIGINT").load(str(archive)).count()


def test_what_a_worker_keeps_is_out_of_the_rounds_of_its_garbage_collector(spark: Any) -> None:
    import gc

    from fanlight_spark import workers

    def frozen(_: Any) -> Any:
        workers.settle()
        yield pa.record_batch({"frozen": [gc.get_freeze_count()]})

    before = gc.get_freeze_count()
    workers.settle()
    assert gc.get_freeze_count() == before  # this is no worker of Spark
    assert spark.range(1).coalesce(1).mapInArrow(frozen, "frozen BIGINT").first().frozen > 10_000
