"""Publishing (1.8.3.10): contents in frames, confirms, returns, refusals; what is under way is counted and bounded."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.frames import FrameType, encode_frame
from fanlight_broker.protocols.amqp.methods import method_frame
from fanlight_broker.protocols.amqp.properties import BasicProperties, encode_header
from tests.broker.protocols.amqp.amqp_values import basic_properties
from tests.broker.protocols.amqp.world import Got, Peer, World, content, published

PUBLISH = (60, 40)


def confirming(world: World) -> Peer:
    peer = world.channel()
    assert peer.ask(entity.ConfirmSelect()) == entity.ConfirmSelectOk()
    return peer


@settings(deadline=None)
@given(body=st.binary(max_size=300), properties=basic_properties, cut=st.integers(1, 400))
def test_a_message_comes_as_it_went(body: bytes, properties: BasicProperties, cut: int) -> None:
    fields = {name: getattr(properties, name) for name in BasicProperties.__dataclass_fields__}
    fields |= {"expiration": None, "user_id": None}
    if fields["headers"] is not None:
        fields["headers"] = {name: each for name, each in fields["headers"].items() if name not in ("CC", "BCC")}
    world = World()
    peer = world.channel()
    peer.declare()
    octets = published("q", body, **fields)
    peer.send(*(octets[at : at + cut] for at in range(0, len(octets), cut)))
    (got,) = peer.consume()
    assert got == Got(1, basic.BasicDeliver("c", 1, False, "", "q"), BasicProperties(**fields), body)


@pytest.mark.parametrize("size", [0, 1, 4_087, 4_088, 4_089, 8_176, 100_000])
def test_a_body_is_cut_at_the_receivers_frame_max(size: int) -> None:
    world = World()
    writer, reader = world.channel(), world.channel(frame_max=4_096)
    writer.declare()
    body = bytes(range(256)) * (size // 256 + 1)
    writer.publish("q", body[:size])
    (got,) = reader.consume()
    assert got.body == body[:size]


def test_empty_body_frames_are_legal() -> None:
    world = World()
    peer = world.channel()
    peer.declare()
    empty = encode_frame(FrameType.BODY, 1, b"")
    header = encode_frame(FrameType.HEADER, 1, encode_header(2, b"\0\0"))
    peer.send(method_frame(1, basic.BasicPublish(routing_key="q")) + header + empty
              + encode_frame(FrameType.BODY, 1, b"ab"))
    assert peer.counts() == (1, 0)


def test_contents_of_two_channels_may_be_interleaved() -> None:
    world = World()
    peer = world.channel()
    peer.declare()
    peer.ask(first.ChannelOpen(), 2)
    one, two = published("q", b"one", channel=1), published("q", b"two", channel=2)
    at_one, at_two = one.index(b"\x02\0\1"), two.index(b"\x02\0\2")
    peer.send(one[:at_one] + two[:at_two] + one[at_one:] + two[at_two:])
    assert [each.body for each in peer.consume()] == [b"one", b"two"]


# -- confirms, returns ----------------------------------------------------------------------------------------------


def test_confirms_count_from_1_and_a_return_comes_before_its_ack() -> None:
    world = World()
    peer = confirming(world)
    peer.declare()
    peer.publish("q", b"1", mandatory=True)
    peer.publish("nowhere", b"2", mandatory=True, content_type="text/plain")
    peer.publish("nowhere", b"3")
    assert peer.got() == [
        Got(1, basic.BasicAck(1)),
        Got(1, basic.BasicReturn(312, "NO_ROUTE", "", "nowhere"), BasicProperties(content_type="text/plain"), b"2"),
        Got(1, basic.BasicAck(2)),
        Got(1, basic.BasicAck(3)),
    ]
    assert (world.counts.confirms, world.counts.returned) == (3, 1)


def test_without_confirms_a_message_returns_all_the_same() -> None:
    peer = World().channel()
    peer.publish("nowhere", b"x", mandatory=True)
    peer.publish("nowhere", b"y")
    (got,) = peer.got()
    assert (got.method.reply_code, got.body) == (312, b"x")


def test_a_full_queue_refuses_and_a_confirm_says_so() -> None:
    world = World()
    peer = confirming(world)
    peer.declare(arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    peer.publish("q", b"1")
    peer.publish("q", b"2")
    assert [each.method for each in peer.got()] == [basic.BasicAck(1), basic.BasicNack(2, False, False)]
    other = world.channel()
    other.publish("q", b"3")
    assert other.got() == []
    assert world.counts.discarded == 1
    assert peer.counts() == (1, 0)


def test_answers_come_in_the_order_of_what_they_answer() -> None:
    world = World()
    peer = confirming(world)
    peer.declare("q", durable=True)
    peer.send(published("q", b"1", delivery_mode=2) + method_frame(1, entity.QueueDeclare(queue="q", passive=True)))
    assert [type(each.method) for each in peer.got()] == [basic.BasicAck, entity.QueueDeclareOk]


# -- mistakes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        (published("k", b"x", "missing"), 404),
        (published("q", b"x", expiration="1.5"), 406), (published("q", b"x", expiration=""), 406),
        (published("q", b"x", expiration="-1"), 406), (published("q", b"x", expiration="10 "), 406),
        (published("q", b"x", expiration="99999999999"), 406), (published("q", b"x", expiration="٣"), 406),
        (published("q", b"x", user_id="somebody"), 406),
        (published("q", b"x", headers={"CC": "b"}), 406), (published("q", b"x", headers={"BCC": 1}), 406),
        (published("q", b"x", headers={"CC": ["a"] * 128, "BCC": ["b"] * 129}), 406),
        (published("q", bytes(2_000)), 406),
    ],
)  # fmt: skip
def test_a_message_that_is_not_in_order_closes_the_channel(octets: bytes, code: int) -> None:
    world = World(message_bytes_max=1_999)
    peer = world.channel()
    peer.declare()
    peer.send(octets + published("q", b"behind") + method_frame(1, entity.QueueDeclare(queue="q", passive=True)))
    assert peer.error() == (False, code, PUBLISH)
    assert world.channel().counts() == (0, 0)
    assert world.broker.ledger.inboxes.used == 0


def test_an_internal_exchange_is_not_for_clients() -> None:
    peer = World().channel()
    peer.ask(entity.ExchangeDeclare(exchange="x", type="fanout", internal=True))
    peer.publish("", b"x", "x")
    assert peer.error() == (False, 403, PUBLISH)


def test_user_id_is_the_users_own() -> None:
    peer = World().channel()
    peer.declare()
    peer.publish("q", b"x", user_id="guest")
    assert peer.counts() == (1, 0)


def test_an_expiration_is_a_time_to_live() -> None:
    world = World()
    peer = world.channel()
    peer.declare()
    peer.publish("q", b"short", expiration="5000")
    peer.publish("q", b"long", expiration="50000")
    world.pass_time(6)
    (got,) = peer.consume()
    assert got.body == b"long"
    assert got.properties is not None
    assert got.properties.expiration == "50000"


# -- bounds ---------------------------------------------------------------------------------------------------------


def test_what_has_come_of_a_body_is_counted_and_dropped_with_its_channel() -> None:
    world = World()
    peer = world.channel()
    peer.declare()
    whole = content(1, bytes(100_000), frame_max=4_096)
    peer.send(method_frame(1, basic.BasicPublish(routing_key="q")) + whole[:50_000])
    assert world.broker.ledger.inboxes.used > 40_000
    peer.send(whole[50_000:])
    assert peer.counts() == (1, 0)
    before = world.broker.ledger.inboxes.used
    peer.send(method_frame(1, basic.BasicPublish(routing_key="q")) + whole[:50_000])
    peer.vanish()
    assert world.broker.ledger.inboxes.used <= before


def test_a_body_that_finds_no_room_in_all_inboxes_ends_its_connection() -> None:
    world = World(inboxes_bytes_max=1024 * 1024, message_bytes_max=8 * 1024 * 1024)
    peer, other = world.channel(), world.channel()
    peer.declare()
    peer.send(published("q", bytes(4 * 1024 * 1024)))
    assert peer.error()[:2] == (True, 406)
    assert other.counts() == (0, 0)
