"""The published experiments, made again: Treat's subscribe, unsubscribe and look-up, and his stream of messages.

Treat's program (github.com/tylertreat/fast-topic-matching, `*_test.go`, `utils_test.go`, `throughput_test.go`):
`foo.*.baz.qux.quux` is subscribed to, unsubscribed from and looked up as `foo.bar.baz.qux.quux`, in an empty matcher
("cold") and in one of 1,000 subscriptions of five random numbers ("hot"); and 100,000 messages are looked up among
1,000 subscriptions of three digits, some with a wildcard. One thing differs: for a time to be longer than a
clock's tick, CHANGED subscriptions that differ in their last word stand for the one. So the "cold" matcher has
up to that many.

What he published of them is in PUBLISHED: another machine (a 2.6 GHz i7 of 8 processors), another language. Of memory
and of several threads he published drawings without figures.
"""

import dataclasses
import random
from collections.abc import Sequence
from time import thread_time_ns

from fanlight_bench.workloads import SEED, EncodedWorkload, make
from fanlight_matchers.measure import Effort, called_ns, least, translated
from fanlight_matchers.protocol import Compiled, Matcher
from fanlight_matchers.registry import ContenderEntry

CHANGED = 64
HELD = 1_000


OPERATIONS = ("subscribe", "unsubscribe", "lookup")
KNOWING = ", topics known"


@dataclasses.dataclass(frozen=True, slots=True)
class Published:
    """Treat's figures of one of his five programs: ns of OPERATIONS, and messages a second of his stream."""

    design: str
    contender: str  # the port of it
    cold: tuple[float, float, float]
    hot: tuple[float, float, float]
    messages: float


PUBLISHED = (
    Published("naive", "naive", (172, 51.2, 787), (221, 55, 815_787), 4_053),
    Published("inverted bitmap", f"static{KNOWING}", (3_795, 198, 380), (3_863, 198, 395), 1_052_315),
    Published("optimised inverted bitmap", "bitmap-or", (1_053, 330, 2_724), (1_076, 371, 3_337), 130_706),
    Published("trie", "trie-S", (406, 221, 2_145), (443, 257, 2_278), 248_762),
    Published("CS-trie", "matchbox", (412, 245, 1_615), (471, 280, 1_637), 340_911),
)


@dataclasses.dataclass(slots=True)
class Treated:
    """One contender; ns an operation as called from Python; `lookup` in C, where it is compiled."""

    contender: str
    hot: bool
    subscribe: float | None = None
    unsubscribe: float | None = None
    lookup: float | None = None
    call: float | None = None


def treat(contender: ContenderEntry, hot: bool, effort: Effort) -> Treated:
    """Subscribe, look up and unsubscribe, in turns; the quickest of several."""
    filters = [b"foo.*.baz.qux.quux%d" % i for i in range(CHANGED)]
    topics = [b"foo.bar.baz.qux.quux%d" % i for i in range(CHANGED)]
    held = make("W1", HELD).filters if hot else []
    given = EncodedWorkload("Treat", "amqp", [*held, *filters], topics)
    if "amqp" not in contender.syntaxes:
        given = translated(given)
    matcher = contender.make(given.syntax)
    for id, text in enumerate(given.filters[: len(held)]):
        matcher.insert(text, id)
    changed = list(enumerate(given.filters))[len(held) :]
    result = Treated(contender.name, hot)
    for _ in range(1 if not contender.changes else 4 * effort.passes):
        start = thread_time_ns()
        for id, text in changed:
            matcher.insert(text, id)
        result.subscribe = least(result.subscribe, (thread_time_ns() - start) / CHANGED)
        _look_up(matcher, given.topics, result)
        start = thread_time_ns()
        for id, text in changed:
            matcher.remove(text, id)
        result.unsubscribe = least(result.unsubscribe, (thread_time_ns() - start) / CHANGED)
    return result


def _look_up(matcher: Matcher, topics: list[bytes], result: Treated) -> None:
    matcher.match(topics[0])  # what is compiled at the first match is
    if isinstance(matcher, Compiled):
        result.lookup = least(result.lookup, matcher.bench(topics, 5)[0])
    result.call = least(result.call, called_ns(matcher, topics) / len(topics))


def knowing(contender: ContenderEntry, topics: Sequence[bytes]) -> ContenderEntry:
    """The same, asked about each of these topics before the first filter comes: Treat's inverted bitmap is so made."""
    known = list(dict.fromkeys(topics))

    def make(syntax: str) -> Matcher:
        matcher = contender.make(syntax)
        for topic in known:
            matcher.match(topic)
        return matcher

    return dataclasses.replace(contender, name=contender.name + KNOWING, make=make)


def concurrent() -> EncodedWorkload:
    """Treat's experiment with threads: 1,000 subscriptions of five numbers, and 1,000 topics that are looked up and
    subscribed to. Here threads change filters of either kind, so that each has enough of its own.
    """
    topics = [b"%d.%d.%d" % (i % 10, i % 50, i) for i in range(HELD)]
    return EncodedWorkload("concurrent", "amqp", [*make("W1", HELD).filters, *topics], topics)


def stream() -> EncodedWorkload:
    """Treat's throughput test: subscriptions of three digits, and messages that each match one of them."""
    dice = random.Random(SEED)

    def digits(shape: str) -> str:
        return ".".join(word if word == "*" else str(dice.randrange(10)) for word in shape.split("."))

    filters = []
    for i in range(HELD):
        shape = "*.d.d" if i % 10 == 0 else "d.*.d" if i % 25 == 0 else "d.d.*" if i % 45 == 0 else "d.d.d"
        filters.append(digits(shape))
    messages = [filters[i % HELD].replace("*", str(dice.randrange(10))) for i in range(80_000)]
    return EncodedWorkload("stream", "amqp", [text.encode() for text in filters], [text.encode() for text in messages])
