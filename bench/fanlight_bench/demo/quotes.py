"""The rows of the sample as messages: stock.<exchange>.<ticker>, the row as JSON, close and volume as headers too.

A ticker may hold a dot: BRK.B, BF.B. In `.` spelling that would be two words, and `stock.*.*` would miss it;
so such a ticker is published in `/` spelling, where it is one: stock/nyse/BRK.B. Subscribers of either
spelling get it (docs/topics.md).
"""

import csv
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal

Syntax = Literal["amqp", "mqtt"]


@dataclass(frozen=True, slots=True)
class Quote:
    """One message."""

    day: str
    topic: str
    syntax: Syntax
    payload: bytes
    headers: dict[str, Any] = field(default_factory=dict)


def topic(exchange: str, ticker: str) -> tuple[str, Syntax]:
    """The topic of a ticker, in the spelling in which it has three words."""
    if "." in ticker:
        return f"stock/{exchange}/{ticker}", "mqtt"
    return f"stock.{exchange}.{ticker}", "amqp"


def read() -> Iterator[Quote]:
    """All quotes of the sample, by day and ticker."""
    sample = resources.files("fanlight_bench.data") / "sp500_sample.csv.gz"
    with sample.open("rb") as packed, gzip.open(packed, "rt", newline="") as lines:
        for row in csv.DictReader(lines):
            name, syntax = topic(row["exchange"], row["ticker"])
            prices = {key: float(row[key]) if row[key] else None for key in ("open", "high", "low", "close")}
            values = {"date": row["date"], "ticker": row["ticker"], **prices, "volume": int(row["volume"])}
            headers = {"content-type": "application/json", "close": prices["close"], "volume": values["volume"]}
            yield Quote(row["date"], name, syntax, json.dumps(values).encode(), headers)
