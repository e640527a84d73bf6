"""What recovery cuts off an open segment: it is kept in a separate file, and classified.

The part behind the last whole batch is either a batch that was not written to its end, or damage: bytes that were
written, and perhaps synced and read, and are not what they were. Damage may have whole batches behind it. Nothing of
this is read again by itself; the file is there for whoever wants to look at it.

    00000000000000008192-00000000000000008600.damaged     of the segment that begins at 8192, from offset 8600 on
"""

import os
import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from fanlight_archive import frames
from fanlight_archive.files import Files, write_whole
from fanlight_archive.segment import Segment

KEPT_MAX: Final = 8  # files, each a segment at most: what one bad disk does again and again must not fill it
ASIDE: Final = "damaged.new"
_NAME: Final = re.compile(r"\d{20}-\d{20}(-\d+)?\.damaged")


@dataclass(frozen=True, slots=True)
class Cut:
    """What was cut off a segment."""

    segment: str  # its name
    at: int  # in the file, in bytes
    size: int
    first: int  # offset of the first message that was cut
    end: int  # behind the last message of a whole batch; `first` if no batch is whole
    batches: int  # whole batches
    torn: bool  # it looks like a batch that was not written to its end
    kept: str  # the file's name; "" if it was not kept: nothing but zeros

    def sentence(self) -> str:
        """For the log."""
        place = f"{self.segment}, byte {self.at}"
        kept = f"; the bytes are in {self.kept}" if self.kept else ""
        if self.torn:
            return f"{place}: cut off {self.size} bytes of a batch that was not written to its end{kept}"
        lost = f"messages {self.first} to {self.end - 1}" if self.batches else f"messages from {self.first} on"
        return (
            f"{place} is damaged: {lost} are lost; cut off {self.size} bytes, "
            f"among them {self.batches} whole batches{kept}"
        )


def cut_of(folder: Path, files: Files, segment: Segment) -> Cut | None:
    """Keep what is behind the last whole batch of an open segment, on the disk; None if nothing is. Cuts nothing."""
    rest = segment.rest()
    if not rest:
        return None
    zeros = rest.count(0) == len(rest)  # their length reached the disk, and they did not
    first = segment.end
    whole = segment.behind(rest, first + len(rest))  # no message takes less than a byte
    torn = zeros or _is_torn(rest)
    at = segment.size if segment.places else 0  # without a batch, the schema is what may be damaged
    cut = segment.path.read_bytes() if not at else rest
    return Cut(
        segment.path.name, at, len(cut), first, whole[-1].end if whole else first, len(whole), torn,
        "" if zeros else _keep(folder, files, segment.first, first, cut),
    )  # fmt: skip


def _is_torn(rest: bytes) -> bool:
    """Whether this is the beginning of one batch: no other begins in it, and not all of it is there."""
    if len(rest) < frames.PREFIX:
        return True
    begun = list(islice(frames.batches_in(rest), 2))
    if begun:
        return len(begun) == 1 and begun[0][0] == 0 and begun[0][1].size > len(rest)
    size = frames.metadata_size(rest[: frames.PREFIX])
    return size is not None and len(rest) < frames.PREFIX + size


def _keep(folder: Path, files: Files, first: int, at: int, data: bytes) -> str:
    """A file with these bytes, on the disk; the oldest go, so that there are no more than KEPT_MAX."""
    name = stem = f"{first:020d}-{at:020d}"
    for number in range(1, KEPT_MAX + 2):
        path = folder / f"{name}.damaged"
        if not path.exists():
            break
        if path.read_bytes() == data:
            return path.name  # a crash came between keeping and cutting
        name = f"{stem}-{number}"
    kept = f"{name}.damaged"
    write_whole(files, kept, data, ASIDE)
    others = sorted(each for each in os.listdir(folder) if _NAME.fullmatch(each) and each != kept)
    for old in others[: 1 - KEPT_MAX]:
        files.remove(old)
    files.sync_names()
    return kept
