"""All contenders by name: how one is made of the selectors of a workload, and how far it may be driven.

A limit on selectors is there so that a run ends: beyond it a contender is left out, and the tables have no figure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from fanlight_content.be_tree import BETree
from fanlight_content.contender import Contender, Contest
from fanlight_content.counting import Counting
from fanlight_content.k_index import KIndex
from fanlight_content.le_subscribe import LeSubscribe
from fanlight_content.lists import List
from fanlight_content.op_index import OpIndex
from fanlight_content.ours import Ours
from fanlight_content.selections import Asked, Selections

BASELINE = "per subscriber"
OURS = "fanlight"


class Asking(Protocol):
    """The selectors of a workload, in one contender."""

    def match(self, asked: Asked) -> tuple[int, ...]:
        """The ids of the selectors that are true, ascending."""

    def ask(self, asked: Sequence[Asked], times: int = 1) -> int:
        """How many ids are found in all, each message asked `times` times."""

    @property
    def nbytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class ContentEntry:
    """One line of the tables."""

    name: str
    make: Callable[[Selections], Asking]
    compiled: bool = True  # False: Python, at small sizes
    own_programs: bool = False  # its bytes and its inserts include the programs


def _after_topic(kind: type[Contender]) -> Callable[[Selections], Asking]:
    """A contender for each filter; filters of few selectors have them in a row, as with matchcore."""
    return partial(Contest, kind=kind, few=List)


def _over_all(kind: type[Contender]) -> Callable[[Selections], Asking]:
    return partial(Contest, kind=kind, over_all=True)


CONTENDERS = {
    entry.name: entry
    for entry in [
        ContentEntry(OURS, partial(Contest, kind=Ours), own_programs=True),
        ContentEntry(BASELINE, partial(Contest, kind=List)),
        ContentEntry("naive", _over_all(List)),
        ContentEntry("counting", _over_all(Counting)),
        ContentEntry("counting/filter", _after_topic(Counting)),
        ContentEntry("le subscribe", _over_all(LeSubscribe)),
        ContentEntry("le subscribe/filter", _after_topic(LeSubscribe)),
        ContentEntry("k-index", _over_all(KIndex)),
        ContentEntry("k-index/filter", _after_topic(KIndex)),
        ContentEntry("be-tree", _over_all(BETree)),
        ContentEntry("be-tree/filter", _after_topic(BETree)),
        ContentEntry("opindex", _over_all(OpIndex)),
        ContentEntry("opindex/filter", _after_topic(OpIndex)),
    ]
}
