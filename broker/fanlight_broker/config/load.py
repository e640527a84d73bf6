"""Reading the settings: default < TOML file < environment < flag, each overriding the one before.

A setting has one name: `frame_bytes_max` in the file, `FANLIGHT_FRAME_BYTES_MAX` in the environment,
`--frame-bytes-max` on the command line. Everything that is wrong is collected and raised together.

Relative paths in the file start from its folder, others from the working directory. An environment variable
that is set but empty counts as not set, as with Compose's `${X:-}`, and is warned about.
"""

import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from fanlight_broker.config.checks import check, exposure_warnings
from fanlight_broker.config.keys import Key, keys
from fanlight_broker.config.problems import Problem, SettingsError
from fanlight_broker.config.secret_file import bare_password_in
from fanlight_broker.config.settings import Settings, Sources
from fanlight_broker.config.values import Value, parse
from fanlight_broker.core.limits import Limits

PREFIX = "FANLIGHT_"
DEFAULT = "default"
CONFIG_BYTES_MAX = 1024 * 1024  # a settings file has a few hundred lines at most

# Variables with our prefix that are not settings of the broker.
OTHER_VARIABLES = {
    "FANLIGHT_CONFIG": "path of the TOML file, as --config",
    "FANLIGHT_URL": "where the command line client and the SDK's examples connect",
    "FANLIGHT_HTTP_URL": "where the command line client finds the HTTP listener",
    "FANLIGHT_CONTEXT": "the context of the command line client, one of those of `fanlight context ls`",
    "FANLIGHT_TOKEN": "a token (JWT) for the HTTP listener, of the command line client",
    "FANLIGHT_REAL_DATA": "folder with the data of the demonstrations and system tests",
    "FANLIGHT_REQUIRE_ALL": "1: a skipped test is a failed one",
}


class Loaded(NamedTuple):
    """Settings, where each came from, and what is odd about them but not wrong."""

    settings: Settings
    places: Mapping[str, str]  # by key
    warnings: tuple[str, ...]


@dataclass(slots=True)
class _Reading:
    """What has been read so far."""

    values: dict[str, Value] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def take(self, key: Key, raw: object, place: str, folder: Path | None = None) -> None:
        try:
            value = parse(raw, key.kind, key.unit)
            if isinstance(value, Path) and folder is not None:
                value = folder / value
            if isinstance(value, str) and key.unit == "address":
                value = value.removeprefix("[").removesuffix("]")  # as IPv6 stands in a URL
            key.check(value)
        except ValueError as error:
            self.problems.append(Problem(key.name, _shown(key, raw), place, str(error)))
        else:
            self.values[key.name] = value
        self.places[key.name] = place


def load(sources: Sources, *, whole: bool = True) -> Loaded:
    """Read, merge and check the settings; without `whole`, not the rules between several of them.

    Raises:
        SettingsError: with every problem found.
    """
    reading = _Reading()
    _read_file(reading, sources)
    _read_environment(reading, sources.environment)
    for name, raw in sources.flags.items():
        reading.take(keys()[name], raw, f"flag {keys()[name].flag}")
    settings = _settings(reading.values, sources)
    # What could not be read has its default here, and what follows from that would only confuse.
    unread = {problem.key for problem in reading.problems}
    for finding in check(settings) if whole else ():
        if unread.isdisjoint(finding.keys):
            reading.problems.append(finding.problem(reading.places))
    if reading.problems:
        raise SettingsError(reading.problems)
    reading.warnings += exposure_warnings(settings)
    places = {name: reading.places.get(name, DEFAULT) for name in keys()}
    return Loaded(settings, places, tuple(reading.warnings))


def _settings(values: Mapping[str, Value], sources: Sources) -> Settings:
    limit_names = {each.name for each in fields(Limits)}
    limits: dict[str, Any] = {name: value for name, value in values.items() if name in limit_names}
    others: dict[str, Any] = {name: value for name, value in values.items() if name not in limit_names}
    return Settings(**others, limits=Limits(**limits), sources=sources)


def reload(settings: Settings) -> Loaded:
    """Read `settings` again, from the same file, environment and flags. Raises SettingsError."""
    return load(settings.sources)


# The TOML file.


def config_path(sources: Sources) -> Path | None:
    """The file to read: --config, else FANLIGHT_CONFIG, else none."""
    if sources.config is not None:
        return sources.config
    named = sources.environment.get("FANLIGHT_CONFIG", "")
    return Path(named).expanduser() if named else None


def _read_file(reading: _Reading, sources: Sources) -> None:
    path = config_path(sources)
    if path is None:
        return
    by = "flag --config" if sources.config is not None else "environment variable FANLIGHT_CONFIG"
    try:
        with path.open("rb") as file:
            raw = file.read(CONFIG_BYTES_MAX + 1)
            shared = file.seekable() and bool(stat.S_IMODE(path.stat().st_mode) & 0o077)
        if len(raw) > CONFIG_BYTES_MAX:
            raise ValueError(f"is longer than {CONFIG_BYTES_MAX} bytes, and so hardly a settings file")
        text = raw.decode()
        import tomllib  # for those who have a file

        table = tomllib.loads(text)
    except OSError as error:
        reading.problems.append(Problem("config", str(path), by, f"cannot be read: {error.strerror}"))
        return
    except UnicodeDecodeError as error:
        reading.problems.append(Problem("", "", str(path), f"is not UTF-8 (at byte {error.start})"))
        return
    except (ValueError, RecursionError) as error:
        reading.problems.append(Problem("", "", str(path), f"is not TOML: {error}"))
        return
    for name, raw_value in table.items():
        line = _line_of(name, text)
        place = f"{path}, line {line}" if line else str(path)
        if name in keys() and not isinstance(raw_value, dict):
            reading.take(keys()[name], raw_value, place, path.parent)
        elif isinstance(raw_value, dict):
            hint = "tables are not used: write every key at the top, above the first [table]"
            reading.problems.append(Problem(name, "[...]", place, hint))
        else:
            reading.problems.append(Problem(name, "", place, f"no such setting{_did_you_mean(name, keys())}"))
    if "password" in table and shared:
        reading.warnings.append(
            f"{path} holds a password and other users can read it: chmod 600, or use a password file"
        )


def _line_of(name: str, text: str) -> int | None:
    # tomllib keeps no lines; top-level keys begin a line, bare, in quotes or as a table's header.
    key = re.compile(rf"""\s*\[*\s*["']?{re.escape(name)}["']?\s*[=.\]]""")
    for number, line in enumerate(text.split("\n"), 1):
        if key.match(line):
            return number
    return None


# The environment.


def _read_environment(reading: _Reading, environment: Mapping[str, str]) -> None:
    by_variable = {key.variable: key for key in keys().values()}
    for variable, raw in environment.items():
        if not variable.startswith(PREFIX) or variable in OTHER_VARIABLES:
            continue
        key = by_variable.get(variable)
        if key is None:
            # Not an error: Kubernetes sets such variables for a service that is called "fanlight".
            hint = _did_you_mean(variable, [*by_variable, *OTHER_VARIABLES])
            reading.warnings.append(f"environment variable {variable} is no setting and is ignored{hint}")
        elif not raw:
            reading.warnings.append(f"environment variable {variable} is empty and counts as not set")
        elif raw.startswith("tcp://") and key.unit == "port":
            text = "was set by Kubernetes for a service of that name; turn it off: enableServiceLinks: false"
            reading.problems.append(Problem(key.name, raw, f"environment variable {variable}", text))
        elif key.name == "password_file" and (password := bare_password_in(Path(raw).expanduser())) is not None:
            place = f"the file of environment variable {variable}"
            if environment.get(keys()["password"].variable):
                text = "holds a password, and FANLIGHT_PASSWORD is set as well: use one of them"
                reading.problems.append(Problem("password", "(not shown)", place, text))
            else:
                reading.take(keys()["password"], password, place)
        else:
            reading.take(key, raw, f"environment variable {variable}")


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    import difflib  # for those who mistype

    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def _shown(key: Key, raw: object) -> str:
    if key.secret:
        return "(not shown)"
    text = raw if isinstance(raw, str) else repr(raw)
    text = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text[:80])
    return text or '""'


# A reload.


class Change(NamedTuple):
    """One setting that differs: its key, and both values as shown to people."""

    key: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.key}: {self.old} -> {self.new}"


class Changes(NamedTuple):
    """What a reload does: `applied` at once, `needs_restart` not before the next start."""

    applied: tuple[Change, ...]
    needs_restart: tuple[Change, ...]


def value_of(settings: Settings, name: str) -> Any:
    """The value of a key, wherever it is kept."""
    return getattr(settings.limits if name in {each.name for each in fields(Limits)} else settings, name)


def reloadable_changes(old: Settings, new: Settings) -> Changes:
    """What differs, divided into what SIGHUP can change and what needs a restart."""
    applied: list[Change] = []
    needs_restart: list[Change] = []
    for name, key in keys().items():
        before, after = value_of(old, name), value_of(new, name)
        if before != after:
            change = Change(name, key.show(before), key.show(after))
            (applied if key.reloadable else needs_restart).append(change)
    return Changes(tuple(applied), tuple(needs_restart))


def apply_reload(old: Settings, new: Settings) -> Settings:
    """`new`, with what needs a restart kept from `old`: the settings in force after a reload.

    Raises SettingsError if they do not go together, as when a password is taken away from a broker that is still to
    be reached from other machines until it is restarted.
    """
    kept: dict[str, Any] = {name: getattr(old, name) for name, key in keys().items() if not key.reloadable}
    merged = replace(new, **kept)
    places = dict.fromkeys(kept, "until the restart")
    if problems := [finding.problem(places) for finding in check(merged)]:
        raise SettingsError(problems)
    return merged
