"""Tables of permissions that are replaced: what they had is freed piece by piece."""

import gc
import weakref
from pathlib import Path
from typing import Any

from fanlight_permissions.letting_go import PIECE, in_pieces
from fanlight_permissions.permission_file import load
from fanlight_permissions.table import Widest


class Thing:
    """What can be watched."""


def test_nothing_is_left_and_no_piece_is_large() -> None:
    things = [Thing() for _ in range(5 * PIECE)]
    watched = [weakref.ref(thing) for thing in things]
    given: list[Any] = [{1: {b"a": things[:PIECE]}, 2: {b"b": things[PIECE : 2 * PIECE]}}, things, Thing()]
    watched.append(weakref.ref(given[2]))
    del things
    left = len(watched)
    for _ in in_pieces(given):
        now = sum(each() is not None for each in watched)
        assert 0 <= left - now <= 2 * PIECE
        left = now
    assert (left, given) == (0, [])


def test_a_table_hands_over_what_is_large_when_it_is_no_more(tmp_path: Path) -> None:
    file = tmp_path / "rules.csv"
    file.write_text("effect,user,publish\n" + "".join(f"allow,u{n},a/{n}/#\n" for n in range(100)))
    table = load(file, Widest(permissions_max=1_000))
    handed: list[list[Any]] = []
    table.let_go = handed.append
    del table
    gc.collect()
    (things,) = handed
    assert max(len(each) for each in things if isinstance(each, list)) > 100
    for _ in in_pieces(things):
        pass
    assert things == []
