"""The password file: one `user:hash` a line, as `fanlightd passwd` writes it.

    # comment
    alice:$argon2id$v=19$m=65536,t=3,p=4$...$...

It is read whole and checked line by line. It is rewritten by renaming a new file into its place, so that a broker that
reads it at the same time sees the old file or the new one. Passwords are not checked here: see verifier.py.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fanlight_broker.auth.files import PasswordFileError, alone_in, read_text, replace_text
from fanlight_broker.auth.hashing import why_not_a_hash

USER_BYTES_MAX: Final = 255


def read(path: Path) -> dict[str, str]:
    """The hashes by user. Raises PasswordFileError."""
    return parse(read_text(path, f"create it: fanlightd passwd {path} USER"), str(path))


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
        if reason := why_not_a_hash(hash):
            raise PasswordFileError(f"{where}: {reason}; `fanlightd passwd FILE USER` writes one")
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
        with alone_in(target.parent):
            text = read_text(target) if target.exists() else ""
            known = user in parse(text, str(path))
            if hash is not None or known:
                replace_text(target, _edited(text, user, hash))
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
