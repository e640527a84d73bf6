"""matchcore: topic filters in, a topic name asked, ids out; and the mirror image.

    index = matchcore.FilterIndex()
    index.insert("forex.*", 7, syntax="amqp")
    index.insert("site/+/temp", 8, syntax="mqtt")
    index.match("forex.eur", syntax="amqp")          # (7,)
    index.match("site/12/temp", syntax="mqtt")       # (8,)

A library of its own: it needs numpy and knows no protocol, session or permission. A filter lives in
one of three tiers: exact ones in a hash table (slots.pxd), few or common ones in an inverted bitmap
(pool.pxd), the many others in hash buckets that a bitmap of their classes leads to (buckets.pxd,
classes.pxd); tiers.pxd has the rule. All of it is C over counted memory, and what is held in one piece
and never changes is a FrozenIndex. `matchcore.reference` has the same behaviour in plain Python.
"""

from typing import TYPE_CHECKING

from matchcore.errors import InvalidFilter, InvalidFrozenIndex, InvalidSelector, InvalidTopic, TopicError
from matchcore.explanation import Deciding, Explanation, explain, why_not
from matchcore.filters import FilterIndex
from matchcore.frozen import FrozenIndex, freeze
from matchcore.grammar import MAX_BYTES, MAX_WORDS, Filter, Token, Wildcard, parse_filter, split_topic
from matchcore.inclusion import covers, intersects
from matchcore.names import NameIndex
from matchcore.subsumption import Subsumed, minimal_cover, subsumed

if TYPE_CHECKING:
    from matchcore.rules import RuleIndex

__all__ = [
    "MAX_BYTES",
    "MAX_WORDS",
    "Deciding",
    "Explanation",
    "Filter",
    "FilterIndex",
    "FrozenIndex",
    "InvalidFilter",
    "InvalidFrozenIndex",
    "InvalidSelector",
    "InvalidTopic",
    "NameIndex",
    "RuleIndex",
    "Subsumed",
    "Token",
    "TopicError",
    "Wildcard",
    "covers",
    "explain",
    "freeze",
    "intersects",
    "minimal_cover",
    "parse_filter",
    "split_topic",
    "subsumed",
    "why_not",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """What needs selectors is imported when it is asked for: a broker starts without it."""
    if name == "RuleIndex":
        from matchcore.rules import RuleIndex

        return RuleIndex
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
