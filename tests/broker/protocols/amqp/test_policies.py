"""Policies: what is refused, which one applies, how it meets arguments, and queues that follow while they live.

What is expected here was seen at RabbitMQ 3.10.8 (`rabbitmqctl set_policy`, `list_queues name policy`).
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.core.errors import FanlightError
from fanlight_broker.core.queue_views import queue_view
from fanlight_broker.core.work_queue import Overflow
from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.patterns import WrongPattern, compiled
from fanlight_broker.protocols.amqp.policies import NamedPolicy, Policies, merged
from fanlight_broker.protocols.amqp.vhost import Vhost
from tests.broker.protocols.amqp.stored import StoredAmqp
from tests.broker.protocols.amqp.test_restart import bodies
from tests.broker.protocols.amqp.world import World
from tests.broker.storage.stored_world import OPENED


@pytest.fixture(autouse=True)
def _logs_closed() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().log.close()


def policy(name: str = "p", pattern: str = ".*", apply_to: str = "all", priority: int = 0, *, operator: bool = False,
           **definition: Any) -> NamedPolicy:
    named = {key.replace("_", "-"): value for key, value in definition.items()}
    return NamedPolicy(name, pattern, apply_to, priority, named, operator)


def put(world: World, *policies: NamedPolicy) -> Vhost:
    vhost = world.vhosts.of(world.broker)
    for each in policies:
        vhost.policies.put(each)
    follow(world, vhost)
    return vhost


def follow(world: World, vhost: Vhost) -> None:
    for _ in vhost.policies.follow(vhost.exchanges):
        pass
    world.turn()


@pytest.mark.parametrize(("given", "text"), [
    (policy(nonsense=5), "'nonsense' are not recognised policy settings"),
    (policy(max_priority=4), "'max-priority' are not recognised policy settings"),
    (policy(pattern="^(", max_length=5), "pattern should be regular expression but is invalid: missing )"),
    (policy(max_length=-5), "-5 is not a valid maximum length"),
    (policy(max_length=True), "True is not a valid maximum length"),
    (policy(max_length=2**63), "is not a valid maximum length"),
    (policy(message_ttl="5"), "'5' is not a valid message TTL"), (policy(expires=0), "0 is not a valid queue expiry"),
    (policy(delivery_limit=-1), "-1 is not a valid delivery limit"), (policy(), "no policy provided"),
    (policy(overflow="odd"), "'odd' is not a valid overflow mode"),
    (policy(apply_to="some", max_length=1), "apply-to 'some' unrecognised"),
    (policy(dead_letter_exchange="e" * 256), "is not a valid dead letter exchange name"),
    (policy(operator=True, dead_letter_exchange="x"), "'dead-letter-exchange' are not recognised policy settings"),
    (policy(name="", max_length=1), "the name of a policy has 1 to 255 bytes"),
    (policy(pattern="(a*)*", max_length=1), "may not be repeated"),
])  # fmt: skip
def test_what_is_refused(given: NamedPolicy, text: str) -> None:
    with pytest.raises(FanlightError) as raised:
        Policies().put(given)
    assert text in raised.value.text


def test_policies_of_a_vhost_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fanlight_broker.protocols.amqp.vhost_policies.POLICIES_MAX", 2)
    vhost = put(world, policy("a", max_length=1), policy("b", max_length=1))
    vhost.policies.put(policy("a", max_length=2))  # in place of the first
    for each in (policy("c", max_length=1), policy("a", ha_params=["x" * 4_096])):
        with pytest.raises(FanlightError):
            vhost.policies.put(each)
    assert len(vhost.policies.found) == 2


@pytest.mark.parametrize("pattern", [
    "(a*)*b", "(a|a)*b", "(a?)+b", "(a|a)" * 40 + "x", "a?" * 30, ".*a.*b.*", "a{,300}" * 3, r"(a)\1", "a" * 1_025,
    "((a+)b)+", "(?:a|b){2,9}", "(?P<n>a)(?P=n)", "(a)(?(1)b|c)",
])  # fmt: skip
def test_a_pattern_that_may_take_too_long_is_refused(pattern: str) -> None:
    with pytest.raises(WrongPattern):
        compiled(pattern)


@pytest.mark.parametrize("pattern", [
    ".*", "", "^orders", "^(a|b)\\..*", "^(prod|test)-.*-(a|b|c)-.*$", "^.*a.*b.*c", "(?i)^foo", "^(?!amq\\.|x).+$",
    "(ab){2}", "[](]+$", "[[a]", "x{2,3}", "a|b|c",
])  # fmt: skip
def test_other_patterns_are_regular_expressions(pattern: str) -> None:
    assert compiled(pattern).pattern == pattern


def test_the_policy_of_the_highest_priority_that_applies() -> None:
    found = Policies()
    for each in [
        policy("low", "^q", priority=-1, max_length=1), policy("high", "^q", priority=5, max_length=2),
        policy("end", "x$", priority=9, max_length=3), policy("e", priority=99, apply_to="exchanges", max_length=4),
        policy("limit", "^d", priority=3, delivery_limit=3, max_length=9), policy("ha", "^h", ha_mode="all"),
        policy("only", "^t", apply_to="quorum_queues", max_length=5), policy("top", "^", operator=True, max_length=6),
        policy("old", "^s", max_age="1h"),
    ]:
        found.put(each)

    def of(name: str, kind: str = "classic") -> tuple[str | None, str | None]:
        both = found.of_queue(name, kind)
        assert both is not None
        return both.policy and both.policy.name, both.operator and both.operator.name

    assert of("q1") == ("high", "top")
    assert of("q1x") == ("end", "top")
    assert of("other") == (None, "top")
    assert (of("d"), of("d", "quorum")) == ((None, "top"), ("limit", "top"))  # a classic queue has no such limit
    assert (of("h"), of("h", "quorum")) == (("ha", "top"), (None, "top"))
    assert (of("t"), of("t", "quorum"), of("s")) == ((None, "top"), ("only", "top"), (None, "top"))
    exchange = found.of_exchange("q1x")
    assert exchange is not None
    assert exchange.name == "e"
    found.remove("end")
    assert of("q1x") == ("high", "top")


NUMBERS = ("message-ttl", "expires", "max-length", "max-length-bytes", "delivery-limit")
values = st.dictionaries(st.sampled_from((*NUMBERS, "overflow", "dead-letter-exchange")), st.integers(1, 9), max_size=5)


@settings(max_examples=100, deadline=None)
@given(values, values, values)
def test_of_two_limits_the_lower_one_is_in_force(
    arguments: dict[str, int], own: dict[str, int], operators: dict[str, int]
) -> None:
    """Values of other keys are numbers here, too: only who wins is asked."""
    found = Policies()
    overflows = {1: "drop-head", 2: "reject-publish"}

    def of(given: dict[str, int], *keys: str) -> dict[str, Any]:
        return {key: value if key in NUMBERS else overflows[value % 2 + 1] if key == "overflow" else str(value)
                for key, value in given.items() if not keys or key in keys}  # fmt: skip

    own_definition, operators_definition = of(own), of(operators, *NUMBERS)
    if own_definition:
        found.put(NamedPolicy("p", "", "all", 0, own_definition))
    if operators_definition:
        found.put(NamedPolicy("o", "", "all", 0, operators_definition, operator=True))
    given_arguments = {f"x-{key}": value for key, value in of(arguments).items()}
    made = merged(given_arguments, found.of_queue("q", "quorum"))
    for key in (*NUMBERS, "overflow", "dead-letter-exchange"):
        asked = [each[key] for each in (of(arguments), own_definition, operators_definition) if key in each]
        expected = None if not asked else min(asked) if key in NUMBERS else asked[0]
        assert made.get(f"x-{key}") == expected, key


def test_a_limit_of_no_limit_gives_way() -> None:
    found = Policies()
    found.put(policy(delivery_limit=3))
    assert merged({"x-delivery-limit": -1}, found.of_queue("q", "quorum"))["x-delivery-limit"] == 3


def test_a_queue_gets_its_policy_when_it_is_declared_and_follows(world: World) -> None:
    vhost = put(world, policy(pattern="^q", max_length=2, overflow="reject-publish"))
    peer = world.channel()
    peer.declare("q", arguments={"x-max-length": 3, "x-unheard-of": 1})
    peer.declare("other")
    work = world.broker.queues.find("q")
    view = queue_view(work, world.now)
    assert (view["policy"], view["messages_max"], view["overflow"]) == ("p", 2, "refuse_publisher")
    assert view["effective_arguments"] == {"x-max-length": 2, "x-overflow": "reject-publish"}
    assert view["arguments"] == {"x-max-length": 3, "x-unheard-of": 1}
    assert queue_view(world.broker.queues.find("other"), world.now)["policy"] is None
    peer.ask(entity.ConfirmSelect())
    for body in (b"1", b"2", b"3"):
        peer.publish("q", body)
    assert [type(each.method) for each in peer.got()][-1] is basic.BasicNack
    peer.declare("q", arguments={"x-max-length": 3, "x-unheard-of": 1})  # it is equal to its declaration
    vhost.policies.remove("p", operator=False)
    follow(world, vhost)
    assert (work.options, work.effective, work.policy) == (work.declared, None, "")
    for body in (b"3", b"4"):
        peer.publish("q", body)
    peer.got()
    assert bodies(peer, "q")[-3:] == [b"2", b"3", b"4"]  # its argument: the oldest is dropped


def test_what_is_too_much_leaves_the_queue_and_is_a_dead_letter(world: World) -> None:
    peer = world.channel()
    peer.declare("q")
    peer.declare("dead")
    for number in range(700):
        peer.publish("q", b"%d" % number)
    put(world, policy(pattern="^q$", max_length=3, dead_letter_exchange="", dead_letter_routing_key="dead"))
    world.pass_time(1)
    world.turn()
    assert (peer.counts("q")[0], peer.counts("dead")[0]) == (3, 697)
    assert bodies(peer, "q") == [b"697", b"698", b"699"]
    assert bodies(peer, "dead")[:2] == [b"0", b"1"]


def test_a_time_to_live_is_about_messages_that_wait_already(world: World) -> None:
    peer = world.channel()
    peer.declare("q")
    peer.publish("q", b"old")
    world.pass_time(5)
    put(world, policy(message_ttl=4_000))
    peer.publish("q", b"new")
    assert bodies(peer, "q") == [b"new"]


def test_a_queue_that_nobody_uses_expires_its_whole_time_after_the_policy(world: World) -> None:
    peer = world.channel()
    peer.declare("q", durable=True)
    world.pass_time(100)
    put(world, policy(expires=50_000))
    world.pass_time(40)
    assert world.broker.queues.get("q") is not None
    world.pass_time(11)
    assert world.broker.queues.get("q") is None


def test_messages_that_wait_to_be_buried_are_dropped_with_the_policy(world: World) -> None:
    vhost = put(world, policy(max_length=1, dead_letter_exchange="nowhere"))
    peer = world.channel()
    peer.declare("q")
    for _ in range(5):
        peer.publish("q", b"x")
    vhost.policies.remove("p", operator=False)
    follow(world, vhost)
    assert (peer.counts()[0], world.broker.queues.find("q").inside.buried) == (1, 0)


def test_an_alternate_exchange_by_policy(world: World) -> None:
    peer = world.channel()
    peer.declare("spare")
    for name, kind in (("rest", "fanout"), ("x", "direct"), ("y", "direct")):
        arguments = {"alternate-exchange": "nowhere"} if name == "y" else {}
        peer.ask(entity.ExchangeDeclare(exchange=name, type=kind, arguments=arguments))
    peer.ask(entity.QueueBind(queue="spare", exchange="rest"))
    peer.publish("k", b"lost", "x")
    vhost = put(world, policy(pattern="^[xy]", apply_to="exchanges", alternate_exchange="rest"))
    peer.publish("k", b"kept", "x")
    peer.publish("k", b"lost", "y")  # an argument wins
    peer.ask(entity.ExchangeDeclare(exchange="x2", type="direct"))
    peer.publish("k", b"new", "x2")
    vhost.policies.remove("p", operator=False)
    follow(world, vhost)
    peer.publish("k", b"lost", "x")
    assert bodies(peer, "spare") == [b"kept", b"new"]
    assert not vhost.exchanges._alternates.get("rest")  # nothing refers to it any more


def test_queues_of_other_protocols_are_left_as_they_are(world: World) -> None:
    put(world, policy(max_length=1))
    peer = world.channel()
    peer.declare("q")
    work = world.broker.queues.find("q")
    work.addressed = False
    put(world, policy(max_length=2))
    assert work.options.messages_max == 1


@pytest.mark.parametrize("after_round", [False, True])
def test_after_a_restart(tmp_path: Path, after_round: bool) -> None:
    world = StoredAmqp(tmp_path)
    put(
        world, policy("p", "^q", "queues", 7, max_length=2, message_ttl=90_000), policy("gone", max_length=1),
        policy("o", operator=True, max_length=9), policy("a", "^x$", alternate_exchange="rest"),
    )  # fmt: skip
    world.root.policies.remove("gone", operator=False)
    follow(world, world.root)
    peer = world.channel()
    peer.declare("q", durable=True, arguments={"x-max-length": 5})
    peer.declare("other", durable=True)
    peer.ask(entity.ExchangeDeclare(exchange="x", type="direct", durable=True))
    for number in range(4):
        peer.publish("q", b"%d" % number, delivery_mode=2)
    before = sorted(world.root.policies.found)
    world.turn()
    world.kill(after_round=after_round)
    assert sorted(world.root.policies.found) == before
    work = world.broker.queues.find("q")
    assert (work.policy, work.options.messages_max, work.declared.messages_max) == ("p", 2, 5)
    assert world.broker.queues.find("other").options.messages_max == 9
    exchange = world.root.exchanges.find("x")
    assert exchange is not None
    assert exchange.alternate == "rest"
    assert bodies(world.channel(), "q") == [b"2", b"3"]
    world.root.policies.remove("p", operator=False)
    world.root.policies.remove("o", operator=True)
    follow(world, world.root)
    assert work.options == work.declared
    world.kill(after_round=after_round)
    work = world.broker.queues.find("q")
    assert (work.options.messages_max, work.options.overflow, work.policy) == (5, Overflow.DROP_OLDEST, "")
    assert [each.name for each in world.root.policies.found] == ["a"]


def test_dead_letters_of_what_is_on_the_disk(tmp_path: Path) -> None:
    """A policy comes to a durable queue whose messages are not in memory: they are read, to be buried."""
    world = StoredAmqp(tmp_path)
    peer = world.channel()
    peer.declare("q", durable=True)
    peer.declare("dead", durable=True)
    for number in range(40):
        peer.publish("q", b"%d" % number, delivery_mode=2)
    world.turn()
    backlog = world.broker.queues.find("q").inside.queue.backlog
    assert backlog is not None
    assert backlog.length > 0
    put(world, policy(pattern="^q$", max_length=3, dead_letter_exchange="", dead_letter_routing_key="dead"))
    peer.publish("q", b"40", delivery_mode=2)
    for _ in range(6):
        world.pass_time(1)
    assert bodies(peer, "q") == [b"38", b"39", b"40"]
    assert bodies(peer, "dead") == [b"%d" % number for number in range(38)]


def test_names_that_match_are_those_of_re_search() -> None:
    names = ["orders", "orders.new", "my-orders", "", "Orders", "o\nrders"]
    for pattern in ("^orders", "orders$", "(?i)^ORD", "", "^$", r"\.", "^o.r"):
        found = Policies()
        found.put(policy(pattern=pattern, max_length=1))
        for name in names:
            assert (found.of_queue(name, "classic") is not None) == (re.search(pattern, name) is not None)


def test_a_vhost_with_nothing_but_a_policy_is_there_after_a_restart(tmp_path: Path) -> None:
    world = StoredAmqp(tmp_path, names={"shop"})
    peer = world.channel(vhost="shop")
    peer.protocol.vhost.policies.put(policy(max_length=1))
    peer.vanish()
    world.turn()
    world.vhosts.forget_idle()  # it is not idle
    world.kill()
    assert [each.name for each in world.vhosts.present(world.broker)] == ["/", "shop"]
    world.channel(vhost="shop").declare("q")
    assert world.broker.named("shop").queues.find("q").policy == "p"
