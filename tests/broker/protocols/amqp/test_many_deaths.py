"""Queues without time, each the dead-letter target of the one before: work that a client makes with few octets."""

from fanlight_broker.core.burial import BURIED_AT_ONCE
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp.deaths import DEATHS_MAX
from tests.broker.protocols.amqp.world import Peer, World, published


def chain(peer: Peer, queues: int) -> None:
    for number in range(queues):
        peer.declare(f"q{number}", arguments={
            "x-message-ttl": 0, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"q{number + 1}",
        })  # fmt: skip


def test_the_clock_is_looked_at_between_a_few_dead_letters() -> None:
    """Each reading is a millisecond later than the one before, so a turn is over soon."""
    world = World()
    peer, other = world.channel(), world.channel()
    chain(peer, 20)
    time, dead = 0.0, 0
    at_once: list[int] = []
    burial = world.broker.queues.burial

    def clock() -> float:
        nonlocal time, dead
        time, dead, before = time + 0.001, burial.dead, dead
        at_once.append(dead - before)
        return time

    world.broker.ledger.clock = clock
    peer.send(b"".join(published("q0", b"x") for _ in range(200)))
    world.pass_time(1)
    assert burial.dead == 200 * 20
    assert max(at_once) <= 2 * BURIED_AT_ONCE
    assert other.ask(first.ChannelFlow(True)) == first.ChannelFlowOk(True)


def test_a_message_dies_a_bounded_number_of_times() -> None:
    world = World()
    peer = world.channel()
    chain(peer, DEATHS_MAX + 50)
    peer.publish("q0", b"x")
    world.pass_time(1)
    queues = world.broker.queues
    assert queues.find(f"q{DEATHS_MAX}").inside.published == 1
    assert queues.find(f"q{DEATHS_MAX + 1}").inside.published == 0
    assert queues.burial.refused == 1
