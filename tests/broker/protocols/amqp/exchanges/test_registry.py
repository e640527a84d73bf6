"""Declaring, deleting and binding, with RabbitMQ's reply codes and texts; answers that are kept."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from fanlight_broker.protocols.amqp.errors import AmqpError
from fanlight_broker.protocols.amqp.exchanges import ExchangeLimits, Exchanges
from fanlight_broker.protocols.amqp.exchanges.topic import TopicTable
from fanlight_broker.protocols.amqp.reply_codes import OF_CHANNELS, ReplyCode

Act = Callable[[Exchanges], object]


@pytest.fixture
def exchanges() -> Exchanges:
    """x is direct, y has an alternate exchange, in is internal, ch hashes; q is bound to x with k."""
    made = Exchanges("/", {"q", "r"})
    made.declare("x", "direct")
    made.declare("y", "direct", arguments={"alternate-exchange": "ae"})
    made.declare("in", "direct", internal=True)
    made.declare("ch", "x-consistent-hash")
    made.declare("late", "x-delayed-message", arguments={"x-delayed-type": "direct"})
    made.bind("q", "x", "k")
    return made


UNEQUAL = "inequivalent arg '{}' for exchange '{}' in vhost '/': received {} but current is {}"
NO_EXCHANGE = "no exchange '{}' in vhost '/'"
DEFAULT = "operation not permitted on the default exchange"
NOT_A_NUMBER = "The binding key must be an integer: <<{}>>"

# The texts are those of RabbitMQ 3.10.8.
REFUSED: list[tuple[Act, int, str]] = [
    (lambda e: e.declare("x", "fanout"), 406, UNEQUAL.format("type", "x", "'fanout'", "'direct'")),
    (lambda e: e.declare("x", durable=True), 406, UNEQUAL.format("durable", "x", "'true'", "'false'")),
    (lambda e: e.declare("x", auto_delete=True), 406, UNEQUAL.format("auto_delete", "x", "'true'", "'false'")),
    (lambda e: e.declare("x", internal=True), 406, UNEQUAL.format("internal", "x", "'true'", "'false'")),
    (
        lambda e: e.declare("x", arguments={"alternate-exchange": "ae"}), 406,
        UNEQUAL.format("alternate-exchange", "x", "the value 'ae' of type 'longstr'", "none"),
    ),
    (
        lambda e: e.declare("y"), 406,
        UNEQUAL.format("alternate-exchange", "y", "none", "the value 'ae' of type 'longstr'"),
    ),
    (
        lambda e: e.declare("y", arguments={"alternate-exchange": "be"}), 406,
        UNEQUAL.format("alternate-exchange", "y", "'be'", "'ae'"),
    ),
    (
        lambda e: e.declare("late", "x-delayed-message", arguments={"x-delayed-type": "topic"}), 406,
        UNEQUAL.format("x-delayed-type", "late", "'topic'", "'direct'"),
    ),
    (
        lambda e: e.declare("z", arguments={"alternate-exchange": 1}), 406,
        "invalid type 'signedint' for arg 'alternate-exchange' in exchange 'z' in vhost '/'",
    ),
    (lambda e: e.declare("no", passive=True), 404, NO_EXCHANGE.format("no")),
    (lambda e: e.declare("amq.no", passive=True), 404, NO_EXCHANGE.format("amq.no")),
    (lambda e: e.declare("amq.foo"), 403, "exchange name 'amq.foo' contains reserved prefix 'amq.*'"),
    (lambda e: e.declare("amq.direct"), 406, UNEQUAL.format("durable", "amq.direct", "'false'", "'true'")),
    (lambda e: e.declare(""), 403, DEFAULT),
    (lambda e: e.declare("", passive=True), 403, DEFAULT),
    (lambda e: e.declare("z", "bogus"), 503, "unknown exchange type 'bogus'"),
    (lambda e: e.declare("x", "bogus"), 503, "unknown exchange type 'bogus'"),
    (
        lambda e: e.declare("z", "x-delayed-message"), 406,
        "Invalid argument, 'x-delayed-type' must be an existing exchange type",
    ),
    (lambda e: e.delete(""), 403, DEFAULT),
    (lambda e: e.delete("amq.direct"), 403, "deletion of system exchange 'amq.direct' in vhost '/' not allowed"),
    (lambda e: e.delete("x", if_unused=True), 406, "exchange 'x' in vhost '/' in use"),
    (lambda e: e.bind("q", "", "k"), 403, DEFAULT),
    (lambda e: e.unbind("q", "", "q"), 403, DEFAULT),
    (lambda e: e.bind("q", "no", "k"), 404, NO_EXCHANGE.format("no")),
    (lambda e: e.bind("no", "x", "k"), 404, "no queue 'no' in vhost '/'"),
    (lambda e: e.bind_exchange("no", "x", "k"), 404, NO_EXCHANGE.format("no")),
    (lambda e: e.bind_exchange("x", "no", "k"), 404, NO_EXCHANGE.format("no")),
    (lambda e: e.bind_exchange("no", "no2", "k"), 404, NO_EXCHANGE.format("no2")),
    (lambda e: e.bind_exchange("x", "", "k"), 403, DEFAULT),
    (lambda e: e.bind_exchange("", "x", "k"), 403, DEFAULT),
    (lambda e: e.unbind_exchange("", "x", "k"), 403, DEFAULT),
    (
        lambda e: e.bind("q", "amq.headers", "", {"x-match": "some"}), 406,
        'Invalid x-match field value <<"some">>; expected all, any, all-with-x, or any-with-x',
    ),
    (
        lambda e: e.bind("q", "amq.match", "", {"x-match": 1}), 406,
        "Invalid x-match field type signedint (value 1); expected longstr",
    ),
    (
        lambda e: e.bind("q", "amq.headers", "", {"x-match": None}), 406,
        "Invalid x-match field type void (value undefined); expected longstr",
    ),
    (lambda e: e.bind("q", "ch", "a"), 406, NOT_A_NUMBER.format('"a"')),
    (lambda e: e.bind("q", "ch", " 1"), 406, NOT_A_NUMBER.format('" 1"')),
    (lambda e: e.bind("q", "ch", ""), 406, NOT_A_NUMBER.format("")),
    (lambda e: e.bind("q", "ch", "0"), 406, "The binding key must be greater than 0"),
    (lambda e: e.bind("q", "ch", "-1"), 406, "The binding key must be greater than 0"),
    (
        lambda e: e.declare("z", "x-consistent-hash", arguments={"hash-header": "a", "hash-property": "message_id"}),
        406, "hash-header and hash-property are mutually exclusive",
    ),
    (
        lambda e: e.declare("z", "x-consistent-hash", arguments={"hash-property": "foo"}), 406,
        "Unsupported property: foo",
    ),
    (lambda e: e.publish("in", "k"), 403, "cannot publish to internal exchange 'in' in vhost '/'"),
    (lambda e: e.publish("no", "k"), 404, NO_EXCHANGE.format("no")),
]  # fmt: skip


@pytest.mark.parametrize(("act", "code", "text"), REFUSED, ids=[f"{code} {text}" for _, code, text in REFUSED])
def test_what_is_refused_has_rabbitmqs_code_and_text(
    exchanges: Exchanges, act: Act, code: int, text: str
) -> None:
    before = (exchanges.in_force(), list(exchanges.bindings()), exchanges.nbytes)
    with pytest.raises(AmqpError) as refused:
        act(exchanges)
    assert (refused.value.code, refused.value.text) == (code, text)
    assert refused.value.closes_all is (ReplyCode(code) not in OF_CHANNELS)
    assert (exchanges.in_force(), list(exchanges.bindings()), exchanges.nbytes) == before


ALLOWED: list[Act] = [
    lambda e: e.declare("x", arguments={"foo": 1}),  # what nobody knows is not compared
    lambda e: e.declare("x", arguments={"x-delayed-type": "topic"}),
    lambda e: e.declare("x", "fanout", durable=True, passive=True),
    lambda e: e.declare("amq.direct", durable=True),
    lambda e: e.delete("no"),
    lambda e: e.unbind("q", "no", "k"),
    lambda e: e.unbind("no", "x", "k"),
    lambda e: e.unbind("q", "x", "other"),
    lambda e: e.unbind_exchange("x", "y", "k"),
    lambda e: e.unbind_exchange("no", "y", "k"),
    lambda e: e.bind("q", "x", "k"),  # once more
]  # fmt: skip


@pytest.mark.parametrize("act", ALLOWED)
def test_what_changes_nothing_is_no_error(exchanges: Exchanges, act: Act) -> None:
    before = (exchanges.in_force(), list(exchanges.bindings()), exchanges.nbytes)
    act(exchanges)
    assert (exchanges.in_force(), list(exchanges.bindings()), exchanges.nbytes) == before


def test_the_default_exchange_is_every_queue_by_its_name(exchanges: Exchanges) -> None:
    assert exchanges.publish("", "q").queues == ("q",)
    assert exchanges.publish("", "no").unroutable
    assert exchanges.publish("", "q", more_keys=("r", "q", "no")).queues == ("q", "r")


def test_an_empty_alternate_exchange_is_the_default_one(exchanges: Exchanges) -> None:
    exchanges.declare("z", "fanout", arguments={"alternate-exchange": ""})
    assert exchanges.publish("z", "r").queues == ("r",)
    assert not exchanges.publish("z", "r").valid  # for queues come and go


def test_an_alternate_exchange_may_come_later_and_go(exchanges: Exchanges) -> None:
    unroutable = exchanges.publish("y", "k")
    assert unroutable.unroutable
    assert unroutable.valid
    exchanges.declare("ae", "fanout")
    exchanges.bind("r", "ae", "")
    assert not unroutable.valid
    assert exchanges.publish("y", "k").queues == ("r",)
    exchanges.delete("ae")
    assert exchanges.publish("y", "k").unroutable


def test_exchanges_that_delete_themselves_do_so_one_after_the_other(exchanges: Exchanges) -> None:
    for name in ("one", "two", "three"):
        exchanges.declare(name, "fanout", auto_delete=True)
    exchanges.bind_exchange("two", "one", "")
    exchanges.bind_exchange("three", "two", "")
    exchanges.bind("q", "three", "")
    assert exchanges.publish("one", "").queues == ("q",)
    exchanges.queue_ended("q")
    assert [exchanges.find(name) for name in ("one", "two", "three")] == [None] * 3
    assert list(exchanges.bindings()) == []


def test_a_long_chain_of_exchanges_is_walked_and_deleted_without_recursion() -> None:
    exchanges = Exchanges("/", {"q"})
    for at in range(3_000):
        exchanges.declare(f"e{at}", "fanout", auto_delete=True)
        if at:
            exchanges.bind_exchange(f"e{at}", f"e{at - 1}", "")
    exchanges.bind_exchange("e0", "e2999", "")
    exchanges.bind("q", "e2999", "")
    assert exchanges.publish("e7", "").queues == ("q",)
    exchanges.unbind_exchange("e0", "e2999", "")
    exchanges.unbind("q", "e2999", "")
    assert len(exchanges.in_force()) == 5


def test_everything_that_ends_is_given_back(exchanges: Exchanges) -> None:
    empty = exchanges.nbytes
    exchanges.declare("t", "topic", arguments={"note": "x" * 100})
    for at in range(50):
        exchanges.bind("q", "t", f"a.{at}", {"n": at})
    exchanges.publish("t", "a.1")
    assert exchanges.nbytes > empty + 50 * 100
    exchanges.delete("t")
    assert exchanges.nbytes == empty
    assert exchanges.bindings_count == 1


def test_bounds() -> None:
    exchanges = Exchanges("v", {"q"}, limits=ExchangeLimits(exchanges_max=6, bytes_max=100_000, hashes_max=2))
    exchanges.declare("t", "topic")
    with pytest.raises(AmqpError, match="vhost 'v' has at most 6 exchanges"):
        exchanges.declare("u")
    with pytest.raises(AmqpError, match="a binding key with 3 words #; at most 2 are allowed"):
        exchanges.bind("q", "t", "#.a.#.b.#")
    with pytest.raises(AmqpError, match="vhost 'v' has at most 100000 bytes of exchanges and bindings"):
        exchanges.bind("q", "t", "a", {"n": "x" * 100_000})
    with pytest.raises(AmqpError) as refused:
        bind_many(exchanges, "t", 1_000)
    assert refused.value.code == ReplyCode.PRECONDITION_FAILED
    assert 50 < exchanges.bindings_count < 1_000


def bind_many(exchanges: Exchanges, exchange: str, count: int) -> None:
    for at in range(count):
        exchanges.bind("q", exchange, str(at))


def test_few_bindings_search() -> None:
    exchanges = Exchanges("v", {"q"}, limits=ExchangeLimits(searching_max=2))
    exchanges.declare("t", "topic")
    exchanges.bind("q", "t", "#.a.#")
    exchanges.bind("q", "t", "#.b.#")
    with pytest.raises(AmqpError, match="at most 2 binding keys with several words #"):
        exchanges.bind("q", "t", "#.c.#")
    exchanges.unbind("q", "t", "#.a.#")
    exchanges.bind("q", "t", "#.c.#")


def test_answers_are_kept_in_a_bounded_room() -> None:
    exchanges = Exchanges("/", {"q"}, limits=ExchangeLimits(kept_max=1_000))
    exchanges.bind("q", "amq.topic", "#")
    first = exchanges.publish("amq.topic", "0")
    first.prepared = "route"
    assert exchanges.publish("amq.topic", "0") is first
    for at in range(1_000 // 9 + 1):
        exchanges.publish("amq.topic", str(at))
    assert not first.valid
    again = exchanges.publish("amq.topic", "0")
    assert (again.queues, again.prepared) == (("q",), None)


def test_a_fanout_keeps_one_answer_for_all_keys() -> None:
    exchanges = Exchanges("/", {"q"})
    exchanges.bind("q", "amq.fanout", "")
    first = exchanges.publish("amq.fanout", "0")
    assert exchanges.publish("amq.fanout", "1") is first
    exchanges.declare("x", "direct")
    exchanges.bind_exchange("x", "amq.fanout", "")
    assert not first.valid
    assert exchanges.publish("amq.fanout", "0") is not exchanges.publish("amq.fanout", "1")


def test_a_short_lived_exchange_leaves_nothing_in_those_behind_it(exchanges: Exchanges) -> None:
    for at in range(10):
        exchanges.declare(f"e{at}", "fanout")
        exchanges.bind_exchange("x", f"e{at}", "")
        assert exchanges.publish(f"e{at}", "k").queues == ("q",)
        exchanges.delete(f"e{at}")
    x = exchanges.find("x")
    assert x is not None
    assert x.asked_by == set()


def test_a_delay_is_a_positive_number_of_milliseconds(exchanges: Exchanges) -> None:
    late, x = exchanges.find("late"), exchanges.find("x")
    assert late is not None
    assert x is not None
    given: list[Any] = [0, -1, True, "5", 1.5, None, 2**32]
    assert late.delay({"x-delay": 5000}) == 5000
    assert [late.delay({"x-delay": each}) for each in given] == [0] * len(given)
    assert late.delay({}) == late.delay(None) == x.delay({"x-delay": 5000}) == 0
    exchanges.bind("q", "late", "k")
    assert exchanges.publish("late", "k").queues == ("q",)


def test_a_hash_is_of_the_key_or_a_header_or_a_property() -> None:
    queues = {f"q{at}" for at in range(10)}
    exchanges = Exchanges("/", queues)
    for name, arguments in (
        ("key", {}), ("header", {"hash-header": "h"}), ("property", {"hash-property": "message_id"}),
    ):  # fmt: skip
        exchanges.declare(name, "x-consistent-hash", arguments=arguments)
        for queue in sorted(queues):
            exchanges.bind(queue, name, "10")
    by_key = {exchanges.publish("key", str(at)).queues for at in range(500)}
    by_header = {exchanges.publish("header", "k", {"h": at}).queues for at in range(500)}
    by_property = {
        exchanges.publish("property", "k", None, SimpleNamespace(message_id=str(at), correlation_id="", timestamp=1))
        .queues
        for at in range(500)
    }  # fmt: skip
    assert by_key == by_header == by_property == {(queue,) for queue in queues}
    assert exchanges.publish("header", "k") .queues == exchanges.publish("header", "other", {"i": 1}).queues
    assert exchanges.publish("header", "k", {"h": "a"}).queues == exchanges.publish("header", "l", {"h": b"a"}).queues


def test_weights_are_shares() -> None:
    exchanges = Exchanges("/", {"small", "large"})
    exchanges.declare("ch", "x-consistent-hash")
    exchanges.bind("small", "ch", "+1")
    exchanges.bind("large", "ch", "3")
    found = [exchanges.publish("ch", str(at)).queues for at in range(4_000)]
    assert 850 < found.count(("small",)) < 1_150
    exchanges.unbind("large", "ch", "3")
    assert {exchanges.publish("ch", str(at)).queues for at in range(100)} == {("small",)}
    exchanges.unbind("small", "ch", "+1")
    assert exchanges.publish("ch", "1").unroutable


def test_headers_are_read_only_where_somebody_asks_for_them(exchanges: Exchanges) -> None:
    def unread() -> dict[str, Any]:
        raise AssertionError("nobody asks for headers")

    assert exchanges.publish("x", "k", unread).queues == ("q",)
    exchanges.bind("r", "amq.headers", "", {"a": None})
    exchanges.bind_exchange("amq.headers", "x", "h")
    assert exchanges.publish("x", "k", unread).queues == ("q",)
    assert exchanges.publish("x", "h", lambda: {"a": None}).queues == ("r",)
    assert exchanges.publish("x", "h", lambda: None).unroutable


def test_a_message_with_many_headers_is_not_walked_through_for_each_tree() -> None:
    """What is compared is counted: the conditions of a message are hashed once for each time they are looked up."""
    lookups = 0

    class Counted(str):
        __slots__ = ()

        def __hash__(self) -> int:
            nonlocal lookups
            lookups += 1
            return super().__hash__()

    side = 50  # so each condition is one of 50 bindings
    exchanges = Exchanges("/", {"q"})
    for at in range(side * side):
        exchanges.bind("q", "amq.headers", "", {f"a{at % side}": 1, f"b{at // side}": 1})
    headers: dict[str, Any] = {Counted(f"a{at}"): 1 for at in range(side)}
    headers.update({Counted(f"other{at}"): 1 for at in range(2_000)})
    lookups = 0
    assert exchanges.publish("amq.headers", "", headers).unroutable
    assert lookups < 10 * len(headers)


def test_the_bindings_of_a_queue(exchanges: Exchanges) -> None:
    exchanges.bind("q", "amq.headers", "", {"a": 1, "x-match": "any"})
    assert {each.source for each in exchanges.bindings_to("q")} == {"x", "amq.headers"}
    assert [dict(each.arguments) for each in exchanges.bindings("amq.headers")] == [{"a": 1, "x-match": "any"}]
    assert list(exchanges.bindings_to("r")) == list(exchanges.bindings("no")) == []


@pytest.mark.parametrize("exchange", ["amq.topic", "amq.direct", "amq.fanout"])
def test_bindings_that_differ_in_arguments_go_one_by_one(exchanges: Exchanges, exchange: str) -> None:
    for at in range(4):
        exchanges.bind("q", exchange, "k", {"n": at})
    for at in range(4):
        assert exchanges.publish(exchange, "k").queues == ("q",)
        exchanges.unbind("q", exchange, "k", {"n": at})
    assert exchanges.publish(exchange, "k").unroutable


def test_an_index_of_topics_ends_with_its_last_binding(exchanges: Exchanges) -> None:
    exchanges.declare("t", "topic")
    t = exchanges.find("t")
    assert t is not None
    assert isinstance(t.table, TopicTable)
    exchanges.bind("q", "t", "a.#")
    assert t.table.nbytes > 1_000
    exchanges.unbind("q", "t", "a.#")
    assert t.table.nbytes == 0
