"""Files of users: read whole, and rewritten by renaming a new file into their place.

A broker that reads such a file at the same time sees the old one or the new one.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from fanlight_broker.core.errors import FanlightError

FILE_BYTES_MAX: Final = 16 * 1024 * 1024  # about 100,000 users with a hash each; a longer file is something else


class PasswordFileError(FanlightError):
    """A file of users cannot be used. The text names the file and the place, and never shows a hash."""


def never() -> None:
    """No pause: of what is read while nobody waits."""


def read_text(path: Path, advice: str = "is it the right path?") -> str:
    """The file, as UTF-8. Raises PasswordFileError."""
    try:
        with path.open("rb") as file:
            raw = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        raise PasswordFileError(f"{path}: no such file; {advice}") from None
    except OSError as error:
        raise PasswordFileError(f"{path}: cannot be read: {error.strerror}") from error
    if len(raw) > FILE_BYTES_MAX:
        raise PasswordFileError(f"{path}: is longer than {FILE_BYTES_MAX} bytes")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise PasswordFileError(f"{path}, line {line}: is not UTF-8") from None


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Two commands at the same time must not lose a user. The folder is locked, because the file is replaced."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def replace_text(target: Path, text: str) -> None:
    """Put a file with this text in the place of `target`, with its mode and owner; 0600 if it is new."""
    import tempfile  # a broker reads the file only

    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)  # mode 0600
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            if target.exists():
                before = target.stat()
                os.fchmod(file.fileno(), before.st_mode & 0o777)
                if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
                    # Run by root: the broker's user must still be able to read the file.
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise
