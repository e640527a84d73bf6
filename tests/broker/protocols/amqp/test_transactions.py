"""Transactions (1.9): select, commit, rollback."""

from itertools import count
from typing import Any

import pytest

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.deliveries import GIVEN_AT_ONCE
from fanlight_broker.protocols.amqp.methods import method_frame
from fanlight_broker.protocols.amqp.transactions import STEPS_MAX
from tests.broker.protocols.amqp.world import KIB, Got, Peer, World, published

COMMIT = entity.TxCommit()
ROLLBACK = entity.TxRollback()


@pytest.fixture
def peer(world: World) -> Peer:
    found = world.channel()
    found.declare()
    assert found.ask(entity.TxSelect()) == entity.TxSelectOk()
    return found


def bodies(got: list[Got]) -> str:
    return " ".join(each.body.decode() for each in got)


def commit(peer: Peer) -> list[Got]:
    """What comes before commit-ok."""
    peer.say(COMMIT)
    *before, ok = peer.got()
    assert ok.method == entity.TxCommitOk()
    return before


def test_what_is_published_comes_with_the_commit(world: World, peer: Peer) -> None:
    other = world.channel()
    other.consume("q", "c", no_ack=True)
    for body in (b"a", b"b", b"c"):
        peer.publish("q", body)
    assert (other.got(), peer.got()) == ([], [])
    assert commit(peer) == []
    assert bodies(other.got()) == "a b c"
    peer.publish("q", b"d")
    commit(peer)
    assert bodies(other.got()) == "d"


def test_a_rollback_drops_what_was_published(peer: Peer) -> None:
    peer.publish("q", b"a")
    assert peer.ask(ROLLBACK) == entity.TxRollbackOk()
    commit(peer)
    assert peer.counts() == (0, 0)
    assert peer.world.broker.ledger.inboxes.used == 0


def test_acknowledgements_count_at_the_commit(world: World, peer: Peer) -> None:
    peer.ask(basic.BasicQos(0, 2))
    for body in (b"a", b"b", b"c", b"d"):
        peer.publish("q", body)
    commit(peer)
    assert bodies(peer.consume()) == "a b"
    peer.say(basic.BasicAck(1))
    peer.say(basic.BasicAck(2, True))
    assert peer.got() == []
    assert bodies([each for each in commit(peer) if each.body]) == "c d"
    peer.say(basic.BasicAck(4))
    peer.say(basic.BasicNack(3, False, False))
    commit(peer)
    peer.vanish()
    assert world.channel().counts() == (0, 0)


def test_after_a_rollback_the_tags_are_used_again(world: World, peer: Peer) -> None:
    for body in (b"a", b"b", b"c"):
        peer.publish("q", body)
    commit(peer)
    peer.consume()
    peer.say(basic.BasicNack(3))
    peer.say(basic.BasicAck(2, True))
    assert peer.ask(ROLLBACK) == entity.TxRollbackOk()
    peer.say(basic.BasicAck(1))
    peer.say(basic.BasicNack(3, True, False))
    commit(peer)
    peer.vanish()
    assert world.channel().counts() == (0, 0)


def test_what_is_not_committed_returns_with_the_channel(world: World, peer: Peer) -> None:
    peer.publish("q", b"a")
    commit(peer)
    peer.consume()
    peer.say(basic.BasicAck(1))
    peer.publish("q", b"lost")
    peer.say(first.ChannelClose(200, ""))
    assert peer.got()[-1].method == first.ChannelCloseOk()
    assert peer.world.broker.ledger.inboxes.used == 0
    assert world.channel().counts() == (1, 0)


def test_a_tag_is_acknowledged_once_in_a_transaction(peer: Peer) -> None:
    peer.publish("q", b"a")
    commit(peer)
    peer.consume()
    peer.say(basic.BasicAck(1))
    peer.say(basic.BasicAck(1))
    assert peer.error() == (False, 406, (60, 80))


def test_a_message_comes_back_before_commit_ok(peer: Peer) -> None:
    peer.publish("nowhere", b"a", mandatory=True)
    peer.publish("q", b"b", mandatory=True)
    (returned,) = commit(peer)
    assert isinstance(returned.method, basic.BasicReturn)
    assert returned.body == b"a"


def test_a_missing_exchange_fails_when_it_is_published_to(world: World, peer: Peer) -> None:
    peer.publish("q", b"a")
    peer.publish("x", b"b", exchange="missing")
    assert peer.error() == (False, 404, (60, 40))
    assert world.channel().counts() == (0, 0)


def test_an_exchange_that_goes_before_the_commit_fails_it(world: World, peer: Peer) -> None:
    peer.ask(entity.ExchangeDeclare(exchange="e", type="fanout"))
    peer.publish("x", b"b", exchange="e")
    world.channel().ask(entity.ExchangeDelete(exchange="e"))
    peer.say(COMMIT)
    assert peer.error() == (False, 404, (90, 20))
    assert peer.world.broker.ledger.inboxes.used == 0


def test_a_message_that_a_queue_refuses_makes_it_partial(world: World, peer: Peer) -> None:
    peer.declare("small", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    for body in (b"a", b"b"):
        peer.publish("small", body)
    peer.publish("q", b"c")
    peer.say(COMMIT)
    assert peer.method() == first.ChannelClose(406, "PRECONDITION_FAILED - partial tx completion", 90, 20)
    other = world.channel()
    assert (other.counts("small"), other.counts("q")) == ((1, 0), (1, 0))


@pytest.mark.parametrize("method", [COMMIT, ROLLBACK])
def test_without_a_select_they_are_406(world: World, method: object) -> None:
    peer = world.channel()
    closed = peer.ask(method)
    assert (closed.reply_code, closed.reply_text) == (406, "PRECONDITION_FAILED - channel is not transactional")


def test_transactions_and_confirms_do_not_mix(world: World, peer: Peer) -> None:
    assert peer.ask(entity.TxSelect()) == entity.TxSelectOk()
    closed = peer.ask(entity.ConfirmSelect())
    assert closed.reply_text == "PRECONDITION_FAILED - cannot switch from tx to confirm mode"
    other = world.channel()
    other.ask(entity.ConfirmSelect())
    closed = other.ask(entity.TxSelect())
    assert closed.reply_text == "PRECONDITION_FAILED - cannot switch from confirm to tx mode"


def test_a_transaction_is_bounded(peer: Peer) -> None:
    peer.send(published("q", b"x") * STEPS_MAX)
    assert peer.got() == []
    assert peer.world.broker.ledger.inboxes.used > 500 * STEPS_MAX
    peer.publish("q", b"x")
    assert peer.error() == (False, 406, (60, 40))
    assert peer.world.broker.ledger.inboxes.used == 0


def test_what_it_keeps_counts_in_the_inboxes() -> None:
    world = World(inboxes_bytes_max=256 * KIB)
    peer = world.channel()
    peer.ask(entity.TxSelect())
    for _ in range(300):
        peer.publish("q", b"x" * KIB)
    assert peer.close_reason is not None
    assert world.broker.ledger.inboxes.used < 256 * KIB


def test_a_long_commit_goes_on_in_later_turns_and_answers_once(world: World, peer: Peer) -> None:
    peer.send(published("q", b"x") * 500 + method_frame(1, COMMIT) + method_frame(1, first.ChannelFlow(True)))
    assert [each.method for each in peer.got()] == [entity.TxCommitOk(), first.ChannelFlowOk(True)]
    assert peer.counts() == (500, 0)


def test_a_commit_that_gives_many_back_takes_several_turns(world: World, peer: Peer) -> None:
    for number in range(600):
        peer.publish("q", b"%d" % number)
    commit(peer)
    peer.consume()
    peer.say(basic.BasicNack(0, True, True))
    peer.publish("q", b"new")
    seconds = count(2_000)
    world.broker.ledger.clock = lambda: float(next(seconds))
    world.broker.ledger.turn_ends = 0.0  # each look at the time says that the turn is over
    peer._sent.append(method_frame(1, COMMIT) + method_frame(1, first.ChannelFlow(True)))
    peer.deliver()
    inside = world.broker.queues.find("q").inside
    waiting = []
    while world.soon and GIVEN_AT_ONCE not in waiting:
        world.soon.popleft()()
        waiting.append(len(inside.queue))
    assert GIVEN_AT_ONCE in waiting
    world.turn()
    came = peer.got()
    assert sorted(int(each.body) for each in came if each.body and each.body != b"new") == [*range(600)]
    assert [each.method for each in came if not each.body] == [entity.TxCommitOk(), first.ChannelFlowOk(True)]
    assert b"new" in [each.body for each in came]


def test_a_commit_in_place_of_a_content_is_505(peer: Peer) -> None:
    peer.say(basic.BasicPublish(routing_key="q"))
    peer.say(COMMIT)
    assert peer.error() == (True, 505, (90, 20))


@pytest.mark.parametrize(("channel", "code"), [(0, 503), (9, 504)])
def test_a_commit_elsewhere_is_a_mistake(peer: Peer, channel: int, code: int) -> None:
    peer.say(COMMIT, channel)
    assert peer.error() == (True, code, (90, 20))


class CountedTags:
    """The tags of a channel, and how often some were put back."""

    def __init__(self, tags: Any) -> None:
        self.real, self.put_backs = tags, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def __contains__(self, tag: int) -> bool:
        return tag in self.real

    def __len__(self) -> int:
        return len(self.real)

    def put_back(self, *arguments: Any) -> None:
        self.put_backs += 1
        self.real.put_back(*arguments)


def test_a_rollback_of_many_acknowledgements_puts_all_tags_back_in_one_step(world: World, peer: Peer) -> None:
    """Each call goes over all tags of the channel: one for each acknowledgement takes minutes."""
    many = 300
    for number in range(many):
        peer.publish("q", b"%d" % number)
    commit(peer)
    peer.consume()
    (channel,) = peer.protocol._channels.values()
    counted = CountedTags(channel.consumers.tags)
    channel.consumers.tags = counted  # type: ignore[assignment]
    for tag in range(many, 0, -1):
        peer.say(basic.BasicNack(tag, False, False))
    assert peer.ask(ROLLBACK) == entity.TxRollbackOk()
    assert counted.put_backs == 1
    peer.say(basic.BasicAck(0, True))
    commit(peer)
    peer.vanish()
    assert world.channel().counts() == (0, 0)
