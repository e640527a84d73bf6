"""Options of the data source: known ones only, for a misspelt one would quietly do something else."""

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}  # of bytes, as Spark's own options have them
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def known(given: Mapping[str, str], names: Iterable[str], what: str) -> dict[str, str]:
    """The options by their names as documented, in whatever case they were given. Raises ValueError."""
    spelled = {name.lower(): name for name in names}
    unknown = sorted(name for name in given if name.lower() not in spelled)
    if unknown:
        has = ", ".join(sorted(spelled.values()))
        raise ValueError(f"no option of the {what} fanlight: {', '.join(unknown)}; it has {has}")
    return {spelled[name.lower()]: value for name, value in given.items()}


def folder(path: str) -> str:
    """The path of a folder; of a file: URI, as a catalog of Spark has it, too."""
    return unquote(urlsplit(path).path) if path.lower().startswith("file:") else path


def positive(options: Mapping[str, str], name: str) -> int | None:
    """A number of messages; None if it is not given. Raises ValueError."""
    text = options.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ValueError(f"{name}={text!r}: give a number of messages, 1 or more")
    return int(text)


def size(options: Mapping[str, str], name: str) -> int | None:
    """A number of bytes, as 1048576 or 64m; None if it is not given. Raises ValueError."""
    text = options.get(name)
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]+)([kmg]?)b?", text.lower())
    if match is None or not int(match[1]):
        raise ValueError(f"{name}={text!r}: give a number of bytes, 1 or more, or one with k, m or g")
    return int(match[1]) * _UNITS[match[2]]


def seconds(options: Mapping[str, str], name: str) -> float:
    """A time, as 30s, 15m or 1h. Raises ValueError, KeyError if it is not given."""
    match = re.fullmatch(r"([0-9]+)\s*(ms|s|m|h)", options[name].lower())
    if match is None:
        raise ValueError(f"{name}={options[name]!r}: give a time with its unit: 500ms, 30s, 15m or 1h")
    return int(match[1]) * _SECONDS[match[2]]


def one_of(options: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    """One of the words; the first if it is not given. Raises ValueError."""
    text = options.get(name, choices[0]).lower()
    if text not in choices:
        raise ValueError(f"{name}={options[name]!r}: give {' or '.join(choices)}")
    return text
