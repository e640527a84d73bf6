"""SUBSCRIBE, UNSUBSCRIBE, CREDIT, queue groups, receipts and errors (sections 3.3, 3.5, 4, 5, 6 and 7)."""

from typing import Any

import pytest

from tests.broker.protocols.native.world import Peer, World, frame, messages, publish


def error_of(peer: Peer, request: int | None, code: str) -> Any:
    """The one frame that came is this ERROR, and it did not close; returns its details."""
    (error,) = peer.frames()
    assert error[:3] == [13, request, code]
    assert isinstance(error[3], str)
    assert not peer.gone
    return error[4]


def test_a_receipt_counts_subscriptions_and_a_group_once() -> None:
    world = World()
    peer, other = world.connect(), world.connect()
    for number, pattern in enumerate(["a", "*", "#"]):
        peer.say(6, None, number, pattern)
    for number in range(10, 14):
        other.say(6, None, number, "a", {"group": "g"})
    other.send(publish("a", b"x", request=1), publish("b", b"", request=2), publish("a", b"", request=3))
    assert [fields for fields in other.frames() if fields[0] == 5] == [[5, 1, 4], [5, 2, 2], [5, 3, 4]]
    assert world.broker.ledger.receipts == 3


def test_requests_are_answered_in_their_order() -> None:
    peer = World().connect()
    peer.send(
        b"".join(
            [
                publish("a", b"", request=1), frame(6, 2, 1, "a"), frame(6, 3, 1, "a"),
                publish("$SYS.x", b"", request=4), publish("new.topic", b"", request=5), frame(8, 6, 9),
                frame(8, 7, 1), frame(77, 8),
                publish("a", b"", None, 9, request=9), publish("new.topic", b"", request=10),
            ]
        )
    )  # fmt: skip
    assert [fields[1] for fields in peer.frames()] == [1, 2, 3, 4, 5, 6, 7, None, 9, 10]


def test_errors_carry_their_numbers() -> None:
    world = World(subscriptions_per_client_max=2, subscriptions_max=3, topic_words_max=4, topic_bytes_max=20)
    peer, other = world.connect(), world.connect()
    peer.say(6, 1, 1, "a.#")
    peer.frames()
    peer.say(6, 2, 1, "b")
    assert error_of(peer, 2, "subscription_in_use") == {"subscription": 1}
    peer.say(8, 3, 5)
    assert error_of(peer, 3, "no_such_subscription") == {"subscription": 5}
    peer.say(10, 5, 1)
    assert error_of(peer, None, "no_such_subscription") == {"subscription": 5}
    peer.say(6, 4, 2, "b/+x", {"syntax": 1})
    assert error_of(peer, 4, "invalid_filter") == {"position": 2}
    peer.say(6, 4, 2, "a.b.c.d.e")
    assert error_of(peer, 4, "invalid_filter") == {"position": 8}
    peer.say(6, 4, 2, "a" * 21)
    assert error_of(peer, 4, "invalid_filter") == {"position": 20}
    peer.send(publish("a.b.c.d.e", request=5))
    assert error_of(peer, 5, "invalid_topic") == {"position": 8}
    peer.send(publish("a/+", b"", None, 1, request=5))
    assert error_of(peer, 5, "invalid_topic") == {"position": 2}
    peer.send(publish("a", b"", None, 0, "a" * 21, request=6))
    assert error_of(peer, 6, "invalid_topic") == {"position": 20}
    peer.send(publish("$SYS.x", b""))
    assert error_of(peer, None, "not_permitted") is None
    peer.send(publish("a", b"", None, 2, request=7))
    assert error_of(peer, 7, "unsupported") == {"syntax": 2}
    peer.say(6, 8, 2, "a", {"syntax": 2})
    assert error_of(peer, 8, "unsupported") == {"syntax": 2}
    peer.say(41, 9)
    assert error_of(peer, None, "unsupported") == {"type": 41}
    for option in ("durable", "ack", "ack_wait", "prefetch", "deliver", "queue"):
        peer.say(6, 9, 2, "a", {option: True})
        assert error_of(peer, 9, "unsupported") == {"option": option}
    peer.say(6, None, 2, "a")
    peer.say(6, 10, 3, "a")
    assert error_of(peer, 10, "limit_exceeded") == {"limit": "subscriptions_per_client_max", "value": 2}
    other.say(6, None, 1, "a")
    other.say(6, 11, 2, "a")
    assert error_of(other, 11, "limit_exceeded") == {"limit": "subscriptions_max", "value": 3}
    assert peer.protocol.refused == 20
    assert world.broker.ledger.messages_in == 0


def test_the_text_of_an_error_is_short_whatever_was_sent() -> None:
    peer = World().connect()
    peer.say(6, 1, 1, b"\xff" * 60_000 + b"+", {"syntax": 1})
    peer.send(publish(b"\xfe" * 65_000 + b"\x00", b"", None, 1))
    assert len(peer.received) < 2_000
    assert [fields[2] for fields in peer.frames()] == ["invalid_filter", "invalid_topic"]


def test_credit_that_may_not_be_is_refused_and_changes_nothing() -> None:
    peer = World().connect()
    peer.say(6, None, 1, "a")
    peer.say(10, 1, 5)
    assert error_of(peer, None, "protocol_error") == {"subscription": 1}
    peer.say(6, None, 2, "b", {"credit": 1})
    peer.say(10, 2, 0xFFFF_FFFF)
    assert error_of(peer, None, "protocol_error") == {"subscription": 2}
    peer.say(10, 2, 0xFFFF_FFFE)
    peer.send(publish("b", b"1") + publish("a", b"2"))
    assert messages(peer.frames()) == [(2, b"1"), (1, b"2")]


def test_messages_wait_for_credit_and_what_is_beyond_is_dropped_the_newest_first() -> None:
    world = World()
    peer = world.connect()
    peer.say(6, None, 1, "a", {"credit": 1, "pending_messages": 2})
    for n in range(5):
        peer.send(publish("a", b"%d" % n))
    assert messages(peer.frames()) == [(1, b"0")]
    assert peer.protocol.outbox.awaiting_credit > 0
    peer.say(10, 1, 1)
    assert messages(peer.frames()) == [(1, b"1")]
    peer.send(publish("a", b"5"))  # behind what waits, although nothing is unsent
    peer.say(10, 1, 10)
    assert messages(peer.frames()) == [(1, b"2"), (1, b"5")]
    peer.say(8, 9, 1)
    assert peer.frames() == [[7, 9, {"delivered": 4, "dropped": 2}]]
    assert world.broker.ledger.dropped_credit == 2
    assert world.broker.ledger.used == 0


def test_pending_messages_may_be_zero_and_is_never_above_the_limit() -> None:
    world = World(pending_messages_max=3)
    peer = world.connect()
    peer.say(6, None, 1, "a", {"credit": 0, "pending_messages": 0})
    peer.say(6, None, 2, "a", {"credit": 0, "pending_messages": 1_000_000})
    for n in range(5):
        peer.send(publish("a", b"%d" % n))
    peer.say(8, 1, 1)
    peer.say(10, 2, 9)
    ok, *rest = peer.frames()
    assert ok == [7, 1, {"delivered": 0, "dropped": 5}]
    assert messages(rest) == [(2, b"0"), (2, b"1"), (2, b"2")]


def test_what_waits_for_credit_when_a_subscription_ends_is_counted_as_dropped() -> None:
    world = World()
    peer = world.connect()
    peer.say(6, None, 1, "a", {"credit": 0, "after": 2})
    peer.send(publish("a", b"x") * 3)
    peer.say(10, 1, 5)
    got = peer.frames()
    assert messages(got) == [(1, b"x"), (1, b"x")]
    assert got[-1] == [9, 1, "after", 2, 1]
    assert world.broker.ledger.used == 0


def test_unsubscribe_after_n_counts_from_the_start() -> None:
    peer = World().connect()
    peer.say(6, None, 1, "a")
    peer.send(publish("a", b"0"))
    peer.say(8, 1, 1, 3)
    peer.send(publish("a", b"1") + publish("a", b"2") + publish("a", b"3", request=2))
    assert peer.frames() == [
        [4, 1, "a", b"0"], [7, 1], [4, 1, "a", b"1"], [4, 1, "a", b"2"], [5, 2, 0], [9, 1, "after", 3, 0],
    ]  # fmt: skip
    peer.say(8, 3, 1)
    error_of(peer, 3, "no_such_subscription")


def test_unsubscribe_after_what_it_has_had_already_ends_it_with_a_word() -> None:
    peer = World().connect()
    peer.say(6, None, 1, "a")
    peer.send(publish("a", b"0") * 2)
    peer.frames()
    peer.send(frame(8, 1, 1, 2) + publish("a", b"1", request=2))
    assert peer.frames() == [[7, 1], [5, 2, 0], [9, 1, "after", 2, 0]]


def test_unsubscribe_after_the_largest_number_is_no_overflow() -> None:
    peer = World().connect()
    peer.say(6, None, 1, "a", {"after": 2**64 - 1})
    peer.say(6, None, 2, "a")
    peer.say(8, None, 2, 2**64 - 1)
    peer.send(publish("a", b"0"))
    assert messages(peer.frames()) == [(1, b"0"), (2, b"0")]


def test_after_zero_is_no_number_of_messages() -> None:
    peer = World().connect()
    peer.say(6, 5, 1, "a", {"after": 0})
    error, _ = peer.frames()
    assert error[:3] == [13, 5, "protocol_error"]
    assert peer.gone


def test_no_message_follows_the_ok_of_an_immediate_unsubscribe() -> None:
    world = World()
    peer, other = world.connect(), world.connect()
    peer.say(6, None, 1, "a")
    peer.reads = False
    other.send(publish("a", b"0") * 3)
    peer.say(8, 1, 1)
    other.send(publish("a", b"1", request=1))
    peer.read_all()
    assert other.frames() == [[5, 1, 0]]
    assert peer.frames() == [[4, 1, "a", b"0"]] * 3 + [[7, 1, {"delivered": 3, "dropped": 0}]]


def test_a_number_may_be_used_again_and_begins_anew() -> None:
    peer = World().connect()
    for _ in range(3):
        peer.say(6, None, 1, "a")
        peer.send(publish("a", b"0"))
        peer.say(8, 2, 1)
        assert peer.frames()[-1] == [7, 2, {"delivered": 1, "dropped": 0}]


def test_no_echo_is_about_the_connection_and_not_the_client() -> None:
    world = World()
    peer, twin = world.connect(client="x"), world.connect(client="x")
    peer.say(6, None, 1, "a", {"no_echo": True})
    peer.say(6, None, 2, "a", {"no_echo": True, "group": "g"})
    twin.say(6, None, 1, "a")
    peer.send(publish("a", b"0", request=1))
    assert peer.frames() == [[5, 1, 1]]
    twin.send(publish("a", b"1", request=2))
    assert [message[1:] for message in peer.frames()] == [[1, "a", b"1"], [2, "a", b"1"]]


def test_a_queue_group_is_name_and_filter_and_each_gets_the_message_once() -> None:
    world = World()
    peers = [world.connect() for _ in range(4)]
    for peer in peers[:2]:
        peer.say(6, None, 1, "a.*", {"group": "g"})
    peers[2].say(6, None, 1, "a.#", {"group": "g"})  # another filter: another group
    peers[3].say(6, None, 1, "a.*", {"group": "h"})
    for n in range(6):
        peers[0].send(publish("a.b", b"%d" % n, request=n))
    got = [[payload for _, payload in messages(frames)] for frames in [peer.frames() for peer in peers]]
    assert got[0] == [b"0", b"2", b"4"]  # ties in turn
    assert got[1] == [b"1", b"3", b"5"]
    assert len(got[2]) == len(got[3]) == 6


def test_a_queue_group_passes_over_members_that_are_behind_or_without_credit() -> None:
    world = World()
    slow, quick, poor = (world.connect() for _ in range(3))
    slow.say(6, None, 1, "a", {"group": "g"})
    quick.say(6, None, 1, "a", {"group": "g"})
    poor.say(6, None, 1, "a", {"group": "g", "credit": 1})
    slow.reads = False
    for n in range(9):
        quick.send(publish("a", b"%d" % n))
    assert len(messages(poor.frames())) == 1
    assert slow.protocol.outbox.messages == 1
    assert len(messages(quick.frames())) == 7


def test_a_group_without_a_member_that_listens_routes_to_nobody() -> None:
    peer = World().connect()
    peer.say(6, None, 1, "a", {"group": "g", "no_echo": True})
    peer.send(publish("a", request=1))
    assert peer.frames() == [[5, 1, 0]]


@pytest.mark.parametrize("group", ["", "x" * 256, "ü" * 128])
def test_the_name_of_a_group_is_1_to_255_bytes(group: str) -> None:
    peer = World().connect()
    peer.say(6, 1, 1, "a", {"group": group})
    error, _ = peer.frames()
    assert error[2] == "protocol_error"


@pytest.mark.parametrize("syntax", [0, 1])
def test_reserved_topics_reach_only_filters_with_that_first_word(syntax: int) -> None:
    peer = World().connect()
    inbox = peer.info["inbox"]
    spelled = inbox.replace(".", "/")
    for number, pattern in enumerate(["#", "*.*.x", f"{inbox}.#", "#.x", f"{inbox}.x"]):
        peer.say(6, None, number, pattern)
    for number, pattern in enumerate(["#", "+/+/x", f"{spelled}/#"], 10):
        peer.say(6, None, number, pattern, {"syntax": 1})
    peer.send(publish([f"{inbox}.x", f"{spelled}/x"][syntax], b"", None, syntax))
    assert [number for number, _ in messages(peer.frames())] == [2, 4, 12]


def test_a_request_and_its_reply() -> None:
    world = World()
    asks, answers = world.connect(), world.connect()
    inbox = asks.info["inbox"]
    asks.say(6, None, 1, f"{inbox}.#")
    asks.send(publish("time", b"?", None, 0, f"{inbox}.1", request=1))
    assert asks.frames() == [[5, 1, 0]]  # no one is listening
    answers.say(6, None, 1, "time")
    asks.send(publish("time", b"?", None, 0, f"{inbox}.2", request=2))
    (question,) = answers.frames()
    answers.send(publish(question[6], b"noon"))
    assert asks.frames() == [[5, 2, 1], [4, 1, f"{inbox}.2", b"noon"]]
