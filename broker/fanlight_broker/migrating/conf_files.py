"""The files of a mosquitto: in a folder of this machine, or as somebody sent them, who may read none of this machine.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Protocol

from fanlight_permissions.reading import file_text

FILE_BYTES_MAX: Final = 4 * 1024 * 1024


class ConfError(ValueError):
    """A file that cannot be read. The text names it."""


class ConfFiles(Protocol):
    def text(self, name: str) -> str:
        """Of a file, as a configuration names it. Raises ConfError."""

    def included(self, by: str, folder: str) -> Iterable[str]:
        """The names of the files *.conf of a folder, which another file names. Raises ConfError."""


class FilesOnDisk:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def text(self, name: str) -> str:
        try:
            return file_text(self._folder / name, FILE_BYTES_MAX)
        except ValueError as error:
            raise ConfError(str(error)) from None

    def included(self, by: str, folder: str) -> Iterable[str]:
        found = (self._folder / by).parent / folder
        if not found.is_dir():
            raise ConfError(f"{folder}: is no folder that can be read here")
        return sorted(str(each) for each in found.glob("*.conf"))


class FilesSent:
    """files: texts by name. They have no folders: /etc/mosquitto/acl is found as `acl`, a folder brings all *.conf."""

    def __init__(self, files: Mapping[str, str], first: str) -> None:
        self._files, self._first = files, first

    def text(self, name: str) -> str:
        found = self._files.get(name, self._files.get(Path(name).name))
        if found is None:
            raise ConfError(f"{name}: is not among the files that were sent")
        return found

    def included(self, by: str, folder: str) -> Iterable[str]:
        found = sorted(name for name in self._files if name.endswith(".conf") and name != self._first)
        if not found:
            raise ConfError(f"{folder}: none of its files *.conf is among those that were sent")
        return found
