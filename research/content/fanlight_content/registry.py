"""All contenders by name: how one is made of the selectors of a workload.

Those of the literature are there twice: over all filters, of which the topic's is one more condition, as published; and
as NAME/filter, one for each filter of the topic, which is what a broker would do with them.
"""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from fanlight_content.be_tree import BETree
from fanlight_content.bitmaps import Bitmap, CountingBitmap, RangeBitmap
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
    """One line of the tables: a compiled contender, or one in Python, which is measured at small sizes."""

    name: str
    kind: type[Contender] = Contender
    over_all: bool = False
    few_in_a_row: bool = False  # up to 16 selectors of a filter are verified in a row, as matchcore does
    in_python: Callable[[Selections], Asking] | None = None

    @property
    def compiled(self) -> bool:
        return self.in_python is None

    @property
    def own_programs(self) -> bool:
        """Its bytes and its inserts include the programs."""
        return self.kind is Ours

    def make(self, selections: Selections, few_in_a_row: bool | None = None) -> Asking:
        """The contender, filled; `few_in_a_row` False: without the shortcut for filters of few selectors."""
        if self.in_python is not None:
            return self.in_python(selections)
        shortcut = self.few_in_a_row if few_in_a_row is None else few_in_a_row
        return Contest(selections, self.kind, self.over_all, List if shortcut else None)


def _published() -> Iterator[ContentEntry]:
    for name, kind in (
        ("counting", Counting), ("le subscribe", LeSubscribe), ("k-index", KIndex), ("opindex", OpIndex),
        ("be-tree", BETree),
    ):  # fmt: skip
        yield ContentEntry(name, kind, over_all=True)
        yield ContentEntry(f"{name}/filter", kind, few_in_a_row=True)


CONTENDERS = {
    entry.name: entry
    for entry in [
        ContentEntry(OURS, Ours),
        ContentEntry(BASELINE, List),
        ContentEntry("naive", List, over_all=True),
        *_published(),
        ContentEntry("bitmap/filter", Bitmap, few_in_a_row=True),
        ContentEntry("bitmap ranges/filter", RangeBitmap, few_in_a_row=True),
        ContentEntry("bitmap slices/filter", CountingBitmap, few_in_a_row=True),
    ]
}
if importlib.util.find_spec("pyroaring") is not None:
    from fanlight_content.roaring import Roaring

    CONTENDERS["roaring/filter"] = ContentEntry("roaring/filter", in_python=Roaring)
