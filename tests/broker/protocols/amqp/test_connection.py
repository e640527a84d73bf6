"""Connections (1.4): negotiation, login, tune, open, heartbeats, close; and what each mistake is answered with."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.core import errors
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.basic_methods import BasicDeliver, BasicPublish
from fanlight_broker.protocols.amqp.field_table import encode_table
from fanlight_broker.protocols.amqp.frames import HEARTBEAT, PROTOCOL_HEADER, FrameType, encode_frame
from fanlight_broker.protocols.amqp.methods import encode_method, method_frame
from fanlight_broker.protocols.amqp.properties import encode_header
from tests.broker.protocols.amqp.world import PLAIN, World, content, published
from tests.captured_logs import capture_logs

NOTHING = (0, 0)


# -- negotiation ----------------------------------------------------------------------------------------------------


def test_start_has_rabbitmqs_capabilities() -> None:
    peer = World().open()
    peer.send(PROTOCOL_HEADER)
    start = peer.method(first.ConnectionStart)
    assert (start.version_major, start.version_minor, start.locales) == (0, 9, b"en_US")
    assert start.mechanisms == b"PLAIN AMQPLAIN ANONYMOUS"
    assert start.server_properties["product"] == "Fanlight"
    capabilities = start.server_properties["capabilities"]
    assert capabilities["publisher_confirms"] is capabilities["basic.nack"] is True


@pytest.mark.parametrize(
    "header", [b"AMQP\x00\x01\x00\x00", b"AMQP\x01\x01\x00\x0a", b"AMQP\x03\x01\x00\x00", b"\0" * 8]
)
def test_another_version_gets_the_header_of_this_one_and_is_closed(header: bytes) -> None:
    peer = World().open()
    peer.send(header)
    assert peer.received == PROTOCOL_HEADER
    assert peer.close_reason is not None


@pytest.mark.parametrize("pieces", [1, 3, 1_000])
def test_the_handshake_may_come_in_any_pieces(pieces: int) -> None:
    octets = PROTOCOL_HEADER + method_frame(0, PLAIN)
    peer = World().open()
    peer.send(*(octets[at : at + pieces] for at in range(0, len(octets), pieces)))
    start, tune = peer.got()
    assert isinstance(start.method, first.ConnectionStart)
    assert tune.method == first.ConnectionTune(2_047, 131_072, 60)


def test_what_is_pipelined_is_answered_in_order() -> None:
    world = World()
    peer = world.open()
    peer.send(b"".join([
        PROTOCOL_HEADER, method_frame(0, PLAIN), method_frame(0, first.ConnectionTuneOk(2_047, 131_072, 0)),
        method_frame(0, first.ConnectionOpen("/", "", True)), method_frame(1, first.ChannelOpen("0")),
        method_frame(1, entity.ConfirmSelect()),
    ]))  # fmt: skip
    assert [type(each.method) for each in peer.got()] == [
        first.ConnectionStart, first.ConnectionTune, first.ConnectionOpenOk, first.ChannelOpenOk,
        entity.ConfirmSelectOk,
    ]  # fmt: skip


# -- login ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "response", "credentials"),
    [
        ("PLAIN", b"\0ann\0secret", ("ann", "secret")),
        ("PLAIN", b"admin\0ann\0secret", ("ann", "secret")),
        ("AMQPLAIN", encode_table({"LOGIN": "ann", "PASSWORD": "secret"})[4:], ("ann", "secret")),
        ("ANONYMOUS", b"whoever", (None, None)),
    ],
)
def test_each_mechanism_gives_credentials_to_the_authenticator(
    mechanism: str, response: bytes, credentials: tuple[str | None, str | None]
) -> None:
    peer = World().open()
    peer.shake_hands(first.ConnectionStartOk({}, mechanism, response))
    assert peer.credentials == [credentials]


def test_external_is_offered_to_clients_with_a_certificate() -> None:
    peer = World().open()
    peer.certified = "CN=ann"
    peer.send(PROTOCOL_HEADER)
    assert peer.method().mechanisms == b"EXTERNAL PLAIN AMQPLAIN ANONYMOUS"
    peer.say(first.ConnectionStartOk({}, "EXTERNAL", b""), 0)
    assert peer.method(first.ConnectionTune)
    assert peer.credentials == [(None, None)]


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [
        ("EXTERNAL", b""), ("SCRAM-SHA-256", b"n,,n=u"), ("plain", b"\0a\0b"), ("PLAIN", b""), ("PLAIN", b"\0a"),
        ("PLAIN", b"\0a\0b\0c"), ("PLAIN", b"\0\xff\0b"), ("AMQPLAIN", b""), ("AMQPLAIN", b"\x05LOGINS\xff"),
        ("AMQPLAIN", encode_table({"LOGIN": 1, "PASSWORD": 2})[4:]),
    ],
)  # fmt: skip
def test_a_login_that_is_malformed_is_refused(mechanism: str, response: bytes) -> None:
    peer = World().open()
    peer.send(PROTOCOL_HEADER)
    peer.got()
    peer.say(PLAIN._replace(mechanism=mechanism, response=response), 0)
    assert peer.error() == (True, 403, NOTHING)
    assert peer.credentials == []


@pytest.mark.parametrize("announced", [True, False])
def test_a_wrong_password_is_answered_to_clients_that_announced_it(announced: bool) -> None:
    peer = World().open()
    peer.log_in = False
    peer.send(PROTOCOL_HEADER)
    peer.got()
    peer.say(PLAIN if announced else PLAIN._replace(client_properties={}), 0)
    peer.refuse(errors.AuthenticationFailed("wrong"))
    if announced:
        assert peer.error() == (True, 403, NOTHING)
    else:
        assert peer.received == b""
    assert peer.close_reason is not None


# -- tune, open -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tune_ok", [(0, 131_072, 0), (2_048, 131_072, 0), (10, 0, 0), (10, 131_073, 0), (10, 4_095, 0)]
)
def test_a_client_may_lower_what_is_offered_and_no_more(tune_ok: tuple[int, int, int]) -> None:
    peer = World().open()
    peer.send(PROTOCOL_HEADER, method_frame(0, PLAIN))
    peer.got()
    peer.say(first.ConnectionTuneOk(*tune_ok), 0)
    assert peer.error()[:2] == (True, 530)


@pytest.mark.parametrize("vhost", ["", "other", "//"])
def test_an_unknown_vhost_is_refused(vhost: str) -> None:
    peer = World().open()
    peer.send(PROTOCOL_HEADER, method_frame(0, PLAIN), method_frame(0, first.ConnectionTuneOk(10, 4_096, 0)))
    peer.got()
    peer.say(first.ConnectionOpen(vhost), 0)
    assert peer.error() == (True, 530, (10, 40))


def test_close_is_answered_and_ends_it() -> None:
    world = World()
    peer = world.channel()
    assert peer.ask(first.ConnectionClose(200, "bye"), 0) == first.ConnectionCloseOk()
    assert peer.close_reason is not None
    assert world.counts.channels == 0


def test_a_broker_that_stops_says_320() -> None:
    peer = World().connect()
    peer.protocol.say_goodbye("shutdown", "the broker stops")
    peer.world.turn()
    assert peer.error() == (True, 320, NOTHING)


# -- heartbeats -----------------------------------------------------------------------------------------------------


def test_heartbeats_go_out_every_half_interval() -> None:
    world = World()
    peer = world.connect(heartbeat=10)
    world.pass_time(4)
    assert peer.received == b""
    world.pass_time(1.5)
    assert peer.received == HEARTBEAT
    peer.frames()
    peer.send(HEARTBEAT)
    world.pass_time(5)
    assert peer.received == HEARTBEAT


def test_a_silent_peer_is_dropped_without_a_frame() -> None:
    world = World()
    peer = world.connect(heartbeat=10)
    peer.send(HEARTBEAT)
    world.pass_time(19)
    assert peer.close_reason is None
    peer.received = b""
    world.pass_time(2)
    assert peer.close_reason is not None
    assert peer.received in (b"", HEARTBEAT)


def test_any_frame_counts_as_a_heartbeat() -> None:
    world = World()
    peer = world.channel(heartbeat=10)
    for _ in range(5):
        world.pass_time(15)
        peer.say(first.ChannelFlow(True))
    assert peer.close_reason is None


def test_without_heartbeats_nobody_is_dropped() -> None:
    world = World()
    peer = world.connect(heartbeat=0)
    world.pass_time(100_000)
    assert (peer.received, peer.close_reason) == (b"", None)


# -- mistakes -------------------------------------------------------------------------------------------------------

BAD_END = method_frame(1, first.ChannelFlow(True))[:-1] + b"\xcd"
CUT = encode_frame(FrameType.METHOD, 1, encode_method(entity.QueueDeclare(queue="q"))[:-3])
TRAILING = encode_frame(FrameType.METHOD, 1, encode_method(entity.QueueDeclare(queue="q")) + b"\0")
BAD_TABLE = encode_frame(FrameType.METHOD, 1, encode_method(entity.QueueDeclare(queue="q"))[:-4] + b"\0\0\0\x09\x01kU")
PUBLISH = method_frame(1, BasicPublish(routing_key="q"))
HEADER_OF_5 = encode_frame(FrameType.HEADER, 1, encode_header(5, b"\0\0"))
MISTAKES = {
    "a bad frame end": (BAD_END, 501, NOTHING),
    "an unknown frame type": (b"\x05\0\1\0\0\0\0\xce", 501, NOTHING),
    "a frame too large": (struct.pack(">BHI", 3, 1, 131_072 - 7), 501, NOTHING),
    "a method without its ids": (encode_frame(FrameType.METHOD, 1, b"\0\x32"), 501, NOTHING),
    "arguments cut short": (CUT, 501, NOTHING),
    "arguments with a tail": (TRAILING, 501, NOTHING),
    "a table that lies about its length": (BAD_TABLE, 502, NOTHING),
    "a heartbeat with a payload": (encode_frame(FrameType.HEARTBEAT, 0, b"x"), 501, NOTHING),
    "a heartbeat on a channel": (encode_frame(FrameType.HEARTBEAT, 1, b""), 505, NOTHING),
    "an unknown method": (encode_frame(FrameType.METHOD, 1, b"\0\x32\0\x63"), 503, NOTHING),
    "a method of the server": (method_frame(1, BasicDeliver("c", 1, False, "", "")), 503, (60, 60)),
    "a connection's method on a channel": (method_frame(1, first.ConnectionOpen()), 503, (10, 40)),
    "a channel's method on channel 0": (method_frame(0, first.ChannelOpen()), 503, (20, 10)),
    "a method out of order": (method_frame(0, first.ConnectionTuneOk(1, 4_096, 0)), 503, (10, 31)),
    "a channel opened twice": (method_frame(1, first.ChannelOpen()), 504, (20, 10)),
    "a method on a channel that is not open": (method_frame(9, first.ChannelFlow(True)), 504, (20, 20)),
    "a close on a channel that is not open": (method_frame(9, first.ChannelClose(200, "")), 504, (20, 40)),
    "close-ok without a close": (method_frame(1, first.ChannelCloseOk()), 504, (20, 41)),
    "content on a channel that is not open": (content(9, b"x"), 504, (60, 40)),
    "content on channel 0": (content(0, b"x"), 505, (60, 40)),
    "a header without a method": (content(1, b"x"), 505, (60, 40)),
    "a body without a header": (PUBLISH + encode_frame(FrameType.BODY, 1, b"x"), 505, (60, 40)),
    "two headers": (PUBLISH + HEADER_OF_5 + encode_frame(FrameType.BODY, 1, b"x") + HEADER_OF_5, 505, (60, 40)),
    "two headers at once": (PUBLISH + HEADER_OF_5 + HEADER_OF_5, 505, (60, 40)),
    "a method for a header": (PUBLISH + method_frame(1, first.ChannelFlow(True)), 505, (20, 20)),
    "a header of another class": (
        PUBLISH + encode_frame(FrameType.HEADER, 1, encode_header(5, b"\0\0", 50)), 505, (60, 40)
    ),
    "a body that is too long": (PUBLISH + HEADER_OF_5 + encode_frame(FrameType.BODY, 1, b"123456"), 505, (60, 40)),
    "properties that are cut short": (
        PUBLISH + encode_frame(FrameType.HEADER, 1, encode_header(5, b"\x80\0\x05ab")), 501, (60, 40)
    ),
    "immediate": (published("q", immediate=True), 540, (60, 40)),
    "flow off": (method_frame(1, first.ChannelFlow(False)), 540, (20, 20)),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_has_its_code_and_closes_its_own_connection(name: str) -> None:
    octets, code, ids = MISTAKES[name]
    world = World()
    peer, other = world.channel(), world.channel()
    with capture_logs() as events:
        peer.send(octets)
        peer.send(octets)  # nothing more is read
    assert peer.error() == (True, code, ids)
    assert [each["event"] for each in events if each["log_level"] == "warning"] == ["connection_failed"]
    assert other.ask(first.ChannelFlow(True)) == first.ChannelFlowOk(True)
    assert world.counts.channels == 1


def test_methods_before_open_are_refused() -> None:
    peer = World().open()
    peer.send(PROTOCOL_HEADER)
    peer.got()
    peer.say(first.ChannelOpen(), 1)
    assert peer.error() == (True, 504, (20, 10))


def test_what_a_stranger_may_send_is_bounded() -> None:
    peer = World().open()
    peer.send(PROTOCOL_HEADER)
    peer.got()
    peer.send(struct.pack(">BHI", 1, 0, 4_096))
    assert peer.error() == (True, 501, NOTHING)


def test_channels_are_bounded() -> None:
    peer = World().connect()
    for number in range(1, 2_048):
        peer.say(first.ChannelOpen(), number)
    peer.got()
    peer.say(first.ChannelOpen(), 60_000)
    assert peer.error()[:2] == (True, 530)


# -- the lane -------------------------------------------------------------------------------------------------------


@given(pieces=st.integers(1, 40))
def test_frames_may_come_in_any_pieces(pieces: int) -> None:
    world = World()
    peer = world.channel()
    octets = method_frame(1, entity.QueueDeclare(queue="q")) + HEARTBEAT + published("q", b"hello" * 30)
    peer.send(*(octets[at : at + pieces] for at in range(0, len(octets), pieces)))
    assert peer.method() == entity.QueueDeclareOk("q", 0, 0)
    assert peer.counts("q") == (1, 0)


@given(octets=st.binary(max_size=60))
def test_any_bytes_behind_the_handshake_leave_the_broker_in_order(octets: bytes) -> None:
    world = World()
    peer, other = world.channel(), world.channel()
    peer.send(octets)
    assert other.declare("alive") == "alive"
    if peer.received:
        assert isinstance(peer.got()[-1].method, first.ConnectionClose)


