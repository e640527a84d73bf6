"""The manifest: what the archive stores besides its segments, one JSON object a line.

    {"format": 1, "archive": "<uuid>"}                         first
    {"epoch": 2, "first": 8192}                                offsets from here on belong to epoch 2
    {"segment": "….arrows", "first": …, "end": …, …}           a segment was closed; "marks": those that it brought
    {"marks": [[user, producer, batch, sequence], …]}          moved up without a message that is archived
    {"start": 4096}                                            older messages may be removed, or are
    {"opened": "<boot>"}   {"closed": 12288}                   by a writer; where the archive ends

A line is added and synced when the fact is one; the file is written anew, aside and renamed, when a writer opens the
archive. The last line may be torn: whatever it was to say is found out from the segments. So a reader beside the
writer can read it at any time.
"""

import json
from dataclasses import dataclass, field
from typing import Any, Final

from fanlight_archive.errors import Corrupt, UnknownFormat
from fanlight_archive.marks import Marks, advance, rows_of
from fanlight_archive.schema import FORMAT

NAME, ASIDE = "manifest.jsonl", "manifest.jsonl.new"
LINES_MORE: Final = 1_000  # lines, or marks in them, that say nothing new before the file is worth writing anew


@dataclass(frozen=True, slots=True)
class Span:
    """A closed segment."""

    name: str
    first: int
    end: int
    epoch: int
    size: int  # bytes
    earliest: int  # microseconds UTC
    latest: int

    def line(self) -> dict[str, Any]:
        return {
            "segment": self.name, "first": self.first, "end": self.end, "epoch": self.epoch,
            "bytes": self.size, "earliest": self.earliest, "latest": self.latest,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Epoch:
    number: int
    first: int


@dataclass(slots=True)
class Manifest:
    archive: str
    epochs: list[Epoch] = field(default_factory=list)
    spans: dict[int, Span] = field(default_factory=dict)  # by first offset
    marks: Marks = field(default_factory=dict)  # but for those of the open segment
    start: int = 0
    boot: str | None = None  # of the machine, when a writer last opened it
    closed: int | None = None  # where it ended when that writer closed it; None if it did not
    lines: int = 0  # and marks in them

    @property
    def epoch(self) -> int:
        return self.epochs[-1].number if self.epochs else 0

    @property
    def end(self) -> int:
        """The highest offset that is spoken of: no message before it may be given a number again in this epoch."""
        ends = [span.end for span in self.spans.values()] + [epoch.first for epoch in self.epochs]
        return max([*ends, self.start, self.closed or 0])

    def epoch_end(self, number: int) -> int | None:
        """Where an epoch ended; None if it is the present one. Raises KeyError if there was none of that number."""
        if not 0 < number <= self.epoch:
            raise KeyError(number)
        return next((epoch.first for epoch in self.epochs if epoch.number > number), None)

    def begin_epoch(self, number: int, first: int) -> None:
        """One of which no message is left is not kept: it ended where it began, which is where the next one begins."""
        if self.epochs and self.epochs[-1].first == first:
            self.epochs.pop()
        self.epochs.append(Epoch(number, first))

    def take(self, line: dict[str, Any]) -> None:
        """What a line says, in the order of the file."""
        if "segment" in line:
            span = Span(
                line["segment"], line["first"], line["end"], line["epoch"], line["bytes"],
                line["earliest"], line["latest"],
            )  # fmt: skip
            self.spans[span.first] = span
        elif "epoch" in line:
            self.epochs.append(Epoch(line["epoch"], line["first"]))
        elif "start" in line:
            self.start = line["start"]
            self.spans = {first: span for first, span in self.spans.items() if span.end > self.start}
        elif "opened" in line:
            self.boot, self.closed = line["opened"], None
        elif "closed" in line:
            self.closed = line["closed"]
        # Others are a later version's, and add nothing that this one must know: such would be a new format.
        rows = line.get("marks", ())
        advance(self.marks, rows)
        self.lines += 1 + len(rows)

    def text(self) -> bytes:
        """All of it, in as few lines as say it."""
        lines: list[dict[str, Any]] = [{"format": FORMAT, "archive": self.archive}]
        lines += [{"epoch": epoch.number, "first": epoch.first} for epoch in self.epochs]
        lines += [{"start": self.start}] if self.start else []
        lines += [{"marks": rows_of(self.marks)}] if self.marks else []
        lines += [span.line() for _, span in sorted(self.spans.items())]
        lines += [{"opened": self.boot}] if self.boot is not None else []
        lines += [{"closed": self.closed}] if self.closed is not None else []
        return b"".join(line_bytes(line) for line in lines)

def line_bytes(line: dict[str, Any]) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def parse(text: bytes) -> Manifest:
    """The manifest that the bytes of its file hold. Raises Corrupt, UnknownFormat."""
    whole, _, _torn = text.rpartition(b"\n")
    manifest: Manifest | None = None
    rows = whole.split(b"\n") if whole else []
    for number, row in enumerate(rows, 1):
        try:
            line = json.loads(row)
            if manifest is None:
                if line["format"] > FORMAT:
                    raise UnknownFormat(f"written in format {line['format']}; this version reads up to {FORMAT}")
                manifest = Manifest(line["archive"])
            else:
                manifest.take(line)
        except (ValueError, KeyError, TypeError) as error:
            if number == len(rows) and manifest is not None:
                break  # its length reached the disk, and its text did not
            raise Corrupt(f"{NAME}, line {number}: {error!r}") from error
    if manifest is None:
        raise Corrupt(f"{NAME} is empty")
    return manifest
