"""Marks: how far the producers of messages have got, kept with the messages (docs/archive-format.md, Marks).

    row    [user, producer, batch, sequence]                 as it is written: in a batch, in a line of the manifest
    Marks  {(user, producer): (batch, sequence)}             the highest of each, in the order in which they moved up

A mark only moves up, so rows may be read twice and from several places. The broker decides what they are used for.
"""

import json
from collections import Counter
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
    """Forget those that moved up longest ago, of the users that have most, until `most` are left.

    So a user with many producers does not push out those of others. Takes some ms for 10,000.
    """
    excess = len(marks) - most
    if excess <= 0:
        return
    counts = Counter(user for user, _ in marks)
    fair = level(counts.values(), most)
    for key in list(marks):
        if not excess:
            break
        if counts[key[0]] > fair:
            counts[key[0]] -= 1
            excess -= 1
            del marks[key]


def level(counts: Iterable[int], most: int) -> int:
    """How many each may keep, so that all together keep at most `most`, and whoever has fewer keeps all."""
    left = sorted(counts)
    for number, count in enumerate(left):
        fair = most // (len(left) - number)
        if count > fair:
            return fair
        most -= count
    return most


def rows_of(marks: Marks) -> list[Row]:
    return [[*key, *place] for key, place in marks.items()]


def encode(rows: Sequence[Row]) -> bytes:
    """What a batch's metadata has; b"" for none."""
    return json.dumps(rows, separators=(",", ":")).encode() if rows else b""


def decode(text: bytes) -> list[Row]:
    """Raises ValueError."""
    rows: list[Row] = json.loads(text) if text else []
    return rows
