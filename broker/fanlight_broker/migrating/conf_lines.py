"""mosquitto.conf as lines: a name, a value, and where it stands (mosquitto.conf(5), "File format").

A `#` begins a comment only as the first character of a line. `include_dir` brings the files *.conf of a folder.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from fanlight_permissions.reading import file_text

FILE_BYTES_MAX: Final = 4 * 1024 * 1024
FILES_MAX: Final = 100  # included by others, and by themselves
SECRETS: Final = {"remote_password", "local_password", "password", "bridge_psk"}


class ConfLine(NamedTuple):
    place: str  # "mosquitto.conf, line 12"
    name: str
    value: str

    def __str__(self) -> str:
        """For what is said of it; never with a password."""
        secret = self.name in SECRETS
        return f"{self.place}: {self.name} {'...' if secret else self.value}".rstrip()


class ConfError(ValueError):
    """A file that cannot be read. The text names it."""


def read(path: Path) -> list[ConfLine]:
    """All lines that say something, included ones in their place. Raises ConfError."""
    return list(_lines(path, [0]))


def _lines(path: Path, files: list[int]) -> Iterator[ConfLine]:
    files[0] += 1
    if files[0] > FILES_MAX:
        raise ConfError(f"{path}: more than {FILES_MAX} files are included")
    for number, raw in enumerate(text_of(path).splitlines(), 1):
        line = raw.strip()
        if not line or raw.startswith("#"):
            continue
        name, *rest = line.split(None, 1)
        found = ConfLine(f"{path.name}, line {number}", name, rest[0] if rest else "")
        if name != "include_dir":
            yield found
            continue
        folder = path.parent / found.value
        if not folder.is_dir():
            raise ConfError(f"{found}: is no folder that can be read here")
        for each in sorted(folder.glob("*.conf")):
            yield from _lines(each, files)


def text_of(path: Path) -> str:
    """Raises ConfError."""
    try:
        return file_text(path, FILE_BYTES_MAX)
    except ValueError as error:
        raise ConfError(str(error)) from None
