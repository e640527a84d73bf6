"""mosquitto.conf as lines: a name, a value, and where it stands (mosquitto.conf(5), "File format").

A `#` begins a comment only as the first character of a line. `include_dir` brings the files *.conf of a folder.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from fanlight_broker.migrating.conf_files import ConfError, ConfFiles

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


def read(files: ConfFiles, name: str) -> list[ConfLine]:
    """All lines that say something, included ones in their place. Raises ConfError."""
    return list(_lines(files, name, [0]))


def _lines(files: ConfFiles, file: str, opened: list[int]) -> Iterator[ConfLine]:
    opened[0] += 1
    if opened[0] > FILES_MAX:
        raise ConfError(f"{file}: more than {FILES_MAX} files are included")
    for number, raw in enumerate(files.text(file).splitlines(), 1):
        line = raw.strip()
        if not line or raw.startswith("#"):
            continue
        name, *rest = line.split(None, 1)
        found = ConfLine(f"{Path(file).name}, line {number}", name, rest[0] if rest else "")
        if name != "include_dir":
            yield found
            continue
        try:
            included = files.included(file, found.value)
        except ConfError as error:
            raise ConfError(f"{found.place}: include_dir {error}") from None
        for each in included:
            yield from _lines(files, each, opened)
