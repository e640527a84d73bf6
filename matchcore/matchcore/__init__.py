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

from importlib import import_module
from typing import TYPE_CHECKING, Final

from matchcore.errors import InvalidFilter, InvalidFrozenIndex, InvalidSelector, InvalidTopic, NotIndexed, TopicError
from matchcore.filters import FilterIndex
from matchcore.grammar import MAX_BYTES, MAX_WORDS, Filter, Token, Wildcard, parse_filter, split_topic
from matchcore.names import NameIndex

if TYPE_CHECKING:
    from matchcore.explanation import Deciding, Explanation, bits, explain, why_not
    from matchcore.frozen import FrozenIndex, freeze
    from matchcore.inclusion import covers, intersects
    from matchcore.records import FrozenRecordIndex, RecordIndex
    from matchcore.rules import RuleIndex
    from matchcore.subsumption import Subsumed, minimal_cover, subsumed

__all__ = [
    "MAX_BYTES",
    "MAX_WORDS",
    "Deciding",
    "Explanation",
    "Filter",
    "FilterIndex",
    "FrozenIndex",
    "FrozenRecordIndex",
    "InvalidFilter",
    "InvalidFrozenIndex",
    "InvalidSelector",
    "InvalidTopic",
    "NameIndex",
    "NotIndexed",
    "RecordIndex",
    "RuleIndex",
    "Subsumed",
    "Token",
    "TopicError",
    "Wildcard",
    "bits",
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

# What no broker needs to listen, by the module that has it. It is imported when it is asked for.
LATER: Final = {
    "Deciding": "explanation",
    "Explanation": "explanation",
    "FrozenIndex": "frozen",
    "FrozenRecordIndex": "records",
    "RecordIndex": "records",
    "RuleIndex": "rules",
    "Subsumed": "subsumption",
    "bits": "explanation",
    "covers": "inclusion",
    "explain": "explanation",
    "freeze": "frozen",
    "intersects": "inclusion",
    "minimal_cover": "subsumption",
    "subsumed": "subsumption",
    "why_not": "explanation",
}


def __getattr__(name: str) -> object:
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{LATER[name]}"), name)
    globals()[name] = found  # so that this is asked once
    return found
