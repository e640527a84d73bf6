"""`fanlightd passwd`: sets or deletes a user in a password file."""

import getpass
import sys
from pathlib import Path

from fanlight_broker.auth.files import PasswordFileError
from fanlight_broker.auth.hashing import hasher
from fanlight_broker.auth.password_file import set_hash, why_not_a_user
from fanlight_broker.config import Exit

PASSWORD_BYTES_MAX = 1024  # it must fit into the first frame of a connection (handshake_frame_bytes_max)


def passwd(file: Path, user: str, *, delete: bool, stdin: bool) -> int:
    """Ask for a password (twice, on a terminal) and write its hash; returns an exit code."""
    if reason := why_not_a_user(user):
        return _failed(reason)
    try:
        if delete:
            if not file.exists() or not set_hash(file, user, None):
                return _failed(f"{file} has no user {user!r}")
            print(f"deleted {user} from {file}; a running broker reads it again on SIGHUP")
            return Exit.OK
        password = ask_password(stdin=stdin)
        known = set_hash(file, user, hasher().hash(password))
    except (PasswordFileError, ValueError) as error:
        return _failed(str(error))
    done = "changed the password of" if known else "added"
    print(f"{done} {user} in {file}; a running broker reads it again on SIGHUP")
    return Exit.OK


def ask_password(*, stdin: bool) -> str:
    """A new password, from standard input or from the terminal. Raises ValueError."""
    return _from_stdin() if stdin else _from_terminal()


def _from_stdin() -> str:
    line = sys.stdin.buffer.readline(PASSWORD_BYTES_MAX + 2)
    try:
        return _checked(line.decode().removesuffix("\n").removesuffix("\r"))
    except UnicodeDecodeError:
        raise ValueError("the password is not UTF-8") from None


def _from_terminal() -> str:
    if not sys.stdin.isatty():
        raise ValueError("there is no terminal to ask on; give the password on standard input, with --stdin")
    try:
        password = _checked(getpass.getpass("password: "))
        if getpass.getpass("once more: ") != password:
            raise ValueError("the two passwords differ")
    except EOFError:
        raise ValueError("no password was given") from None
    return password


def _checked(password: str) -> str:
    if not password:
        raise ValueError("the password is empty")
    if len(password.encode(errors="surrogatepass")) > PASSWORD_BYTES_MAX:
        raise ValueError(f"the password is longer than {PASSWORD_BYTES_MAX} bytes")
    return password


def _failed(reason: str) -> int:
    print(f"fanlightd: {reason}", file=sys.stderr)
    return Exit.FAILED
