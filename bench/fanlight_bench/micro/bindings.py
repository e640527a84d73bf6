"""Exchanges of AMQP: where a message goes, ns a publish; and what making 100,000 bindings takes.

    kept         a key that was asked before: the answer is kept
    never twice  keys that never repeat: every answer is worked out
    headers      of each message; no answer is kept

In each group the first case is what the others are compared with. "make_seconds" is thread CPU time for all bindings of
the group, "resident_bytes" what the process holds more for each of them, keys included, by /proc. The process should be
new: after other benches malloc has free memory to use up first.

The bars of the design: 100,000 wildcard bindings in 2 s, 400 bytes each; 10,000 bindings to a headers exchange at most
2 times 100. The groups that hurt are those whose bindings share a condition, or a name, or have none in common; and
those where every binding matches: their time is that of the queues found.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any

from fanlight_bench.micro.case import Case, Effort, Group, timed
from fanlight_bench.micro.memory import resident_now
from fanlight_broker.protocols.amqp.exchanges import Exchanges

Headers = dict[str, Any]
MakeHeaders = Callable[[int, int], Headers]  # of the binding, or of a message, with a number; of how many bindings

QUEUES = 1_000
KEYS = 1_000
MESSAGES = 2_000  # of a turn
FEW = 20  # messages where each reaches all queues
SMALL = 100  # bindings to a headers exchange

EXCHANGE = "x"


def vhost(type: str, queues: int = QUEUES) -> Exchanges:
    exchanges = Exchanges("/", {f"q{at}" for at in range(queues)})
    exchanges.declare(EXCHANGE, type)
    return exchanges


def bind_all(exchanges: Exchanges, keys: Iterable[str], queues: int = QUEUES) -> None:
    for at, key in enumerate(keys):
        exchanges.bind(f"q{at % queues}", EXCHANGE, key)


def publish_all(exchanges: Exchanges, exchange: str, keys: Sequence[str]) -> None:
    publish = exchanges.publish
    for key in keys:
        publish(exchange, key)


def publish_headers(exchanges: Exchanges, messages: Sequence[Headers]) -> None:
    publish = exchanges.publish
    for headers in messages:
        publish(EXCHANGE, "", headers)


def made(exchanges: Exchanges, make: Callable[[], None]) -> dict[str, object]:
    """What making bindings has taken."""
    before = resident_now()
    took = timed(make)
    after = resident_now()
    return {
        "bindings": exchanges.bindings_count,
        "make_seconds": round(took / 1e9, 3),
        "resident_bytes": (
            None if before is None or after is None else round((after - before) / exchanges.bindings_count)
        ),
    }


def check(exchanges: Exchanges, exchange: str, key: str, headers: Headers | None, found: int) -> None:
    queues = len(exchanges.publish(exchange, key, headers).queues)
    if queues != found:
        raise ValueError(f"{exchange}: a message with {key!r} and {headers} reaches {queues} queues, not {found}")


def keyed(
    name: str, exchanges: Exchanges, keys: Callable[[int], str], messages: int, facts: dict[str, object],
    found: int = 1,
) -> Group:
    """A group of keys: KEYS of them in turn, and those that never repeat. keys: the key with a number."""
    check(exchanges, EXCHANGE, keys(0), None, found)
    numbers = count(KEYS)
    repeated = [keys(at % KEYS) for at in range(messages)]

    def never_twice() -> int:
        fresh = [keys(next(numbers)) for _ in range(messages)]
        return timed(publish_all, exchanges, EXCHANGE, fresh)

    return Group(
        name,
        [
            Case("kept", messages, partial(timed, publish_all, exchanges, EXCHANGE, repeated)),
            Case("never twice", messages, never_twice, ("kept",)),
        ],
        {"queues_found": found, **facts},
    )


def topics(effort: Effort) -> Iterator[Group]:
    bindings = effort.sized(100_000, 1_000)
    exchanges = vhost("topic")
    facts = made(exchanges, partial(bind_all, exchanges, (f"site.{at}.*.kind" for at in range(bindings))))
    yield keyed(
        f"topic, {bindings:,} wildcard bindings", exchanges,
        lambda at: f"site.{at % bindings}.{at}.kind", MESSAGES, facts,
    )
    exchanges = vhost("topic")
    facts = made(exchanges, partial(bind_all, exchanges, [f"{at}.#" for at in range(QUEUES)] + ["#"] * QUEUES))
    yield keyed(
        "topic, all queues match", exchanges, lambda at: f"a.{at}", FEW, facts, QUEUES,
    )


def direct(effort: Effort) -> Iterator[Group]:
    bindings = effort.sized(100_000, 1_000)
    exchanges = vhost("direct")
    facts = made(exchanges, partial(bind_all, exchanges, (f"key {at}" for at in range(bindings))))
    yield keyed(f"direct, {bindings:,} bindings", exchanges, lambda at: f"key {at % bindings}", MESSAGES, facts)
    exchanges = vhost("fanout", 100)
    facts = made(exchanges, partial(bind_all, exchanges, [""] * 100, 100))
    yield keyed("fanout, 100 queues", exchanges, str, MESSAGES, facts, 100)
    exchanges = vhost("x-consistent-hash", 100)
    facts = made(exchanges, partial(bind_all, exchanges, ["10"] * 100, 100))
    yield keyed("consistent hash, 100 queues of weight 10", exchanges, str, MESSAGES, facts)
    exchanges = vhost("direct")
    names = [f"q{at % QUEUES}" for at in range(MESSAGES)]
    check(exchanges, "", "q1", None, 1)
    yield Group("default exchange", [Case("queues", MESSAGES, partial(timed, publish_all, exchanges, "", names))])


SELECTIVE: dict[str, tuple[MakeHeaders, MakeHeaders, int]] = {
    "all: one value in common, one of its own": (
        lambda at, _: {"x-match": "all", "kind": "k", "id": at},
        lambda at, _: {"kind": "k", "id": at}, 1,
    ),
    "all: five headers, three in common": (
        lambda at, _: {"kind": "k", "region": "eu", "urgent": None, "id": at, "user": f"u{at}"},
        lambda at, _: {"kind": "k", "region": "eu", "urgent": True, "id": at, "user": f"u{at}", "note": "n"}, 1,
    ),
    "all: two values, neither selective alone": (
        lambda at, of: {"a": at % int(of**0.5), "b": at // int(of**0.5)},
        lambda at, of: {"a": at % int(of**0.5), "b": at // int(of**0.5)}, 1,
    ),
    "all: a name of its own": (
        lambda at, _: {f"h{at}": 1, f"i{at}": None}, lambda at, _: {f"h{at}": 1, f"i{at}": 2, "kind": "k"}, 1,
    ),
    "any: a common value that is not met": (
        lambda at, _: {"x-match": "any", "kind": "k", "id": at}, lambda at, _: {"kind": "other", "id": at}, 1,
    ),
}  # fmt: skip


def headers(effort: Effort) -> Iterator[Group]:
    large = effort.sized(10_000, 1_024)
    for name, (of_binding, of_message, found) in SELECTIVE.items():
        cases: list[Case] = []
        facts: dict[str, object] = {}
        for bindings in (SMALL, large):
            exchanges = vhost("headers", bindings)
            took = timed(bind_headers, exchanges, [of_binding(at, bindings) for at in range(bindings)])
            messages = [of_message(at * 7_919 % bindings, bindings) for at in range(MESSAGES)]
            for message in messages[:20]:
                check(exchanges, EXCHANGE, "", message, found)
            beside = (f"{SMALL:,}",) if cases else ()
            cases.append(
                Case(f"{bindings:,}", MESSAGES, partial(timed, publish_headers, exchanges, messages), beside)
            )
            facts[f"make_{bindings}_us"] = round(took / bindings / 1e3, 2)
        yield Group(f"headers, {name}", cases, facts)
    yield all_match(large)


def all_match(large: int) -> Group:
    exchanges = vhost("headers", large)
    asked = [{"id": at, "x-match": "any", "kind": 1} for at in range(large)]
    facts = made(exchanges, partial(bind_headers, exchanges, asked))
    check(exchanges, EXCHANGE, "", {"kind": 1}, large)
    case = Case(f"{large:,}", FEW, partial(timed, publish_headers, exchanges, [{"kind": 1}] * FEW))
    return Group("headers, any: all bindings match", [case], {"queues_found": large, **facts})


def bind_headers(exchanges: Exchanges, arguments: Sequence[Headers]) -> None:
    for at, each in enumerate(arguments):
        exchanges.bind(f"q{at}", EXCHANGE, "", each)


def groups(effort: Effort) -> Iterator[Group]:
    yield from topics(effort)
    yield from direct(effort)
    yield from headers(effort)
