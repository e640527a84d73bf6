"""The tree of topics for an operator, one level at a time: what is below a topic, of those that are retained or in use.

Topics are known as retained messages and as routes; what nobody has published for long is in neither. In steps.
"""

from bisect import insort
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.retained_search import found
from fanlight_broker.core.topics import SEPARATORS, SYNTAXES

LOOK = 32  # topics between two looks at the clock, 1 µs each


@dataclass(slots=True)
class Branch:
    """One word below a topic.

    here      messages on the topic itself; below: on all that are below it; of routes that are in the cache
    retained  retained messages, of the topic itself and below it
    """

    word: bytes
    here: int = 0
    below: int = 0
    is_topic: bool = False
    is_retained: bool = False
    retained: int = 0
    deeper: bool = False


def branches(
    home: Namespace, below: tuple[bytes, ...], now: float, after: bytes | None, limit: int
) -> Generator[None, None, list[Branch]]:
    """The `limit` first words that follow `below`, in their order, from behind `after` on."""
    depth = len(below)
    kept: dict[bytes, Branch] = {}
    order: list[bytes] = []
    for number, (topic, syntax, messages, entry) in enumerate(topics_of(home, now)):
        if number % LOOK == 0:
            yield
        if topic is None:
            continue
        words = topic.split(SEPARATORS[syntax])
        if len(words) <= depth or tuple(words[:depth]) != below:
            continue
        word = words[depth]
        if after is not None and word <= after:
            continue
        branch = kept.get(word)
        if branch is None:
            if len(order) == limit and word > order[-1]:
                continue
            branch = kept[word] = Branch(word)
            insort(order, word)
            if len(order) > limit:
                del kept[order.pop()]  # it does not come back: the last one only becomes smaller
        enter(branch, deeper=len(words) > depth + 1, messages=messages, retained=entry)
    return [kept[word] for word in order]


def enter(branch: Branch, *, deeper: bool, messages: int, retained: bool) -> None:
    branch.retained += retained
    if deeper:
        branch.deeper = True
        branch.below += messages
    else:
        branch.is_topic = True
        branch.here += messages
        branch.is_retained = branch.is_retained or retained


def topics_of(home: Namespace, now: float) -> Iterator[tuple[bytes | None, str, int, bool]]:
    """Topic (None: a look at the clock is due), syntax, messages, and whether it is of a retained message."""
    for route in home.router.routes.routes():
        yield route.key[1:], SYNTAXES[route.key[0]], route.hits, False
    for entry in found(home.retained, None, SYNTAXES[0], now):
        if entry is None:
            yield None, "", 0, False
        else:
            yield entry.message.topic, SYNTAXES[entry.message.syntax], 0, True
