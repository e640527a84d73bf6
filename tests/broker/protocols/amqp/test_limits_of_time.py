"""consumer_timeout: a consumer that does not acknowledge; and what was agreed on in tune."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp.delivery_times import READINGS, DeliveryTimes
from fanlight_broker.protocols.amqp.options import AmqpOptions
from tests.broker.protocols.amqp.world import KIB, Peer, World

TIMED_OUT = (
    "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value used: 1600000 ms. This "
    "timeout value can be configured, see consumers doc guide to learn more"
)


@pytest.fixture
def world() -> World:
    found = World()
    found.options = AmqpOptions(64 * KIB, 0, consumer_timeout_seconds=1_600)
    return found


@pytest.fixture
def peer(world: World) -> Peer:
    found = world.channel()
    found.declare()
    for body in (b"a", b"b"):
        found.publish("q", body)
    return found


def pass_time(world: World, seconds: int) -> None:
    for _ in range(seconds // 10):
        world.pass_time(10)


@pytest.mark.parametrize("get", [False, True])
def test_a_delivery_that_is_never_acknowledged_closes_its_channel(world: World, peer: Peer, get: bool) -> None:
    peer.ask(basic.BasicQos(0, 1))
    if get:
        peer.say(basic.BasicGet(queue="q"))
    else:
        peer.consume()
    peer.got()
    pass_time(world, 1_590)
    assert peer.got() == []
    pass_time(world, 200)
    assert peer.method() == first.ChannelClose(406, TIMED_OUT)
    assert peer.close_reason is None
    assert world.channel().counts() == (2, 0)


def test_a_consumer_that_acknowledges_goes_on(world: World, peer: Peer) -> None:
    assert len(peer.consume()) == 2
    pass_time(world, 1_000)
    peer.say(basic.BasicAck(1))
    peer.publish("q", b"c")
    pass_time(world, 500)
    peer.say(basic.BasicAck(2))
    assert len(peer.got()) == 1
    pass_time(world, 1_000)
    assert peer.got() == []
    pass_time(world, 300)
    assert peer.method() == first.ChannelClose(406, TIMED_OUT)


def test_without_deliveries_nobody_is_late(world: World, peer: Peer) -> None:
    peer.consume(no_ack=True)
    pass_time(world, 5_000)
    assert peer.got() == []


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["deliver", "ack", ""]), min_size=40, max_size=120))
def test_a_delivery_is_found_late_by_a_sixteenth_and_one_look_at_most(steps: list[str]) -> None:
    timeout, last = 160.0, 0
    out: dict[int, float] = {}
    times = DeliveryTimes()
    for number, step in enumerate(steps):
        now = 5.0 * number  # and looks at each
        if step == "deliver":
            last += 1
            out[last] = now
        elif step == "ack" and out:
            del out[next(iter(out))]
        late = times.overdue(next(iter(out), None), last, timeout, now)
        waited = now - next(iter(out.values()), now)
        assert not (late and waited < timeout)
        assert late or waited < timeout + timeout / READINGS + 5
        if late:
            break


def test_channels_are_as_many_as_were_agreed_on() -> None:
    peer = World().connect(channel_max=2)
    for number in (7, 65_535):
        assert peer.ask(first.ChannelOpen(), number) == first.ChannelOpenOk()
    peer.say(first.ChannelOpen(), 1)
    assert peer.error()[:2] == (True, 530)


def test_frames_are_as_large_as_was_agreed_on() -> None:
    world = World()
    peer = world.connect(frame_max=4_096)
    peer.ask(first.ChannelOpen())
    peer.declare()
    peer.publish("q", b"x" * 10_000)
    peer.say(basic.BasicGet(queue="q"))
    assert max(len(frame.payload) for frame in peer.frames()) == 4_096 - 8
    peer.frame_max = 4_097
    peer.publish("q", b"x" * 10_000)
    assert peer.error() == (True, 501, (0, 0))

