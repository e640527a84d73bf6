"""matchcore's index behind the contenders' interface."""

from collections.abc import Sequence
from time import thread_time_ns

from fanlight_bench.micro import engine
from fanlight_matchers.protocol import Text
from matchcore import FilterIndex


class Ours:
    """A FilterIndex of one syntax."""

    def __init__(self, syntax: str) -> None:
        self.index = FilterIndex()
        self.empty = self.index.nbytes
        self.syntax = syntax
        if syntax == "amqp":  # the default of the index: its own methods, with no Python between, as the others have
            vars(self).update(insert=self.index.insert, remove=self.index.remove, match=self.index.match)

    def insert(self, filter: Text, id: int) -> bool:
        return self.index.insert(filter, id, syntax=self.syntax)

    def remove(self, filter: Text, id: int) -> bool:
        return self.index.remove(filter, id, syntax=self.syntax)

    def match(self, topic: Text) -> tuple[int, ...]:
        return self.index.match(topic, syntax=self.syntax)

    def called_ns(self, topics: list[bytes]) -> int:
        """ns of a match of each as a program calls it: with no Python between."""
        match, syntax = self.index.match, self.syntax
        start = thread_time_ns()
        if syntax == "amqp":
            for topic in topics:
                match(topic)
        else:
            for topic in topics:
                match(topic, syntax=syntax)
        return thread_time_ns() - start

    def bench(self, topics: list[bytes], passes: int) -> tuple[float, int]:
        ns, each = engine.match_ns(self.index, topics, syntax=self.syntax, passes=passes)
        return ns, round(each * len(topics))

    def bench_any(self, topics: list[bytes], passes: int) -> float:
        """As `bench`, but for the first match only."""
        return engine.match_ns(self.index, topics, syntax=self.syntax, passes=passes, any=True)[0]

    def spread(self, topics: list[bytes], passes: int) -> list[int]:
        return [int(ns) for ns in engine.spread_ns(self.index, topics, syntax=self.syntax, passes=passes)]

    def mix(
        self, topics: list[bytes], filters: list[bytes], ids: Sequence[int], reads: int, operations: int,
        seed: int = 1, part: int = 0, parts: int = 1,
    ) -> float:  # fmt: skip
        """Matches in C; changes as Python calls them; the GIL is the lock between threads."""
        return engine.mix(
            self.index, topics, filters, ids,
            reads=reads, operations=operations, seed=seed, part=part, parts=parts, syntax=self.syntax,
        )  # fmt: skip

    def share(self) -> None:
        """The GIL is the lock."""

    @property
    def nbytes(self) -> int:
        """What the filters take; each text and its ids are among it."""
        return self.index.nbytes - self.empty
