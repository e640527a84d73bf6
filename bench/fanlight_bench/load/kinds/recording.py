"""A recorded workload: who published when, on which topic, and how much. Lines of JSON, as Spark writes them.

    {"at": 0.0, "publisher": 17, "topic": "transit/austin/801/5012", "bytes": 143}
    {"at": 0.25, "publisher": 3, "topic": "transit/austin/7/2103", "bytes": 151}

at: seconds, from whatever moment; publisher: any number or text that says who it was (left out: one publisher a topic);
topic: with slashes, dots in it become dashes; bytes: of the payload. Other keys are ignored. A file, packed (.gz) or
not, or a folder of such, but for those whose names begin with _ or a dot. The order of the lines does not matter.

Three recordings need no file: `sample`, the stock prices that are shipped; `market` and `transit`, the real data in the
folder that FANLIGHT_REAL_DATA names. What one saw as a day is replayed as a second in the first two.
"""

import csv
import gzip
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from fanlight_bench.load.speaker import Refused

DAY_SECONDS = 1.0     # of replaying a day of stock prices, all of which are of its end
BYTES_MAX = 1 << 20   # of a payload


@dataclass(frozen=True, slots=True)
class Event:
    """One message of a recording. at: seconds since its first."""

    at: float
    publisher: str
    topic: str
    payload_bytes: int


def load(name: str, most: int) -> list[Event]:
    """The first `most` events of a recording, by time. Raises Refused if it is missing or not a recording."""
    sources = {"sample": _sample, "market": _market, "transit": _transit}
    try:
        events = sorted(sources[name]() if name in sources else _lines(Path(name)), key=lambda event: event.at)
    except OSError as error:
        raise Refused(f"{name}: {error.strerror or error}") from None
    if not events:
        raise Refused(f"{name}: nothing was recorded")
    first = events[0].at
    return [
        # A dot would be two words where dots are between words: BRK.B.
        Event(each.at - first, each.publisher, each.topic.replace(".", "-"), each.payload_bytes)
        for each in islice(events, most)
    ]


def _lines(path: Path) -> Iterator[Event]:
    files = sorted(file for file in path.iterdir() if file.name[0] not in "._") if path.is_dir() else [path]
    for file in files:
        with _open(file) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _event(line, f"{file.name}, line {number}")


def _event(line: str, where: str) -> Event:
    try:
        given: dict[str, Any] = json.loads(line)
        topic, size = given["topic"], given["bytes"]
        event = Event(float(given["at"]), str(given.get("publisher", topic)), topic, int(size))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(f"{where}: {type(error).__name__}: {error}; at, topic and bytes are wanted") from None
    if not isinstance(topic, str) or not topic or not 0 <= event.payload_bytes <= BYTES_MAX:
        raise Refused(f"{where}: topic {topic!r}, {size} bytes; a text, and 0 to {BYTES_MAX} are wanted")
    if any(letter in topic for letter in "+#*> \t") or not all(topic.split("/")):
        raise Refused(f"{where}: {topic!r} has wildcards, spaces or empty levels, which not all protocols' topics have")
    return event


def _open(file: Path) -> TextIO:
    return gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8")


# --- the recordings that need no file ---------------------------------------------------------------------------------


def _sample() -> Iterator[Event]:
    sample = resources.files("fanlight_bench.data") / "sp500_sample.csv.gz"
    with resources.as_file(sample) as path, _open(path) as lines:
        yield from _prices(csv.DictReader(lines))


def _market() -> Iterator[Event]:
    try:
        from pyarrow import parquet  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise Refused("market is Parquet, and needs pyarrow: pip install pyarrow") from None
    with _open(_data("market/us_listings.csv.gz")) as lines:
        exchanges = {row["ticker"]: row["exchange"].lower() for row in csv.DictReader(lines)}
    table = parquet.ParquetFile(_data("market/sp500_daily.parquet"))
    for batch in table.iter_batches():
        for row in batch.to_pylist():
            yield from _prices([{**row, "exchange": exchanges.get(row["ticker"], "us")}])


def _prices(rows: Iterable[dict[str, Any]]) -> Iterator[Event]:
    for row in rows:
        day = row["date"] if isinstance(row["date"], date) else date.fromisoformat(row["date"])
        payload = json.dumps({key: value for key, value in row.items() if key != "exchange"}, default=str)
        topic = f"stock/{row['exchange']}/{row['ticker']}"
        yield Event(day.toordinal() * DAY_SECONDS, row["exchange"], topic, len(payload))


def _transit() -> Iterator[Event]:
    for path in sorted(_data("transit").glob("austin_vehicles_*.csv.gz"))[:1]:
        with _open(path) as lines:
            for row in csv.DictReader(lines):
                at = datetime.fromisoformat(row["timestamp"]).timestamp()
                topic = f"transit/austin/{row['route_id']}/{row['vehicle_id']}"
                yield Event(at, row["vehicle_id"], topic, len(json.dumps(row)))


def _data(name: str) -> Path:
    folder = os.environ.get("FANLIGHT_REAL_DATA")
    if not folder or not (Path(folder) / name).exists():
        raise Refused(f"{name} is not there: FANLIGHT_REAL_DATA names the folder of the real data, or give a file")
    return Path(folder) / name
