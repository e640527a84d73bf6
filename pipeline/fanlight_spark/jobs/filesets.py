"""A folder that grows by sets of Parquet files, each published once and then never changed.

    manifest.json                              which sets there are, and what of the archive they hold
    messages/set=<first offset>-<random>/…     a set: its files below date=/hour=/root=
    messages/_<first offset>-<random>/…        a set that is being written; names with _ are nobody's to read
    lock                                       held by flock(2) while somebody writes here

Publishing: every file and folder of the set is synced, the set gets its name, and then a new manifest takes the place
of the old one by a rename. That rename is the one moment at which a set begins to count: whoever is killed before it
has published nothing, and who begins next removes what was left and writes it again. Spark is not here.
"""

import fcntl
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq  # type: ignore[import-untyped, unused-ignore]

FORMAT: Final = 1
MANIFEST, MESSAGES, LOCK = "manifest.json", "messages", "lock"
_SET: Final = re.compile(r"(set=|_)\d{20}-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class FileSet:
    """The messages of the archive from `first` to before `end`, but for those that a filter left out, or were lost.

    lost: what was left out with --allow-loss, of this range or directly before it: {"first", "end", "why"}.
    """

    folder: str | None  # below messages/; None if it has no message
    first: int
    end: int
    epochs: list[dict[str, int]]  # {"epoch": 2, "first": 8192}: from this offset on
    messages: int = 0
    files: int = 0
    bytes: int = 0
    lost: list[dict[str, Any]] = field(default_factory=list)

    @property
    def messages_lost(self) -> int:
        return sum(one["end"] - one["first"] for one in self.lost)


@dataclass(frozen=True, slots=True)
class Manifest:
    archive: str  # its identity
    position: dict[str, Any]  # of the next message that is to be taken: archive, epoch, offset
    roots_max: int
    filter: str | None = None
    syntax: str | None = None
    roots: list[str] = field(default_factory=list)  # with a folder of their own
    sets: list[FileSet] = field(default_factory=list)


def load(folder: Path | str) -> Manifest | None:
    """What is published in a folder; None if nothing ever was. Raises ValueError if it is no manifest of ours."""
    path = Path(folder) / MANIFEST
    try:
        stored = json.loads(path.read_bytes())
        if stored["format"] != FORMAT:
            raise ValueError(f"it is in format {stored['format']}")
        sets = [FileSet(**_known(FileSet, one)) for one in stored["sets"]]
        return Manifest(**{**_known(Manifest, stored), "sets": sets})
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a manifest in format {FORMAT} ({error})") from error


def _known(kind: type[Any], stored: dict[str, Any]) -> dict[str, Any]:
    """Without what a later version has added."""
    names = {one.name for one in fields(kind)}
    return {name: value for name, value in stored.items() if name in names}


class Folder:
    """A folder that is being written to, by one at a time. Made by `opened`."""

    def __init__(self, path: Path, manifest: Manifest | None) -> None:
        self.path, self.manifest = path, manifest

    def aside(self, first: int) -> Path:
        """Where to write a set whose first message has this offset."""
        return self.path / MESSAGES / f"_{first:020}-{secrets.token_hex(4)}"

    def publish(self, manifest: Manifest, aside: Path, made: FileSet) -> Manifest:
        """The manifest with one set more. manifest: what else it says now."""
        if made.messages:
            name = "set=" + aside.name.removeprefix("_")
            _sync(aside)
            aside.rename(aside.with_name(name))
            _sync_folder(aside.parent)
            made = replace(made, folder=name)
        else:
            shutil.rmtree(aside, ignore_errors=True)
        return self.write(replace(manifest, sets=[*manifest.sets, made]))

    def write(self, manifest: Manifest) -> Manifest:
        """Put a manifest in the place of the one that is there."""
        self.manifest = manifest
        new = self.path / f"{MANIFEST}.new"
        with new.open("w", encoding="utf-8") as file:
            json.dump({"format": FORMAT, **asdict(self.manifest)}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        new.rename(self.path / MANIFEST)
        _sync_folder(self.path)
        return self.manifest


@contextmanager
def opened(path: Path) -> Iterator[Folder]:
    """A folder to write to, made if need be, without what was left in it. ValueError: somebody else writes there."""
    (path / MESSAGES).mkdir(parents=True, exist_ok=True)
    with (path / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"{path}: somebody else is writing there") from None
        manifest = load(path)
        published = {one.folder for one in manifest.sets} if manifest else set()
        for left in (path / MESSAGES).iterdir():
            # By the form of the name: what somebody else put there is not ours to remove.
            if left.name not in published and _SET.fullmatch(left.name):
                shutil.rmtree(left)
        yield Folder(path, manifest)


def counted(aside: Path, made: FileSet) -> FileSet:
    """With what its files hold, by what they say themselves."""
    files = sorted(aside.rglob("*.parquet"))
    rows = sum(pq.ParquetFile(file).metadata.num_rows for file in files)
    return replace(made, messages=rows, files=len(files), bytes=sum(file.stat().st_size for file in files))


def by_root(folder: Path, manifest: Manifest) -> dict[str, tuple[int, int]]:
    """(files, bytes) of each root."""
    found: dict[str, tuple[int, int]] = {}
    for one in manifest.sets:
        for file in (folder / MESSAGES / one.folder).rglob("*.parquet") if one.folder else ():
            root = file.parent.name.removeprefix("root=")
            files, size = found.get(root, (0, 0))
            found[root] = (files + 1, size + file.stat().st_size)
    return found


def _sync(folder: Path) -> None:
    """All that is below a folder, and the folder: whoever wrote the files, their pages go to the disk."""
    for at, _, names in os.walk(folder):
        for name in names:
            with (Path(at) / name).open("rb") as file:
                os.fsync(file.fileno())
        _sync_folder(Path(at))


def _sync_folder(path: Path) -> None:
    number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
