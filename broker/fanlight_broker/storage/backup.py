"""Copies a store, also while a broker writes it and knows nothing of it.

Segments are copied in the order of their generations, in passes: another pass follows until the same files have the
same headers as before it. Then all that the end of the copy needs is in it:

* A file that was used again, or is gone, since it was copied is not needed: a newer header says so, and is copied next.
* All files were there while the last pass ran, with the bodies of what waits by the end of the copy.
* What the broker had acknowledged before is in a file, so it is in the copy. Of a file that grows, what is whole is
  copied, and once more in the next pass: the end is like that after a power cut.

Memory: the headers, and 1 MiB.
"""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from fanlight_broker.storage.folders import sync_folder
from fanlight_broker.storage.segment_header import HEADER_BYTES, header_of, read_page
from fanlight_broker.storage.segment_walk import walk
from fanlight_broker.storage.segments import NAME, LogError

PASSES_MAX: Final = 100
BLOCK: Final = 1 << 20
TICK_NS: Final = 1_000_000_000  # two changes of a file within this time may look like one; it is far less


class BackupError(Exception):
    """The store cannot be copied: says why."""


class Copied(NamedTuple):
    page: bytes  # the header that it was copied with
    changed: int  # when the file was written to last, in ns
    grows: bool  # so short a time before that this may not be seen again


def backup(folder: Path, target: Path, progress: Callable[[str], None] = lambda line: None) -> Path:
    """Copy the store in `folder` beside `target`, synced. Returns where; `finish` gives it its name.

    progress  called with a line for each pass. Raises BackupError, OSError
    """
    if not folder.is_dir():
        raise BackupError(f"{folder} is no folder")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BackupError(f"{target} exists and is not empty")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial-{os.getpid()}")
    partial.mkdir()
    try:
        _Backup(folder, partial, progress).run()
    except BaseException:
        shutil.rmtree(partial)
        raise
    return partial


def finish(partial: Path, target: Path) -> None:
    """The copy is whole: it gets its name."""
    os.rename(partial, target)  # over an empty folder
    sync_folder(target.parent)


class _Backup:
    def __init__(self, folder: Path, partial: Path, progress: Callable[[str], None]) -> None:
        self.folder, self.partial, self.progress = folder, partial, progress
        self.copied: dict[str, Copied] = {}

    def run(self) -> None:
        before = self._listed()
        if not before:
            raise BackupError(f"{self.folder} is no store: it has no file of a log")
        for number in range(1, PASSES_MAX + 1):
            octets = self._copy(before)
            after = self._listed()
            self.progress(f"pass {number}: {octets:,} bytes")
            if after == before:
                self._must_be_whole(after)
                sync_folder(self.partial)
                return
            before = after
        raise BackupError(f"the store has changed in each of {PASSES_MAX} passes: copy it when less is written")

    def _listed(self) -> dict[str, bytes]:
        """The first page of each file of the log that is in use, by name, in the order of generations."""
        found: list[tuple[int, str, bytes]] = []
        for path in self.folder.iterdir():
            if NAME.fullmatch(path.name) is None:
                continue
            try:
                page = read_page(path)
            except FileNotFoundError:
                continue  # it was given back just now
            if any(page):
                header = header_of(page)  # None: it is being written, or is damaged
                found.append((header.generation if header is not None else 0, path.name, page))
        return {name: page for _, name, page in sorted(found)}

    def _must_be_whole(self, listed: dict[str, bytes]) -> None:
        for name, page in listed.items():
            if header_of(page) is None:
                raise BackupError(f"{self.folder / name}: both copies of its header are damaged: see fanlightd check")

    def _copy(self, listed: dict[str, bytes]) -> int:
        """One pass. Returns the bytes that were copied."""
        octets = 0
        for name in [name for name, known in self.copied.items() if listed.get(name) != known.page]:
            (self.partial / name).unlink()
            del self.copied[name]
        for name, page in listed.items():
            if header_of(page) is not None:
                octets += self._copy_file(name, page)
        return octets

    def _copy_file(self, name: str, page: bytes) -> int:
        source, target = self.folder / name, self.partial / name
        known = self.copied.pop(name, None)
        try:
            began, changed = time.time_ns(), source.stat().st_mtime_ns
            if known is not None and not known.grows and known.changed == changed:
                self.copied[name] = known
                return 0
            target.unlink(missing_ok=True)
            found = walk(source)
            if found is None or read_page(source) != page:
                return 0  # the next pass takes it as it is then
            _copy_bytes(source, target, found.end)
            if read_page(source) == page and read_page(target) == page:
                self.copied[name] = Copied(page, changed, began - changed < TICK_NS)
                return found.end
            target.unlink()
        except FileNotFoundError:
            target.unlink(missing_ok=True)
        except LogError as error:
            raise BackupError(str(error)) from error
        return 0


def _copy_bytes(source: Path, target: Path, end: int) -> None:
    """The first `end` bytes of a file, synced."""
    with source.open("rb", buffering=0) as file, target.open("xb", buffering=0) as copy:
        left = max(end, HEADER_BYTES)
        while left:
            octets = file.read(min(left, BLOCK))
            if not octets:
                break
            copy.write(octets)
            left -= len(octets)
        os.fsync(copy.fileno())
