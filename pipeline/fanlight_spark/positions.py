"""Positions in an archive, and how a range of messages is divided among tasks.

    Log        an archive in a folder (archive.Archive), or as its broker replays it (remote.Remote)

A position is an epoch and the offset of the next message, with the archive's identity: what a query writes into its
checkpoint. `Bounds` turns a position, which may be old, into an offset of the archive as it is now, or says what is
gone.
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from fanlight_archive import ArchiveError, Corrupt, Gone, Loss, Missing
from fanlight_archive.reader import Lost

log: Final = logging.getLogger(__name__)

UNLIKELY: Final = {8: "a date", 10: "seconds"}  # digits of a time that nobody means as milliseconds
EARLIEST, LATEST = "earliest", "latest"
ROWS_PER_PARTITION: Final = 262_144  # some 0.3 s of reading: enough tasks for a few processors, few enough to plan


class Log(Protocol):
    """What is asked of an archive, wherever it is; `archive.Archive` says what each means."""

    @property
    def id(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def spans(self) -> Sequence[Any]: ...
    @property
    def oldest_end(self) -> int | None: ...
    def refresh(self) -> None: ...
    def close(self) -> None: ...
    def epoch_at(self, offset: int) -> int: ...
    def check(self, epoch: int, offset: int) -> None: ...
    def offset_at(self, time: int) -> int: ...
    def missing(self, start: int, end: int) -> list[tuple[int, int]]: ...
    def size_between(self, first: int, end: int) -> int: ...
    def offset_after(self, first: int, end: int, size: int) -> int: ...
    def places(self, start: int, end: int) -> list[tuple[int, int]]: ...
    def read(
        self, start: int, end: int, *, since: int | None, until: int | None, where: Any, lost: Lost
    ) -> Iterator[Any]: ...


@dataclass(frozen=True, slots=True)
class Position:
    """Before the message with this offset. Raises ValueError if what it is read from is not a position."""

    archive: str
    epoch: int
    offset: int

    def json(self) -> dict[str, Any]:
        return {"archive": self.archive, "epoch": self.epoch, "offset": self.offset}

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Position":
        try:
            return cls(str(given["archive"]), int(given["epoch"]), int(given["offset"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"{given!r} is not a position: it needs archive, epoch and offset") from error


def position_at(archive: Log, offset: int) -> Position:
    """The position of an offset that the archive has, or of its end."""
    return Position(archive.id, archive.epoch_at(offset), offset)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How to understand positions.

    fail_on_loss   whether messages that are gone are an error (as in Kafka's source)
    skip_corrupt   whether batches that are damaged are left out, and not an error
    """

    fail_on_loss: bool = True
    skip_corrupt: bool = False

    def lost(self, loss: Loss) -> None:
        """Raises the loss's error, or says in the log what is left out."""
        if not self.skip_corrupt if isinstance(loss.error, Corrupt) else self.fail_on_loss:
            raise loss.error
        log.warning("left out: %d messages from offset %d on: %s", loss.end - loss.first, loss.first, loss.error)

    def offset_of(self, archive: Log, position: Position) -> int:
        """The offset in the archive as it is. Raises Gone, ArchiveError.

        Where a crash has taken what was before the position, and that is no error: where its epoch ended, so that
        nothing is left out of what came after.
        """
        if position.archive != archive.id:
            raise ArchiveError(
                f"a position in archive {position.archive}, and this one is {archive.id}: start a query for another "
                "archive with a new checkpoint, a bridge with another name"
            )
        try:
            archive.check(position.epoch, position.offset)
        except Gone as gone:
            if self.fail_on_loss:
                raise
            return gone.first
        return position.offset

    def range_of(self, archive: Log, start: Position, end: Position) -> tuple[int, int]:
        """The offsets from one position to another. Raises Gone, ArchiveError."""
        first, last = self.offset_of(archive, start), self.offset_of(archive, end)
        if first < min(archive.start, last):
            gone = Gone(first, min(archive.start, last), "retention has removed them (option failOnDataLoss)")
            self.lost(Loss(gone.first, gone.end, gone))
            first = archive.start
        for low, high in archive.missing(first, last):
            self.lost(Loss(low, high, Missing(low, high)))
        return min(first, last), last


def starting(archive: Log, options: Mapping[str, str], default: str) -> Position:
    """Where the options say to begin: `startingTimestamp`, else `startingOffsets`. Raises ValueError."""
    time = options.get("startingTimestamp")
    if time is None:
        return offset_option(archive, "startingOffsets", options.get("startingOffsets", default))
    if "startingOffsets" in options:
        raise ValueError("startingTimestamp and startingOffsets are two beginnings: give one of them")
    return position_at(archive, archive.offset_at(microseconds("startingTimestamp", time)))


def offset_option(archive: Log, name: str, text: str) -> Position:
    """`earliest`, `latest`, an offset, or a position in JSON, as a query's progress shows it. Raises ValueError."""
    if text.lower() == EARLIEST:
        return position_at(archive, archive.start)
    if text.lower() == LATEST:
        return position_at(archive, archive.end)
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    if isinstance(given, dict):
        return Position.of({"archive": archive.id, **given})
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise ValueError(f"{name}={text!r}: give earliest, latest, an offset or a position in JSON")
    if given > archive.end:
        raise ValueError(f"{name}={text}: the archive has offsets from {archive.start} to before {archive.end}")
    return position_at(archive, given)


def microseconds(name: str, text: str) -> int:
    """A time as ISO 8601 has it, with its zone, or in milliseconds since 1970, as Kafka's source wants it."""
    if text.isascii() and text.isdigit():
        if len(text) in UNLIKELY:
            at = datetime.fromtimestamp(int(text) / 1000, UTC)
            raise ValueError(
                f"{name}={text}: as milliseconds since 1970 that is {at:%Y-%m-%dT%H:%M:%SZ}, and looks like "
                f"{UNLIKELY[len(text)]}: give 2026-11-21T20:00:00Z, or milliseconds (13 digits)"
            )
        return int(text) * 1000
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{name}={text!r}: give 2026-11-21T20:00:00Z, or milliseconds since 1970") from error
    if time.tzinfo is None:
        raise ValueError(f"{name}={text!r} has no time zone: add Z, or +02:00")
    return round(time.timestamp() * 1_000_000)


def divide(
    archive: Log, start: int, end: int, rows: int, since: int | None = None, until: int | None = None
) -> Iterator[tuple[int, int]]:
    """Ranges of some `rows` messages from `start` to before `end`, cut between batches, so that none is decoded twice.

    Segments without a message in the time from `since` to before `until` (microseconds) are left out.
    """
    first = at = start
    for low, high in _stretches(archive, start, end, since, until):
        for begin, stop in archive.places(low, high):
            if begin != at or at - first >= rows:
                if at > first:
                    yield first, at
                first = begin
            at = stop
    if at > first:
        yield first, at


def _stretches(
    archive: Log, start: int, end: int, since: int | None, until: int | None
) -> Iterator[tuple[int, int]]:
    """What of a range may have messages of that time, a segment each."""
    at = start
    for span in archive.spans:
        if span.end <= start or span.first >= end:
            continue
        at = min(span.end, end)
        if (since is None or span.latest >= since) and (until is None or span.earliest < until):
            yield max(span.first, start), at
    if at < end:  # the open segment, whose times nobody has written down
        yield at, end
