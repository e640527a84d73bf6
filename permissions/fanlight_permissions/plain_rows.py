"""Rows of a large CSV file that say no more than most do: an effect, a name or nobody's, and one filter.

Such rows stand together as columns, without an object a rule: a file of 100,000 rules is read in half the time.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

from fanlight_permissions.permission_rule import ACTION_BITS, PermissionRule, Who, pattern_of

Key = TypeVar("Key", str, int)

EFFECTS: Final = {"allow": True, "deny": False, "": True}


class PlainRows(NamedTuple):
    """Columns of the same length."""

    lines: Sequence[int]
    allows: Sequence[bool]
    attributes: Sequence[str]  # "": everybody
    names: Sequence[str]
    actions: Sequence[int]  # bits
    filters: Sequence[str]

    @staticmethod
    def rule(line: int, allow: bool, attribute: str, name: str, actions: int, filter: str) -> PermissionRule:
        """One of the rows. Raises WrongPattern. Its number does not matter: a file of such rows has no salience."""
        who: Who = ((attribute, (name,)),) if attribute else ()
        return PermissionRule(0, line, None, allow, who, ((actions, pattern_of(filter)),))


class PlainColumns:
    """Which columns of a file are which. header: their names; attributes: whose values are names"""

    def __init__(self, header: Sequence[str], attributes: frozenset[str], filters: frozenset[str]) -> None:
        self._width = len(header)
        self._effect = header.index("effect") if "effect" in header else None
        self._attributes = [(name, place) for place, name in enumerate(header) if name in attributes]
        self._filters = [(ACTION_BITS[name], place) for place, name in enumerate(header) if name in filters]
        known = {place for _, place in (*self._attributes, *self._filters)}
        self._others = [place for place in range(len(header)) if place not in known and place != self._effect]

    def rows(self, lines: Sequence[int], block: Sequence[Sequence[str]]) -> PlainRows | None:
        """None: some of these rows say more, or something is wrong with them."""
        if set(map(len, block)) != {self._width}:
            return None
        columns = list(zip(*block, strict=True))
        if any(any(columns[place]) for place in self._others):
            return None
        count = len(block)
        effects = ("",) * count if self._effect is None else columns[self._effect]
        try:
            allows = [EFFECTS[effect.strip()] for effect in effects]
        except KeyError:
            return None
        who = _one_each([(name, columns[place]) for name, place in self._attributes], count)
        what = _one_each([(bits, columns[place]) for bits, place in self._filters], count)
        if who is None or what is None or not all(what[1]):
            return None
        names = "".join(who[1])
        if "*" in names or "%" in names or "%" in "".join(what[1]):
            return None
        return PlainRows(
            lines, allows, [name or "" for name in who[0]], who[1], [bits or 0 for bits in what[0]], what[1]
        )


def _one_each(columns: Sequence[tuple[Key, Sequence[str]]], count: int) -> tuple[list[Key | None], list[str]] | None:
    """Of each row the column that it has something in, and what; None: a row has something in several."""
    used = [(key, list(map(str.strip, cells))) for key, cells in columns if any(cells)]
    if len(used) == 1 and all(used[0][1]):
        return [used[0][0]] * count, used[0][1]
    keys: list[Key | None] = [None] * count
    texts = [""] * count
    for key, cells in used:
        for at, cell in enumerate(cells):
            if cell:
                if texts[at]:
                    return None
                keys[at], texts[at] = key, cell
    return keys, texts
