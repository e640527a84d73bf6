"""`fanlightd user add|passwd|set|rm|ls|import`: changes and shows a users file."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from fanlight_broker.auth import password_file, rabbitmq_users, users_file
from fanlight_broker.auth.files import PasswordFileError, read_text
from fanlight_broker.auth.hashing import hasher
from fanlight_broker.auth.scram_keys import ScramKeys
from fanlight_broker.auth.users import User, Users, why_not_groups, why_not_limits
from fanlight_broker.config import Exit
from fanlight_broker.passwd import ask_password

RELOAD = "a running broker reads it again on SIGHUP"


def run(arguments: argparse.Namespace) -> int:
    """Returns an exit code."""
    try:
        return int(COMMANDS[arguments.command](arguments))
    except (PasswordFileError, ValueError) as error:
        print(f"fanlightd: {error}", file=sys.stderr)
        return Exit.FAILED


def _add(arguments: argparse.Namespace) -> int:
    file, user = arguments.file, _named(arguments.user)
    if file.exists() and user in users_file.read(file).users:
        raise ValueError(f"{file} has a user {user!r} already; change the password with: fanlightd user passwd")
    row: dict[str, Any] = {"groups": arguments.group, "limits": dict(map(_limit, arguments.limit))}
    if reason := why_not_groups(row["groups"]) or why_not_limits(row["limits"]):
        raise ValueError(reason)
    keys = _keys(arguments)
    users_file.change(file, {user: keys | {name: value for name, value in row.items() if value}})
    print(f"added {user} to {file}; {RELOAD}")
    return Exit.OK


def _passwd(arguments: argparse.Namespace) -> int:
    file, user = arguments.file, arguments.user
    _present(file, user)
    users_file.change(file, {user: {"scram": None, **_keys(arguments)}})
    print(f"changed the password of {user} in {file}; {RELOAD}")
    return Exit.OK


def _set(arguments: argparse.Namespace) -> int:
    """Groups and limits."""
    file, user = arguments.file, arguments.user

    def changed(present: Users) -> dict[str, dict[str, Any]]:
        if (found := present.users.get(user)) is None:
            raise ValueError(f"{file} has no user {user!r}")
        groups = sorted((found.groups | set(arguments.add_group)) - set(arguments.remove_group))
        limits = {**found.limits, **dict(map(_limit, arguments.limit))}
        for name in arguments.remove_limit:
            limits.pop(name, None)
        if reason := why_not_groups(groups) or why_not_limits(limits):
            raise ValueError(reason)
        row: dict[str, Any] = {}  # what stays as it is may be written in a form that cannot be changed
        if groups != sorted(found.groups):
            row["groups"] = groups or None
        if limits != found.limits:
            row["limits"] = limits or None
        return {user: row}

    users_file.change(file, changed)
    print(f"changed {user} in {file}; {RELOAD}")
    return Exit.OK


def _rm(arguments: argparse.Namespace) -> int:
    _present(arguments.file, arguments.user)
    users_file.change(arguments.file, {arguments.user: None})
    print(f"removed {arguments.user} from {arguments.file}; {RELOAD}")
    return Exit.OK


def _ls(arguments: argparse.Namespace) -> int:
    for name, user in sorted(users_file.read(arguments.file).users.items()):
        if arguments.json:
            shown = {
                "user": name, "groups": sorted(user.groups), "limits": user.limits, "password": _kind(user),
                "scram": user.scram is not None,
            }
            print(json.dumps(shown))
            continue
        limits = ", ".join(f"{limit}={value}" for limit, value in user.limits.items())
        kinds = _kind(user) + (", scram" if user.scram is not None else "")
        print("  ".join(filter(None, (name, f"[{', '.join(sorted(user.groups))}]", limits, f"({kinds})"))))
    return Exit.OK


def _import(arguments: argparse.Namespace) -> int:
    file = arguments.file
    if reason := why_not_groups(arguments.group):
        raise ValueError(reason)
    found, left_out = _hashes(arguments.source)
    present = users_file.read(file).users.keys() if file.exists() else frozenset()
    groups = {"groups": arguments.group} if arguments.group else {}
    users_file.change(file, {user: {"password": hash} | groups for user, hash in found.items() if user not in present})
    for each in left_out:
        print(f"fanlightd: warning: not taken over: {each}", file=sys.stderr)
    for user in sorted(found.keys() & present):
        print(f"fanlightd: warning: {file} has a user {user!r} already, which stays as it is", file=sys.stderr)
    print(f"took over {len(found.keys() - present)} users of {arguments.source} into {file}; {RELOAD}")
    if weak := sum(not hash.startswith("$argon2") for hash in found.values()):
        print(f"{weak} of the hashes there are quick to guess; `fanlightd user passwd` renews the hash of a user")
    return Exit.OK


def _hashes(source: Path) -> tuple[dict[str, str], list[str]]:
    """By user, and what is left out. Raises PasswordFileError."""
    text = read_text(source)
    if text.lstrip().startswith("{"):
        return rabbitmq_users.parse(text, str(source))
    return password_file.parse(text, str(source)), []


COMMANDS = {"add": _add, "passwd": _passwd, "set": _set, "rm": _rm, "ls": _ls, "import": _import}


def _keys(arguments: argparse.Namespace) -> dict[str, str]:
    password = ask_password(stdin=arguments.stdin)
    keys = {"password": hasher().hash(password)}
    if not arguments.no_scram:
        try:
            keys["scram"] = ScramKeys.of(password).text()
        except ValueError as error:
            raise ValueError(f"the password {error}; choose another one, or --no-scram") from None
    return keys


def _present(file: Path, user: str) -> None:
    if user not in users_file.read(file).users:
        raise ValueError(f"{file} has no user {user!r}")


def _named(user: str) -> str:
    if reason := password_file.why_not_a_user(user):
        raise ValueError(reason)
    return user


def _limit(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if not number.isascii() or not number.isdigit():
        raise ValueError(f"--limit {text}: write NAME=NUMBER")
    return name, int(number)


def _kind(user: User) -> str:
    """The kind of hash."""
    kinds = {"$argon2": "argon2", "$rabbitmq$": "rabbitmq"}
    return next((kind for begin, kind in kinds.items() if user.password.startswith(begin)), "mosquitto")
