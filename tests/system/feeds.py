"""The real data as feeds of messages, and what the oracle says about who gets which.

A feed is one file, published by one connection in its order. Each payload begins with the feed's number and its own
number in the feed, five bytes, and goes on with the row as JSON; so a delivery says which it is, and can be compared
with what was published, whole.
"""

import csv
import gzip
import json
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from matchcore.reference import matches

Syntax = Literal["amqp", "mqtt"]
Topic = tuple[str, Syntax]
MARK = struct.Struct(">BI")  # of a payload: feed, number
PRICES, POSITIONS = 619_040, 44_300  # messages of the whole data, of a day of positions at least

_encode = json.JSONEncoder(check_circular=False).encode


@dataclass(frozen=True, repr=False)  # as text it would be 100 MB in the report of a failure
class Feed:
    """The messages of one file, in order. Topics are kept once each."""

    number: int
    topics: list[Topic]
    topic_of: list[int]
    payloads: list[bytes]
    counts: list[int]  # messages of each topic

    def __len__(self) -> int:
        return len(self.payloads)

    def messages(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[str, Syntax, bytes]]:
        for index, payload in zip(self.topic_of[start:stop], self.payloads[start:stop], strict=True):
            yield *self.topics[index], payload

    def wanted(self, pattern: str, syntax: Syntax) -> list[bool]:
        """For each topic, whether the filter matches it: the oracle, asked once per distinct topic."""
        return [matches(pattern, syntax, topic, spelling) for topic, spelling in self.topics]

    def numbers(self, wanted: list[bool]) -> Iterator[int]:
        """The numbers of the messages whose topic is wanted, in order."""
        return (number for number, topic in enumerate(self.topic_of) if wanted[topic])


class _Maker:
    def __init__(self, number: int) -> None:
        self._number = number
        self._index: dict[Topic, int] = {}
        self._topic_of: list[int] = []
        self._payloads: list[bytes] = []

    def add(self, topic: Topic, row: dict[str, object]) -> None:
        self._topic_of.append(self._index.setdefault(topic, len(self._index)))
        mark = MARK.pack(self._number, len(self._payloads))
        self._payloads.append(mark + _encode(row).encode())

    def feed(self, messages_min: int) -> Feed:
        """The feed; where the data are a sample, they are repeated until it is as long as the whole."""
        rows = len(self._payloads)
        for number in range(rows, messages_min):
            self._topic_of.append(self._topic_of[number - rows])
            self._payloads.append(MARK.pack(self._number, number) + self._payloads[number - rows][MARK.size :])
        counted = Counter(self._topic_of)
        counts = [counted[topic] for topic in range(len(self._index))]
        return Feed(self._number, list(self._index), self._topic_of, self._payloads, counts)


def market(folder: Path, number: int) -> Feed:
    """Daily prices: stock.<exchange>.<ticker>, in / spelling where the ticker holds a dot."""
    from pyarrow import parquet  # type: ignore[import-untyped, unused-ignore]

    with gzip.open(folder / "us_listings.csv.gz", "rt", newline="") as lines:
        exchanges = {row["ticker"]: row["exchange"].lower() for row in csv.DictReader(lines)}
    table = parquet.read_table(folder / "sp500_daily.parquet")
    names = ("date", "open", "high", "low", "close", "volume")
    columns = [table["date"].cast("string").to_pylist(), *(table[name].to_pylist() for name in names[1:])]
    maker = _Maker(number)
    for ticker, *row in zip(table["ticker"].to_pylist(), *columns, strict=True):
        exchange = exchanges.get(ticker, "us")
        topic: Topic = (f"stock.{exchange}.{ticker}", "amqp")
        if "." in ticker:
            topic = (f"stock/{exchange}/{ticker}", "mqtt")
        maker.add(topic, dict(zip(names, row, strict=True)))
    return maker.feed(PRICES)


def transit(path: Path, number: int, syntax: Syntax) -> Feed:
    """Positions of the buses of one day: transit, austin, the route and the vehicle, in either spelling."""
    maker = _Maker(number)
    separator = "." if syntax == "amqp" else "/"
    with gzip.open(path, "rt", newline="") as lines:
        for row in csv.DictReader(lines):
            words = ("transit", "austin", row.pop("route_id"), row.pop("vehicle_id"))
            maker.add((separator.join(words), syntax), dict(row))
    return maker.feed(POSITIONS)
