"""The password file: one `user:hash` a line, as `fanlightd passwd` writes it.

    # comment
    alice:$argon2id$v=19$m=65536,t=3,p=4$...$...

It is read whole and checked line by line. It is rewritten by renaming a new file into its place, so that a broker that
reads it at the same time sees the old file or the new one. Passwords are not checked here: see verifier.py.
"""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from fanlight_broker.core.errors import FanlightError

FILE_BYTES_MAX: Final = 16 * 1024 * 1024  # about 100,000 users; a longer file is not a password file
USER_BYTES_MAX: Final = 255
MEMORY_KIB_MAX: Final = 1024 * 1024  # with more, each login could use all memory of the machine

_HASH = re.compile(
    r"\$argon2(?:id|i|d)\$v=19\$m=(\d{1,9}),t=(\d{1,9}),p=(\d{1,9})"
    r"\$[A-Za-z0-9+/]{11,}\$[A-Za-z0-9+/]{16,}",
    re.ASCII,
)


class PasswordFileError(FanlightError):
    """A password file cannot be used. The text names the file and the line, and never shows a hash."""


def read(path: Path) -> dict[str, str]:
    """The hashes by user. Raises PasswordFileError."""
    return parse(_read_text(path), str(path))


def parse(text: str, name: str) -> dict[str, str]:
    """The hashes by user, of a file's text; `name` is for errors. Raises PasswordFileError."""
    hashes: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, user, hash in _entries(text):
        where = f"{name}, line {number}"
        if user is None or hash is None:
            raise PasswordFileError(f"{where}: is not user:hash")
        if reason := why_not_a_user(user):
            raise PasswordFileError(f"{where}: {reason}")
        match = _HASH.fullmatch(hash)
        if match is None:
            raise PasswordFileError(f"{where}: no argon2 hash; `fanlightd passwd FILE USER` writes one")
        if not 8 <= int(match[1]) <= MEMORY_KIB_MAX or int(match[2]) < 1 or int(match[3]) < 1:
            raise PasswordFileError(f"{where}: argon2 costs out of range; m is 8 to {MEMORY_KIB_MAX} KiB")
        if user in lines:
            raise PasswordFileError(f"{where}: {user!r} is on line {lines[user]} already")
        hashes[user], lines[user] = hash, number
    return hashes


def why_not_a_user(user: str) -> str:
    """Why a user name is invalid; "" if it is valid."""
    if not user or user != user.strip():
        return "a user name must not be empty, or have spaces at its ends"
    if ":" in user or not user.isprintable() or user.startswith("#"):
        return "a user name must not contain ':' or control characters, or begin with '#'"
    if len(user.encode(errors="surrogatepass")) > USER_BYTES_MAX:
        return f"a user name has at most {USER_BYTES_MAX} bytes"
    return ""


def set_hash(path: Path, user: str, hash: str | None) -> bool:
    """Put a user's hash into the file, or remove the user (`hash` None); whether the user was there before.

    The rest of the file, its mode and its owner stay as they are. A new file gets mode 0600.

    Raises:
        PasswordFileError: the file cannot be read or written, or is malformed. It is unchanged then.
    """
    target = Path(os.path.realpath(path))  # a symbolic link stays one
    try:
        with _alone_in(target.parent):
            text = _read_text(target) if target.exists() else ""
            known = user in parse(text, str(path))
            if hash is not None or known:
                _replace(target, _edited(text, user, hash))
            return known
    except OSError as error:
        raise PasswordFileError(f"{path}: cannot be written: {error.strerror}") from error


def _edited(text: str, user: str, hash: str | None) -> str:
    entry = [] if hash is None else [f"{user}:{hash}"]
    lines = _lines(text)
    for number, name, _ in _entries(text):
        if name == user:
            lines[number - 1 : number] = entry
            break
    else:
        lines += entry
    return "".join(f"{line}\n" for line in lines)


def _entries(text: str) -> Iterator[tuple[int, str | None, str | None]]:
    for number, line in enumerate(_lines(text), 1):
        if line.strip() and not line.startswith("#"):
            user, colon, hash = line.partition(":")
            yield (number, user, hash.strip()) if colon else (number, None, None)


def _lines(text: str) -> list[str]:
    # Not str.splitlines, which also splits at characters that editors and other programs do not.
    return text.removesuffix("\n").split("\n") if text else []


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        raise PasswordFileError(f"{path}: no such file; create it: fanlightd passwd {path} USER") from None
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
def _alone_in(folder: Path) -> Iterator[None]:
    # Two concurrent `passwd` must not lose a user. The folder is locked, because the file itself is replaced.
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _replace(target: Path, text: str) -> None:
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
