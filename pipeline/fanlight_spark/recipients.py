"""Who got a message: the messages of an archive, and the subscriptions that its audit topics say there were.

    recipients(messages, trail)    a row for each message and each subscription that it was for, as in RECIPIENTS

    batch --FrozenIndex--> (row, subscription) --begin < offset < end?--> --no_echo, selector--> outcome

outcome: `sent` to a client that was connected; `queued` for a session whose client was away, or in a named queue;
`missed` with QoS 0 by a session whose client was away; `group` to one member of the group. A session gets a message
once, whichever of its filters match. The matcher and the selectors are the broker's own.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

import matchcore
from fanlight_archive.arrow import pa
from fanlight_spark import workers
from fanlight_spark.topics import index_of, match_rows
from fanlight_spark.trail import QUEUE, Subscribed, Trail
from matchcore.message_rows import MessageRows
from matchcore.row_screener import RowScreener
from matchcore.where import parse_where

RECIPIENTS: Final = pa.schema(
    [
        pa.field("offset", pa.int64()), pa.field("timestamp", pa.timestamp("us", "UTC")),
        pa.field("topic", pa.string()),
        pa.field("publisher", pa.string()), pa.field("client", pa.string()), pa.field("user", pa.string()),
        pa.field("namespace", pa.string()), pa.field("protocol", pa.string()), pa.field("filter", pa.string()),
        pa.field("syntax", pa.string()), pa.field("group", pa.string()), pa.field("outcome", pa.string()),
        pa.field("in_part", pa.bool_()),
    ]
)  # fmt: skip
ROWS_AT_ONCE: Final = 1_024
#: What of a message is looked at; with selectors all columns of an archive are.
COLUMNS: Final = ("offset", "timestamp", "topic", "syntax", "client", "qos")


class Recipients:
    """What is asked, made once for each task. Raises matchcore.InvalidFilter, matchcore.InvalidSelector."""

    def __init__(self, trail: Trail) -> None:
        self._trail = trail
        given = trail.subscriptions
        self._index: matchcore.FrozenIndex = index_of(
            (each.archived_filter.encode("utf-8", "surrogateescape"), number, each.syntax)
            for number, each in enumerate(given)
        )
        self._begin = np.array([each.begin for each in given], dtype=np.int64)
        self._end = np.array([each.end for each in given], dtype=np.int64)
        self._screeners: dict[str, RowScreener] = {}

    def of(self, batch: Any) -> Any:
        """RECIPIENTS of a batch with COLUMNS, or with all columns if `asks_content`."""
        column = {name: batch.column(batch.schema.get_field_index(name)) for name in COLUMNS}
        starts, places = match_rows(self._index, column["topic"], column["syntax"])
        rows = np.repeat(np.arange(batch.num_rows), np.diff(starts))
        offsets = column["offset"].to_numpy()[rows]
        there = (self._begin[places] < offsets) & (offsets < self._end[places])
        rows, places = rows[there], places[there]
        kept = self._true_of(batch, rows, places)
        rows, places = rows[kept], places[kept]
        found = list(self._each(column, rows, places))
        return pa.RecordBatch.from_pylist(found, schema=RECIPIENTS)

    def _each(self, column: dict[str, Any], rows: Any, places: Any) -> Iterator[dict[str, Any]]:
        once: set[tuple[int, str, str]] = set()  # of sessions
        taken = {name: values.take(pa.array(rows)).to_pylist() for name, values in column.items()}
        for at, place in enumerate(places.tolist()):
            each = self._trail.subscriptions[place]
            if each.no_echo and each.client == taken["client"][at]:
                continue
            offset: int = taken["offset"][at]
            if each.session:
                if (offset, each.namespace, each.client) in once:
                    continue
                once.add((offset, each.namespace, each.client))
            yield {
                "offset": offset, "timestamp": taken["timestamp"][at], "topic": taken["topic"][at],
                "publisher": taken["client"][at], "client": _utf8(each.client), "user": _utf8(each.user),
                "namespace": each.namespace, "protocol": each.protocol, "filter": _utf8(each.filter),
                "syntax": each.syntax, "group": None if each.group is None else _utf8(each.group),
                "outcome": self._outcome(each, offset, taken["qos"][at]), "in_part": each.partly,
            }  # fmt: skip

    def _outcome(self, each: Subscribed, offset: int, qos: int) -> str:
        if each.protocol == QUEUE:
            return "queued"
        if each.group is not None:
            return "group"
        if not each.session or self._trail.present(each.namespace, each.client, offset):
            return "sent"
        return "queued" if min(each.qos, qos) else "missed"

    def _true_of(self, batch: Any, rows: Any, places: Any) -> Any:
        """Of each pair whether the subscription's selector, if it has one, is true of the message."""
        true = np.ones(len(rows), dtype=bool)
        for place in np.unique(places).tolist():
            where = self._trail.subscriptions[place].where
            if where is None:
                continue
            pairs = np.flatnonzero(places == place)
            asked = MessageRows(batch.take(pa.array(rows[pairs])))
            true[pairs] = np.asarray(self._screener(where).true_of(asked))
        return true

    def _screener(self, where: str) -> RowScreener:
        if where not in self._screeners:
            self._screeners[where] = RowScreener(parse_where(where))
        return self._screeners[where]


def asks_content(trail: Trail) -> bool:
    """Has a subscription a selector? Then all columns of messages are needed."""
    return any(each.where is not None for each in trail.subscriptions)


def recipients(messages: Any, trail: Trail) -> Any:
    """The DataFrame of RECIPIENTS. messages: with COLUMNS, or with all columns of an archive if `asks_content`."""
    from pyspark.sql.pandas.types import from_arrow_schema

    shared = messages.sparkSession.sparkContext.broadcast(trail)

    def ask(batches: Iterator[Any]) -> Iterator[Any]:
        workers.settle()
        asking = Recipients(shared.value)
        for batch in batches:
            for at in range(0, batch.num_rows, ROWS_AT_ONCE):
                yield asking.of(batch.slice(at, ROWS_AT_ONCE))

    return messages.mapInArrow(ask, from_arrow_schema(RECIPIENTS))


def _utf8(text: str) -> str:
    """For Spark, whose strings are UTF-8."""
    return text.encode("utf-8", "replace").decode()
