"""The lane cuts the stream as the plain decoder does, whichever way the bytes arrive (5.0: 2.1; 3.1.1: 2.2)."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fanlight_broker.protocols.mqtt.errors import PacketError
from fanlight_broker.protocols.mqtt.framing import PacketDecoder, RawPacket
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.wire.lane import BLOCKED, FRAME, TOO_LARGE
from tests.broker.protocols.mqtt.corpus import CORPUS, PING
from tests.broker.protocols.mqtt.laned import MAXIMUM, Client, Ended, cut

Outcome = tuple[list[RawPacket], Ended | None]


def decoded(*pieces: bytes, maximum: int = MAXIMUM) -> Outcome:
    """The same in plain Python."""
    decoder = PacketDecoder(maximum)
    found = []
    try:
        for piece in pieces:
            decoder.feed(piece)
            while (packet := decoder.next_packet()) is not None:
                found.append(packet)
    except PacketError as error:
        return found, (error.reason_code, error.text)
    return found, None


@pytest.mark.parametrize("entry", CORPUS, ids=str)
def test_a_packet_is_found_whole_and_byte_by_byte_and_with_a_tail(entry: object) -> None:
    octets: bytes = entry.octets  # type: ignore[attr-defined]
    whole = decoded(octets)
    assert len(whole[0]) == 1
    assert Client().send(octets) == whole
    assert Client().send(*cut(octets, 1)) == whole
    for tail in (PING, octets, PING[:1]):
        assert Client().send(octets + tail) == decoded(octets + tail)


PACKETS = st.sampled_from([entry.octets for entry in CORPUS])
MUTATED = st.builds(
    lambda octets, at, octet: octets[: at % len(octets)] + bytes((octet,)) + octets[at % len(octets) + 1 :],
    PACKETS, st.integers(0, 200), st.integers(0, 255),
)  # fmt: skip
STREAMS = st.lists(st.one_of(PACKETS, MUTATED, st.binary(max_size=6)), max_size=5).map(b"".join)


@settings(max_examples=200, deadline=None)
@given(octets=STREAMS, size=st.integers(1, 40))
@example(octets=bytes.fromhex("3080808080"), size=1)
@example(octets=bytes.fromhex("30ffffffff"), size=9)
@example(octets=bytes.fromhex("308000"), size=1)
@example(octets=bytes.fromhex("3080808000"), size=9)
@example(octets=bytes.fromhex("30ab02"), size=9)
def test_any_bytes_give_the_packets_and_the_error_of_the_plain_decoder(octets: bytes, size: int) -> None:
    pieces = cut(octets, size)
    assert Client().send(*pieces) == decoded(*pieces)


def test_a_packet_of_the_maximum_is_taken_and_one_byte_more_is_refused_before_its_body() -> None:
    """3.1.2.11.4: the fixed header counts."""
    body = b"x" * (MAXIMUM - 3)
    assert Client().send(b"\x30\xa9\x02" + body) == ([RawPacket(0x30, body)], None)
    client = Client()
    client.inbox.feed(b"\x30\xaa\x02")
    assert client.lane.advance(0.0) == TOO_LARGE
    assert client.lane.frame_size == MAXIMUM + 1


def test_a_first_byte_that_no_packet_has_is_refused_before_its_length_comes() -> None:
    found, error = Client().send(b"\x00")
    assert found == []
    assert error is not None
    assert error[0] == ReasonCode.MALFORMED_PACKET


def test_between_reads_nothing_is_held_but_the_beginning_of_one_packet() -> None:
    client = Client(packet_max=1 << 20)
    large = b"\x30\x80\x80\x02" + bytes(1 << 15)
    for piece in cut(large * 3, 1_000):
        client.send(piece)
        assert client.inbox.size < len(large)
        assert client.ledger.inboxes.used < 2 * len(large) + 40_000
    assert client.inbox.size == 0
    assert client.ledger.inboxes.used == 0


def test_who_leaves_answers_unread_is_not_read_from() -> None:
    client = Client(control_max=10)
    client.outbox.write(bytes(11))
    client.inbox.feed(PING)
    assert client.lane.advance(0.0) == BLOCKED
    assert client.lane.blocker is client.outbox
    client.outbox.read()
    client.inbox.resume()
    assert client.send() == ([], None)
    assert client.lane.advance(0.0) == FRAME
