"""HELLO, WELCOME, credentials, versions, and how a connection ends (sections 1, 3.1, 3.2, 3.6 and 7)."""

import re
from typing import Any

import pytest

from fanlight_broker.core.connection import ConnectionState
from fanlight_broker.core.errors import AuthenticationFailed
from fanlight_broker.core.identity import ANONYMOUS, Identity
from tests.broker.protocols.native.world import Peer, World, frame, publish


def closed_with(peer: Peer, code: str) -> None:
    """ERROR and GOODBYE with this code, and the end."""
    error, goodbye = peer.frames()[-2:]
    assert error[0] == 13
    assert error[2] == code
    assert goodbye[:2] == [14, code]
    assert peer.gone


def test_welcome_says_what_is_in_force() -> None:
    world = World(idle_seconds_max=30, frame_bytes_max=5_000, topic_bytes_max=99, topic_words_max=9)
    peer = world.open()
    peer.say(1, 1, {"client": "desk-7", "agent": "demo/1.0", "slow_policy": "drop_oldest", "later": [1]})
    kind, version, info = peer.next()
    assert (kind, version) == (2, 1)
    assert re.fullmatch(r"\$inbox\.[0-9a-f]{32}", info.pop("inbox"))
    assert info.pop("server").startswith("fanlight/")
    assert info == {
        "connection": 1, "client": "desk-7", "slow_policy": "drop_oldest", "idle_seconds": 30,
        "features": ["marks", "queues", "delay", "cancel", "where"],
        "limits": {
            "frame_bytes": 5_000, "topic_bytes": 99, "topic_words": 9, "subscriptions": 250_000,
            "pending_messages": 1_000, "outbox_bytes": 8 * 1024 * 1024,
        },
    }  # fmt: skip


def test_a_client_without_a_name_is_given_one_and_no_two_share_an_inbox() -> None:
    world = World()
    first, second = world.connect(), world.connect()
    assert [first.info["client"], second.info["client"]] == ["client-1", "client-2"]
    assert [first.info["connection"], second.info["connection"]] == [1, 2]
    assert first.info["inbox"] != second.info["inbox"]


def test_credentials_are_handed_on_and_not_kept() -> None:
    peer = World().connect(user="anna", password="s3cret")
    assert peer.credentials == [("anna", "s3cret")]
    assert peer.protocol._hello is None
    assert peer.protocol.client is not None
    assert peer.protocol.client.subscriber.user == "anna"


def test_wrong_credentials_end_it() -> None:
    peer = World().open()
    peer.log_in = False
    peer.say(1, 1, {"user": "anna"})
    assert peer.protocol.state is ConnectionState.VERIFYING
    peer.refuse(AuthenticationFailed("wrong user or password"))
    closed_with(peer, "authentication_failed")
    peer.protocol.authenticated(Identity("anna"), 0.0)  # an answer that comes too late changes nothing
    assert len(peer.world.broker.clients) == 0


def test_what_comes_behind_hello_is_processed_after_it() -> None:
    world = World()
    peer = world.open()
    peer.log_in = False
    peer.send(frame(1, 1, {}) + frame(6, 1, 1, "a") + publish("a", b"x", request=2), frame(11, 9))
    assert peer.frames() == []
    assert peer.held_back
    peer.protocol.authenticated(ANONYMOUS, world.now)
    world.turn()
    assert [fields[0] for fields in peer.frames()] == [2, 7, 4, 5, 12]


@pytest.mark.parametrize("cut", range(1, 14))
def test_a_frame_that_was_cut_behind_hello_is_whole_afterwards(cut: int) -> None:
    peer = World().open()
    ping = publish("a", b"xy", request=7)
    peer.send(frame(1, 1, {}) + ping[:cut], ping[cut:])
    assert [fields[0] for fields in peer.frames()] == [2, 5]


def test_a_transport_that_reads_on_while_credentials_are_checked_loses_nothing() -> None:
    world = World()
    peer = world.open()
    peer.log_in = False
    peer.send(frame(1, 1, {}) + frame(11, 1)[:3])
    for octets in (frame(11, 1)[3:], frame(11, 2)):
        peer.resume_reading()
        peer.send(octets)
        world.connect().say(11, 5)  # somebody else uses the one receive buffer
    peer.protocol.authenticated(ANONYMOUS, world.now)
    assert [fields[:2] for fields in _settled(peer)] == [[2, 1], [12, 1], [12, 2]]


def _settled(peer: Peer) -> list[list[Any]]:
    peer.world.turn()
    return peer.frames()


def test_a_stranger_is_held_no_more_for_than_a_small_frame() -> None:
    world = World()
    peer = world.open()
    peer.log_in = False
    peer.send(frame(1, 1, {}) + frame(11, 1) * 20_000)
    assert peer.protocol.inbox.size <= 4_100
    assert world.broker.ledger.inboxes.used <= 4_100 + 64
    peer.protocol.authenticated(ANONYMOUS, world.now)
    world.turn()
    assert len(peer.frames()) == 20_001


def test_before_the_handshake_frames_are_small() -> None:
    peer = World().open()
    peer.send((4_097).to_bytes(4, "big"))
    closed_with(peer, "frame_too_large")


def test_the_largest_frame_is_taken_and_one_byte_more_is_not() -> None:
    world = World(frame_bytes_max=1_024)
    peer = world.connect()
    largest = publish("a", bytes(1_024 - 8), request=1)
    assert len(largest) == 4 + 1_024
    peer.send(largest)
    assert peer.frames() == [[5, 1, 0]]
    too_large = publish("a", bytes(1_024 - 7), request=1)
    peer.send(too_large)
    error, _ = peer.frames()
    assert error[4] == {"limit": 1_024, "size": 1_025}
    assert peer.gone


def test_an_unknown_version_is_told_which_are_spoken() -> None:
    peer = World().open()
    peer.say(1, 0, {})
    error, _ = peer.frames()
    assert error[2] == "unsupported_version"
    assert error[4] == {"versions": [1]}


@pytest.mark.parametrize(
    "options",
    [
        {"client": "x" * 65}, {"agent": "ü" * 33}, {"user": b"anna"}, {"password": 5}, {"slow_policy": "polite"},
        {"client": ["a"]},
    ],
    ids=str,
)  # fmt: skip
def test_options_of_hello_are_checked(options: dict[str, Any]) -> None:
    peer = World().open()
    peer.say(1, 1, options)
    closed_with(peer, "protocol_error")


@pytest.mark.parametrize("fields", [(6, 1, 1, "a"), (8, 1, 1), (10, 1, 1), (11,), (12,), (3, 1, "a", b"")], ids=str)
def test_nothing_but_hello_and_goodbye_comes_first(fields: tuple[Any, ...]) -> None:
    peer = World().open()
    peer.say(*fields)
    closed_with(peer, "protocol_error")


def test_goodbye_first_is_a_change_of_mind() -> None:
    peer = World().open()
    peer.say(14, "normal")
    assert peer.received == b""
    assert peer.gone
    assert peer.protocol.failed is None


def test_goodbye_flushes_and_nothing_behind_it_is_done() -> None:
    world = World()
    other = world.connect()
    other.say(6, None, 1, "a")
    peer = world.connect()
    peer.send(publish("a", b"before", request=1) + frame(14, "normal") + publish("a", b"after", request=2))
    assert [fields[3] for fields in other.frames()] == [b"before"]
    assert peer.frames() == [[5, 1, 1]]
    assert peer.gone
    peer.protocol.inbox.feed(publish("a", b"much later"))
    peer.protocol.receive(world.now)
    assert other.frames() == []
    assert world.broker.ledger.used == 0


def test_a_closed_connection_says_nothing_more_and_gets_nothing_more() -> None:
    world = World()
    peer, other = world.connect(), world.connect()
    peer.say(6, None, 1, "a")
    peer.reads = False
    peer.protocol.say_goodbye("shutting_down", "later")
    other.send(publish("a", b"", request=1))
    assert other.frames() == [[5, 1, 0]]  # it counts as nobody
    peer.protocol.say_goodbye("shutting_down", "twice")
    peer.read_all()
    assert [fields[:2] for fields in peer.frames()] == [[14, "shutting_down"]]
    assert peer.gone


def test_silence_is_answered_with_ping_and_then_with_goodbye() -> None:
    world = World(idle_seconds_max=10)
    peer = world.connect()
    world.pass_time(4.9)
    assert peer.frames() == []
    world.pass_time(0.2)
    assert peer.frames() == [[11, 1]]
    world.pass_time(3)
    assert peer.frames() == []  # asked once
    peer.say(12, 1)
    world.pass_time(4.9)
    assert peer.frames() == []
    world.pass_time(0.2)
    assert peer.frames() == [[11, 2]]
    world.pass_time(5)
    (goodbye,) = peer.frames()
    assert goodbye[:2] == [14, "idle_timeout"]
    assert peer.gone


def test_no_idle_time_means_for_ever() -> None:
    world = World(idle_seconds_max=0)
    peer = world.connect()
    world.pass_time(1e9)
    assert peer.frames() == []
    assert not peer.gone


def test_a_connection_that_breaks_leaves_nothing_behind() -> None:
    world = World()
    peer, other = world.connect(), world.connect()
    for number in range(20):
        peer.say(6, None, number, "a.#", {"credit": number % 2, "group": "g" if number % 3 else None})
    other.send(publish("a.b", bytes(30_000)) * 3)
    peer.send(frame(11, 1)[:3])
    peer.vanish()
    other.vanish()
    broker = world.broker
    assert len(broker.clients) == 0
    assert len(broker.router) == 0
    assert broker.ledger.used == 0
    assert broker.subscribing.begun == broker.subscribing.ended == 20
