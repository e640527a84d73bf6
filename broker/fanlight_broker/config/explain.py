"""The settings for people: the table of check-config, and docs/configuration.md."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import groupby

from fanlight_broker.config.exits import MEANINGS
from fanlight_broker.config.keys import Key, keys
from fanlight_broker.config.load import DEFAULT, OTHER_VARIABLES, Loaded, value_of
from fanlight_broker.core.setting import SettingGroup


def effective(loaded: Loaded) -> str:
    """The settings in force and where each came from, as TOML (but for secrets)."""
    lines: list[str] = []
    for group, members in _groups():
        lines += ["", f"# {group.name}"]
        for key in members:
            place = loaded.places[key.name]
            text = f"{key.name} = {_toml(key, value_of(loaded.settings, key.name))}"
            if value_of(loaded.settings, key.name) is None:
                text = f"# {key.name} is not set"
            lines.append(f"{text:<48}" + (f"  # {place}" if place != DEFAULT else "  # default"))
    return "\n".join(lines[1:])


def _toml(key: Key, value: object) -> str:
    text = key.show(value)
    if key.secret:
        return f'"" # {text}'
    bare = key.kind is bool or (key.kind in (int, float) and text[-1].isdigit())
    return text if bare else _quoted(text)


def _quoted(text: str) -> str:
    escaped = "".join(
        each if each.isprintable() and each not in '"\\' else f"\\u{ord(each):04x}" for each in text
    )
    return f'"{escaped}"'


def markdown() -> str:
    """docs/configuration.md, made from the declarations."""
    return "\n".join(_markdown()) + "\n"


def _markdown() -> Iterator[str]:
    yield from HEAD.splitlines()
    for group, members in _groups():
        yield from ("", f"## {group.name}", "", group.introduction, "")
        yield "| key | default | values | what it bounds or does |"
        yield "|---|---|---|---|"
        for key in members:
            name = f"`{key.name}`" + ("" if key.reloadable else " †")
            default = "" if key.default is None else f"`{key.show(key.default)}`"
            yield f"| {name} | {default} | {values(key)} | {key.reason} |"
    yield from ("", "† read at start only; everything else is read again on SIGHUP.")
    yield from RELOAD.splitlines()
    yield from ("| code | meaning |", "|---|---|")
    for code, meaning in MEANINGS.items():
        yield f"| {int(code)} | {meaning} |"
    yield from VARIABLES.splitlines()
    for variable, meaning in OTHER_VARIABLES.items():
        yield f"| `{variable}` | {meaning} |"


def values(key: Key) -> str:
    """What may be written for a key, in a few words."""
    if issubclass(key.kind, StrEnum):
        return ", ".join(f"`{each}`" for each in key.kind)
    if key.kind is bool:
        return "`true`, `false`"
    bounds = key.bounds()
    if not bounds:
        return "a path" if key.unit == "path" else "text"
    return bounds if key.unit in ("bytes", "seconds", "port") else f"{bounds} {key.unit or ''}".strip()


def _groups() -> Iterable[tuple[SettingGroup, list[Key]]]:
    return [(group, list(members)) for group, members in groupby(keys().values(), lambda key: key.group)]


HEAD = """\
# Configuration

<!-- Made by `python -m fanlight_broker.config`, from the declarations in broker/fanlight_broker/config/settings.py and
     broker/fanlight_broker/core/limits.py. Edit those, and run it again. -->

`fanlightd serve` starts with no settings at all. Every setting has one name, and four places to write it,
each overriding the one before:

| place | example |
|---|---|
| the default | |
| a TOML file, named by `--config` or `FANLIGHT_CONFIG` | `frame_bytes_max = "2MiB"` |
| the environment | `FANLIGHT_FRAME_BYTES_MAX=2MiB` |
| a flag | `--frame-bytes-max 2MiB` |

* Sizes may be written `2MiB`, `2MB` or in bytes; times `5s`, `500ms`, `2m` or in seconds; switches `true` or
  `false`, and as flags `--http` and `--no-http`.
* In the file all keys are at the top level, without tables; relative paths start from the file's folder.
* An unknown key in the file is an error; an unknown `FANLIGHT_…` variable is a warning; an empty variable
  counts as not set, with a warning.
* There is no flag for `password`: a command line can be read by every user of the machine.
* `fanlightd check-config` prints the settings in force and where each came from, or everything that is wrong
  and where.

A file for a broker that others can reach:

```toml
native_host = "0.0.0.0"
password_file = "users"          # fanlightd passwd users alice
slow_policy = "drop_oldest"
outbox_bytes_max = "32MiB"
```"""

RELOAD = """
## Reload

On SIGHUP the broker reads the file, the password file and the certificate again (the environment and the flags
of a running process do not change). If anything is wrong it says what, and goes on with the settings it has. Otherwise
new decisions are made by the new settings. Clients that are connected stay connected, but for those whose credentials
would not let them in any more: their password was changed, they were deleted, or anonymous clients are not allowed now.
What is marked † and differs is named in the log as needing a restart.

## Exit codes of fanlightd
"""

VARIABLES = """
## Variables that are not settings of the broker

| variable | meaning |
|---|---|"""
