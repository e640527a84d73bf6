# cython: language_level=3, annotation_typing=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""Rule: one row of a decision table. What it holds is in rule.pxd."""

cimport cython

from matchcore.rule_text import unpacked
from matchcore.where import parse_where

__all__ = ["Rule"]

ANY_TOPIC = "#", "amqp"


@cython.final
cdef class Rule:
    """A selector with a salience and a result. Two are equal if they are the same rule of one index."""

    @property
    def salience(self) -> int | float:
        """The smaller the more salient; a whole number is an int."""
        salience: object = self.order
        return int(salience) if salience.is_integer() else salience

    @property
    def selector(self) -> object:
        """The condition, `Constant(True)` where there is none."""
        if isinstance(self.where, bytes):
            self.where = parse_where(unpacked(self.where))
        return self.where

    @property
    def topic(self) -> str | bytes:
        """A filter; `#` in the syntax "amqp" where the rule takes any topic, and none."""
        return (self.filter or ANY_TOPIC)[0]

    @property
    def syntax(self) -> str:
        return (self.filter or ANY_TOPIC)[1]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rule):
            return NotImplemented
        return (<Rule> other).table is self.table and (<Rule> other).number == self.number

    def __hash__(self) -> int:
        return hash((id(self.table), self.number))

    def __str__(self) -> str:
        what = str(self.number) if self.name is None else repr(self.name)
        return f"rule {what} (salience {self.salience})"

    def __repr__(self) -> str:
        return f"<{self}: {self.selector}>"
