"""Batches of messages for the tests of the archive."""

from typing import Any

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]

from fanlight_archive import MESSAGE

SECOND = 1_000_000


def batch(first: int, rows: int, *, topic: str = "stock.AAPL", payload: int = 20) -> Any:
    """Messages that tell their number, one a second from `first` seconds on."""
    numbers = range(first, first + rows)
    return pa.record_batch(
        {
            "timestamp": pa.array([number * SECOND for number in numbers], pa.timestamp("us", tz="UTC")),
            "topic": [f"{topic}.{number % 3}" for number in numbers],
            "value": [b"%0*d" % (payload, number) for number in numbers],
            "headers": pa.array(
                [[{"key": "n", "value": b"%d" % number}] if number % 2 else None for number in numbers],
                MESSAGE.field("headers").type,
            ),
            "client": ["publisher"] * rows,
            "protocol": ["native"] * rows,
            "syntax": ["amqp"] * rows,
            "qos": pa.array([0] * rows, pa.int8()),
            "retain": [False] * rows,
            "content_type": pa.nulls(rows, pa.string()),
            "reply_topic": pa.nulls(rows, pa.string()),
            "correlation": pa.nulls(rows, pa.binary()),
        },
        schema=MESSAGE,
    )


def numbers_of(batches: Any) -> list[int]:
    """The numbers that the payloads tell."""
    return [int(value) for one in batches for value in one.column("value").to_pylist()]


def offsets_of(batches: Any) -> list[int]:
    return [offset for one in batches for offset in one.column("offset").to_pylist()]
