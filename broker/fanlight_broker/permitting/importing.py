"""What an importer makes: rules as they are written in a file of permissions, and what it had to leave out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fanlight_broker.core.permissions import Action
from fanlight_permissions.permission_rule import spelled

Cell = str | bool | int | list[str]


class WrongImport(ValueError):
    """A file that is not what it is said to be."""


@dataclass(slots=True)
class Imported:
    """rules: in order, each with its effect, and a comment that says where it is from."""

    source: str
    rules: list[tuple[str, str, dict[str, Cell]]] = field(default_factory=list)
    defaults: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)  # each with its place, and why
    notes: list[str] = field(default_factory=list)  # what is different here

    def add(self, effect: str, comment: str, cells: Mapping[str, Cell]) -> None:
        self.rules.append((effect, comment, dict(cells)))

    def toml(self) -> str:
        lines = [f"# Made of {self.source} by `fanlightd permissions import`."]
        lines += [f"# {each}" for each in self.notes]
        lines += [f"# Left out: {each}" for each in self.left_out]
        if self.defaults:
            lines += ["", "[default]", *(f'{key} = "{effect}"' for key, effect in self.defaults.items())]
        for effect, comment, cells in self.rules:
            lines += ["", f"[[{effect}]]  # {_one_line(comment)}"]
            lines += [f"{key} = {_toml(cell)}" for key, cell in cells.items()]
        return "\n".join(map(_one_line, lines)) + "\n"


def filter_text(filter: str, syntax: str) -> str:
    return spelled(filter.encode(), syntax)


def actions_of(read: Sequence[str], write: Sequence[str]) -> dict[str, Cell]:
    """Cells of a rule for filters that may be read, and written."""
    cells: dict[str, Cell] = {}
    for action, filters in ((Action.PUBLISH, write), (Action.SUBSCRIBE, read)):
        if filters:
            cells[action.value] = filters[0] if len(filters) == 1 else list(filters)
    return cells


def _toml(cell: Cell) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, int):
        return str(cell)
    if isinstance(cell, list):
        return f"[{', '.join(map(_toml, cell))}]"
    return '"' + "".join(_escaped(each) for each in cell) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else f"\\U{ord(character):08x}"


def _one_line(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text)
