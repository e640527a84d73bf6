"""What a conversion makes: settings, the files beside them, and what it could not take over."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

TomlCell = bool | int | float | str | Sequence[str]


@dataclass(slots=True)
class ConvertedFile:
    """A file to be written. secret: for its owner alone."""

    text: str
    secret: bool = False


@dataclass(slots=True)
class Converted:
    """settings: of fanlight.toml, each with where it is from; files: by name; notes: what is different here."""

    source: str
    settings: dict[str, tuple[TomlCell, str]] = field(default_factory=dict)
    files: dict[str, ConvertedFile] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)  # each with its place, and why
    notes: list[str] = field(default_factory=list)

    def set(self, key: str, value: TomlCell, place: str) -> None:
        self.settings[key] = value, place

    def leave_out(self, what: object, why: str) -> None:
        self.left_out.append(f"{what}: {why}")

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def settings_text(self) -> str:
        """fanlight.toml."""
        lines = [f"# Made of {one_line(self.source)} by `fanlightd import`."]
        lines += [f"# {one_line(each)}" for each in self.notes]
        lines += [f"# Left out: {one_line(each)}" for each in self.left_out]
        lines += [""] + [
            f"{key} = {toml(value)}" + (f"  # {one_line(place)}" if place else "")
            for key, (value, place) in self.settings.items()
        ]
        return "\n".join(lines) + "\n"


def table(header: str, cells: Mapping[str, TomlCell], comment: str = "") -> list[str]:
    """The lines of one table of an array."""
    return ["", f"[[{header}]]" + (f"  # {one_line(comment)}" if comment else ""), *(
        f"{key} = {toml(value)}" for key, value in cells.items()
    )]


def toml(value: TomlCell) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str):
        return '"' + "".join(_escaped(each) for each in value) + '"'
    return f"[{', '.join(map(toml, value))}]"


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else f"\\U{ord(character):08x}"


def one_line(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text)
