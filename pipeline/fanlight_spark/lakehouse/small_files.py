"""Which small files of a table become one: those of about the same size, FAN at a time.

Every run adds a file a day, small where runs are frequent. Files of one day are in classes by their size, each class
FAN times the one before; FAN files of a class become one of the next. So a message is written again log(size) times,
and not at every run, and a day has at most FAN - 1 files of each of the few classes, beside those that are large.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

FAN: Final = 8
SMALLEST: Final = 64 * 1024  # bytes: what is smaller is of one class
LARGE: Final = 64 * 1024 * 1024  # what is as large stays as it is


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a table, as its log has it."""

    path: str
    day: str
    bytes: int
    rows: int
    first: int  # the lowest offset in it


@dataclass(frozen=True, slots=True)
class Merged:
    """Files of a day that have become one."""

    day: str
    files: int
    bytes: int


def groups(files: Iterable[DataFile]) -> Iterator[list[DataFile]]:
    """Files that are to become one, FAN each: of one day and class, in the order of their offsets."""
    classes: dict[tuple[str, int], list[DataFile]] = {}
    for file in sorted(files, key=lambda file: (file.day, file.first)):
        if file.bytes < LARGE:
            found = classes.setdefault((file.day, size_class(file.bytes)), [])
            found.append(file)
            if len(found) == FAN:
                yield [*found]
                found.clear()


def size_class(size: int) -> int:
    """0 for the smallest."""
    number, above = 0, SMALLEST
    while size >= above:
        number, above = number + 1, above * FAN
    return number
