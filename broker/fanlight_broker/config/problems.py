"""What is wrong with the settings: each problem with its key, value and place, and all of them at once."""

from collections.abc import Sequence
from typing import NamedTuple


class Problem(NamedTuple):
    """One thing that is wrong, and what to do about it."""

    key: str  # "" if it is not about a single key
    value: str  # as written; never a secret
    place: str  # such as "fanlight.toml, line 3", "flag --http-port", "default"
    text: str

    def __str__(self) -> str:
        head = f"{self.key} = {self.value}" if self.key and self.value else self.key
        where = f"({self.place})" if self.place and head else self.place
        return f"{head} {where}: {self.text}".strip() if head or where else self.text


class SettingsError(Exception):
    """The settings cannot be used. `problems` has every reason; `str` lists them, one a line."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        title = "1 setting is wrong" if count == 1 else f"{count} settings are wrong"
        super().__init__("\n".join([f"{title}:", *(f"  {problem}" for problem in self.problems)]))
