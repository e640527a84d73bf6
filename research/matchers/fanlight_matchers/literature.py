"""The published experiments, made again: Treat's subscribe, unsubscribe and look-up, and his stream of messages.

Treat's program (github.com/tylertreat/fast-topic-matching, `*_test.go`, `utils_test.go`, `throughput_test.go`):
`foo.*.baz.qux.quux` is subscribed to, unsubscribed from and looked up as `foo.bar.baz.qux.quux`, in an empty matcher
("cold") and in one of 1,000 subscriptions of five random numbers ("hot"); and 100,000 messages are looked up among
1,000 subscriptions of three digits, some with a wildcard. One thing differs: for a time to be longer than a
clock's tick, CHANGED subscriptions that differ in their last word stand for the one. So the "cold" matcher has
up to that many.

What was published about such experiments, and where, is in PUBLISHED: other machines, other languages.
"""

import dataclasses
import random
from time import thread_time_ns

from fanlight_bench.workloads import SEED, EncodedWorkload, make
from fanlight_matchers.measure import Effort, least, translated
from fanlight_matchers.protocol import Compiled, Matcher
from fanlight_matchers.registry import ContenderEntry

CHANGED = 64
HELD = 1_000


@dataclasses.dataclass(frozen=True, slots=True)
class Published:
    """A figure somebody published: ns of one look-up."""

    ns: float
    design: str
    contender: str  # ours that stands for it
    source: str


PUBLISHED = (
    Published(3_337, "optimised inverted bitmap, 1,000 subscriptions", "bitmap", 'Treat, "Fast Topic Matching", 2016'),
    Published(1_637, "concurrent subscription trie, the same", "matchbox", 'Treat, "Fast Topic Matching", 2016'),
    Published(
        10_000, "the goal: 10,000 requests, 100,000 messages a second", "static",
        'Hintjens, AMQ RFC003 "Rapid Message Matching", 2005',
    ),
)  # fmt: skip


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
    start = thread_time_ns()
    for topic in topics:
        matcher.match(topic)
    result.call = least(result.call, (thread_time_ns() - start) / len(topics))


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
