"""matchcore's index behind the contenders' interface."""

from bench.matchers.protocol import Text
from bench.micro.engine import match_ns
from matchcore import FilterIndex


class Ours:
    """A FilterIndex of one syntax."""

    def __init__(self, syntax: str) -> None:
        self.index = FilterIndex()
        self.empty = self.index.nbytes
        self.syntax = syntax

    def insert(self, filter: Text, id: int) -> bool:
        return self.index.insert(filter, id, syntax=self.syntax)

    def remove(self, filter: Text, id: int) -> bool:
        return self.index.remove(filter, id, syntax=self.syntax)

    def match(self, topic: Text) -> tuple[int, ...]:
        return self.index.match(topic, syntax=self.syntax)

    def bench(self, topics: list[bytes], passes: int) -> tuple[float, int]:
        ns, each = match_ns(self.index, topics, syntax=self.syntax, passes=passes)
        return ns, round(each * len(topics))

    @property
    def nbytes(self) -> int:
        """What the filters take; each text and its ids are among it."""
        return self.index.nbytes - self.empty
