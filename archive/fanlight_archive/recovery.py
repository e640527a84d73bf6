"""Opening an archive for writing: repairs what a crash left, and reports it.

The steps are in this order, so that a crash during recovery is only another crash:

1. Segments before the manifest's `start` are removed: retention had begun to do so.
2. A closed segment that the manifest does not know is read and entered.
3. The open segment is cut off behind its last whole batch, and closed; one without a batch is removed. What is cut
   off is kept in a file of its own (damage.py).
4. If offsets that somebody may have been shown could now be given again, a new epoch begins.
5. The manifest is written anew and renamed into its place, with the marks of the segments that it did not know.

4. Offsets are shown as soon as they are written. A process that is killed takes nothing back of that, for the kernel
has it; a machine that goes down does. So: a new epoch if the archive was not closed and the machine has been started
since, or if less is there than the manifest speaks of, or if the caller says so (`doubtful`: a sync failed), or if
anything was cut off: it may be damage, to messages that were synced and read. Offsets that whole batches in the cut
part have are not given again at all: a reader finds them missing.
"""

import os
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fanlight_archive import frames
from fanlight_archive.damage import Cut, cut_of
from fanlight_archive.errors import Corrupt
from fanlight_archive.files import Files, write_whole
from fanlight_archive.manifest import ASIDE, NAME, Manifest, Span, parse
from fanlight_archive.marks import advance, trim
from fanlight_archive.segment import Segment, first_of, name_of

MARKS_MAX: Final = 10_000
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


@dataclass(slots=True)
class Recovered:
    """What recovery found and did."""

    manifest: Manifest
    end: int = 0  # the next offset
    whole: int = 0  # the end of the messages that are there
    created: bool = False
    made_again: bool = False  # its folder, or its lock, had been removed while it was open
    new_epoch: bool = False
    cut: list[Cut] = field(default_factory=list)  # off the open segment
    removed: list[str] = field(default_factory=list)
    adopted: list[str] = field(default_factory=list)  # segments that the manifest did not know
    missing: list[tuple[int, int]] = field(default_factory=list)  # offsets without a segment

    @property
    def cut_bytes(self) -> int:
        return sum(cut.size for cut in self.cut)

    def sentences(self) -> list[str]:
        """For the log: one sentence for each repair."""
        found = []
        if self.created:
            found.append("a new archive")
        if self.made_again:
            found.append("the folder, or its lock, was removed and is made again: what was only there is lost")
        found += [cut.sentence() for cut in self.cut]
        if self.adopted:
            found.append(f"entered {len(self.adopted)} segments into the manifest: {', '.join(self.adopted)}")
        if self.removed:
            found.append(f"removed {', '.join(self.removed)}")
        for first, end in self.missing:
            found.append(f"messages {first} to {end - 1} are missing: no segment has them")
        if self.new_epoch:
            found.append(f"epoch {self.manifest.epoch} begins at offset {self.end}: later messages may have been lost")
        return found


def boot_id() -> str:
    """The id of the kernel's current boot; "" if it is unknown, which never equals another boot."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def recover(folder: Path, files: Files, *, boot: str, doubtful: bool = False, marks_max: int = MARKS_MAX) -> Recovered:
    """Make the archive in `folder` whole. Raises Corrupt if it is not an archive, OSError."""
    segments = sorted(found for name in os.listdir(folder) if (found := first_of(name)))
    manifest = _manifest(folder)
    done = Recovered(manifest or Manifest(str(uuid.uuid4())), created=manifest is None and not segments)
    manifest = done.manifest
    rebuilt = not manifest.epochs and not done.created
    known = manifest.end
    if manifest.boot is not None and manifest.closed is None and manifest.boot != (boot or None):
        doubtful = True
    there = {first for first, is_open in segments if not is_open}
    manifest.spans = {first: span for first, span in manifest.spans.items() if first in there}
    for first, is_open in segments:
        _finish(folder, files, done, first, is_open)
    _note_missing(done, known)
    newest = max((span.end for span in manifest.spans.values()), default=manifest.start)
    done.whole = newest
    done.end = max([newest, manifest.end, *(cut.end for cut in done.cut)])
    begun = done.new_epoch and manifest.epochs[-1].first == done.end  # when something was cut off
    if (done.created or doubtful or rebuilt or newest < known) and not begun:
        _begin_epoch(done, done.end)
    done.new_epoch = done.new_epoch and not done.created
    manifest.boot, manifest.closed = boot, None
    trim(manifest.marks, marks_max)
    write(manifest, files)
    return done


def _begin_epoch(done: Recovered, first: int, known: int = 0) -> None:
    manifest = done.manifest
    manifest.begin_epoch(max([known, manifest.epoch, *(span.epoch for span in manifest.spans.values())]) + 1, first)
    done.new_epoch = True


def write(manifest: Manifest, files: Files) -> None:
    """The manifest, written anew: whichever of the two a crash leaves, it is whole."""
    text = manifest.text()
    write_whole(files, NAME, text, ASIDE)
    files.sync_names()
    manifest.lines = text.count(b"\n") + len(manifest.marks)


def close_segment(files: Files, segment: Segment) -> Span:
    """Make a segment that is being written a closed one, on the disk."""
    span = Span(
        name_of(segment.first), segment.first, segment.end, segment.epoch, segment.size + len(frames.END),
        *segment.times(),
    )  # fmt: skip
    file = files.open(segment.path.name)
    try:
        file.truncate(segment.size)
        file.write([frames.END])
        file.sync()
    finally:
        file.close()
    files.rename(segment.path.name, span.name)
    files.sync_names()
    return span


def _manifest(folder: Path) -> Manifest | None:
    try:
        return parse((folder / NAME).read_bytes())
    except FileNotFoundError:
        return None


def _finish(folder: Path, files: Files, done: Recovered, first: int, is_open: bool) -> None:
    """What becomes of one file."""
    manifest, name = done.manifest, name_of(first, is_open=is_open)
    if not is_open and first in manifest.spans:
        return
    path = folder / name
    segment = Segment(path, first)
    try:
        segment.extend(check=True)
        if segment.archive and manifest.epochs and segment.archive != manifest.archive:
            raise Corrupt(f"{name} belongs to the archive {segment.archive}, and this is {manifest.archive}")
        if segment.archive and not manifest.epochs:
            manifest.archive = segment.archive
        if is_open and (cut := cut_of(folder, files, segment)):
            done.cut.append(cut)
            # Before it is cut: whoever opens the archive after a crash in between sees nothing to cut any more.
            _begin_epoch(done, max(cut.end, manifest.end), segment.epoch)
            write(manifest, files)
        if not segment.places or segment.end <= manifest.start:
            files.remove(name)
            done.removed.append(name)
            return
        if is_open:
            segment.size -= len(frames.END) if segment.ended else 0
            span = close_segment(files, segment)
        elif not segment.ended:
            raise Corrupt(f"{name} is not whole behind byte {segment.size}, though it was closed")
        else:
            span = Span(name, first, segment.end, segment.epoch, segment.size, *segment.times())
        advance(manifest.marks, segment.marks())
        manifest.spans[first] = span
        done.adopted.append(span.name)
    finally:
        segment.close()


def _note_missing(done: Recovered, known: int) -> None:
    """Say which offsets are without a segment."""
    reached = done.manifest.start
    for first, span in sorted(done.manifest.spans.items()):
        if first > reached:
            done.missing.append((reached, first))
        reached = max(reached, span.end)
    if known > reached:
        done.missing.append((reached, known))
