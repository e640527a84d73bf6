"""JSON payloads of ten fields in an archive to typed columns, beside the obvious ways to do it in Spark.

    payloads            the source, topic and payload: nothing that decodes them is quicker
    decoders            the source with a file of decoders: a reason for what it cannot decode, a note of what drifts
    decode              the same of a DataFrame: payloads go to the JVM and to Python once more
    decode, by rows     the same where Spark does not weigh a batch before each row (maxBytesPerBatch)
    from_json           Spark's own, in the JVM: what it cannot parse is null, and why is not known
    json.loads          a Python UDF that gives a struct, as the first answer on the web does
    json.loads, Arrow   the same of batches (mapInArrow), which one writes next

All read the same archive and give topic and ten fields. They are found to give the same sums before they are measured.
Files of decoders are read and plans are made outside the clock. Those of `json.loads` are given fewer messages: their
rates are what counts. In `one in a thousand is bad` such a payload ends too early.
"""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import functions as F

from fanlight_archive import MESSAGE, Writer
from fanlight_archive.arrow import pa
from fanlight_bench.pipeline import messages
from fanlight_bench.pipeline.case import Bench, PipelineCase, PipelineGroup, noop
from fanlight_spark import tables

ROWS, SLOW_ROWS = 2_000_000, 400_000
BAD = 1_000  # one payload of so many
BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
FIELDS = {
    "symbol": "string", "open": "double", "high": "double", "low": "double", "close": "double", "volume": "bigint",
    "trades": "bigint", "halted": "boolean", "currency": "string", "seq": "bigint",
}  # fmt: skip
SCHEMA = "_topic STRING, _problem STRING, " + ", ".join(f"{name} {kind}" for name, kind in FIELDS.items())
COLUMNS = ["_topic", *FIELDS]
DECODER = '[[decoder]]\ntable = "quotes"\nfilter = "#"\nformat = "json"\n[decoder.fields]\n' + "".join(
    f'{name} = "{kind}"\n' for name, kind in FIELDS.items()
)
PAYLOAD = (
    '{"symbol": "%s", "open": %.2f, "high": %.2f, "low": %.2f, "close": %.2f, "volume": %d, "trades": %d, '
    '"halted": %s, "currency": "USD", "seq": %d}'
)
_SCHEMA = ", ".join(f"{name}: {kind}" for name, kind in FIELDS.items())


def groups(bench: Bench) -> Iterator[PipelineGroup]:
    session, rows, few = bench.session, bench.some(ROWS), bench.some(SLOW_ROWS)
    folder = bench.folder / "decoding"
    whole, size = write(folder / "whole", rows)
    part, _ = write(folder / "part", few)
    torn, _ = write(folder / "torn", rows, bad=True)
    decoders = folder / "decoders.toml"
    decoders.write_text(DECODER, encoding="utf-8")

    def made(archive: Path) -> dict[str, Any]:
        read = session.read.format("fanlight")
        payloads = read.schema("topic STRING, value BINARY").load(str(archive))
        given = session.read.format("fanlight").schema("topic STRING, syntax STRING, value BINARY").load(str(archive))
        source = session.read.format("fanlight").option("decoders", str(decoders)).schema(SCHEMA).load(str(archive))
        return {
            "payloads": payloads,
            "decoders": tables.rows(source).select(COLUMNS),
            "decode": tables.rows(tables.decode(given, str(decoders))).select(COLUMNS),
            "from_json": _flat(payloads, F.from_json(F.col("value").cast("string"), f"struct<{_SCHEMA}>")),
            "json.loads": _flat(payloads, F.udf(_fields, f"struct<{_SCHEMA}>", useArrow=False)("value")),
            "json.loads, Arrow": payloads.mapInArrow(_batches, f"_topic: string, {_SCHEMA}"),
        }

    frames, some, bad = made(whole), made(part), made(torn)
    sums = {name: _sums(frame) for name, frame in some.items() if name != "payloads"}
    for name, found in sums.items():
        if found != sums["decoders"] or found[0] != few:
            raise AssertionError(f"{name} finds {found}, and decoders {sums['decoders']} of {few} messages")
    others = ("payloads", "decode", "from_json", "json.loads", "json.loads, Arrow")
    cases = []
    for name in frames:
        slow = name.startswith("json")
        frame, count = (some[name], few) if slow else (frames[name], rows)
        beside = others if name == "decoders" else ("json.loads",) if name == "decode" else ()
        cases.append(PipelineCase(name, count, lambda frame=frame: noop(frame), beside))  # type: ignore[misc]
    by_rows = partial(_by_rows, session, frames["decode"])
    cases.insert(3, PipelineCase("decode, by rows", rows, by_rows, ("json.loads",)))
    yield PipelineGroup("ten fields of JSON", cases, {"bytes_per_payload": size})
    if (found := bad["decoders"].count()) != (wanted := rows - -(-rows // BAD)):
        raise AssertionError(f"{found} payloads are decoded, and not {wanted}")
    yield PipelineGroup(
        "one in a thousand is bad",
        [
            PipelineCase("decoders", rows, lambda: noop(bad["decoders"]), ("from_json",)),
            PipelineCase("from_json", rows, lambda: noop(bad["from_json"])),
        ],
    )


def _by_rows(session: Any, frame: Any) -> None:
    """Batches end after 10,000 rows (maxRecordsPerBatch), and not at 64 MiB too."""
    session.conf.set(BATCH_BYTES, 2**31 - 1)  # Spark's word for no limit: nothing smaller saves the weighing
    try:
        noop(frame)
    finally:
        session.conf.unset(BATCH_BYTES)


def _flat(payloads: Any, struct: Any) -> Any:
    return payloads.select(F.col("topic").alias("_topic"), struct.alias("it")).select("_topic", "it.*")


def _fields(value: bytes) -> tuple[Any, ...]:
    found = json.loads(value)
    return tuple(found[name] for name in FIELDS)


def _batches(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        found = [json.loads(value) for value in batch.column("value").to_pylist()]
        columns = [pa.array([row[name] for row in found]) for name in FIELDS]
        yield pa.RecordBatch.from_arrays([batch.column("topic"), *columns], COLUMNS)


def _sums(frame: Any) -> tuple[Any, ...]:
    """What two frames differ in, if one of their columns does."""
    return tuple(
        frame.agg(
            F.count("*"), F.sum("seq"), F.sum("volume"), F.sum("trades"), F.count_if("halted"), F.max("symbol"),
            F.max("open"), F.min("low"), F.max("high"), F.min("close"), F.max("currency"), F.max("_topic"),
        ).first()
    )  # fmt: skip


def write(folder: Path, rows: int, *, bad: bool = False) -> tuple[Path, float]:
    """Messages with such payloads as an archive: (its folder, bytes of a payload)."""
    names = [name.replace("/", ".") for name in messages.topics() if name.startswith("stock/")]
    dice = np.random.default_rng(messages.SEED)
    writer = Writer(folder)
    octets = 0
    for at in range(0, rows, messages.BATCH):
        count = min(messages.BATCH, rows - at)
        topics = [names[number] for number in dice.integers(0, len(names), count)]
        drawn = dice.integers(1, 10**7, (count, 3)).tolist()
        values = [_payload(topic, at + row, drawn[row]) for row, topic in enumerate(topics)]
        if bad:
            values = [value[:-9] if (at + row) % BAD == 0 else value for row, value in enumerate(values)]
        octets += sum(map(len, values))
        columns = {
            "timestamp": pa.array(np.arange(at, at + count) * 50, pa.timestamp("us", tz="UTC")),
            "topic": pa.array(topics), "value": pa.array(values, pa.binary()),
            "protocol": pa.array(["native"] * count), "syntax": pa.array(["amqp"] * count),
            "qos": pa.array(np.zeros(count), pa.int8()), "retain": pa.array(np.zeros(count, np.bool_)),
        }  # fmt: skip
        whole = [columns.get(field.name, pa.nulls(count, field.type)) for field in MESSAGE]
        writer.append(pa.record_batch(whole, schema=MESSAGE))
        if (at + count) % messages.SEGMENT == 0:
            writer.roll()
    writer.close()
    return folder, round(octets / rows, 1)


def _payload(topic: str, number: int, drawn: list[int]) -> bytes:
    price, volume, trades = drawn[0] / 1e4, drawn[1], drawn[2] % 10_000
    symbol = topic.rpartition(".")[2]
    prices = (price, price * 1.02, price * 0.98, price * 1.005)
    return (PAYLOAD % (symbol, *prices, volume, trades, "true" if trades < 100 else "false", number)).encode()
