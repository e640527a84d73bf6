"""Consumers (1.8.3): deliveries, prefetch, acknowledgements, requeueing, cancel, get."""

from itertools import count

import pytest

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.deliveries import GIVEN_AT_ONCE
from fanlight_broker.protocols.amqp.methods import AnyMethod, method_frame
from fanlight_broker.wire.named_queue import NamedQueue
from tests.broker.protocols.amqp.world import PLAIN, Got, Peer, World


@pytest.fixture
def peer(world: World) -> Peer:
    found = world.channel()
    found.declare()
    return found


def fill(peer: Peer, *bodies: str) -> None:
    for body in bodies:
        peer.publish("q", body.encode())


def deliveries(got: list[Got]) -> list[tuple[int, bool, str]]:
    """Tag, redelivered, body."""
    return [(each.method.delivery_tag, each.method.redelivered, each.body.decode()) for each in got]


def qos(peer: Peer, count: int) -> None:
    assert peer.ask(basic.BasicQos(0, count)) == basic.BasicQosOk()


def test_consume_ok_comes_first_and_tags_count_on_the_channel(peer: Peer) -> None:
    fill(peer, "a", "b")
    assert deliveries(peer.consume()) == [(1, False, "a"), (2, False, "b")]
    peer.declare("other")
    peer.publish("other", b"c")
    assert deliveries(peer.consume("other", "d")) == [(3, False, "c")]


def test_prefetch_bounds_what_is_not_acknowledged(peer: Peer) -> None:
    fill(peer, "a", "b", "c", "d")
    qos(peer, 2)
    assert deliveries(peer.consume()) == [(1, False, "a"), (2, False, "b")]
    peer.say(basic.BasicAck(1))
    assert deliveries(peer.got()) == [(3, False, "c")]
    peer.say(basic.BasicAck(3, True))
    assert deliveries(peer.got()) == [(4, False, "d")]
    peer.say(basic.BasicAck(0, True))
    assert peer.counts() == (0, 1)


def test_prefetch_is_for_consumers_that_begin_later(peer: Peer) -> None:
    qos(peer, 1)
    peer.consume()
    qos(peer, 3)
    fill(peer, "a", "b")
    assert len(peer.got()) == 1


def test_a_running_consumer_of_kombu_gets_the_new_prefetch(world: World) -> None:
    peer = world.channel(start_ok=PLAIN._replace(client_properties={"product": "py-amqp"}))
    peer.declare()
    qos(peer, 1)
    peer.consume()
    fill(peer, "a", "b", "c")
    assert len(peer.got()) == 1
    peer.say(basic.BasicQos(0, 2))
    ok, *rest = peer.got()
    assert (ok.method, deliveries(rest)) == (basic.BasicQosOk(), [(2, False, "b")])


@pytest.mark.parametrize("method", [basic.BasicQos(1, 0), basic.BasicRecover(False)])
def test_what_is_not_there_is_540(peer: Peer, method: object) -> None:
    peer.say(method)
    assert peer.error()[:2] == (True, 540)


def test_consumers_take_turns(world: World, peer: Peer) -> None:
    other = world.channel()
    peer.consume()
    other.consume()
    fill(peer, "a", "b", "c", "d")
    assert [each.body for each in peer.got()] == [b"a", b"c"]
    assert [each.body for each in other.got()] == [b"b", b"d"]


def test_without_acknowledgements_nothing_stays(peer: Peer) -> None:
    fill(peer, "a", "b")
    assert len(peer.consume(no_ack=True)) == 2
    fill(peer, "c")
    assert deliveries(peer.got()) == [(3, False, "c")]
    assert peer.counts() == (0, 1)
    peer.say(basic.BasicAck(3))
    assert peer.error()[:2] == (False, 406)


def test_more_than_the_largest_prefetch_comes_without_acknowledgements() -> None:
    world = World(prefetch_max=10)
    peer = world.channel()
    peer.declare()
    fill(peer, *map(str, range(95)))
    assert len(peer.consume(no_ack=True)) == 95


@pytest.mark.parametrize("method", [basic.BasicReject(2), basic.BasicNack(2), basic.BasicNack(2, False, True)])
def test_what_is_given_back_comes_again_in_its_place(world: World, peer: Peer, method: object) -> None:
    qos(peer, 2)
    fill(peer, "a", "b", "c")
    peer.consume()
    peer.say(method)
    assert deliveries(peer.got()) == [(3, True, "b")]
    peer.say(basic.BasicAck(3, True))
    assert deliveries(peer.got()) == [(4, False, "c")]


def test_several_that_are_given_back_keep_their_order(peer: Peer) -> None:
    fill(peer, "a", "b", "c", "d")
    qos(peer, 3)
    peer.consume()
    peer.say(basic.BasicNack(3, True))
    assert deliveries(peer.got()) == [(4, True, "a"), (5, True, "b"), (6, True, "c")]


def test_recover_gives_all_back_and_is_answered_first(peer: Peer) -> None:
    fill(peer, "a", "b")
    peer.consume()
    peer.say(basic.BasicRecover(True))
    ok, *rest = peer.got()
    assert (ok.method, deliveries(rest)) == (basic.BasicRecoverOk(), [(3, True, "a"), (4, True, "b")])


@pytest.mark.parametrize("method", [basic.BasicReject(1, False), basic.BasicNack(1, False, False)])
def test_what_is_rejected_is_gone(peer: Peer, method: object) -> None:
    fill(peer, "a")
    peer.consume()
    peer.say(method)
    peer.ask(basic.BasicCancel("c"))
    assert peer.counts() == (0, 0)


def test_a_tag_is_acknowledged_once(peer: Peer) -> None:
    fill(peer, "a")
    peer.consume()
    peer.say(basic.BasicAck(1))
    peer.say(basic.BasicAck(1))
    assert peer.error() == (False, 406, (60, 80))


@pytest.mark.parametrize("how", ["vanish", "close", "channel"])
def test_what_is_not_acknowledged_goes_to_another(world: World, peer: Peer, how: str) -> None:
    other = world.channel()
    fill(peer, "a", "b")
    peer.consume()
    other.consume()
    if how == "vanish":
        peer.vanish()
    elif how == "close":
        peer.say(first.ConnectionClose(200, ""), 0)
    else:
        peer.say(first.ChannelClose(0, ""))
    assert deliveries(other.got()) == [(1, True, "a"), (2, True, "b")]
    assert other.counts() == (0, 1)


def test_after_cancel_nothing_comes_and_what_came_may_be_acknowledged(world: World, peer: Peer) -> None:
    other = world.channel()
    fill(peer, "a", "b")
    peer.consume()
    assert peer.ask(basic.BasicCancel("c")) == basic.BasicCancelOk("c")
    assert peer.counts() == (0, 0)
    other.consume()
    fill(peer, "c")
    assert deliveries(other.got()) == [(1, False, "c")]
    peer.say(basic.BasicAck(1))
    peer.say(basic.BasicNack(2))
    assert deliveries(other.got()) == [(2, True, "b")]
    assert peer.got() == []


def test_cancelling_an_unknown_tag_is_no_error(peer: Peer) -> None:
    assert peer.ask(basic.BasicCancel("x")) == basic.BasicCancelOk("x")


def test_a_tag_that_is_in_use_closes_the_connection(peer: Peer) -> None:
    peer.consume()
    peer.say(basic.BasicConsume(queue="q", consumer_tag="c"))
    assert peer.error() == (True, 530, (60, 20))


def test_a_consumer_without_a_tag_gets_one(peer: Peer) -> None:
    assert peer.ask(basic.BasicConsume(queue="q")).consumer_tag.startswith("amq.ctag-")


@pytest.mark.parametrize("first_exclusive", [True, False])
def test_an_exclusive_consumer_is_alone(world: World, peer: Peer, first_exclusive: bool) -> None:
    peer.consume(exclusive=first_exclusive)
    other = world.channel()
    other.say(basic.BasicConsume(queue="q", exclusive=not first_exclusive))
    assert other.error() == (False, 403, (60, 20))
    peer.ask(basic.BasicCancel("c"))
    assert world.channel().consume() == []


def test_consumers_hear_of_the_end_of_their_queue(world: World, peer: Peer) -> None:
    other = world.channel(start_ok=PLAIN._replace(client_properties={}))
    peer.consume()
    other.consume()
    peer.say(entity.QueueDelete(queue="q"))
    assert [each.method for each in peer.got()] == [entity.QueueDeleteOk(0), basic.BasicCancel("c", True)]
    assert other.got() == []


def test_an_acknowledgement_for_a_queue_that_has_ended_is_no_mistake(world: World, peer: Peer) -> None:
    fill(peer, "a")
    peer.consume()
    world.channel().say(entity.QueueDelete(queue="q"))
    peer.got()
    assert not peer.protocol._channels[1].consumers.tags
    peer.say(basic.BasicAck(1))
    assert peer.ask(first.ChannelFlow(True)) == first.ChannelFlowOk(True)


def test_a_single_active_consumer_gets_everything_until_it_goes(world: World) -> None:
    peer, other = world.channel(), world.channel()
    peer.declare(arguments={"x-single-active-consumer": True})
    peer.consume()
    other.consume()
    fill(peer, "a", "b")
    assert (len(peer.got()), len(other.got())) == (2, 0)
    peer.ask(basic.BasicCancel("c"))
    assert deliveries(other.got()) == [(1, True, "a"), (2, True, "b")]


# -- get ------------------------------------------------------------------------------------------------------------


def test_get_takes_one_and_says_how_many_remain(peer: Peer) -> None:
    fill(peer, "a", "b", "c")
    for tag, body, left in ((1, b"a", 2), (2, b"b", 1), (3, b"c", 0)):
        peer.say(basic.BasicGet(queue="q"))
        (got,) = peer.got()
        assert (got.method, got.body) == (basic.BasicGetOk(tag, False, "", "q", left), body)
    assert peer.ask(basic.BasicGet(queue="q")) == basic.BasicGetEmpty()
    peer.say(basic.BasicAck(2))
    peer.say(basic.BasicNack(1))
    peer.say(basic.BasicGet(queue="q"))
    assert deliveries(peer.got()) == [(4, True, "a")]
    peer.vanish()


def test_get_without_acknowledgement_takes_it_away(world: World, peer: Peer) -> None:
    fill(peer, "a")
    peer.say(basic.BasicGet(queue="q", no_ack=True))
    assert deliveries(peer.got()) == [(1, False, "a")]
    peer.vanish()
    assert world.channel().counts() == (0, 0)
    assert world.broker.queues.find("q").inside.windows == []


def test_what_was_got_returns_with_the_channel(world: World, peer: Peer) -> None:
    fill(peer, "a")
    peer.say(basic.BasicGet(queue="q"))
    peer.vanish()
    assert world.channel().counts() == (1, 0)
    assert world.broker.queues.find("q").inside.windows == []


def test_nothing_is_left_of_connections_that_have_ended(world: World) -> None:
    peer = world.channel()
    peer.declare("gone", exclusive=True)
    peer.declare("stays")
    peer.consume("gone", "a")
    peer.consume("stays", "b")
    peer.publish("stays", b"x")
    peer.vanish()
    assert [queue.name for queue in world.broker.queues] == ["stays"]
    queue = world.broker.queues.find("stays")
    assert (queue.consumers, queue.inside.windows, len(queue.inside)) == ({}, [], 1)
    assert world.vhosts.of(world.broker).owned(peer.protocol) == []
    assert world.counts.channels == 0


def test_a_consumer_with_room_gets_the_rest_when_the_turn_was_over(world: World, peer: Peer) -> None:
    # It rested until its next acknowledgement, which a client that acknowledges many at once does not send.
    for number in range(1_500):
        peer.publish("q", b"%d" % number)
    peer.ask(basic.BasicQos(prefetch_count=2_000))
    world.broker.ledger.clock = lambda: world.broker.ledger.turn_ends + 1
    assert len(peer.consume()) == 1_500


def test_a_consumer_whose_outbox_was_full_goes_on_when_it_has_drained() -> None:
    # Its outbox was to be refilled, and the flow did not know of that: it waited for an acknowledgement.
    world = World(outbox_bytes_max=64 * 1024)
    peer, reader = world.channel(), world.channel()
    peer.declare()
    for _ in range(12):
        peer.publish("q", bytes(20_000))
    reader.reads = False
    reader.say(basic.BasicConsume(queue="q", consumer_tag="c"))
    reader.read_all()
    assert [type(each.method) for each in reader.got()] == [basic.BasicConsumeOk] + [basic.BasicDeliver] * 12


def begin_giving_back(world: World, peer: Peer, method: AnyMethod) -> NamedQueue:
    """600 deliveries are given back, and each look at the time says that the turn is over. Nothing is done yet."""
    for number in range(600):
        peer.publish("q", b"%d" % number)
    assert len(peer.consume()) == 600
    seconds = count(2_000)
    world.broker.ledger.clock = lambda: float(next(seconds))
    world.broker.ledger.turn_ends = 0.0
    peer._sent.append(method_frame(1, method) + method_frame(1, first.ChannelFlow(True)))
    peer.deliver()
    inside = world.broker.queues.find("q").inside
    assert len(inside.queue) == 0
    return inside


def steps_of(world: World, inside: NamedQueue) -> list[int]:
    """How many messages the queue has after each piece of the work that was put off."""
    found = []
    while world.soon:
        world.soon.popleft()()
        found.append(len(inside))
    return found


@pytest.mark.parametrize("method", [basic.BasicRecover(True), basic.BasicNack(600, True, True)])
def test_many_that_are_given_back_take_several_turns_and_keep_their_order(
    world: World, peer: Peer, method: AnyMethod
) -> None:
    """100,000 of ten consumers kept the broker for 0.15 s."""
    inside = begin_giving_back(world, peer, method)
    world.soon.popleft()()
    assert len(inside.queue) == GIVEN_AT_ONCE
    world.turn()
    came = [each for each in peer.got() if not isinstance(each.method, basic.BasicRecoverOk)]
    assert [each.body for each in came] == [*(b"%d" % number for number in range(600)), b""]
    assert all(each.method.redelivered for each in came[:-1])
    assert came[-1].method == first.ChannelFlowOk(True)  # what the client asks for next waits


def test_many_that_are_rejected_take_several_turns(world: World, peer: Peer) -> None:
    inside = begin_giving_back(world, peer, basic.BasicNack(0, True, False))
    assert steps_of(world, inside)[:3] == [600 - GIVEN_AT_ONCE, 600 - 2 * GIVEN_AT_ONCE, 0]
    world.turn()
    assert [each.method for each in peer.got()] == [first.ChannelFlowOk(True)]


def test_a_client_that_leaves_in_the_middle_of_that_loses_nothing(world: World, peer: Peer) -> None:
    begin_giving_back(world, peer, basic.BasicRecover(True))
    world.soon.popleft()()
    peer.vanish()
    other = world.channel()
    assert [each.body for each in other.consume()] == [b"%d" % number for number in range(600)]


@pytest.mark.parametrize("how", ["vanish", "close"])
@pytest.mark.parametrize("no_ack", [True, False])
def test_what_a_channel_gives_back_is_not_for_another_of_a_connection_that_ends(
    world: World, how: str, no_ack: bool
) -> None:
    """It was: sent to nobody and lost, or counted as delivered once more for each channel."""
    peer, other = world.channel(), world.channel()
    peer.ask(first.ChannelOpen(), 2)
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    peer.consume()
    fill(peer, "a", "b", "c")
    assert [tag for tag, _, _ in deliveries(peer.got())] == [1, 2, 3]
    peer.say(basic.BasicConsume(queue="q", consumer_tag="second", no_ack=no_ack), 2)
    if how == "close":
        peer.say(first.ConnectionClose(200, "", 0, 0), 0)
    else:
        peer.vanish()
    found = other.consume()
    assert deliveries(found) == [(1, True, "a"), (2, True, "b"), (3, True, "c")]
    headers = [each.properties.headers for each in found if each.properties is not None]
    assert headers == [{"x-delivery-count": 1}] * 3


def test_that_a_consumer_has_ended_is_not_said_of_a_new_one_with_its_tag(peer: Peer) -> None:
    peer.consume()
    peer.send(b"".join(method_frame(1, each) for each in (
        entity.QueueDelete(queue="q"), entity.QueueDeclare(queue="q"), basic.BasicConsume(queue="q", consumer_tag="c"),
    )))  # fmt: skip
    assert [each.method for each in peer.got()] == [
        entity.QueueDeleteOk(0), entity.QueueDeclareOk("q", 0, 0), basic.BasicConsumeOk("c"),
    ]  # fmt: skip
    fill(peer, "a")
    assert deliveries(peer.got()) == [(1, False, "a")]
