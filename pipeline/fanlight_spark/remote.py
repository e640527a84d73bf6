"""An archive as its broker replays it: what the source reads where it has an address instead of a folder.

It answers what `archive.Archive` does, as far as the source asks (`positions.Log`), by REPLAY of the native protocol
(docs/native-protocol.md, 3.7). Where the archive begins and ends, and which one it is, the broker says with each OK; a
replay that ends at offset 0 asks for nothing else. Fields that are not in the protocol's MESSAGE have no column here.

The broker reads for a bounded number of replays at once: beyond that one waits for its turn.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from fanlight_archive import SCHEMA, ArchiveError, Gone, Loss
from fanlight_archive.arrow import pa
from fanlight_archive.reader import TIME_MAX, Lost, Where, within
from fanlight_spark.broker import Address, Connection, sdk
from fanlight_spark.message import CONTENT_TYPE, CORRELATION

if TYPE_CHECKING:
    from fanlight import Replay
    from fanlight.topics import SyntaxName

#: Not in a MESSAGE, so no columns of what is read from a broker.
ARCHIVE_COLUMNS: Final = frozenset(["client", "protocol", "qos", "retain"])
DELIVERED: Final = pa.schema([field for field in SCHEMA if field.name not in ARCHIVE_COLUMNS])
SYNTAXES: Final = ("amqp", "mqtt")

BATCH_ROWS: Final = 8_192  # at most, and at least half of it if there are enough rows
TURN_SECONDS: Final = 600.0  # to wait for a replay that is allowed to read: others have whole partitions to read first
_FIELDS: Final[dict[str, Any]] = {CONTENT_TYPE: str, CORRELATION: str | bytes}  # headers that are, if of this type
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIME_MAX: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


class Remote:
    """The archive of a broker. Raises the SDK's errors, ArchiveError. Not for several threads at once."""

    def __init__(self, address: Address, filter: str, syntax: str, rows: int, where: str | None = None) -> None:
        """rows: how many offsets are a piece of work, for there are no batches to be seen from here.

        where: a selector, which the broker asks.
        """
        self._filter, self._rows, self._where = filter, rows, where
        self._syntax: SyntaxName = "mqtt" if syntax == "mqtt" else "amqp"
        self._connection = Connection(address, "spark source")
        try:
            self.refresh()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- positions.Log ------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Refresh: all that was published until now is in the archive."""
        kept = self._connection.run(self._asked())
        self.id, self.epoch = str(kept["archive"]), int(kept["epoch"])
        self.start, self.end = int(kept["start"]), int(kept["end"])
        self._size: int | None = kept.get("bytes")  # None: a broker of an earlier version
        self.oldest_end: int | None = kept.get("oldest_end")

    def epoch_at(self, offset: int) -> int:
        """An epoch in which the archive has had this offset: the present one, for all that is there."""
        return self.epoch

    def check(self, epoch: int, offset: int) -> None:
        """As `archive.Archive.check`. The broker also says so if retention has taken the offset."""
        if epoch != self.epoch or offset > self.end:
            self._connection.run(self._asked(offset=offset, epoch=epoch))

    def offset_at(self, time: int) -> int:
        """The first offset whose message is as late as `time` (microseconds UTC); the end if none is."""
        if time > min(TIME_MAX, _TIME_MAX):
            return self.end
        return int(self._connection.run(self._asked(since=_EPOCH + timedelta(microseconds=max(time, 0))))["offset"])

    def size_between(self, first: int, end: int) -> int:
        """About: the broker says what all of it takes. Raises ArchiveError if it does not."""
        if self._size is None:
            raise ArchiveError("this broker does not say how many bytes its archive has: it is of an earlier version")
        rows = self.end - self.start
        return round(self._size * max(min(end, self.end) - max(first, self.start), 0) / rows) if rows else 0

    def offset_after(self, first: int, end: int, size: int) -> int:
        """About, too: a message is taken to be as large as all are on average. Raises ArchiveError."""
        whole = self.size_between(first, end)
        return end if whole <= size else min(first + max(size * (end - first) // whole, 1), end)

    @property
    def spans(self) -> tuple[()]:
        return ()

    def missing(self, start: int, end: int) -> list[tuple[int, int]]:
        """The broker does not say beforehand: a replay says so when it comes to them."""
        return []

    def places(self, start: int, end: int) -> list[tuple[int, int]]:
        """Pieces of work."""
        return [(first, min(first + self._rows, end)) for first in range(start, end, self._rows)]

    def read(
        self, start: int, end: int, *, since: int | None = None, until: int | None = None,
        where: Where | None = None, lost: Lost | None = None,
    ) -> Iterator[Any]:
        """As `archive.Archive.read`, with the columns of `DELIVERED`, of what the filter matches."""
        while start < end:
            try:
                with _Reading(self, start, end) as reading:
                    for batch in reading:
                        batch = within(batch, since, until, where)
                        if batch.num_rows:
                            yield batch
                return
            except Gone as gone:
                if lost is None or gone.end <= start:
                    raise
                lost(Loss(gone.first, min(gone.end, end), gone))
                start = gone.end

    # -- inside -------------------------------------------------------------------------------------------------------

    async def _asked(self, **wanted: Any) -> dict[str, Any]:
        """What the broker says of its archive to a replay of nothing."""
        async with self._begun(end=0, **wanted) as replay:
            return {"epoch": replay.epoch, **replay.kept}

    @asynccontextmanager
    async def _begun(self, **wanted: Any) -> "AsyncIterator[Replay]":
        """A replay, begun when it is its turn; in force inside. Raises Gone, ArchiveError, the SDK's errors."""
        fanlight = sdk()
        client = self._connection.client
        try:
            async with asyncio.timeout(TURN_SECONDS):
                for delay in fanlight.Backoff(initial=0.05, maximum=1.0).delays():
                    try:
                        replay = await client.replay(
                            self._filter, syntax=self._syntax, where=self._where, **wanted
                        )
                        break
                    except fanlight.LimitExceeded as error:
                        if error.details.get("limit") != "archive_replays_max":
                            raise
                    await asyncio.sleep(delay)
        except fanlight.MessagesGone as error:
            raise _gone(error) from error
        except fanlight.ReplayFailed as error:
            raise ArchiveError(str(error)) from error
        except fanlight.RequestTimeout:
            raise
        except TimeoutError as error:
            raise ArchiveError(
                f"no turn to read within {TURN_SECONDS:g} s: the broker's archive_replays_max is too low for this"
            ) from error
        if "archive" not in replay.kept:
            await replay.leave()
            raise ArchiveError("this broker does not say which archive it keeps: it is of an earlier version")
        try:
            yield replay
        finally:
            await replay.leave()


class _Reading:
    """One replay of a range, from another thread than the client's."""

    def __init__(self, remote: Remote, start: int, end: int) -> None:
        self._run = remote._connection.run
        self._end = end
        self._gone: Gone | None = None  # behind what was given out last
        self._begun = remote._begun(offset=start, epoch=remote.epoch, end=end)

    def __enter__(self) -> Self:
        self._replay = self._run(self._begun.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(self._begun.__aexit__(None, None, None))

    def __iter__(self) -> Iterator[Any]:
        while frames := self._run(self._some()):
            yield _batch(frames)

    async def _some(self) -> list[Any]:
        """Messages for a batch; none when all have come. Raises ArchiveError if it ended before."""
        fanlight, replay = sdk(), self._replay
        found: list[Any] = []
        if self._gone is not None:
            raise self._gone
        try:
            while 2 * len(found) < BATCH_ROWS and (more := await replay.archived(BATCH_ROWS - len(found))):
                found += more
        except fanlight.MessagesGone as error:
            self._gone = _gone(error)
            if not found:
                raise self._gone from error
            return found
        except fanlight.ReplayFailed as error:
            raise ArchiveError(f"the broker broke off at offset {replay.next_offset}: {error}") from error
        if not found and not (replay.live and replay.next_offset is not None and replay.next_offset >= self._end):
            raise ArchiveError(f"the replay ended at offset {replay.next_offset}, and {self._end} was asked for")
        return found


def _gone(error: Any) -> Gone:
    first, end = error.details.get("first"), error.details.get("end")
    return Gone(int(first or 0), int(end or 0), "the broker does not have them any more")


def _batch(frames: list[Any]) -> Any:
    """Messages of a replay as the archive has them."""
    _, topics, values, headers, syntaxes, replies, offsets, times = zip(*frames, strict=True)
    columns: dict[str, Any] = {
        "offset": offsets,
        "timestamp": pa.array(times, pa.int64()).cast(pa.timestamp("us", tz="UTC")),
        "topic": topics,
        "value": values,
        "syntax": [SYNTAXES[syntax] for syntax in syntaxes],
        "reply_topic": [reply or None for reply in replies],
    }
    if any(headers):
        columns["headers"] = [_headers(each) for each in headers]
        columns["content_type"] = [_header(each, CONTENT_TYPE) for each in headers]
        columns["correlation"] = [_octets(_header(each, CORRELATION)) for each in headers]
    arrays = [
        pa.nulls(len(frames), field.type) if field.name not in columns
        else columns[field.name] if isinstance(columns[field.name], pa.Array)
        else pa.array(columns[field.name], field.type)
        for field in DELIVERED
    ]  # fmt: skip
    return pa.RecordBatch.from_arrays(arrays, schema=DELIVERED)


def _header(headers: dict[str, Any] | None, name: str) -> Any:
    """A header that is a field of its own in the archive: not one of another type, or with several values."""
    value = headers.get(name) if headers else None
    return value if isinstance(value, _FIELDS[name]) else None


def _headers(headers: dict[str, Any] | None) -> list[tuple[str, bytes | None]] | None:
    """The others, one for each value; null if there are none."""
    if not headers:
        return None
    found: list[tuple[str, bytes | None]] = []
    for name, value in headers.items():
        if name not in _FIELDS or _header(headers, name) is None:
            found += [(name, _octets(one)) for one in (value if isinstance(value, list) else [value])]
    return found or None


def _octets(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
