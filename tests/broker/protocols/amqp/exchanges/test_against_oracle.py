"""Random vhosts against a list of bindings that are tried one by one: exchanges, bindings, cycles, kept answers."""

import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.protocols.amqp.data_types import UINT32
from fanlight_broker.protocols.amqp.exchanges import Destinations, ExchangeLimits, Exchanges
from fanlight_broker.protocols.amqp.exchanges.arguments import canonical, frozen, thawed
from fanlight_broker.protocols.amqp.exchanges.conditions import CROWD, ConditionIndex
from fanlight_broker.protocols.amqp.exchanges.consistent_hash import jump
from fanlight_broker.protocols.amqp.exchanges.exchange import Destination
from fanlight_broker.protocols.amqp.exchanges.header_values import canonical_of
from fanlight_broker.protocols.amqp.exchanges.headers import HeadersTable
from fanlight_broker.protocols.amqp.exchanges.topic import TopicTable
from fanlight_broker.protocols.amqp.field_table import encode_table, encode_value
from tests.broker.protocols.amqp.amqp_values import values
from tests.broker.protocols.amqp.exchanges.oracle import (
    PlainBinding,
    PlainExchange,
    PlainVhost,
    equal,
    headers_match,
    typed,
)

QUEUES = st.sampled_from(["q1", "q2", "q3", "q4"])
KEYS = st.lists(st.sampled_from(["x", "y", "*", "#", "", "+", "/"]), max_size=4).map(".".join)
SIMPLE = st.one_of(
    st.none(), st.booleans(), st.sampled_from([0, 1, 2, -1, 2**62, 1.0, 0.0, 2.5, float(2**62)]),
    st.sampled_from(["", "1", "true", "k", b"k", b"\xff", Decimal(1), Decimal("1.0"), Decimal("0.1")]),
)  # fmt: skip
VALUES = st.recursive(
    SIMPLE, lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("pq"), inner)),
    max_leaves=4,
)
HEADERS = st.dictionaries(st.sampled_from(["h", "i", "j", "x-h"]), VALUES, max_size=3)


class TwoVhosts:
    """The same done to both, at random. Answers that say that they are valid are compared again after each step."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.plain = PlainVhost()
        self.exchanges = Exchanges("/", self.plain.queues, limits=ExchangeLimits(kept_max=400))
        self.kept: list[tuple[str, str, Destinations]] = []

    def step(self) -> None:
        acts: list[tuple[Callable[[], None], int]] = [
            (self.declare, 4), (self.bind, 8), (self.bind_exchange, 4), (self.unbind, 3), (self.publish, 4),
            (self.new_queue, 3), (self.end_queue, 1), (self.delete, 1),
        ]  # fmt: skip
        self.dice.choices([act for act, _ in acts], [weight for _, weight in acts])[0]()

    def name(self) -> str:
        return self.dice.choice("abcde")

    def queue(self) -> str:
        return self.dice.choice(("q1", "q2", "q3", "q4"))

    def key(self) -> str:
        return self.dice.choice(("x", "x", "x.y", "", "y", "#", "x.#", "*", "*.*", "#.y.#"))

    def headers(self) -> dict[str, Any]:
        values = (None, True, False, 0, 1, 1.0, "1", "k", b"k", [1], [1.0], {"p": 1}, {}, [], Decimal(1))
        return {self.dice.choice(("h", "i", "x-h")): self.dice.choice(values) for _ in range(self.dice.randrange(3))}

    def arguments(self) -> dict[str, Any]:
        kind = self.dice.choice((None, "all", "any", "all-with-x", "any-with-x"))
        if self.dice.random() < 0.5:
            return {}
        return self.headers() if kind is None else {**self.headers(), "x-match": kind}

    def declare(self) -> None:
        name, type = self.name(), self.dice.choice(("direct", "fanout", "topic", "headers"))
        if name in self.plain.exchanges:
            return
        auto_delete = self.dice.random() < 0.3
        alternate = self.dice.choice((None, None, "", self.name()))
        self.plain.exchanges[name] = PlainExchange(type, auto_delete, alternate)
        arguments = {} if alternate is None else {"alternate-exchange": alternate}
        self.exchanges.declare(name, type, auto_delete=auto_delete, arguments=arguments)

    def delete(self) -> None:
        name = self.name()
        self.plain.delete(name)
        self.exchanges.delete(name)

    def new_queue(self) -> None:
        self.plain.queues.add(self.queue())

    def end_queue(self) -> None:
        queue = self.queue()
        self.plain.queue_ended(queue)
        self.exchanges.queue_ended(queue)

    def bind(self) -> None:
        queue, exchange, key, arguments = self.queue(), self.name(), self.key(), self.arguments()
        if exchange in self.plain.exchanges and queue in self.plain.queues:
            self.plain.bind(PlainBinding(exchange, queue, True, key, arguments))
            self.exchanges.bind(queue, exchange, key, arguments)

    def bind_exchange(self) -> None:
        destination, source, key, arguments = self.name(), self.name(), self.key(), self.arguments()
        if destination in self.plain.exchanges and source in self.plain.exchanges:
            self.plain.bind(PlainBinding(source, destination, False, key, arguments))
            self.exchanges.bind_exchange(destination, source, key, arguments)

    def unbind(self) -> None:
        if not self.plain.bindings:
            return
        gone = self.dice.choice(self.plain.bindings)
        self.plain.unbind(gone)
        unbind = self.exchanges.unbind if gone.to_queue else self.exchanges.unbind_exchange
        unbind(gone.destination, gone.source, gone.key, dict(reversed(gone.arguments.items())))

    def publish(self) -> None:
        for exchange in self.plain.exchanges:
            keys, headers = (self.key(), self.key(), self.key())[: self.dice.randint(1, 3)], self.headers()
            found = self.exchanges.publish(exchange, keys[0], headers.copy, more_keys=keys[1:])
            assert len(set(found.queues)) == len(found.queues)
            assert set(found.queues) == self.plain.reached(exchange, keys, headers)
            assert found.topics == ()

    def compare(self) -> None:
        self.kept = [each for each in self.kept if each[2].valid]
        for exchange, key, found in self.kept:
            assert set(found.queues) == self.plain.reached(exchange, (key,), {})
        for exchange in self.plain.exchanges:
            found = self.exchanges.publish(exchange, "x")
            assert set(found.queues) == self.plain.reached(exchange, ("x",), {})
            if found.valid:
                self.kept.append((exchange, "x", found))
        names = {each.name for each in self.exchanges.in_force() if not each.name.startswith("amq.")}
        assert names == set(self.plain.exchanges)
        bindings = [PlainBinding(*each._replace(arguments=dict(each.arguments))) for each in self.exchanges.bindings()]
        assert len(bindings) == len(self.plain.bindings) == self.exchanges.bindings_count
        assert all(any(each.same(other) for other in bindings) for each in self.plain.bindings)


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_random_vhosts(seed: int) -> None:
    vhosts = TwoVhosts(random.Random(seed))
    for _ in range(80):
        vhosts.step()
        vhosts.compare()


@given(
    st.lists(st.tuples(KEYS, QUEUES, st.integers(0, 3)), max_size=30), st.lists(KEYS, min_size=1, max_size=10),
)  # fmt: skip
def test_topics_with_the_same_filter_twice(steps: list[tuple[str, str, int]], keys: list[str]) -> None:
    plain, queues = PlainVhost(), {"q1", "q2", "q3", "q4"}
    plain.exchanges["t"] = PlainExchange("topic")
    exchanges = Exchanges("/", queues)
    exchanges.declare("t", "topic")
    for key, queue, arguments in steps:
        binding = PlainBinding("t", queue, True, key, {"n": arguments} if arguments else {})
        if any(binding.same(each) for each in plain.bindings):
            plain.unbind(binding)
            exchanges.unbind(queue, "t", key, binding.arguments)
        else:
            plain.bind(binding)
            exchanges.bind(queue, "t", key, binding.arguments)
        for asked in keys:
            assert set(exchanges.publish("t", asked).queues) == plain.reached("t", (asked,), {})
    table = exchanges.find("t")
    assert table is not None
    assert isinstance(table.table, TopicTable)
    assert (table.table.nbytes == 0) == (not plain.bindings)


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_crowded_headers_with_a_few_names(seed: int) -> None:
    """Many bindings that share their conditions: trees in trees, and back to nothing."""
    dice = random.Random(seed)

    def table(least: int) -> dict[str, Any]:
        names = dice.sample("hijkl", dice.randint(least, 5))
        return {name: dice.choice((None, 0, True)) for name in names}

    count = dice.randrange(CROWD * 20)
    plain = PlainVhost()
    plain.queues = {f"q{at}" for at in range(count)}
    plain.exchanges["h"] = PlainExchange("headers")
    exchanges = Exchanges("/", plain.queues)
    exchanges.declare("h", "headers")
    for at in range(count):
        arguments = table(2)
        plain.bind(PlainBinding("h", f"q{at}", True, "", arguments))
        exchanges.bind(f"q{at}", "h", "", arguments)
    for queue in [*dice.sample(sorted(plain.queues), count), ""]:
        if dice.random() < 0.1 or not plain.bindings:
            headers = table(0)
            assert set(exchanges.publish("h", "", headers).queues) == plain.reached("h", ("",), headers)
        plain.queue_ended(queue)
        exchanges.queue_ended(queue)
    assert exchanges.bindings_count == 0
    assert is_empty(exchanges)

@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32))
def test_trees_in_trees_that_lose_conjunctions_find_the_others(seed: int) -> None:
    """So a tree has conditions below it that nothing hangs under at its root any more."""
    dice = random.Random(seed)

    def some(least: int, values: tuple[bytes | None, ...]) -> dict[bytes, bytes | None]:
        names = dice.sample([b"a", b"b", b"c", b"d", b"e"], dice.randint(least, 5))
        return {name: dice.choice(values) for name in sorted(names)}

    bound = list({tuple(some(2, (None, b"0", b"1")).items()) for _ in range(300)})
    index, left = ConditionIndex(), dict(enumerate(bound))
    for number, conditions in left.items():
        index.add([*conditions], number)
    while left:
        for number in dice.sample(sorted(left), min(20, len(left))):
            index.remove([*left.pop(number)], number)
        for _ in range(5):
            came = {name: value or b"V" for name, value in some(3, (None, b"0", b"1")).items()}
            assert index.find(came.items()) == tuple(
                number for number in sorted(left)
                if all(name in came and value in (None, came[name]) for name, value in left[number])
            )
    assert index.is_empty


def is_empty(exchanges: Exchanges) -> bool:
    table = exchanges.find("h")
    assert table is not None
    assert isinstance(table.table, HeadersTable)
    return table.table.is_empty


@given(VALUES, VALUES)
def test_values_are_equal_as_rabbitmq_has_it(one: Any, other: Any) -> None:
    assert (canonical(one) == canonical(other)) == equal(one, other)


@given(st.lists(values | VALUES, max_size=3))
def test_a_value_is_the_same_key_as_octets_and_as_python_reads_it(several: list[Any]) -> None:
    for value in (*several, several, float("nan"), float("inf"), 1e300, -0.0, 2.0**63, 2.0**64, -(2.0**63)):
        assert canonical_of(encode_value(value)) == canonical(value)


@pytest.mark.parametrize(
    ("octets", "same"),
    [
        (b"b\xff", -1), (b"B\xff", 255), (b"s\xff\xfe", -2), (b"u\xff\xfe", 65_534), (b"I\xff\xff\xff\xff", -1),
        (b"i\xff\xff\xff\xff", 2**32 - 1), (b"L" + b"\xff" * 8, -1), (b"T" + b"\xff" * 8, 2**64 - 1),
        (b"f\x3f\x80\x00\x00", 1), (b"f\x3f\x00\x00\x00", 0.5), (b"t\x07", True), (b"x\x00\x00\x00\x01k", "k"),
    ],
)  # fmt: skip
def test_types_that_python_does_not_write_are_read_by_their_value(octets: bytes, same: Any) -> None:
    assert canonical_of(octets) == canonical(same)


@given(st.lists(st.tuples(HEADERS, st.sampled_from(["all", "any"])), max_size=12), st.lists(HEADERS, max_size=5))
def test_a_message_meets_as_octets_what_it_meets_as_values(
    bound: list[tuple[dict[str, Any], str]], messages: list[dict[str, Any]]
) -> None:
    table = HeadersTable(())
    for number, (arguments, kind) in enumerate(bound):
        table.add(Destination("q", number), "", frozen({**arguments, "x-match": kind}))
    for headers in messages:
        named = [(name.encode(), canonical(value)) for name, value in headers.items()]
        entries = encode_table(headers)[UINT32.size :]
        met = tuple(
            number for number, (arguments, kind) in enumerate(bound)
            if headers_match({**arguments, "x-match": kind}, headers)
        )
        assert table.index.find(named) == table.index.find_in(entries) == met


def test_of_a_name_that_comes_twice_the_last_value_counts() -> None:
    table = HeadersTable(())
    for number, value in enumerate((1, 2, None)):
        table.add(Destination("q", number), "", frozen({"a": value}))
    twice = encode_table({"a": 1})[UINT32.size :] + encode_table({"a": 2})[UINT32.size :]
    assert table.index.find_in(twice) == (1, 2)


@given(HEADERS, HEADERS)
def test_arguments_are_one_key_for_one_table(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert thawed(frozen(one)) == one
    assert (frozen(one) == frozen(other)) == (typed(one) == typed(other))


@given(st.integers(0, 2**64 - 1), st.integers(1, 10_000))
def test_a_bucket_more_takes_keys_and_moves_none_between_others(hash: int, buckets: int) -> None:
    before, after = jump(hash, buckets), jump(hash, buckets + 1)
    assert 0 <= before < buckets
    assert after in (before, buckets)
