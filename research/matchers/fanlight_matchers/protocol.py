"""What a contender is: the one interface behind which all of them are compared.

A contender holds the filters of one syntax, "amqp" or "mqtt", each with ids; many cannot hold every filter,
and say so when they are given one. Ids are 32-bit numbers. Nothing here is for several threads at once but
what says so.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

Text = str | bytes


class Matcher(Protocol):
    """Filters in, a topic asked, ids out."""

    def insert(self, filter: Text, id: int) -> bool:
        """Whether it is new; NotImplementedError: a filter that this contender cannot hold."""

    def remove(self, filter: Text, id: int) -> bool:
        """Whether it was there."""

    def match(self, topic: Text) -> tuple[int, ...]:
        """The ids of the filters that match: ascending, each once."""


@runtime_checkable
class Compiled(Protocol):
    """What the compiled ones have besides, so that the cost of a Python call can be left out."""

    def bench(self, topics: list[bytes], passes: int) -> tuple[float, int]:
        """(ns of thread CPU time a topic of the quickest pass, ids found in one)."""

    def spread(self, topics: list[bytes], passes: int) -> list[int]:
        """ns of each topic, the least of the passes."""

    @property
    def nbytes(self) -> int: ...


@runtime_checkable
class Mixing(Protocol):
    """Those with a loop of matches and changes that does not hold the GIL; for several threads, if they are."""

    def mix(
        self,
        topics: list[bytes],
        filters: list[bytes],
        ids: Sequence[int],
        reads: int,
        operations: int,
        seed: int = 1,
        part: int = 0,
        parts: int = 1,
    ) -> float:
        """ns an operation, `reads` of 1,000 being matches; the filters are all in, before and after."""

    def share(self) -> None:
        """From now on several threads may call `mix`: with a lock, where one is needed."""
