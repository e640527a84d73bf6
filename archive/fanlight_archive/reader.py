"""Reading an archive, concurrently with its writer or later.

    archive = Archive("/var/lib/fanlight/archive")
    for batch in archive.read(archive.offset_at(since), where=topics(lambda topic: topic.startswith("stock."))):
        ...                                     # pyarrow.RecordBatch with the columns of schema.SCHEMA

A position is an offset and its epoch. `check` says whether a position that was kept still means what it meant:
after a crash of the machine the offsets of what was lost are given again, in a new epoch.
Readers do not lock anything; retention may take away what they have not read yet, which is `Gone`.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from fanlight_archive import manifest as manifests
from fanlight_archive.arrow import pa, pc
from fanlight_archive.errors import ArchiveError, Corrupt, Gone, Loss, Missing
from fanlight_archive.manifest import Manifest, Span
from fanlight_archive.schema import SCHEMA
from fanlight_archive.segment import Place, Segment, first_of
from fanlight_archive.sizes import offset_after, size_between

Lost = Callable[[Loss], None]
Select = Callable[[Span], Sequence[int] | None]  # a closed segment in; rows of it out, or None for all
Where = Callable[[Any], Any]  # a batch in; a boolean array out, or None for all of it
TIME_MAX = (1 << 63) - 1  # that a timestamp can be
ATTEMPTS = 10  # a segment that is renamed or removed while it is looked for is looked for again


class Archive:
    """An existing archive. Raises Corrupt, UnknownFormat, FileNotFoundError. For one thread at a time."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self._tail: Segment | None = None
        self._text = b""  # of the manifest, as it was read last
        self.refresh()

    def close(self) -> None:
        if self._tail is not None:
            self._tail.close()
            self._tail = None

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def refresh(self) -> None:
        """Read what has been written and removed since."""
        for _ in range(ATTEMPTS):
            text = (self.folder / manifests.NAME).read_bytes()
            # It changes when a segment is closed; between two looks it mostly has not, and is not taken apart again.
            found = self.manifest if text == self._text else manifests.parse(text)
            try:
                self._look(found)
                self._text = text
                return
            except FileNotFoundError:
                continue  # rolled or removed between two looks
        raise ArchiveError(f"{self.folder} changes faster than it can be read")

    @property
    def id(self) -> str:
        return self.manifest.archive

    @property
    def epoch(self) -> int:
        return self.manifest.epoch

    @property
    def start(self) -> int:
        """The oldest offset there is."""
        if self.spans:
            return self.spans[0].first
        return self._tail.first if self._tail is not None else self.end

    @property
    def end(self) -> int:
        """The next offset: one more than the newest that is whole."""
        if self._tail is not None and self._tail.places:
            return self._tail.end
        return max(self.spans[-1].end if self.spans else 0, self.manifest.end)

    @property
    def oldest_end(self) -> int | None:
        """Before which offset retention removes next; None with only the open segment, which it never removes."""
        return self.spans[0].end if self.spans else None

    def size_between(self, first: int, end: int) -> int:
        """Bytes that the messages of a range take in their files."""
        return size_between(self.spans, self._tail.places if self._tail is not None else (), first, end)

    def offset_after(self, first: int, end: int, size: int) -> int:
        """Where a range from `first` ends that has at most `size` bytes and at least a batch: `end` at the latest."""
        return offset_after(
            self.spans, self._tail.places if self._tail is not None else (), self._places_of, first, end, size
        )

    def epoch_at(self, offset: int) -> int:
        """The epoch of an offset that there is, or of the end."""
        return next((epoch.number for epoch in reversed(self.manifest.epochs) if epoch.first <= offset), self.epoch)

    def check(self, epoch: int, offset: int) -> None:
        """Raises Gone if the messages before `offset` in `epoch` are not those of the archive now."""
        try:
            end = self.manifest.epoch_end(epoch)
        except KeyError:
            raise ArchiveError(f"epoch {epoch}: this archive ({self.id}) has had none of that number") from None
        end = self.end if end is None else end
        if offset > end:
            raise Gone(end, offset, f"the archive ends at {end} in epoch {epoch}; what came then was lost in a crash")

    def offset_at(self, time: int, first_since: Callable[[Span, int], int] | None = None) -> int:
        """The first offset whose message is as late as `time` (microseconds UTC); the end if none is.

        first_since: a row of a closed segment before which no message is as late as a time: an index knows.
        """
        if time > TIME_MAX:
            return self.end
        for span in self.spans:
            if span.latest >= time:
                from_ = span.first + (first_since(span, time) if first_since is not None else 0)
                try:
                    with closing(self._segment(span)) as segment:
                        found = _first_at(segment, time, from_)
                except Corrupt:
                    found = span.first  # reading it reports the damage
                if found is not None:
                    return found
        found = _first_at(self._tail, time, self._tail.first) if self._tail is not None else None
        return self.end if found is None else found

    def read(
        self,
        start: int | None = None,
        end: int | None = None,
        *,
        since: int | None = None,
        until: int | None = None,
        where: Where | None = None,
        lost: Lost | None = None,
        select: Select | None = None,
        columns: Sequence[str] | None = None,
    ) -> Iterator[Any]:
        """Batches of the messages from `start` to before `end`, in order, none empty.

        since, until: times in microseconds UTC; only messages from the one to before the other.
        where: which rows of a batch; see `topics`.
        select: which rows of a closed segment, ascending, counted from its first offset: an index knows. What else is
        in the segment is not read, so its damage is not reported. An empty batch stands for each such segment of which
        nothing was read, so that a caller who has other things to do gets to do them.
        columns: of the batches, in this order; all of them without it. `where` is given all.
        lost: called for messages that are not there, or are damaged; what it does not raise is left out.
        Without it, Gone if `start` is older than the archive, if retention is faster than the reader, or if messages
        are missing; Corrupt if a batch is damaged. Without an end, up to what was there at the last `refresh`.
        """
        at = self.start if start is None else start
        end = self.end if end is None else min(end, self.end)
        lost = _raised if lost is None else lost
        rows = since, until, where, columns
        if at < self.start and at < end:
            gone = Gone(at, min(self.start, end), "retention has removed them")
            lost(Loss(gone.first, gone.end, gone))
            at = self.start
        reached = at
        for span in [span for span in self.spans if span.end > at and span.first < end]:
            if (since is None or span.latest >= since) and (until is None or span.earliest < until):
                if span.first > reached:
                    lost(_missing(reached, span.first))
                chosen = None if select is None else _between(select(span), at - span.first, end - span.first)
                if chosen is None:
                    yield from self._read_span(span, at, end, lost, rows)
                elif chosen:
                    yield from self._read_span(span, at, end, lost, rows, chosen)
                else:
                    yield _EMPTY if columns is None else _EMPTY.select(columns)
            reached = span.end
        if self._tail is not None and self._tail.places and self._tail.end > at:
            if reached < min(self._tail.first, end):
                lost(_missing(reached, min(self._tail.first, end)))
            yield from _rows(self._tail, max(self._tail.first, at), min(self._tail.end, end), lost, rows)
            reached = self._tail.end
        if reached < end:
            lost(_missing(reached, end))

    def missing(self, start: int, end: int) -> list[tuple[int, int]]:
        """(first offset, end) of what no segment has, of a range of the archive: it was damaged, or taken away."""
        found: list[tuple[int, int]] = []
        reached = start
        for first, stop in [*((span.first, span.end) for span in self.spans), *self._tail_bounds()]:
            if reached < min(first, end):
                found.append((reached, min(first, end)))
            reached = max(reached, stop)
        if reached < min(end, self.end):
            found.append((reached, min(end, self.end)))
        return found

    def places(self, start: int, end: int) -> list[tuple[int, int]]:
        """(first offset, end) of the batches that a range has, for those who divide work."""
        found: list[tuple[int, int]] = []
        for span in self.spans:
            if span.end > start and span.first < end:
                places = [(place.first, place.end) for place in self._places_of(span) if place.end > start]
                found += places or [(span.first, span.end)]
        if self._tail is not None:
            found += [(place.first, place.end) for place in self._tail.after(start)]
        return [(max(first, start), min(last, end)) for first, last in found if first < end]

    # -- inside -------------------------------------------------------------------------------------------------------

    def _tail_bounds(self) -> list[tuple[int, int]]:
        return [(self._tail.first, self._tail.end)] if self._tail is not None and self._tail.places else []

    def _places_of(self, span: Span) -> list[Place]:
        try:
            with closing(self._segment(span)) as segment:
                return segment.places
        except (Gone, Corrupt):
            return []  # reading it reports the loss

    def _read_span(
        self, span: Span, start: int, end: int, lost: Lost, rows: "_Rows", chosen: Sequence[int] | None = None
    ) -> Iterator[Any]:
        first, last = max(span.first, start), min(span.end, end)
        try:
            segment = self._segment(span)
        except Gone as error:
            lost(Loss(first, last, error))
            return
        except Corrupt as error:
            if (found := self._salvaged(span)) is None:
                lost(Loss(first, last, error))
                return
            segment = found
        with closing(segment):
            yield from _rows(segment, first, last, lost, rows, chosen)

    def _salvaged(self, span: Span) -> Segment | None:
        """A closed segment that is damaged, with the batches that are not; None if its beginning is damaged."""
        segment = Segment(self.folder / span.name, span.first)
        try:
            segment.salvage(span.end)
            return segment
        except BaseException as error:
            segment.close()
            if isinstance(error, ArchiveError):
                return None
            raise

    def _look(self, manifest: Manifest) -> None:
        known = {span.first: span for span in manifest.spans.values() if span.end > manifest.start}
        unclosed: list[str] = []
        for path in self.folder.iterdir():
            first, is_open = first_of(path.name) or (-1, False)
            if first < 0 or (first in known and not is_open):
                continue
            if first < manifest.start or any(span.first <= first < span.end for span in known.values()):
                continue  # being removed; or renamed since the manifest was read
            unclosed.append(path.name)
        if len(unclosed) > 1:
            raise FileNotFoundError  # rolled, and the next one begun, between two looks
        tail = self._tail_of(unclosed[0], manifest) if unclosed else None
        if self._tail is not None and self._tail is not tail:
            self._tail.close()
        self._tail, self.manifest = tail, manifest
        self.spans = [span for _, span in sorted(known.items())]

    def _tail_of(self, name: str, manifest: Manifest) -> Segment:
        """The segment that is being written, or was not entered yet, as far as it is whole."""
        first, _ = first_of(name) or (0, False)
        tail = self._tail
        # By the file too: one that had no whole batch is removed by recovery, and made anew under the same name.
        if tail is None or tail.first != first or tail.epoch != manifest.epoch or not tail.is_at(self.folder / name):
            tail = Segment(self.folder / name, first)
        try:
            tail.extend(check=True)
        except BaseException:
            if tail is not self._tail:
                tail.close()
            raise
        return tail

    def _segment(self, span: Span) -> Segment:
        """A closed segment, its batches found."""
        try:
            segment = Segment(self.folder / span.name, span.first)
        except FileNotFoundError:
            raise Gone(span.first, span.end, f"{span.name} is not there any more") from None
        try:
            segment.extend(check=False)
            if segment.end != span.end:
                raise Corrupt(f"{span.name} ends at {segment.end}, and the manifest says {span.end}")
        except BaseException:
            segment.close()
            raise
        return segment


def topics(matches: Callable[[str], bool]) -> Where:
    """A `where` by topic: `matches` is asked once for each topic of a batch."""

    def mask(batch: Any) -> Any:
        column = batch.column(batch.schema.get_field_index("topic")).dictionary_encode()
        wanted = pa.array([matches(topic) for topic in column.dictionary.to_pylist()], pa.bool_())
        return wanted.take(column.indices)

    return mask


def within(
    batch: Any, since: int | None, until: int | None, where: Where | None, columns: Sequence[str] | None = None
) -> Any:
    """The rows of a batch that are asked for; as `Archive.read` has it."""
    if since is not None:
        batch = _filtered(batch, pc.greater_equal(_times(batch), since))
    if until is not None:
        batch = _filtered(batch, pc.less(_times(batch), until))
    mask = where(batch) if where is not None and batch.num_rows else None
    if columns is not None:
        batch = batch.select(columns)  # first: filtering copies all that there is
    return batch if mask is None else _filtered(batch, mask)


def _filtered(batch: Any, mask: Any) -> Any:
    return batch if mask.true_count == len(mask) else batch.filter(mask)


def _times(batch: Any) -> Any:
    return batch.column(batch.schema.get_field_index("timestamp")).cast(pa.int64())


def _raised(loss: Loss) -> None:
    raise loss.error


def _missing(first: int, end: int) -> Loss:
    return Loss(first, end, Missing(first, end))


def _first_at(segment: Segment, time: int, start: int) -> int | None:
    unread: int | None = None  # where damaged batches begin: the message may be among them; reading reports it
    for place in segment.after(start):
        try:
            times = _times(segment.batch(place))
        except Corrupt:
            unread = place.first if unread is None else unread
            continue
        at = pc.index(pc.greater_equal(times, time), True).as_py()
        if at >= 0:
            return place.first + int(at) if unread is None else unread
        unread = None
    return unread


_Rows = tuple[int | None, int | None, Where | None, Sequence[str] | None]  # since, until, where, columns


# Not of lists: for those pyarrow imports pandas, if that is installed, which takes most of the time of this import.
_EMPTY = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in SCHEMA], schema=SCHEMA)
DENSE = 4  # where every fourth row of a batch is chosen, or more, the batch is taken as a whole


def _between(chosen: Sequence[int] | None, first: int, end: int) -> Sequence[int] | None:
    """Those of the chosen rows that are in a range."""
    return None if chosen is None else chosen[bisect_left(chosen, first) : bisect_left(chosen, end)]


def _rows(
    segment: Segment, start: int, end: int, lost: Lost, rows: _Rows, chosen: Sequence[int] | None = None
) -> Iterator[Any]:
    """The rows of one segment that are asked for, of a range that it should have.

    chosen  only these rows of the segment, and perhaps others of their batches
    """
    reached = start
    for place in segment.after(start):
        if place.first >= end:
            break
        if place.first > reached:
            lost(_damaged(segment, reached, place.first))
        reached = place.end
        at = place.first - segment.first
        picked = _between(chosen, at, at + place.rows)
        if picked is not None and not picked:
            continue
        try:
            batch = segment.batch(place)
        except Corrupt as error:
            lost(Loss(max(place.first, start), min(place.end, end), error))
            continue
        if picked is not None and len(picked) * DENSE < place.rows:
            batch = batch.take(pa.array([row - at for row in picked], pa.int64()))
        else:
            skip = max(start - place.first, 0)
            batch = batch.slice(skip, min(end, place.end) - place.first - skip)
        batch = within(batch, *rows)
        if batch.num_rows:
            yield batch
    if reached < end:
        lost(_damaged(segment, reached, end))


def _damaged(segment: Segment, first: int, end: int) -> Loss:
    return Loss(first, end, Corrupt(f"{segment.path.name}: messages {first} to {end - 1} are damaged"))
