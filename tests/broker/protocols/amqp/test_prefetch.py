"""basic.qos with global=true (1.8.3.1): one prefetch for a channel, beside that of each consumer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import entity_methods as entity
from tests.broker.protocols.amqp.world import Got, Peer, World


@pytest.fixture
def peer(world: World) -> Peer:
    found = world.channel()
    found.declare("q")
    found.declare("r")
    return found


def limit(peer: Peer, count: int, *, together: bool = True) -> list[Got]:
    """What follows basic.qos-ok."""
    peer.say(basic.BasicQos(0, count, together))
    ok, *rest = peer.got()
    assert ok.method == basic.BasicQosOk()
    return rest


def fill(peer: Peer, queue: str, *bodies: str) -> None:
    for body in bodies:
        peer.publish(queue, body.encode())


def bodies(got: list[Got]) -> str:
    return " ".join(each.body.decode() for each in got)


def test_all_consumers_of_a_channel_share_it(peer: Peer) -> None:
    limit(peer, 3)
    fill(peer, "q", "a", "b")
    fill(peer, "r", "x", "y")
    assert bodies(peer.consume("q", "c")) == "a b"
    assert bodies(peer.consume("r", "d")) == "x"
    peer.say(basic.BasicAck(1))
    assert bodies(peer.got()) == "y"
    fill(peer, "q", "c")
    assert peer.got() == []
    peer.say(basic.BasicAck(0, True))
    assert bodies(peer.got()) == "c"


def test_it_acts_on_running_consumers_at_once_and_zero_lifts_it(peer: Peer) -> None:
    peer.consume()
    limit(peer, 1)
    fill(peer, "q", "a", "b", "c")
    assert bodies(peer.got()) == "a"
    assert bodies(limit(peer, 2)) == "b"
    assert bodies(limit(peer, 1)) == ""
    peer.say(basic.BasicAck(1))
    assert peer.got() == []
    assert bodies(limit(peer, 0)) == "c"
    fill(peer, "q", "d")
    assert bodies(peer.got()) == "d"


def test_it_is_beside_the_prefetch_of_each_consumer(peer: Peer) -> None:
    limit(peer, 1, together=False)
    limit(peer, 3)
    fill(peer, "q", "a", "b")
    assert bodies(peer.consume()) == "a"


def test_consumers_that_begin_while_it_is_used_up_wait(peer: Peer) -> None:
    limit(peer, 1)
    fill(peer, "q", "a")
    peer.consume("q", "c")
    fill(peer, "r", "x")
    assert peer.consume("r", "d") == []
    peer.say(basic.BasicNack(1, False, False))
    assert bodies(peer.got()) == "x"


def test_get_and_automatic_acknowledgement_ignore_it(peer: Peer) -> None:
    limit(peer, 1)
    fill(peer, "q", "a", "b")
    fill(peer, "r", "x", "y")
    assert bodies(peer.consume("q", "c")) == "a"
    assert bodies(peer.consume("r", "d", no_ack=True)) == "x y"
    peer.say(basic.BasicGet(queue="q"))
    assert bodies(peer.got()) == "b"
    peer.say(basic.BasicAck(4))
    fill(peer, "r", "z")
    assert bodies(peer.got()) == "z"


def test_consumers_take_turns_when_it_is_one(peer: Peer) -> None:
    limit(peer, 1)
    peer.consume("q", "c")
    peer.consume("r", "d")
    fill(peer, "q", "a", "b", "c", "d")
    fill(peer, "r", "x", "y")
    found = [bodies(peer.got())]
    for tag in range(1, 6):
        peer.say(basic.BasicAck(tag))
        found.append(bodies(peer.got()))
    assert found == ["a", "b", "x", "c", "y", "d"]


def test_what_is_given_back_frees_it(peer: Peer) -> None:
    limit(peer, 2)
    fill(peer, "q", "a", "b", "c")
    assert bodies(peer.consume()) == "a b"
    peer.say(basic.BasicRecover(True))
    assert bodies(peer.got()[1:]) == "a b"
    peer.say(basic.BasicReject(3, True))
    assert bodies(peer.got()) == "a"


def test_the_end_of_a_queue_frees_it(world: World, peer: Peer) -> None:
    limit(peer, 1)
    fill(peer, "q", "a")
    peer.consume("q", "c")
    fill(peer, "r", "x")
    peer.consume("r", "d")
    world.channel().say(entity.QueueDelete(queue="q"))
    got = peer.got()
    assert basic.BasicCancel("c", True) in [each.method for each in got]
    assert [each.body for each in got if isinstance(each.method, basic.BasicDeliver)] == [b"x"]


def test_a_cancelled_consumer_keeps_its_share_until_it_acknowledges(peer: Peer) -> None:
    limit(peer, 1)
    fill(peer, "q", "a", "b")
    peer.consume("q", "c")
    fill(peer, "r", "x")
    peer.consume("r", "d")
    assert peer.ask(basic.BasicCancel("c")) == basic.BasicCancelOk("c")
    peer.say(basic.BasicAck(1))
    assert bodies(peer.got()) == "x"
    assert peer.counts("q") == (1, 0)


@settings(max_examples=40)
@given(st.data())
def test_never_more_than_it_is_out_and_nothing_waits_for_nothing(data: st.DataObject) -> None:
    peer = World().channel()
    peer.declare("q")
    peer.declare("r")
    limit(peer, most := data.draw(st.integers(1, 4)))
    peer.consume("q", "c")
    peer.consume("r", "d")
    out: list[int] = []
    sent = 0
    for _ in range(data.draw(st.integers(1, 25))):
        step = data.draw(st.sampled_from(["publish", "ack", "multiple", "nack", "drop", "limit"]))
        if step == "publish":
            fill(peer, data.draw(st.sampled_from("qr")), str(sent := sent + 1))
        elif step == "limit":
            most = data.draw(st.integers(1, 4))
            peer.say(basic.BasicQos(0, most, True))
        elif out:
            tag = data.draw(st.sampled_from(out))
            if step == "multiple":
                peer.say(basic.BasicAck(tag, True))
                out = [each for each in out if each > tag]
            else:
                out.remove(tag)
                peer.say(
                    basic.BasicAck(tag) if step == "ack" else basic.BasicNack(tag, False, step == "nack")
                )
        got = [each for each in peer.got() if not isinstance(each.method, basic.BasicQosOk)]
        room = most - len(out)
        assert len(got) <= max(room, 0)
        out += [each.method.delivery_tag for each in got]
        if len(out) < most:
            assert (peer.counts("q")[0], peer.counts("r")[0]) == (0, 0)
