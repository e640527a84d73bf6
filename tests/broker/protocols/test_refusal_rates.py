"""Clients whose requests are refused too often are not read from for a while, in each protocol; nobody else is."""

from typing import Any

import pytest

from fanlight_broker.core import paces
from fanlight_broker.core.principal_rates import PRINCIPALS_MAX, REFUSALS, PrincipalRates
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.methods import method_frame
from tests.broker.core.reference import Reference, allow, deny
from tests.broker.protocols.amqp import world as amqp
from tests.broker.protocols.native import world as native
from tests.broker.protocols.permitted import DIALECTS, World
from tests.broker.protocols.sinks import FREE, ByAddress

RULES = (deny("subscribe", "secret/#"), allow("all"))


def world_of(**limits: Any) -> World:
    world = World(refusals_per_second_max=10, **limits)
    world.broker.use_permissions(Reference(*RULES))
    return world


def ask(client: Any, dialect: str, times: int, topic: str = "secret/a") -> None:
    """SUBSCRIBE, so often in one piece."""
    if dialect == "native":
        client.peer.send(b"".join(native.frame(6, n, n, topic, {"syntax": 1}) for n in range(1, times + 1)))
    else:
        properties = b"\0" if dialect == "mqtt5" else b""
        body = b"\0\1" + properties + len(topic).to_bytes(2, "big") + topic.encode() + b"\0"
        client.peer.send((bytes((0x82, len(body))) + body) * times)


def answers(client: Any, dialect: str) -> int:
    return len(client.peer.frames() if dialect == "native" else client.peer.packets())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_two_seconds_of_refusals_are_answered_at_once_and_the_others_in_their_time(dialect: str) -> None:
    world = world_of()
    client, other = world.client(dialect, "greedy"), world.client(dialect, "other")
    ask(client, dialect, 40)
    assert (answers(client, dialect), client.peer.held_back) == (20, True)
    assert other.subscribe("open/a")
    for _ in range(10):
        world.pass_time(0.2)
        assert answers(client, dialect) == 2
    assert world.broker.paces.refusals.held
    world.pass_time(5.0)
    assert (client.peer.held_back, len(world.broker.paces.refusals)) == (False, 0)  # all is paid, and forgotten


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_granted_does_not_wait(dialect: str) -> None:
    world = world_of()
    client = world.client(dialect, "busy")
    ask(client, dialect, 100, "open/a")
    assert (answers(client, dialect), client.peer.held_back) == (100, False)


@pytest.mark.parametrize("dialect", DIALECTS[1:])
def test_each_filter_of_one_packet_is_a_refusal(dialect: str) -> None:
    world = world_of()
    client = world.client(dialect, "greedy")
    filters = b"".join(b"\0\x08secret/" + b"%c" % letter + b"\0" for letter in b"abcdefghij" * 10)
    body = b"\0\1" + (b"\0" if dialect == "mqtt5" else b"") + filters
    client.peer.send(bytes((0x82, len(body) & 0x7F | 0x80, len(body) >> 7)) + body + b"\xc0\0")
    assert answers(client, dialect) == 1  # PINGRESP waits
    world.pass_time(7.9)
    assert answers(client, dialect) == 0
    world.pass_time(0.3)
    assert answers(client, dialect) == 1


def test_connections_of_a_user_pay_together_and_one_that_is_refused_nothing_goes_on() -> None:
    world = world_of()
    client, second = world.client("native", "greedy"), world.client("mqtt5", "greedy")
    ask(client, "native", 40)
    assert second.subscribe("open/a")
    assert not second.subscribe("secret/a")
    assert second.peer.held_back
    assert not world.client("mqtt5", "other").subscribe("secret/a")


def test_a_setting_lets_everybody_ask_as_often_as_they_like() -> None:
    world = World(refusals_per_second_max=0)
    world.broker.use_permissions(Reference(*RULES))
    client = world.client("native", "greedy")
    ask(client, "native", 400)
    assert (answers(client, "native"), client.peer.held_back) == (400, False)


@pytest.mark.parametrize("dialect", ["native", "mqtt5"])
def test_what_may_be_accepted_later_is_no_refusal(dialect: str) -> None:
    world = world_of()
    world.broker.clients.quotas = ByAddress(FREE, publish_messages=2, over_rate="refuse")
    publisher = world.client(dialect, "publisher")
    for _ in range(50):
        publisher.publish("open/a", qos=1)
    assert publisher.refusal in ("limit_exceeded", 0x97)
    assert not publisher.peer.held_back


@pytest.mark.parametrize("dialect", DIALECTS)
def test_of_those_who_leave_while_they_wait_some_keep_their_place_and_the_others_end(
    dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paces, "ABSENT_MAX", 2)
    world = world_of()
    clients = [world.client(dialect, f"greedy-{n}") for n in range(5)]
    for client in clients:
        ask(client, dialect, 40)
    assert all(each.peer.held_back for each in clients)
    for client in clients[1:]:
        client.peer.protocol.peer_gone()
    world.turn()
    assert [each.peer.gone for each in clients] == [False, False, False, True, True]
    assert (world.broker.paces.ended, world.broker.flow.publishers_held) == (2, 3)
    world.pass_time(60.0)  # what the others have sent is processed
    assert [answers(each, dialect) for each in clients] == [40, 40, 40, 20, 20]
    assert not world.broker.paces.absent
    clients[0].peer.vanish()
    assert world.broker.paces.ended == 2


@pytest.mark.parametrize("dialect", DIALECTS)
def test_one_that_would_wait_behind_too_many_is_closed_with_an_error(
    dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paces, "WAITING_MAX", 2)
    world = world_of()
    clients = [world.client(dialect, "greedy") for _ in range(4 if dialect == "native" else 1)]
    others = [world.client("native", "greedy") for _ in range(4 - len(clients))]
    for client in (*others, *clients):
        ask(client, "native" if client in others else dialect, 40)
    waiting = [each.peer.held_back for each in (*others, *clients)]
    assert waiting == [True, True, False, False]
    assert [each.peer.gone for each in (*others, *clients)] == [False, False, True, True]
    assert world.broker.paces.ended == 2
    other = world.client(dialect, "other")
    ask(other, dialect, 40)
    assert other.peer.held_back  # at a gate of its own
    for _ in range(20):
        world.pass_time(1.0)
    assert not world.broker.flow.publishers_held


def test_a_client_that_leaves_while_it_waits_for_something_else_is_let_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paces, "ABSENT_MAX", 0)
    world = world_of()
    world.broker.clients.quotas = ByAddress(FREE, publish_messages=2)
    publisher = world.client("native", "publisher")
    for _ in range(50):
        publisher.publish("open/a")
    assert publisher.peer.held_back
    publisher.peer.protocol.peer_gone()
    world.turn()
    assert not publisher.peer.gone


def test_channels_of_amqp_that_are_closed_for_an_error_are_refusals() -> None:
    world = amqp.World(refusals_per_second_max=10)
    peer = world.connect()
    asked = b"".join(
        method_frame(n, first.ChannelOpen()) + method_frame(n, entity.QueueDeclare(queue="none", passive=True))
        for n in range(1, 41)
    )
    peer.send(asked)
    closed = [each for each in peer.got() if isinstance(each.method, first.ChannelClose)]
    assert (len(closed), peer.held_back) == (20, True)
    world.pass_time(0.5)
    assert len([each for each in peer.got() if isinstance(each.method, first.ChannelClose)]) == 5


def test_one_packet_with_any_number_of_filters_counts_for_30_seconds_at_most() -> None:
    refusals = PrincipalRates(REFUSALS, 10)
    bucket = refusals.note("greedy", 100_000, 0.0)
    assert bucket is not None
    assert bucket.seconds(0.0) == pytest.approx(30 - 2 + 0.1)


def test_the_one_that_is_paid_first_is_forgotten() -> None:
    refusals = PrincipalRates(REFUSALS, 10)
    refusals.note("first", 5, 0.0)
    for number in range(PRINCIPALS_MAX):
        refusals.note(f"u{number}", 10, 0.0)
    assert len(refusals) == PRINCIPALS_MAX
    assert refusals.note("first", 20, 0.0) is not None  # as if it had not been refused anything before
    refusals.sweep(10.0)
    assert len(refusals) == 0
