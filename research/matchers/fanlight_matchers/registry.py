"""All contenders by name: how to make one, what it can hold, and how far it may be driven.

A limit on filters is there where a contender's memory or the time of an insert grows with the number of
filters times the number of words, so that a run ends: what is beyond it is skipped, and the table says so.
"""

from collections.abc import Callable
from dataclasses import dataclass

from fanlight_matchers import libraries
from fanlight_matchers.bitmap import OptimisedBitmap, OrBitmap
from fanlight_matchers.dfa import Automaton
from fanlight_matchers.naive import Naive
from fanlight_matchers.ours import Ours
from fanlight_matchers.protocol import Matcher
from fanlight_matchers.rabbit import RabbitTrie
from fanlight_matchers.snapshot_trie import SnapshotTrie
from fanlight_matchers.static_bitmap import StaticBitmap
from fanlight_matchers.sublist import Sublist
from fanlight_matchers.trie_flat import FlatTrie
from fanlight_matchers.trie_string import StringTrie

ALL = 10**9


@dataclass(frozen=True, slots=True)
class ContenderEntry:
    """One line of the tables."""

    name: str
    make: Callable[[str], Matcher]
    filters_max: int = ALL
    syntaxes: tuple[str, ...] = ("amqp", "mqtt")
    compiled: bool = True
    right_up_to: int = ALL  # bytes of a topic; of a longer one its library misses matches
    changes: bool = True  # False: a change costs so much that mixes of them are not measured


CONTENDERS = {
    contender.name: contender
    for contender in [
        ContenderEntry("fanlight", Ours),
        ContenderEntry("naive", Naive, filters_max=20_000),
        ContenderEntry("trie-I", FlatTrie),
        ContenderEntry("trie-S", StringTrie),
        ContenderEntry("matchbox", SnapshotTrie),
        ContenderEntry("static", StaticBitmap, filters_max=20_000),
        ContenderEntry("bitmap", OptimisedBitmap, filters_max=10_000),
        ContenderEntry("bitmap-or", OrBitmap, filters_max=10_000),
        ContenderEntry("nats", Sublist),
        ContenderEntry("rabbit", RabbitTrie),
        ContenderEntry("dfa", Automaton),
    ]
}
for library, contender in {
    "re": ContenderEntry("re", libraries.Expressions, filters_max=1_000, compiled=False),
    "paho": ContenderEntry("paho", libraries.Paho, filters_max=200_000, syntaxes=("mqtt",), compiled=False),
    # Half a minute to compile 10,000 expressions, and no change of one.
    "hyperscan": ContenderEntry(
        "hyperscan", libraries.Hyperscan, filters_max=1_000, compiled=False, changes=False, right_up_to=16
    ),
    "pyroaring": ContenderEntry("pyroaring", libraries.Roaring, filters_max=10_000, compiled=False),
}.items():
    if libraries.installed(library):
        CONTENDERS[contender.name] = contender
