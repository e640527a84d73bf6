"""Indexes beside closed segments: `00000000000000008192.arrows.index` says where what is in the segment.

An index is made by the writer's `Indexer` from the batches as they are written, and put there when the segment is
closed: aside, synced and renamed, so that it is whole or not there. It goes with its segment. What is in it is the
indexer's; this module knows when it is written and removed. It can always be done without: a segment that has none is
read as a whole, and an index that cannot be written is counted, and is no fault of the archive.

A segment that another writer closed, recovery among them, has no index at first: `catch_up` makes them, one at a time.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Protocol

from fanlight_archive.errors import Corrupt
from fanlight_archive.files import Files, write_whole
from fanlight_archive.manifest import Manifest, Span
from fanlight_archive.segment import Segment

SUFFIX, ASIDE = ".index", ".index.new"


class Indexer(Protocol):
    """Makes the index of one segment."""

    def add(self, batch: Any) -> None:
        """The next batch of it, with the columns of `schema.MESSAGE` at least; not to be kept."""
        ...

    def finish(self, span: Span, archive: str) -> bytes | None:
        """The index of all its batches; None if it is to have none."""
        ...


def identity(span: Span, archive: str) -> dict[str, Any]:
    """What an index notes of its segment: one that differs is of another."""
    return {"archive": archive, "epoch": span.epoch, "first": span.first, "end": span.end, "bytes": span.size}


def read_index(folder: Path, archive: str, span: Span) -> tuple[bytes, dict[str, Any]] | None:
    """The index of a segment, and the notes that it has if it is of this one; None if it has none. Raises OSError."""
    try:
        return (folder / (span.name + SUFFIX)).read_bytes(), identity(span, archive)
    except FileNotFoundError:
        return None


class Indexes:
    """The indexes of one folder, for its writer.

    size     bytes of all that are there, in files
    written  how many were written; `failed`: how many could not be made or written, the last one because of `error`
    """

    def __init__(self, folder: Path, files: Files, make: Callable[[], Indexer] | None) -> None:
        self._folder, self._files, self._make = folder, files, make
        self._present: Indexer | None = None  # of the open segment
        self._without: deque[Span] = deque()  # closed segments that have no index
        self._making: Iterator[None] | None = None  # of one of these
        self._sizes: dict[str, int] = {}  # of the segments that have one, by their names
        self.size = self.written = self.failed = 0
        self.error: Exception | None = None

    def opened(self, manifest: Manifest) -> None:
        """After recovery: remove what belongs to no segment, and note which segments have no index."""
        self._present = self._making = None
        named = {span.name: span for span in manifest.spans.values()}
        self._sizes.clear()
        for name in [name for name in os.listdir(self._folder) if name.endswith((SUFFIX, ASIDE))]:
            segment = name.removesuffix(SUFFIX)  # that of an index that is not whole does not end so
            if segment in named:
                self._sizes[segment] = os.stat(self._folder / name).st_size
            else:
                self._files.remove(name)
        self.size = sum(self._sizes.values())
        self._without.clear()
        if self._make is not None:
            self._without += [span for name, span in sorted(named.items()) if name not in self._sizes]

    def size_of(self, span: Span) -> int:
        """Bytes of the index of a segment; 0 if it has none."""
        return self._sizes.get(span.name, 0)

    def begin(self) -> None:
        """A segment was begun."""
        self._present = self._make() if self._make is not None else None

    def add(self, batch: Any) -> None:
        if self._present is None:
            return
        try:
            self._present.add(batch)
        except Exception as error:  # the messages are in the archive, whatever becomes of their index
            self._present = None
            self._count_failure(error)

    def write(self, span: Span, archive: str) -> None:
        """The open segment was closed."""
        present, self._present = self._present, None
        try:
            if present is not None:
                self._put(span, present.finish(span, archive))
        except Exception as error:  # the segment is closed, whatever becomes of its index
            self._count_failure(error)

    def remove(self, span: Span) -> None:
        self.size -= self._sizes.pop(span.name, 0)
        with suppress(FileNotFoundError):
            self._files.remove(span.name + SUFFIX)

    def catch_up(self, manifest: Manifest) -> bool:
        """Read one batch of a closed segment that has no index, or write its index. Whether there is more to do."""
        while self._making is None and self._without:
            span = self._without.popleft()
            if span.first in manifest.spans:
                self._making = self._steps(span, manifest)
        if self._making is None:
            return False
        try:
            next(self._making, None)
        except Exception as error:  # damaged, or removed: it is read as a whole
            self._making = None
            self._count_failure(error)
        return self._making is not None or bool(self._without)

    def _steps(self, span: Span, manifest: Manifest) -> Iterator[None]:
        assert self._make is not None
        indexer = self._make()
        with closing(Segment(self._folder / span.name, span.first)) as segment:
            segment.extend(check=False)
            if segment.end != span.end:
                raise Corrupt(f"{span.name} ends at {segment.end}, and the manifest says {span.end}")
            for place in segment.places:
                indexer.add(segment.batch(place))
                yield
        if span.first in manifest.spans:
            self._put(span, indexer.finish(span, manifest.archive))
        self._making = None

    def _put(self, span: Span, data: bytes | None) -> None:
        if data is not None:
            write_whole(self._files, span.name + SUFFIX, data, span.name + ASIDE)
            self.written += 1
            self.size += len(data) - self._sizes.get(span.name, 0)
            self._sizes[span.name] = len(data)

    def _count_failure(self, error: Exception) -> None:
        self.failed += 1
        self.error = error
