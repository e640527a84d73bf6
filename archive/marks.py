"""Marks: how far the producers of messages have got, kept with the messages (docs/archive-format.md, Marks).

    row    [user, producer, batch, sequence]                 as it is written: in a batch, in a line of the manifest
    Marks  {(user, producer): (batch, sequence)}             the highest of each, in the order in which they moved up

A mark only moves up, so rows may be read twice and from several places. What they are for is the broker's matter.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

Row = Sequence[Any]
Marks = dict[tuple[str, str], tuple[int, int]]


def advance(marks: Marks, rows: Iterable[Row]) -> None:
    """Raises ValueError or TypeError for what is no row."""
    for user, producer, batch, sequence in rows:
        key, place = (str(user), str(producer)), (int(batch), int(sequence))
        if key not in marks or marks[key] < place:
            marks.pop(key, None)
            marks[key] = place


def trim(marks: Marks, most: int) -> None:
    """Forget those that moved up longest ago, until there are so many."""
    while len(marks) > most:
        del marks[next(iter(marks))]


def rows_of(marks: Marks) -> list[Row]:
    return [[*key, *place] for key, place in marks.items()]


def encode(rows: Sequence[Row]) -> bytes:
    """What a batch's metadata has; b"" for none."""
    return json.dumps(rows, separators=(",", ":")).encode() if rows else b""


def decode(text: bytes) -> list[Row]:
    """Raises ValueError."""
    rows: list[Row] = json.loads(text) if text else []
    return rows
