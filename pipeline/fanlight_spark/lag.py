"""How far a stream is behind its archive, as the progress of a query has it, and whether retention will overtake it.

    json.loads(query.lastProgress.sources[0].latestOffset)
    {"archive": "…", "epoch": 1, "offset": 5000,              where the archive ends
     "offsetsBehind": 1200, "bytesBehind": 81234,             what is behind the batch that was planned last
     "oldestOffset": 0, "overtakenSoon": False}               see `Watch`

`lags(progress)` finds it in a progress, and listener.py says it in the log after each batch. Spark has no
place for a Python source's own metrics, so they are in its latest offset, which Spark only shows.
"""

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from fanlight_archive import ArchiveError
from fanlight_spark.positions import Log, position_at

log: Final = logging.getLogger(__name__)

SEGMENTS: Final = 2  # that may be between the oldest offset and a reader before it is warned


@dataclass(frozen=True, slots=True)
class Lag:
    """Of one source of a query. bytes: None if the broker does not say."""

    offsets: int
    bytes: int | None
    overtaken_soon: bool


def report(archive: Log, end: int, near: bool) -> dict[str, Any]:
    """The newest position, with how far it is beyond `end`, where the batch that was planned last ends."""
    try:
        size: int | None = archive.size_between(max(end, archive.start), archive.end)
    except ArchiveError:
        size = None
    return {
        **position_at(archive, archive.end).json(),
        "offsetsBehind": max(archive.end - end, 0),
        **({} if size is None else {"bytesBehind": size}),
        "oldestOffset": archive.start,
        "overtakenSoon": near,
    }


def lags(progress: Any) -> Iterator[Lag]:
    """Those of the sources of a StreamingQueryProgress that are archives."""
    for source in progress.sources:
        try:
            found = json.loads(source.latestOffset)
            yield Lag(found["offsetsBehind"], found.get("bytesBehind"), found["overtakenSoon"])
        except (KeyError, TypeError, ValueError):
            continue  # of another kind, or of a batch that was planned before the query was started again


class Watch:
    """Warns, once each time, of a reader whom retention is about to overtake.

    Retention removes the oldest segment as a whole. It has begun where the archive does not begin at 0. A reader who is
    in the oldest segment then, or not further behind it than it is long, has that long to go on; what he has not read
    by then is lost. Who is at the end is not warned: retention never removes the segment that is being written.
    """

    def __init__(self) -> None:
        self.near = False

    def look(self, archive: Log, first: int) -> bool:
        """`first`: the offset that is read next."""
        before, self.near = self.near, is_near(archive, first)
        if self.near and not before:
            log.warning(
                "retention will soon overtake this query: it reads from offset %d on, %d behind the newest; the "
                "archive begins at %d, and what is before %s is removed next. Give the query more processors, or the "
                "archive more room (archive_bytes_max, archive_seconds_max)",
                first, archive.end - first, archive.start, archive.oldest_end,
            )  # fmt: skip
        return self.near


def is_near(archive: Log, first: int) -> bool:
    """Is an offset that is to be read among those that retention removes next?"""
    if not archive.start or archive.oldest_end is None or first >= archive.end:
        return False
    return first - archive.start < SEGMENTS * (archive.oldest_end - archive.start)
