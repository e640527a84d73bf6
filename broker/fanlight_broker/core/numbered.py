"""Things by small numbers. A thing keeps its number while it is there, and one that is free is given to another."""

from typing import Generic, TypeVar

Thing = TypeVar("Thing")


class Numbered(Generic[Thing]):
    """rows  by their numbers; None: the number is free"""

    def __init__(self) -> None:
        self.rows: list[Thing | None] = []
        self.free: list[int] = []  # numbers

    def put(self, thing: Thing) -> int:
        """Returns its number."""
        if self.free:
            number = self.free.pop()
            self.rows[number] = thing
        else:
            number = len(self.rows)
            self.rows.append(thing)
        return number

    def remove(self, number: int) -> None:
        self.rows[number] = None
        self.free.append(number)
