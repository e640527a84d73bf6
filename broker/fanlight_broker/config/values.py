"""The values of settings: read from text or TOML, and shown to people.

The syntax is the same in the file, the environment and the flags: sizes may be written `8MiB`, times `5s` or `500ms`,
switches `true` or `off`. Nothing here knows a setting's name: errors are a `ValueError` whose text follows
"key = value".
"""

import re
from enum import StrEnum
from pathlib import Path

from fanlight_permissions.reading import switch

SIZES: dict[str, float] = {
    "B": 1, "kB": 1000, "MB": 1000**2, "GB": 1000**3, "TB": 1000**4,
    "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4,
}  # fmt: skip
TIMES = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
SUFFIXES = {"bytes": SIZES, "seconds": TIMES}

_NUMBER = re.compile(r"([+-]?[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)", re.ASCII)


class Secret:
    """A text that is shown only by `reveal`."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "Secret(...)"

    __str__ = __repr__


Value = bool | int | float | str | StrEnum | Path | Secret | None


def parse(raw: object, kind: type, unit: str | None) -> Value:
    """Turn a TOML value or a text into a value of type `kind`. Raises ValueError, which says what is valid."""
    if kind is bool:
        return switch(raw)
    if kind is int:
        return _whole(raw, unit)
    if kind is float:
        return _number(raw, unit)
    if not isinstance(raw, str):
        raise ValueError("write it as a text, in quotes")
    if "\0" in raw:
        raise ValueError("must not contain NUL")
    if not raw:
        raise ValueError("is empty")
    if issubclass(kind, StrEnum):
        try:
            return kind(raw.lower().replace("-", "_"))
        except ValueError:
            raise ValueError(f"is not one of {', '.join(kind)}") from None
    if kind is Path:
        try:
            return Path(raw).expanduser()
        except RuntimeError as error:  # ~somebody whom this machine does not know
            raise ValueError(str(error)) from None
    if kind is Secret:
        return Secret(raw)
    return raw


def _whole(raw: object, unit: str | None) -> int:
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    number = _number(raw, unit)
    if not number.is_integer():
        raise ValueError("is not a whole number" + (f" of {unit}" if unit else ""))
    return int(number)


def _number(raw: object, unit: str | None) -> float:
    if isinstance(raw, (int, float)) and not isinstance(raw, bool):
        return _finite(raw)
    suffixes = SUFFIXES.get(unit or "", {})
    match = _NUMBER.fullmatch(raw.strip()) if isinstance(raw, str) else None
    if match is None:
        raise ValueError(_wanted(unit))
    digits, suffix = match.groups()
    factor = suffixes.get(suffix, 1.0) if suffix else 1.0
    if suffix and suffix not in suffixes:
        raise ValueError(_wanted(unit))
    return round(_finite(float(digits) * factor), 9)  # 100ms is 0.1, not 0.1000000000000001


def _finite(number: float) -> float:
    if not abs(number) < 1e300:  # inf, nan, and whole numbers that no float can hold
        raise ValueError("is not a sensible number")
    return float(number)


def _wanted(unit: str | None) -> str:
    if unit == "bytes":
        return f"is not a size; write a number of bytes, or a number and one of {', '.join(SIZES)}"
    if unit == "seconds":
        return f"is not a time; write a number of seconds, or a number and one of {', '.join(TIMES)}"
    return "is not a number"


def show(value: object, unit: str | None = None) -> str:
    """A value as a person would write it; `parse` reads it back (a secret shows only that it is set)."""
    if value is None:
        return "none"
    if isinstance(value, Secret):
        return "(set, not shown)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        if unit == "bytes":
            return _show_size(int(value))
        if isinstance(value, int) and value >= 100_000 and unit != "seconds":
            return f"{value:_}"
        return repr(value).removesuffix(".0") + ("s" if unit == "seconds" else "")
    return str(value)


def _show_size(size: int) -> str:
    for suffix in ("TiB", "GiB", "MiB", "KiB"):
        if size and size % SIZES[suffix] == 0:
            return f"{size // int(SIZES[suffix])}{suffix}"
    return str(size)
