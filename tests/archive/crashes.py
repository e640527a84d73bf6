"""A disk that remembers in which order it was asked for what, and what a crash at any moment could leave of it.

POSIX promises that what was written is there after fsync of the file, and that what was created, renamed and removed is
so after fsync of the folder; of everything else, any part may be there or not. `left` makes some of these worlds:

    data   lost: what was not synced is not there   kept: all of it is
           torn: half of what came behind the last sync   zeros: its length is there, and its bytes are not
    names  lost: as at the last sync of the folder   kept: as they were
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from fanlight_archive.files import Disk, File, Piece

Data = Literal["lost", "kept", "torn", "zeros"]
Names = Literal["lost", "kept"]
WORLDS: list[tuple[Data, Names]] = [
    (data, names) for data in ("lost", "kept", "torn", "zeros") for names in ("lost", "kept")
]  # fmt: skip


@dataclass
class World:
    """What is in memory, and what is on the disk."""

    files: dict[int, bytes] = field(default_factory=dict)
    synced: dict[int, bytes] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    synced_names: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Deed:
    """One thing that the disk was asked for."""

    what: str
    number: int = 0  # of a file
    name: str = ""
    other: str = ""
    data: bytes = b""
    size: int = 0


class Recorder(Disk):
    """Does it, and writes it down. `deaf`: a kind of sync that it says it has done, and has not."""

    def __init__(self, folder: Path, deaf: str = "") -> None:
        super().__init__(folder)
        self.deeds: list[Deed] = []
        self.deaf = deaf
        self._numbers: dict[str, int] = {}
        self._count = 0

    def note(self, deed: Deed) -> None:
        if deed.what != self.deaf:
            self.deeds.append(deed)

    def create(self, name: str) -> File:
        self._count += 1
        self._numbers[name] = self._count
        self.note(Deed("create", self._count, name))
        return RecordedFile(self, self._count, super().create(name))

    def open(self, name: str) -> File:
        return RecordedFile(self, self._numbers[name], super().open(name))

    def rename(self, old: str, new: str) -> None:
        super().rename(old, new)
        self._numbers[new] = self._numbers.pop(old)
        self.note(Deed("rename", name=old, other=new))

    def remove(self, name: str) -> None:
        super().remove(name)
        del self._numbers[name]
        self.note(Deed("remove", name=name))

    def sync_names(self) -> None:
        self.note(Deed("sync_names"))


class RecordedFile:
    def __init__(self, disk: Recorder, number: int, file: File) -> None:
        self.disk, self.number, self.file = disk, number, file

    def write(self, pieces: Sequence[Piece]) -> None:
        self.file.write(pieces)
        self.disk.note(Deed("write", self.number, data=b"".join(bytes(piece) for piece in pieces)))

    def sync(self) -> None:
        self.disk.note(Deed("sync", self.number))

    def truncate(self, size: int) -> None:
        self.file.truncate(size)
        self.disk.note(Deed("truncate", self.number, size=size))

    def close(self) -> None:
        self.file.close()


def after(deeds: Sequence[Deed]) -> World:
    """The world when these were done."""
    world = World()
    for deed in deeds:
        match deed.what:
            case "create":
                world.files[deed.number] = b""
                world.names[deed.name] = deed.number
            case "write":
                world.files[deed.number] += deed.data
            case "truncate":
                world.files[deed.number] = world.files[deed.number][: deed.size]
            case "rename":
                world.names[deed.other] = world.names.pop(deed.name)
            case "remove":
                del world.names[deed.name]
            case "sync":
                world.synced[deed.number] = world.files[deed.number]
            case "sync_names":
                world.synced_names = dict(world.names)
    return world


def left(world: World, data: Data, names: Names, folder: Path) -> None:
    """Put into a new folder what a crash leaves."""
    folder.mkdir()
    for name, number in (world.names if names == "kept" else world.synced_names).items():
        memory, disk = world.files[number], world.synced.get(number, b"")
        more = memory[len(disk) :] if memory.startswith(disk) else b""
        found = {
            "lost": disk, "kept": memory, "torn": disk + more[: len(more) // 2], "zeros": disk + bytes(len(more)),
        }[data]  # fmt: skip
        (folder / name).write_bytes(found)


class Careless(Disk):
    """A disk for tests that look at what is there now: nobody waits for a sync."""

    def sync_names(self) -> None:
        pass

    def create(self, name: str) -> File:
        return CarelessFile(super().create(name))

    def open(self, name: str) -> File:
        return CarelessFile(super().open(name))


class CarelessFile:
    def __init__(self, file: File) -> None:
        self.write, self.truncate, self.close = file.write, file.truncate, file.close

    def sync(self) -> None:
        pass
