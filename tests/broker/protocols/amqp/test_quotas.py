"""Quotas of AMQP clients: rates with connection.blocked, and what is refused; the others are in ../test_paces.py."""

from typing import Any

import pytest

from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from tests.broker.protocols.amqp.world import PLAIN, Peer, World
from tests.broker.protocols.sinks import PACED, ByAddress

BLOCKED, UNBLOCKED, OK = "ConnectionBlocked", "ConnectionUnblocked", "TxCommitOk"


class Ends:
    """`paced` has a quota, and `boss` has none; there is a queue `q`."""

    def __init__(self, start_ok: first.ConnectionStartOk = PLAIN, **quota: Any) -> None:
        self.world = World()
        self.world.broker.clients.quotas = ByAddress(PACED, **quota)
        self.boss = self.world.channel()
        self.boss.declare("q")
        self.paced = self.world.open()
        self.paced.address = PACED
        self.paced.shake_hands(start_ok)
        self.paced.ask(first.ChannelOpen())

    @property
    def waiting(self) -> int:
        return self.boss.counts("q")[0]

    def publish(self, count: int, *, exchange: str = "", **properties: Any) -> None:
        for _ in range(count):
            self.paced.publish("q", b"x", exchange, **properties)


def methods(peer: Peer) -> list[Any]:
    return [each.method for each in peer.got()]


def names(peer: Peer) -> list[str]:
    """Of methods; those without arguments are equal to each other."""
    return [type(each).__name__ for each in methods(peer)]


def test_who_publishes_too_fast_hears_that_it_is_blocked_and_when_that_is_over() -> None:
    ends = Ends(publish_messages=2)
    ends.publish(3)
    assert methods(ends.paced) == [first.ConnectionBlocked("published faster than its quota allows")]
    assert ends.waiting == 2
    ends.world.pass_time(0.5)
    assert (names(ends.paced), ends.waiting) == ([UNBLOCKED, BLOCKED], 3)
    ends.world.pass_time(0.5)
    assert (names(ends.paced), ends.waiting) == ([UNBLOCKED], 3)


def test_who_has_not_announced_that_it_understands_it_is_held_back_all_the_same() -> None:
    ends = Ends(PLAIN._replace(client_properties={}), publish_messages=2)
    ends.publish(3)
    assert (names(ends.paced), ends.waiting, ends.paced.held_back) == ([], 2, True)
    ends.world.pass_time(0.5)
    assert ends.waiting == 3


@pytest.mark.parametrize("exchange", ["", "amq.topic"])
def test_what_is_refused_for_its_rate_is_not_confirmed(exchange: str) -> None:
    ends = Ends(publish_messages=2, over_rate="refuse")
    ends.paced.ask(entity.ConfirmSelect())
    ends.publish(4, exchange=exchange)
    assert names(ends.paced) == ["BasicAck"] * 2 + ["BasicNack"] * 2
    assert ends.waiting == (0 if exchange else 2)
    assert not ends.paced.held_back


def test_a_commit_is_paced_like_the_messages_that_are_in_it() -> None:
    ends = Ends(publish_messages=2)
    ends.paced.ask(entity.TxSelect())
    ends.publish(5)
    ends.paced.say(entity.TxCommit())
    assert (names(ends.paced), ends.waiting) == ([BLOCKED], 2)
    for done in (3, 4, 5):
        assert OK not in names(ends.paced)
        ends.world.pass_time(0.5)
        assert ends.waiting == done
    assert names(ends.paced) == [UNBLOCKED, OK, BLOCKED]  # behind the last one it owes


def test_a_delayed_message_counts_when_it_is_published() -> None:
    ends = Ends(publish_messages=2)
    arguments = {"x-delayed-type": "fanout"}
    assert ends.boss.ask(entity.ExchangeDeclare(exchange="late", type="x-delayed-message", arguments=arguments)) \
        == entity.ExchangeDeclareOk()
    ends.boss.ask(entity.QueueBind(queue="q", exchange="late"))
    ends.publish(4, exchange="late", headers={"x-delay": 1_000})
    ends.paced.vanish()
    for _ in range(3):
        ends.world.pass_time(1.0)
    assert ends.waiting == 2


def test_a_message_above_its_quota_closes_the_channel() -> None:
    ends = Ends(message_bytes=100)
    ends.paced.publish("q", bytes(100))
    ends.paced.publish("q", bytes(101))
    assert ends.paced.error() == (False, 406, (60, 40))
    assert ends.waiting == 1


def test_a_queue_above_the_quota_is_refused() -> None:
    ends = Ends(queues=1)
    ends.paced.declare("a")
    ends.paced.say(entity.QueueDeclare(queue="b"))
    assert ends.paced.error() == (False, 406, (50, 10))


def test_what_there_is_no_room_for_in_the_quota_is_refused() -> None:
    ends = Ends(stored_bytes=5_000)
    ends.paced.declare("a")
    ends.paced.ask(entity.ConfirmSelect())
    for _ in range(6):
        ends.paced.publish("a", bytes(1_000), delivery_mode=2)
    answers = names(ends.paced)
    kept = answers.count("BasicAck")
    assert 1 <= kept <= 4
    assert answers == ["BasicAck"] * kept + ["BasicNack"] * (6 - kept)


def test_connections_above_the_quota_are_refused_at_their_login() -> None:
    ends = Ends(connections=1)
    second = ends.world.open()
    second.address = PACED
    second.send(b"AMQP\0\0\x09\x01")
    second.method(first.ConnectionStart)
    second.say(PLAIN, 0)
    last = methods(second)[-1]
    if isinstance(last, first.ConnectionTune):
        second.say(first.ConnectionTuneOk(2_047, 131_072, 0), 0)
        second.say(first.ConnectionOpen("/"), 0)
        last = methods(second)[-1]
    assert isinstance(last, first.ConnectionClose)
    assert last.reply_code == 530
