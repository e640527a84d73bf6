"""Random vhosts against a list of bindings that are tried one by one: exchanges, bindings, cycles, kept answers."""

from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fanlight_broker.protocols.amqp.exchanges import Destinations, ExchangeLimits, Exchanges
from fanlight_broker.protocols.amqp.exchanges.arguments import comparable, frozen, thawed
from fanlight_broker.protocols.amqp.exchanges.conditions import CROWD
from fanlight_broker.protocols.amqp.exchanges.consistent_hash import jump
from fanlight_broker.protocols.amqp.exchanges.headers import HeadersTable
from fanlight_broker.protocols.amqp.exchanges.topic import TopicTable
from tests.broker.protocols.amqp.exchanges.oracle import PlainBinding, PlainExchange, PlainVhost, equal, typed

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
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
MATCH = st.sampled_from([{}, *({"x-match": kind} for kind in ("all", "any", "all-with-x", "any-with-x"))])
ARGUMENTS = st.builds(lambda match, headers: {**headers, **match}, MATCH, HEADERS)
TYPES = st.sampled_from(["direct", "fanout", "topic", "headers"])


class VhostMachine(RuleBasedStateMachine):
    """The same done to both. Answers that say that they are valid are compared again after each step."""

    def __init__(self) -> None:
        super().__init__()
        self.plain = PlainVhost()
        self.exchanges = Exchanges("/", self.plain.queues, limits=ExchangeLimits(kept_max=400))
        self.kept: list[tuple[str, str, Destinations]] = []
        for name, type in (("a", "direct"), ("b", "topic"), ("c", "headers")):
            self.declare(name, type, False, "d" if name == "b" else None)
        self.new_queue("q1")
        self.bind_exchange("b", "a", "x", {})

    @rule(name=NAMES, type=TYPES, auto_delete=st.booleans(), alternate=st.one_of(st.none(), st.just(""), NAMES))
    def declare(self, name: str, type: str, auto_delete: bool, alternate: str | None) -> None:
        if name in self.plain.exchanges:
            return
        self.plain.exchanges[name] = PlainExchange(type, auto_delete, alternate)
        arguments = {} if alternate is None else {"alternate-exchange": alternate}
        self.exchanges.declare(name, type, auto_delete=auto_delete, arguments=arguments)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        self.plain.delete(name)
        self.exchanges.delete(name)

    @rule(queue=QUEUES)
    def new_queue(self, queue: str) -> None:
        self.plain.queues.add(queue)

    @rule(queue=QUEUES)
    def end_queue(self, queue: str) -> None:
        self.plain.queue_ended(queue)
        self.exchanges.queue_ended(queue)

    @rule(queue=QUEUES, exchange=NAMES, key=KEYS, arguments=ARGUMENTS)
    def bind(self, queue: str, exchange: str, key: str, arguments: dict[str, Any]) -> None:
        if exchange in self.plain.exchanges and queue in self.plain.queues:
            self.plain.bind(PlainBinding(exchange, queue, True, key, arguments))
            self.exchanges.bind(queue, exchange, key, arguments)

    @rule(destination=NAMES, source=NAMES, key=KEYS, arguments=ARGUMENTS)
    def bind_exchange(self, destination: str, source: str, key: str, arguments: dict[str, Any]) -> None:
        if destination in self.plain.exchanges and source in self.plain.exchanges:
            self.plain.bind(PlainBinding(source, destination, False, key, arguments))
            self.exchanges.bind_exchange(destination, source, key, arguments)

    @rule(at=st.integers(0, 1000))
    def unbind(self, at: int) -> None:
        if not self.plain.bindings:
            return
        gone = self.plain.bindings[at % len(self.plain.bindings)]
        self.plain.unbind(gone)
        unbind = self.exchanges.unbind if gone.to_queue else self.exchanges.unbind_exchange
        unbind(gone.destination, gone.source, gone.key, dict(reversed(gone.arguments.items())))

    @rule(exchange=NAMES, key=KEYS, more=st.lists(KEYS, max_size=2), headers=HEADERS)
    def publish(self, exchange: str, key: str, more: list[str], headers: dict[str, Any]) -> None:
        if exchange in self.plain.exchanges:
            found = self.exchanges.publish(exchange, key, lambda: headers, more_keys=tuple(more))
            assert len(set(found.queues)) == len(found.queues)
            assert set(found.queues) == self.plain.reached(exchange, (key, *more), headers)
            assert found.topics == ()
            if found.valid:
                self.kept.append((exchange, key, found))

    @invariant()
    def the_same_answers(self) -> None:
        """Also those that were kept before the step."""
        self.kept = [each for each in self.kept if each[2].valid]
        for exchange, key, found in self.kept:
            assert set(found.queues) == self.plain.reached(exchange, (key,), {})
        for exchange in self.plain.exchanges:
            for key in ("x", "x.y"):
                found = self.exchanges.publish(exchange, key)
                assert set(found.queues) == self.plain.reached(exchange, (key,), {})

    @invariant()
    def the_same_exchanges_and_bindings(self) -> None:
        assert {each.name for each in self.exchanges.in_force() if not each.name.startswith("amq.")} == set(
            self.plain.exchanges
        )
        found = [
            PlainBinding(*each._replace(arguments=dict(each.arguments))) for each in self.exchanges.bindings()
        ]
        assert len(found) == len(self.plain.bindings) == self.exchanges.bindings_count
        assert all(any(each.same(other) for other in found) for each in self.plain.bindings)


VhostMachine.TestCase.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
TestVhost = VhostMachine.TestCase


@settings(deadline=None)
@given(
    st.lists(st.tuples(KEYS, QUEUES, st.booleans()), max_size=30), st.lists(KEYS, min_size=1, max_size=10),
)  # fmt: skip
def test_topics_with_the_same_filter_twice(steps: list[tuple[str, str, bool]], keys: list[str]) -> None:
    plain, queues = PlainVhost(), {"q1", "q2", "q3", "q4"}
    plain.exchanges["t"] = PlainExchange("topic")
    exchanges = Exchanges("/", queues)
    exchanges.declare("t", "topic")
    for key, queue, with_arguments in steps:
        binding = PlainBinding("t", queue, True, key, {"n": 1} if with_arguments else {})
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


@settings(deadline=None, max_examples=60)
@given(st.data(), st.integers(CROWD, CROWD * 4))
def test_crowded_headers_with_a_few_names(data: st.DataObject, count: int) -> None:
    """Many bindings that share their conditions: trees in trees, and back to nothing."""
    small = st.dictionaries(
        st.sampled_from("hijkl"), st.sampled_from([None, 0, 1, True, "0"]), min_size=2, max_size=5,
    )  # fmt: skip
    asked = data.draw(st.lists(small, min_size=count, max_size=count))
    queues = {f"q{at}" for at in range(count)}
    plain = PlainVhost()
    plain.exchanges["h"] = PlainExchange("headers")
    exchanges = Exchanges("/", queues)
    exchanges.declare("h", "headers")
    for at, arguments in enumerate(asked):
        plain.bind(PlainBinding("h", f"q{at}", True, "", arguments))
        exchanges.bind(f"q{at}", "h", "", arguments)
    messages = data.draw(st.lists(small, min_size=1, max_size=10))
    for at in [*data.draw(st.permutations(range(count))), None]:
        for headers in messages:
            assert set(exchanges.publish("h", "", headers).queues) == plain.reached("h", ("",), headers)
        if at is not None:
            plain.queue_ended(f"q{at}")
            exchanges.queue_ended(f"q{at}")
    assert exchanges.bindings_count == 0
    assert is_empty(exchanges)


def is_empty(exchanges: Exchanges) -> bool:
    table = exchanges.find("h")
    assert table is not None
    assert isinstance(table.table, HeadersTable)
    return table.table.is_empty


@given(VALUES, VALUES)
def test_values_are_equal_as_rabbitmq_has_it(one: Any, other: Any) -> None:
    assert (comparable(one) == comparable(other)) == equal(one, other)
    assert equal(one, other) is False or hash(comparable(one)) == hash(comparable(other))


@given(HEADERS, HEADERS)
def test_arguments_are_one_key_for_one_table(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert thawed(frozen(one)) == one
    assert (frozen(one) == frozen(other)) == (typed(one) == typed(other))


@given(st.integers(0, 2**64 - 1), st.integers(1, 10_000))
def test_a_bucket_more_takes_keys_and_moves_none_between_others(hash: int, buckets: int) -> None:
    before, after = jump(hash, buckets), jump(hash, buckets + 1)
    assert 0 <= before < buckets
    assert after in (before, buckets)
