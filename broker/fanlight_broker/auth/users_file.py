"""The users file: users with their groups and limits, in TOML, as `fanlightd user` writes it.

    decoy_key = "..."                 # random: what clients with SCRAM get for users that do not exist

    [users.alice]
    password = "$argon2id$..."        # or a hash that mosquitto_passwd wrote
    scram = "SCRAM-SHA-256$..."       # for enhanced authentication; optional
    groups = ["ops"]
    limits = { connections = 10 }

It is read whole and checked. A command changes only the lines of its user, so that comments stay: the result is parsed
and compared with what it must say, and a file that is written in another form is left alone.
"""

import base64
import binascii
import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from fanlight_broker.auth import plain_toml
from fanlight_broker.auth.files import PasswordFileError, alone_in, never, read_text, replace_text
from fanlight_broker.auth.hashing import why_not_a_hash
from fanlight_broker.auth.password_file import why_not_a_user
from fanlight_broker.auth.scram_keys import ScramKeys
from fanlight_broker.auth.users import User, Users, permissions_of, why_not_groups, why_not_limits

Changes = Mapping[str, Mapping[str, Any] | None]  # keys by user

KEYS: Final = ("password", "scram", "groups", "limits", "permissions")
PAUSE_EVERY: Final = 64  # users, some 1 ms

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_NO_KEY: Final = "no decoy_key of 32 bytes in base64"
_CREATED: Final = """\
# Users of a Fanlight broker. `fanlightd user` changes it; a running broker reads it again on SIGHUP.
# decoy_key: so that clients with SCRAM cannot tell which users exist. Keep it secret, and keep it when users change.
"""


def read(path: Path, pause: Callable[[], None] = never) -> Users:
    """Raises PasswordFileError. pause: called now and then, every 1 ms or so."""
    return parse(read_text(path, f"create it: fanlightd user add {path} USER"), str(path), pause)


def parse(text: str, name: str, pause: Callable[[], None] = never) -> Users:
    """The users of a file's text; `name` is for errors. Raises PasswordFileError."""
    return _checked(_table(text, name, pause), name, pause)


def _table(text: str, name: str, pause: Callable[[], None] = never) -> dict[str, Any]:
    try:
        return plain_toml.loads(text, pause)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PasswordFileError(f"{name}: is not TOML: {error}") from None


def _checked(
    table: Mapping[str, Any], name: str, pause: Callable[[], None] = never
) -> Users:
    if unknown := table.keys() - {"users", "decoy_key"}:
        raise PasswordFileError(f"{name}: unknown key {min(unknown)!r}; it has decoy_key and the tables [users.NAME]")
    users = table.get("users", {})
    if not isinstance(users, dict):
        raise PasswordFileError(f"{name}: users must be tables: [users.NAME]")
    key = _key_of(table.get("decoy_key"), name)
    found: dict[str, User] = {}
    for user, row in users.items():
        if len(found) % PAUSE_EVERY == PAUSE_EVERY - 1:
            pause()
        found[user] = _user(user, row, f"{name}, user {user!r}")
    return Users(found, key)


def _key_of(value: object, name: str) -> bytes:
    if value is None:
        return b""
    try:
        key = base64.b64decode(value if isinstance(value, str) else "", validate=True)
    except (ValueError, binascii.Error):
        key = b""
    if len(key) < 32:
        raise PasswordFileError(f"{name}: {_NO_KEY}")
    return key


def _user(user: str, row: object, where: str) -> User:
    if reason := why_not_a_user(user):
        raise PasswordFileError(f"{where}: {reason}")
    if not isinstance(row, dict):
        raise PasswordFileError(f"{where}: must be a table")
    if unknown := row.keys() - set(KEYS):
        raise PasswordFileError(f"{where}: unknown key {min(unknown)!r}; there are {', '.join(KEYS)}")
    password = row.get("password")
    reason = why_not_a_hash(password) if isinstance(password, str) else "no password"
    if reason:
        raise PasswordFileError(f"{where}: {reason}; `fanlightd user passwd FILE USER` writes one")
    scram = row.get("scram")
    try:
        keys = ScramKeys.parse(scram) if isinstance(scram, str) else None
    except ValueError as error:
        raise PasswordFileError(f"{where}: scram: {error}") from None
    if scram is not None and keys is None:
        raise PasswordFileError(f"{where}: scram must be a text")
    groups, limits = row.get("groups", []), row.get("limits", {})
    if reason := why_not_groups(groups) or why_not_limits(limits):
        raise PasswordFileError(f"{where}: {reason}")
    try:
        permissions = permissions_of(row.get("permissions"))
    except ValueError as error:
        raise PasswordFileError(f"{where}: {error}") from None
    assert isinstance(password, str)
    return User(password, keys, frozenset(groups), dict(limits), permissions)


# -- changing it ------------------------------------------------------------------------------------------------------


def change(path: Path, changes: Changes | Callable[[Users], Changes]) -> None:
    """Set keys of users (made if they are not there), remove keys (None), or remove a user (None).

    changes: or what makes them of the users that the file has, while nobody else changes it

    Raises:
        PasswordFileError: the file cannot be read or written, is malformed, or has a form that cannot be changed line
            by line. It is unchanged then.
    """
    target = Path(os.path.realpath(path))  # a symbolic link stays one
    try:
        with alone_in(target.parent):
            text = read_text(target) if target.exists() else ""
            present = parse(text, str(path))
            if not text:
                text = f'{_CREATED}decoy_key = "{base64.b64encode(os.urandom(32)).decode()}"\n'
            replace_text(target, _changed(text, changes(present) if callable(changes) else changes, str(path)))
    except OSError as error:
        raise PasswordFileError(f"{path}: cannot be written: {error.strerror}") from error


def _changed(text: str, changes: Changes, name: str) -> str:
    expected = _table(text, name)
    users: dict[str, Any] = expected.setdefault("users", {})
    blocks = _blocks(text)
    by_path = {block.path: block for block in reversed(blocks)}
    for user, row in changes.items():
        path = ("users", user)
        if row is None:
            users.pop(user, None)
            blocks = [block for block in blocks if block.path[:2] != path]
            continue
        users[user] = {key: value for key, value in {**users.get(user, {}), **row}.items() if value is not None}
        block = by_path.get(path)
        if block is None:
            block = _Block(path, [f"[users.{_key(user)}]"])
            if blocks and blocks[-1].lines[-1:] != [""]:
                blocks[-1].lines.append("")
            blocks.append(block)
            by_path[path] = block
        for key, value in row.items():
            block.set(key, None if value is None else f"{key} = {_value(value)}")
    changed = "".join(f"{line}\n" for block in blocks for line in block.lines)
    found = _table_or_nothing(changed)
    if not users and "users" not in found:
        del expected["users"]
    if found != expected:
        raise PasswordFileError(
            f"{name}: is written in a form that this command cannot change; write each user as [users.NAME], with one "
            "line for each key, or change it by hand"
        )
    _checked(found, name)
    return changed


def _table_or_nothing(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}


class _Block(NamedTuple):
    """A table's header and the lines below it."""

    path: tuple[str, ...]  # () before the first header
    lines: list[str]

    def set(self, key: str, line: str | None) -> None:
        """Put a line in the place of the one that sets the key, or remove that."""
        new = [] if line is None else [line]
        for at, present in enumerate(self.lines):
            if at and tuple(_table_or_nothing(present)) == (key,):
                self.lines[at : at + 1] = new
                return
        last = max(at for at, present in enumerate(self.lines) if present.strip())
        self.lines[last + 1 : last + 1] = new


def _blocks(text: str) -> list[_Block]:
    # Not str.splitlines, which also splits at characters that TOML does not.
    blocks = [_Block((), [])]
    for line in text.removesuffix("\n").split("\n"):
        if line.lstrip().startswith("[") and (table := _table_or_nothing(line)):
            path: list[str] = []
            while isinstance(table, dict) and len(table) == 1:
                (key,) = table
                path.append(key)
                table = table[key]
            blocks.append(_Block(tuple(path), []))
        blocks[-1].lines.append(line)
    return blocks


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {number}" for key, number in value.items()) + " }" if value else "{}"
    return json.dumps(value, ensure_ascii=False)
