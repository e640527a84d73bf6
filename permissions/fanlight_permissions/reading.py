"""What readers of files of rules have in common: the text of a file, its limits, switches, and advice for a misspelt
name.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol

SWITCHES: Final = {
    "true": True, "yes": True, "on": True, "1": True,
    "false": False, "no": False, "off": False, "0": False,
}  # fmt: skip


class TableLimits(Protocol):
    """Bounds of a file of permissions, and of its table: those of the broker's settings of these names."""

    @property
    def permissions_max(self) -> int:
        """Filters of all rules."""
        ...

    @property
    def topic_words_max(self) -> int: ...

    @property
    def topic_bytes_max(self) -> int: ...


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean X?`, if a known name is similar enough."""
    import difflib  # for those who mistype

    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def never() -> None:
    """No pause."""


def file_text(path: Path, bytes_max: int) -> str:
    """The text of a file. Raises ValueError, which names the file and the line."""
    try:
        with path.open("rb") as file:
            raw = file.read(bytes_max + 1)
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None
    if len(raw) > bytes_max:
        raise ValueError(f"{path}: is longer than {bytes_max} bytes")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}, line {line}: is not UTF-8 (at byte {error.start})") from None


def switch(raw: object) -> bool:
    """A switch of TOML, or as text. Raises ValueError."""
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.lower() in SWITCHES:
        return SWITCHES[raw.lower()]
    raise ValueError("write true or false")
