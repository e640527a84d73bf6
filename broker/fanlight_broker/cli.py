"""The command `fanlightd`: serve, check-config, passwd, user, healthcheck, version, and those of a store.

The flags are made from the settings' declarations (config/keys.py). Each command imports what it needs when
it runs, so that `fanlightd healthcheck` in a container does not load the broker every ten seconds.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, NoReturn

from fanlight_broker import __version__, early
from fanlight_broker.config import Exit, Key, Loaded, Settings, SettingsError, Sources, keys, load
from fanlight_broker.config.exits import MEANINGS
from fanlight_broker.config.explain import effective, markdown
from fanlight_broker.parsing import Parser, commands_below, seconds
from fanlight_broker.store_help import BACKUP, CHECK, REPAIR
from fanlight_broker.user_help import USER_COMMANDS, USERS

DESCRIPTION = """\
Fanlight, a publish/subscribe message broker.

examples:
  fanlightd serve                                  on 127.0.0.1, for this machine only
  fanlightd serve --native-port 7500 --no-http     another port, and no HTTP listener
  fanlightd user add users.toml alice              make a user, then let other machines in:
  fanlightd serve --native-host 0.0.0.0 --users-file users.toml
  fanlightd check-config --config fanlight.toml    what is in force and why, or what is wrong and where
"""

SERVE = """\
Run the broker until SIGTERM or SIGINT, which drain: clients get a goodbye, and what they have not read yet is
flushed within grace_seconds; a second signal stops at once. SIGHUP reads the file, the password file and the
certificate again.

Each setting below has one name and three places, each overriding the one before: frame_bytes_max in the TOML
file, FANLIGHT_FRAME_BYTES_MAX in the environment, --frame-bytes-max here. Sizes may be written 8MiB, times
500ms, 5s or 2m. docs/configuration.md has the same as a page.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (config/exits.py). Raises SystemExit for wrong settings."""
    arguments = parser().parse_args(argv)
    try:
        code = arguments.run(arguments)
        sys.stdout.flush()
        return int(code)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # `fanlightd check-config | head`: the reader has seen enough. Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK


# The commands.


def serve(arguments: argparse.Namespace) -> int:
    from fanlight_broker import app, logs
    from fanlight_broker.parts import PartError

    loaded = _load(arguments, on_error=Exit.USAGE)
    settings = loaded.settings
    logs.configure(
        format=settings.log_format,
        level=settings.log_level,
        burst_max=settings.log_burst_max,
        queue_max=settings.log_queue_max,
    )
    try:
        for warning in loaded.warnings:
            logs.get("config").warning("settings", reason=warning)
        return app.run(settings)
    except PartError as error:
        print(f"fanlightd: {error}", file=sys.stderr)  # as for wrong settings; not in the log as well
        return error.code
    finally:
        logs.close()


def check_config(arguments: argparse.Namespace) -> int:
    from fanlight_broker.authentication import read_files
    from fanlight_broker.encryption import tls_files_of
    from fanlight_broker.net import tls
    from fanlight_broker.parts import PartError

    if arguments.markdown:
        sys.stdout.write(markdown())
        return Exit.OK
    loaded = _load(arguments, on_error=Exit.FAILED)
    try:
        read_files(loaded.settings)
    except PartError as error:  # `serve` would not start
        print(f"fanlightd: {error}", file=sys.stderr)
        return Exit.FAILED
    if (files := tls_files_of(loaded.settings)) is not None:
        try:
            tls.Tls(files)
        except tls.TlsError as error:
            print(f"fanlightd: {error}", file=sys.stderr)
            return Exit.FAILED
    if loaded.settings.bridges is not None:
        from fanlight_broker.bridging.part import read as read_bridges

        try:
            read_bridges(loaded.settings.bridges)
        except PartError as error:
            print(f"fanlightd: {error}", file=sys.stderr)
            return Exit.FAILED
    try:
        own = listeners_shown(loaded.settings)
    except PartError as error:
        print(f"fanlightd: {error}", file=sys.stderr)
        return Exit.FAILED
    for warning in loaded.warnings:
        print(f"fanlightd: warning: {warning}", file=sys.stderr)
    print(effective(loaded))
    print("".join(f"{line}\n" for line in own), end="")
    return Exit.OK


def listeners_shown(settings: Settings) -> list[str]:
    """A line for each listener of one's own. Raises PartError."""
    if settings.listeners is None:
        return []
    from fanlight_broker.assembly import PROTOCOLS
    from fanlight_broker.listeners import own_listeners, own_tls

    found = own_listeners(settings, PROTOCOLS)
    for one in found:
        if one.files is not None:
            own_tls(one)
    return ["", f"# listeners of {settings.listeners}", *(f"# {one}" for one in found)]


def passwd(arguments: argparse.Namespace) -> int:
    from fanlight_broker.passwd import passwd

    return passwd(arguments.file, arguments.user, delete=arguments.delete, stdin=arguments.stdin)


def user(arguments: argparse.Namespace) -> int:
    from fanlight_broker.user_commands import run

    return run(arguments)


def healthcheck(arguments: argparse.Namespace) -> int:
    from fanlight_broker import health

    # The broker may have got by a flag what we do not see here, such as --allow-anonymous: so whole=False.
    url = arguments.url or health.url_of(_load(arguments, on_error=Exit.FAILED, whole=False).settings)
    return health.check(url, arguments.timeout)


def check(arguments: argparse.Namespace) -> int:
    from fanlight_broker.store_commands import check_store

    return check_store(arguments.folder, as_json=arguments.json)


def repair(arguments: argparse.Namespace) -> int:
    from fanlight_broker.store_commands import repair_store

    return repair_store(arguments.folder, yes=arguments.yes)


def backup(arguments: argparse.Namespace) -> int:
    from fanlight_broker.store_commands import backup_store

    return backup_store(arguments.folder, arguments.to)


def definitions(arguments: argparse.Namespace) -> int:
    from fanlight_broker.definitions_command import try_definitions

    settings = _load(arguments, on_error=Exit.USAGE, whole=False).settings
    return try_definitions(arguments.file, settings, as_json=arguments.json)


def import_configuration(arguments: argparse.Namespace) -> int:
    from fanlight_broker.migrating.import_command import import_configuration, import_sent

    return import_sent(arguments.file) if arguments.sent else import_configuration(arguments.file, arguments.to)


def version(_: argparse.Namespace) -> int:
    print(_version())
    return Exit.OK


def _version() -> str:
    return f"fanlightd {__version__}, Python {sys.version.split()[0]}"


def _load(arguments: argparse.Namespace, *, on_error: Exit, whole: bool = True) -> Loaded:
    """The settings, or the end of the program with what is wrong with them."""
    flags = {name: getattr(arguments, name) for name in keys() if getattr(arguments, name, None) is not None}
    try:
        return load(Sources(flags=flags, environment=dict(os.environ), config=arguments.config), whole=whole)
    except SettingsError as error:
        early.exit_decided()
        print(f"fanlightd: {error}", file=sys.stderr)
        raise SystemExit(on_error) from None


# The parser.


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=34, width=min(110, _columns()))


@cache
def _columns() -> int:
    """Of the terminal. shutil, which has the same, brings three libraries that compress."""
    try:
        return int(os.environ.get("COLUMNS", "")) or os.get_terminal_size().columns
    except (ValueError, OSError):
        return 110


class _NoPassword(argparse.Action):
    """`--password` exists only to say why it does not."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> NoReturn:
        parser.error(
            "there is no --password: every user of this machine can read a command line; "
            "use the environment variable FANLIGHT_PASSWORD, or --password-file"
        )


def parser() -> argparse.ArgumentParser:
    codes = "\n".join(f"  {int(code):<4} {meaning}" for code, meaning in MEANINGS.items())
    parser = Parser(
        prog="fanlightd", description=DESCRIPTION, formatter_class=_Help, allow_abbrev=False,
        epilog=f"exit codes:\n{codes}\n\n`fanlightd COMMAND --help` explains a command.",
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=_version(), help="print the version and exit")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", title="commands")

    def command(
        name: str, run: Any, summary: str, description: str = "", arguments: Callable[[Parser], None] | None = None
    ) -> Parser:
        each = commands.add_parser(
            name, help=summary, description=description or summary, formatter_class=_Help, allow_abbrev=False,
            arguments=arguments,
        )  # fmt: skip
        each.set_defaults(run=run)
        return each

    command("serve", serve, "run the broker", SERVE, _add_settings)
    summary = "print the settings in force and where each is from, or what is wrong"
    command("check-config", check_config, summary, arguments=_add_check_config)

    users = command("passwd", passwd, "set a user's password in a password file, or delete the user")
    users.add_argument("file", type=Path, metavar="FILE", help="the password file; it is made if it does not exist")
    users.add_argument("user", metavar="USER", help="user name, without ':' and spaces at its ends")
    users.add_argument("--delete", action="store_true", help="remove the user")
    users.add_argument("--stdin", action="store_true", help="read it from standard input's first line")

    _add_users(command("user", None, "users, their groups and limits: `fanlightd user add FILE USER`", USERS))

    health = command("healthcheck", healthcheck, "ask a running broker's /healthz; for Docker's HEALTHCHECK")
    health.add_argument("--url", help="such as http://127.0.0.1:7421; otherwise made from the settings")
    health.add_argument("--timeout", type=seconds, default=3.0, metavar="SECONDS", help="[default: 3]")
    _add_config(health)

    _add_store_commands(command)
    _add_rules(command("rules", None, "check a file of routing rules, or compare two on an archive"))
    summary = "check, try and import permissions: `fanlightd permissions check FILE`"
    command("permissions", None, summary, arguments=_add_permissions)
    tried = command("definitions", definitions, "say what an import of RabbitMQ's definitions would do; no broker runs")
    tried.add_argument("file", type=Path, metavar="FILE", help="as rabbitmqctl export_definitions writes it")
    tried.add_argument("--json", action="store_true", help="print it as one JSON object")
    _add_config(tried)
    taken = command("import", import_configuration, "convert a mosquitto.conf, and say what has no equivalent")
    taken.add_argument("file", type=Path, metavar="FILE", help="mosquitto.conf; files that it names are read, too")
    taken.add_argument("--sent", action="store_true", help=argparse.SUPPRESS)  # for the API
    taken.add_argument("--to", type=Path, metavar="DIR", help="write the files there [default: print them]")
    command("version", version, "print the version")
    return parser


def _add_users(parser: Parser) -> None:
    command = commands_below(parser, _Help)
    for name, (summary, add) in USER_COMMANDS.items():
        each = command(name, user, summary, summary)
        each.set_defaults(command=name)
        each.add_argument("file", type=Path, metavar="FILE", help="the users file; `add` makes it")
        add(each)


def _add_check_config(parser: Parser) -> None:
    parser.add_argument("--markdown", action="store_true", help="print docs/configuration.md instead")
    _add_settings(parser)


def _add_store_commands(command: Callable[..., Parser]) -> None:
    def folder(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, metavar="DIR", help="the folder of the store: the setting `data`")

    each = command("check", check, "check a store, and change nothing", CHECK)
    each.add_argument("--json", action="store_true", help="print what was found as one JSON object")
    folder(each)
    each = command("repair", repair, "make a damaged store sound; asks first", REPAIR)
    each.add_argument("--yes", action="store_true", help="do not ask")
    folder(each)
    each = command("backup", backup, "copy a store, also while a broker runs on it", BACKUP)
    folder(each)
    each.add_argument("to", type=Path, metavar="TO", help="the folder to make")


def _add_rules(parser: Parser) -> None:
    from fanlight_broker.ruling.arguments import add_commands

    add_commands(
        parser, _Help, _add_config,
        lambda arguments: _load(arguments, on_error=Exit.USAGE, whole=False).settings.limits,
    )  # fmt: skip


def _add_permissions(parser: Parser) -> None:
    from fanlight_broker.permitting.arguments import PERMISSIONS, add_commands

    parser.description = PERMISSIONS
    add_commands(
        parser, _Help, _add_config,
        lambda arguments: _load(arguments, on_error=Exit.USAGE, whole=False).settings.limits,
    )


def _add_config(parser: argparse._ActionsContainer) -> None:
    text = "TOML file with settings; also FANLIGHT_CONFIG [default: none]"
    parser.add_argument("--config", type=Path, metavar="FILE", help=text)


def _add_settings(parser: Parser) -> None:
    parser.usage = f"{parser.prog} [--config FILE] [--SETTING VALUE ...]"
    _add_config(parser)
    parser.add_argument("--password", action=_NoPassword, nargs="?", help=argparse.SUPPRESS)
    for title, members in groupby(keys().values(), lambda key: key.group):
        group = parser.add_argument_group(title.name.lower())
        for key in members:
            _add_flag(group, key)


def _add_flag(group: argparse._ArgumentGroup, key: Key) -> None:
    if not key.has_flag:
        # argparse has no entry without a flag; the group's description is the place to name it.
        group.description = f"{key.variable} in the environment: {key.reason}"
        return
    bounds = f" ({key.bounds()})" if key.bounds() else ""
    text = _percent(f"{key.reason}{bounds} [default: {key.show(key.default)}]")
    if key.kind is bool:
        group.add_argument(key.flag, action=argparse.BooleanOptionalAction, default=None, help=text)
    else:
        group.add_argument(key.flag, metavar=_metavar(key), help=text)


def _metavar(key: Key) -> str:
    if issubclass(key.kind, StrEnum):
        return "{" + ",".join(key.kind) + "}"
    return (key.unit or "text").split("/")[0].upper()


def _percent(text: str) -> str:
    return text.replace("%", "%%")  # argparse formats its help texts


if __name__ == "__main__":
    raise SystemExit(main())
