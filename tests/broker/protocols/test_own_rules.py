"""Rules that clients bring along, over all protocols: without a file of permissions, and beside one."""

from typing import Any

import pytest

from fanlight_broker.core.limits import Limits
from fanlight_broker.protocols.mqtt.packets import WillFields
from fanlight_permissions.own_rules import own_rules
from fanlight_permissions.permission_file import compile_permissions, parse_permissions
from fanlight_permissions.table import PermissionTable
from tests.broker.protocols.permitted import DIALECTS, World

NOT_PERMITTED = {"native": "not_permitted", "mqtt3": 0x80, "mqtt5": 0x87}
OWN = own_rules([
    {"effect": "deny", "subscribe": "site/1/secret", "publish": "site/1/fixed"},
    {"publish": "site/1/#", "subscribe": ["site/1/+", "site/%u/cmd"]},
])  # fmt: skip
FILE = """
[[deny]]
name = "private"
everything = "site/1/private"

[[allow]]
group = "staff"
everything = "site/2/#"
"""
dialects = pytest.mark.parametrize("dialect", DIALECTS)


def table(text: str) -> PermissionTable:
    return compile_permissions(parse_permissions(text, "p", Limits()), "p", Limits())


@pytest.fixture
def world() -> World:
    made = World()
    made.own = {"a": OWN, "b": OWN}
    return made


@dialects
@pytest.mark.parametrize("file", ["", FILE, '[[allow]]\nuser = "root"\neverything = "#"'])
def test_a_client_publishes_where_its_own_rules_allow_it(world: World, dialect: str, file: str) -> None:
    reader = world.client("native", "root")
    assert reader.subscribe("#")
    if file:
        world.broker.use_permissions(table(f'{file}\n[[allow]]\nuser = "root"\nsubscribe = "#"'))
        world.turn()
    client, other = world.client(dialect, "a"), world.client(dialect, "b")
    for _ in range(3):  # the first asks, the others find the answer in the route
        for topic in ("site/1/t", "site/1/fixed", "site/2/t", "site/1/private"):
            client.publish(topic)
            other.publish(topic)
    allowed = ["site/1/t"] if "private" in file else ["site/1/t", "site/1/private"]
    assert reader.topics() == [topic for _ in range(3) for topic in allowed for _ in range(2)]
    assert world.denied("publish") == 3 * 2 * (4 - len(allowed))


@dialects
def test_a_client_without_rules_of_its_own_may_do_everything_where_there_is_no_file(world: World, dialect: str) -> None:
    client = world.client(dialect, "c")
    assert client.subscribe("#")
    client.publish("site/2/t")
    assert client.topics() == ["site/2/t"]


@dialects
def test_subscriptions_are_allowed_in_part_and_refused(world: World, dialect: str) -> None:
    client, publisher = world.client(dialect, "a"), world.client("native", "p")
    assert client.subscribe("site/1/+")
    assert client.subscribe("site/a/cmd")
    for filter in ("site/b/cmd", "#", "site/#", "site/1/secret", "$SYS/#"):
        assert not client.subscribe(filter)
        assert client.refusal == NOT_PERMITTED[dialect]
    for topic in ("site/1/t", "site/1/secret", "site/a/cmd", "site/2/t", "site/1/t"):
        publisher.publish(topic)
    assert client.topics() == ["site/1/t", "site/a/cmd", "site/1/t"]


@dialects
def test_what_the_file_denies_and_what_it_allows_counts_for_it_too(world: World, dialect: str) -> None:
    world.groups["a"] = frozenset({"staff"})
    client = world.client(dialect, "a")
    publisher = world.client("native", "p")
    assert client.subscribe("site/1/+")
    world.broker.use_permissions(table(f'{FILE}\n[[allow]]\nuser = "p"\npublish = "#"'))
    world.turn()
    assert client.subscribe("site/2/+")  # by the file
    assert not client.subscribe("site/1/private")
    for topic in ("site/1/t", "site/1/private", "site/1/secret", "site/2/x"):
        publisher.publish(topic)
    assert client.topics() == ["site/1/t", "site/2/x"]


def test_new_permissions_of_the_file_end_what_own_rules_have_allowed(world: World) -> None:
    client = world.client("mqtt5", "a")
    assert client.subscribe("site/1/+")
    world.broker.use_permissions(table('[[deny]]\nsubscribe = "site/1/#"'))
    world.turn()
    client.got()
    assert client.lost == 0x87
    other = world.client("mqtt5", "b")
    assert not other.subscribe("site/1/+")


@pytest.mark.parametrize("dialect", ["mqtt3", "mqtt5"])
def test_a_will_and_a_retained_message_are_asked_for(world: World, dialect: str) -> None:
    world.own["a"] = own_rules([{"effect": "deny", "retain": "#", "will": "t/2"}, {"publish": "t/#"}])
    refused = world.stranger(dialect, "a", will=WillFields("t/2", b""))
    assert refused.refusal == 0x87  # in MQTT 3.1.1 return code 5
    assert world.client(dialect, "a", will=WillFields("t/1", b"")).let_in
    assert world.stranger(dialect, "a", will=WillFields("t/1", b"", retain=True)).let_in is False


@dialects
def test_own_rules_can_refuse_to_connect(world: World, dialect: str) -> None:
    world.own["a"] = own_rules([{"effect": "deny", "connect": True}])
    assert world.stranger(dialect, "a").refusal == {**NOT_PERMITTED, "mqtt3": 0x87}[dialect]
    assert world.client(dialect, "c").let_in


@pytest.mark.parametrize("file", [None, '[[allow]]\nuser = "c"\npublish = "#"'])
def test_a_session_has_the_rules_of_who_came_last(world: World, file: str | None) -> None:
    if file is not None:
        world.broker.use_permissions(table(file))
    publisher = world.client("mqtt5", "c")
    first: Any = world.client("mqtt5", "a", clean=False)
    assert first.subscribe("site/1/+", qos=1)
    world.own["a"] = own_rules([{"subscribe": "site/2/+"}])
    again = world.client("mqtt5", "a", clean=False)
    world.turn()
    again.got()
    publisher.publish("site/1/t", qos=1)
    assert again.topics() == []
    session = world.broker.sessions.get("a")
    assert session is not None
    assert len(session.subscriptions) == 0
    if file is None:  # and one without rules is not bound by those before
        del world.own["a"]
        last = world.client("mqtt5", "a", clean=False)
        world.turn()
        assert last.subscribe("#")


def test_a_session_of_one_without_rules_is_bound_by_those_of_who_takes_it_over(world: World) -> None:
    own = world.own.pop("a")
    first = world.client("mqtt5", "a", clean=False)
    assert first.subscribe("#", qos=1)
    world.own["a"] = own
    again = world.client("mqtt5", "a", clean=False)
    world.turn()
    world.client("native", "p").publish("site/2/t")
    assert again.topics() == []
    session = world.broker.sessions.get("a")
    assert session is not None
    assert len(session.subscriptions) == 0


def test_clients_with_equal_rules_are_of_one_class(world: World) -> None:
    world.own = {name: OWN.replace("%u", "u") for name in ("a", "b")}
    world.own["c"] = own_rules([{"publish": "t"}])
    clients = [world.client("mqtt5", name) for name in "abc"]
    numbers = [client.peer.protocol.client.subscriber.badge.number for client in clients]
    assert numbers[0] == numbers[1] != numbers[2]
    assert world.client("mqtt5", "d").peer.protocol.client.subscriber.badge is None


def test_a_session_is_charged_for_its_rules(world: World) -> None:
    used = []
    for name in ("x", "a"):
        before = world.broker.ledger.sessions.used
        world.client("mqtt5", name)
        used.append(world.broker.ledger.sessions.used - before)
    assert used[1] - used[0] == len(OWN)
