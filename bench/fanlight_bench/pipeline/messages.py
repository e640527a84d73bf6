"""What the bench reads and matches: messages on real topics, and filters for them, made anew from a fixed seed.

    topics      stock/<exchange>/<ticker> of every listed US security, and transit/austin/<route>/<vehicle> of a day:
                some 13,500, in MQTT's spelling, for paho's matcher knows no other
    messages    each on any of the topics, with 100 bytes, a publisher of twenty, and no headers
    filters     as people write them: a topic, a topic with a word left open, all below it, all of an exchange; but most
                (four fifths) are for fields below the topics, which nobody publishes here, as most subscriptions of a
                large set are for something else

The topics are those of the whole data (FANLIGHT_REAL_DATA, or ../shared/data beside the checkout) or of the samples in
tests/data.
"""

import csv
import gzip
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fanlight_archive import MESSAGE, SCHEMA, Writer
from fanlight_archive.arrow import pa

ROOT = Path(__file__).parents[3]
SEED = 20_171
BATCH = 4_096  # messages: what the broker writes together
SEGMENT = 80 * BATCH  # some 64 MB
FIELDS = ("bid", "ask", "last", "open", "high", "low", "close", "volume", "spread", "trades", "news", "alerts")
DEPTH = 10  # books of a field: so that there are a million filters to choose from
FILES = 2  # of Parquet: two tasks, whatever their size


class NoData(Exception):
    """The real topics are not here."""


def data_folder() -> Path:
    """Raises NoData."""
    named = os.environ.get("FANLIGHT_REAL_DATA")
    for folder in (Path(named) if named else None, ROOT.parent / "shared" / "data", ROOT / "tests" / "data"):
        if folder is not None and (folder / "market" / "us_listings.csv.gz").exists():
            return folder
    raise NoData("real topics are read from FANLIGHT_REAL_DATA, or tests/data of a checkout; neither has market/")


def topics() -> list[str]:
    """Distinct, in one order. Raises NoData."""
    folder = data_folder()
    listed = [f"stock/{row['exchange'].lower()}/{row['ticker']}" for row in _rows(folder, "market/us_listings.csv.gz")]
    vehicles = _rows(folder, "transit/austin_vehicles_2017-03-21.csv.gz")
    driven = {f"transit/austin/{row['route_id']}/{row['vehicle_id']}" for row in vehicles}
    return list(dict.fromkeys([*listed, *sorted(driven)]))


def batches(names: Sequence[str], rows: int) -> Iterator[Any]:
    """Messages, as the broker gives them to the archive."""
    dice = np.random.default_rng(SEED)
    known = pa.array(names, pa.string())
    clients = pa.array([f"publisher-{number}" for number in range(20)], pa.string())
    for at in range(0, rows, BATCH):
        count = min(BATCH, rows - at)
        prices = dice.integers(0, 10**9, (count, 10))
        columns = {
            "timestamp": pa.array(np.arange(at, at + count) * 50, pa.timestamp("us", tz="UTC")),
            "topic": known.take(pa.array(dice.integers(0, len(names), count))),
            "value": pa.array([b"".join(b"%010d" % price for price in row) for row in prices.tolist()], pa.binary()),
            "headers": pa.nulls(count, MESSAGE.field("headers").type),
            "client": clients.take(pa.array(dice.integers(0, len(clients), count))),
            "protocol": pa.array(["mqtt"] * count),
            "syntax": pa.array(["mqtt"] * count),
            "qos": pa.array(np.zeros(count), pa.int8()),
            "retain": pa.array(np.zeros(count, np.bool_)),
            **{name: pa.nulls(count, MESSAGE.field(name).type) for name in MESSAGE.names[-3:]},
        }
        yield pa.record_batch([columns[name] for name in MESSAGE.names], schema=MESSAGE)


def write(folder: Path, names: Sequence[str], rows: int) -> tuple[Path, Path]:
    """The same messages as an archive and as Parquet; their folders. Takes some 4 µs a message."""
    from pyarrow import parquet  # type: ignore[import-untyped, unused-ignore]

    archive, flat = folder / "archive", folder / "parquet"
    flat.mkdir()
    writer = Writer(archive)
    files = [parquet.ParquetWriter(flat / f"part-{number}.parquet", SCHEMA) for number in range(FILES)]
    written = 0
    for batch in batches(names, rows):
        writer.append(batch)
        offsets = pa.array(np.arange(written, written + batch.num_rows))
        numbered = pa.RecordBatch.from_arrays([offsets, *batch.columns], schema=SCHEMA)
        files[written * FILES // rows].write_batch(numbered, row_group_size=1 << 20)
        written += batch.num_rows
        if written % SEGMENT == 0:
            writer.roll()
    writer.close()
    for file in files:
        file.close()
    return archive, flat


def write_topics(folder: Path, drawn: Sequence[str]) -> Path:
    """Some topics alone, as Parquet; the folder."""
    from pyarrow import parquet

    folder.mkdir()
    for number in range(FILES):
        part = drawn[len(drawn) * number // FILES : len(drawn) * (number + 1) // FILES]
        parquet.write_table(pa.table({"topic": pa.array(part, pa.string())}), folder / f"part-{number}.parquet")
    return folder


def drawn(names: Sequence[str], rows: int) -> list[str]:
    """The topics alone of this number of messages."""
    return random.Random(SEED).choices(names, k=rows)


def filters(names: Sequence[str], count: int) -> list[str]:
    """So many different ones. Shapes that have run out leave room for the others."""
    dice = random.Random(SEED)
    made: dict[str, None] = {}
    while len(made) < count:
        made[_filter(dice, dice.choice(names))] = None
    return list(made)


def _filter(dice: random.Random, topic: str) -> str:
    words = topic.split("/")
    shape = dice.random()
    if shape < 0.1:
        return topic
    if shape < 0.16:
        words[dice.randrange(len(words) - 1)] = "+"
        return "/".join(words)
    if shape < 0.2:
        return f"{topic}/#"
    if shape < 0.202:
        return "/".join([*words[:2], "#"])
    field = f"{dice.choice(FIELDS)}/{dice.randrange(DEPTH)}"
    if shape < 0.6:
        return f"{topic}/{field}"
    return "/".join([*("+" if dice.random() < 0.3 else word for word in words[:-1]), words[-1], field])


def _rows(folder: Path, name: str) -> Iterator[dict[str, str]]:
    with gzip.open(folder / name, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)
