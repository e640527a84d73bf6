"""TOML as `fanlightd user` writes it, read some four times as fast as by tomllib, and with pauses.

    # a comment
    decoy_key = "..."
    [users.alice]                     bare names, or names in quotes
    password = "..."                  a text without an escape
    groups = ["a", "b"]               any other value that is whole on its line is left to tomllib, line by line

Each line must be whole in itself. A file with any other line is left to tomllib as it is, and so is one that says
something twice: so each file means what TOML says, and errors are those of tomllib.
"""

import re
import tomllib
from collections.abc import Callable
from typing import Any, Final

from fanlight_broker.auth.files import never

PAUSE_EVERY: Final = 512  # lines, some 1 ms
NAME_PARTS_MAX: Final = 8

_PART: Final = r'(?:[A-Za-z0-9_-]+|"[^"\\\x00-\x1f\x7f]*")'
_TEXT: Final = r'"[^"\\\x00-\x1f\x7f]*"'
_BLANK: Final = re.compile(r"[ \t]*(?:#[^\x00-\x08\x0a-\x1f\x7f]*)?")
_HEADER: Final = re.compile(rf"\[({_PART}(?:\.{_PART})*)\][ \t]*")
_PARTS: Final = re.compile(_PART)
_SETS_TEXT: Final = re.compile(rf"([A-Za-z0-9_-]+) = ({_TEXT})")
_SETS_TEXTS: Final = re.compile(rf"([A-Za-z0-9_-]+) = \[({_TEXT}(?:, {_TEXT})*)\]")
_SETS_NUMBER: Final = re.compile(r"([A-Za-z0-9_-]+) = \{ ([A-Za-z0-9_-]+) = (0|[1-9][0-9]{0,17}) \}")
_SETS: Final = re.compile(r"([A-Za-z0-9_-]+)[ \t]*=.*")


def loads(text: str, pause: Callable[[], None] = never) -> dict[str, Any]:
    """The table of a text. Raises TOMLDecodeError, RecursionError.

    pause  called now and then, every 1 ms or so, while the text is plain
    """
    found = plain(text, pause)
    return tomllib.loads(text) if found is None else found


def plain(text: str, pause: Callable[[], None] = never) -> dict[str, Any] | None:
    """The table of a text, or None if tomllib has to read it."""
    root: dict[str, Any] = {}
    tables: dict[tuple[str, ...], dict[str, Any]] = {(): root}
    table = root
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n")):
        if number % PAUSE_EVERY == PAUSE_EVERY - 1:
            pause()
        if _BLANK.fullmatch(line):
            continue
        header = _HEADER.fullmatch(line)
        if header is not None:
            opened = _opened(tuple(part.strip('"') for part in _PARTS.findall(header[1])), tables)
            if opened is None:
                return None
            table = opened
            continue
        read = _value(line)
        if read is None or read[0] in table:
            return None
        table[read[0]] = read[1]
    return root


def _opened(path: tuple[str, ...], tables: dict[tuple[str, ...], dict[str, Any]]) -> dict[str, Any] | None:
    """The new table of a header. None: it may be there already, or one before it may be no table."""
    if path in tables or len(path) > NAME_PARTS_MAX:
        return None
    table = tables[()]
    for size, name in enumerate(path, 1):
        inner = tables.get(path[:size])
        if inner is None:
            if name in table:
                return None
            inner = tables[path[:size]] = table[name] = {}
        table = inner
    return table


def _value(line: str) -> tuple[str, Any] | None:
    """What a line sets."""
    match = _SETS_TEXT.fullmatch(line)
    if match is not None:
        return match[1], match[2][1:-1]
    match = _SETS_TEXTS.fullmatch(line)
    if match is not None:
        return match[1], match[2][1:-1].split('", "')
    match = _SETS_NUMBER.fullmatch(line)
    if match is not None:
        return match[1], {match[2]: int(match[3])}
    match = _SETS.fullmatch(line)
    if match is None:
        return None
    try:
        ((name, value),) = tomllib.loads(line).items()
    except tomllib.TOMLDecodeError:
        return None
    return (name, value) if name == match[1] else None
