"""The arguments and the help of `fanlightd user`."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

USERS: Final = """\
Users, their groups and limits, in a users file (the setting users_file). A running broker reads it again on SIGHUP, and
then ends the connections of users that were changed or removed.

examples:
  fanlightd user add users.toml alice --group ops
  fanlightd user add users.toml sensor-7 --limit connections=2 --stdin < password
  fanlightd user passwd users.toml alice
  fanlightd user set users.toml alice --add-group night --remove-group ops --limit connections=5
  fanlightd user ls users.toml
  fanlightd user import users.toml /etc/mosquitto/passwd
"""


def _user(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("user", metavar="USER", help="user name, without ':' and spaces at its ends")


def _password(parser: argparse.ArgumentParser) -> None:
    _user(parser)
    parser.add_argument("--stdin", action="store_true", help="read the password from standard input's first line")
    parser.add_argument(
        "--no-scram", action="store_true", help="keep no keys for SCRAM-SHA-256; the user can then use passwords only"
    )


def _add(parser: argparse.ArgumentParser) -> None:
    _password(parser)
    parser.add_argument("--group", action="append", default=[], metavar="NAME", help="may be given several times")
    parser.add_argument(
        "--limit", action="append", default=[], metavar="NAME=NUMBER", help="such as connections=10; several times"
    )


def _set(parser: argparse.ArgumentParser) -> None:
    _user(parser)
    for flag, value, text in (
        ("--add-group", "NAME", "a group that the user is in from now on"),
        ("--remove-group", "NAME", "a group that the user is in no more"),
        ("--limit", "NAME=NUMBER", "such as connections=10"),
        ("--remove-limit", "NAME", "a limit that the user has no more"),
    ):
        parser.add_argument(flag, action="append", default=[], metavar=value, help=f"{text}; several times")


def _import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", type=Path, metavar="FROM",
        help="a file of mosquitto_passwd, one of `fanlightd passwd`, or RabbitMQ's file of definitions"
    )
    parser.add_argument("--group", action="append", default=[], metavar="NAME", help="of all of them; several times")


def _ls(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object a user, one a line")


USER_COMMANDS: Final[Mapping[str, tuple[str, Callable[[argparse.ArgumentParser], None]]]] = {
    "add": ("add a user, or fail if it is there", _add),
    "passwd": ("change a user's password", _password),
    "set": ("change a user's groups and limits", _set),
    "rm": ("remove a user", _user),
    "ls": ("list the users, without passwords", _ls),
    "import": ("take over users of another file, with their hashes", _import),
}
