"""What readers of files of rules have in common: the text of a file, its limits, switches, and advice for a misspelt
name.
"""

import codecs
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Protocol

PIECE_BYTES: Final = 256 * 1024  # of a file, some 0.2 ms
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


def never() -> None:
    """No pause."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean X?`, if a known name is similar enough."""
    import difflib  # for those who mistype

    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def file_text(path: Path, bytes_max: int, pause: Callable[[], None] = never) -> str:
    """The text of a file. Raises ValueError, which names the file and the line.

    pause  called after each piece, as a large file takes some ms
    """
    decoder, pieces = codecs.getincrementaldecoder("utf-8")(), list[str]()
    done = lines = 0
    try:
        with path.open("rb") as file:
            while raw := file.read(PIECE_BYTES):
                if done + len(raw) > bytes_max:
                    raise ValueError(f"{path}: is longer than {bytes_max} bytes")
                kept = len(decoder.getstate()[0])  # bytes of a character that is not whole yet
                pieces.append(decoder.decode(raw))
                done += len(raw)
                lines += raw.count(b"\n")
                pause()
            kept = len(decoder.getstate()[0])
            pieces.append(decoder.decode(b"", final=True))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        at = done - kept + error.start
        line = lines + error.object.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}, line {line}: is not UTF-8 (at byte {at})") from None
    return "".join(pieces)


def switch(raw: object) -> bool:
    """A switch of TOML, or as text. Raises ValueError."""
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.lower() in SWITCHES:
        return SWITCHES[raw.lower()]
    raise ValueError("write true or false")
