"""What a disk with a cache may have after a power cut, from a recording of what it was asked.

What was written to a file since its last sync is there or not, by 512 bytes and in any order. A name that was made or
removed since the last sync of its folder is there or not. A file that was cut is cut or not.
"""

import errno
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fanlight_broker.storage.disk import PythonDisk

SECTOR = 512


@dataclass(frozen=True)
class Step:
    """One operation, and what the log had reported before it."""

    name: str
    file: str
    data: bytes | int | None
    offset: int
    reported: object


class RecordingDisk(PythonDisk):
    """`fails`: does the next write or sync?"""

    def __init__(self, report: Callable[[], object], fails: Callable[[], bool]) -> None:
        self.steps: list[Step] = []
        self._fails = fails
        self._names: dict[int, str] = {}
        self._report = report

    def opened(self, path: bytes, fd: int) -> None:
        self._names[fd] = os.path.basename(os.fsdecode(path))

    def operate(self, name: str, path: bytes | int, data: bytes | int | None, offset: int) -> None:
        file = self._names[path] if isinstance(path, int) else os.path.basename(os.fsdecode(path))
        if name in ("write", "sync") and self._fails():
            if isinstance(path, int) and isinstance(data, bytes):
                os.pwrite(path, data[: len(data) // 2], offset)
                self.steps.append(Step(name, file, data[: len(data) // 2], offset, self._report()))
            raise OSError(errno.EIO, os.strerror(errno.EIO))  # what was to be synced is there after a power cut, or not
        if name in ("create", "write", "sync", "truncate", "unlink", "sync_folder"):
            self.steps.append(Step(name, file, data, offset, self._report()))
        elif name not in ("open", "close", "read"):
            raise NotImplementedError(f"a power cut around {name}")


@dataclass
class Cached:
    """A file: what is durable, and what is not yet."""

    durable: bytes = b""
    pending: list[Step] = field(default_factory=list)

    def sync(self) -> None:
        self.durable = self.after_cut(lambda: True)
        self.pending = []

    def after_cut(self, kept: Callable[[], bool]) -> bytes:
        """The file if each sector that waits is kept or lost as `kept` says."""
        content = bytearray(self.durable)
        for step in self.pending:
            if step.name == "truncate" and kept():
                assert isinstance(step.data, int)
                del content[step.data :]
            if isinstance(step.data, bytes):
                for at in range(step.offset, step.offset + len(step.data)):
                    if at == step.offset or at % SECTOR == 0:
                        end = min(step.offset + len(step.data), at - at % SECTOR + SECTOR)
                        if kept():
                            content.extend(bytes(max(0, end - len(content))))
                            content[at:end] = step.data[at - step.offset : end - step.offset]
        return bytes(content)


class CachedDisk:
    """A folder on a disk with a cache, as the steps make it."""

    def __init__(self, before: dict[str, bytes]) -> None:
        self.durable_names = {name: Cached(content) for name, content in before.items()}
        self.names = dict(self.durable_names)

    def apply(self, step: Step) -> None:
        if step.name == "create":
            self.names[step.file] = Cached()
        elif step.name in ("write", "truncate"):
            self.names[step.file].pending.append(step)
        elif step.name == "sync":
            self.names[step.file].sync()
        elif step.name == "unlink":
            del self.names[step.file]
        else:
            self.durable_names = dict(self.names)

    def after_cut(self, chance: random.Random) -> dict[str, bytes]:
        """One of the states that a power cut may leave."""
        likely = chance.choice([0.0, 0.1, 0.5, 0.9, 1.0])

        def kept() -> bool:
            return chance.random() < likely

        files = {}
        for name in sorted(self.durable_names.keys() | self.names.keys()):
            before, now = self.durable_names.get(name), self.names.get(name)
            file = before if before is now or not kept() else now
            if file is not None:
                files[name] = file.after_cut(kept)
        return files


def cuts(
    before: dict[str, bytes], steps: list[Step], chance: random.Random, each: int
) -> Iterator[tuple[int, dict[str, bytes]]]:
    """(steps done, files) of `each` power cuts after every step."""
    disk = CachedDisk(before)
    for done, step in enumerate(steps, 1):
        disk.apply(step)
        for _ in range(each):
            yield done, disk.after_cut(chance)


def stored(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*-*")}


def restored(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder
