"""How far producers have got (docs/native-protocol.md, 3.8): pure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.errors import NotPermitted
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.marks import Mark, Marks
from fanlight_broker.core.shares import SharedPot
from fanlight_broker.core.subscriber import Client
from fanlight_broker.protocols.native.format import FORMAT
from tests.broker.core.parts import Listener, at_once

MARK = st.builds(Mark, st.sampled_from(["", "anna"]), st.sampled_from("pq"), st.integers(0, 2), st.integers(0, 3))


def marks_of(**limits: int) -> tuple[Marks, Client]:
    """Of a broker, and a client of it."""
    broker = Broker(Limits(**limits), schedule=lambda: None, next_turn=at_once)
    return broker.marks, client_of(broker)


def client_of(broker: Broker, address: str = "192.0.2.1", user: str = "", *, verified: bool = False) -> Client:
    return broker.clients.connect(
        broker.new_outbox(), Listener(), 0.0, name=None, user=user, agent="", address=address, protocol="test",
        format=FORMAT, verified=verified,
    )  # fmt: skip


@given(st.lists(MARK, max_size=30))
def test_a_message_is_taken_if_its_mark_is_above_all_that_were(published: list[Mark]) -> None:
    (marks, client), taken = marks_of(), list[Mark]()
    for mark in published:
        known = any(mark[:2] == each[:2] and mark[2:] <= each[2:] for each in taken)
        assert marks.repeats(mark) == known
        if not known:
            marks.advance(mark, client)
            taken.append(mark)
    assert marks.repeated == len(published) - len(taken)


def test_a_batch_counts_for_more_than_a_sequence() -> None:
    marks, client = marks_of()
    marks.advance(Mark("", "p", 1, 900), client)
    assert not marks.repeats(Mark("", "p", 2, 0))
    assert marks.repeats(Mark("", "p", 0, 2**64 - 1))


def test_the_producer_that_moved_up_longest_ago_is_forgotten_and_counted() -> None:
    marks, client = marks_of(marks_max=2)
    for mark in (Mark("", "a", 0, 0), Mark("", "b", 0, 0), Mark("", "a", 0, 1), Mark("", "c", 0, 0)):
        marks.advance(mark, client)
    assert [mark.producer for mark in marks] == ["a", "c"]
    assert (len(marks), marks.forgotten) == (2, 1)
    assert not marks.repeats(Mark("", "b", 0, 0))


def test_what_was_kept_is_restored_and_never_below_what_is_known() -> None:
    marks, client = marks_of()
    marks.advance(Mark("", "a", 5, 5), client)
    marks.restore([Mark("", "a", 5, 4), Mark("", "b", 0, 7)])
    assert list(marks) == [Mark("", "a", 5, 5), Mark("", "b", 0, 7)]


def test_invented_producers_push_out_only_those_of_who_invented_them() -> None:
    broker = Broker(Limits(marks_max=100), schedule=lambda: None, next_turn=at_once)
    attacker, victim = client_of(broker, "192.0.2.66"), client_of(broker)
    mine = Mark("", "invoice-service", 0, 7)
    broker.marks.advance(mine, victim)
    for number in range(1000):
        broker.marks.advance(Mark("", f"made-up-{number}", 0, 0), attacker)
    assert broker.marks.repeats(mine)
    assert (attacker.subscriber.share.used(SharedPot.MARKS), broker.marks.forgotten) == (75, 925)
    for number in range(18):  # of what is left there is some for the victim
        broker.marks.advance(Mark("", f"mine-{number}", 0, 0), victim)
    assert broker.marks.repeats(mine)


def test_the_first_producer_of_a_user_finds_room_among_many_that_were_kept() -> None:
    broker = Broker(Limits(marks_max=10), schedule=lambda: None, next_turn=at_once)
    broker.marks.restore(Mark("", f"p{number}", 0, 0) for number in range(20))
    broker.marks.advance(Mark("anna", "q", 0, 0), client_of(broker, user="anna", verified=True))
    assert broker.marks.repeats(Mark("anna", "q", 0, 0))
    assert len(broker.marks) <= 10


def test_who_moves_a_producer_up_pays_for_it() -> None:
    broker = Broker(Limits(), schedule=lambda: None, next_turn=at_once)
    broker.marks.restore([Mark("", "p", 0, 0)])
    client = client_of(broker)
    broker.marks.advance(Mark("", "p", 0, 1), client)
    used = {share.principal: share.used(SharedPot.MARKS) for share in broker.shares}
    assert used == {client.subscriber.share.principal: 1}


def test_a_producer_that_a_connected_client_uses_is_not_for_another_address() -> None:
    broker = Broker(Limits(), schedule=lambda: None, next_turn=at_once)
    owner, other = client_of(broker), client_of(broker, "192.0.2.66")
    broker.marks.advance(Mark("", "p", 0, 0), owner)
    with pytest.raises(NotPermitted, match=r"in use by connection 1 of address 192\.0\.2\.1"):
        broker.marks.check(Mark("", "p", 0, 1), other)
    broker.marks.check(Mark("", "p", 0, 1), owner)
    broker.clients.disconnect(owner, "gone", 0.0)
    broker.marks.check(Mark("", "p", 0, 1), other)  # it has moved to another address
    assert broker.marks.refused == 1


@pytest.mark.parametrize("mark", [Mark("", "p", 0, 2**63), Mark("", "p", 2**63, 0)])
def test_another_connection_may_retry_but_not_move_a_mark_far_while_its_owner_is_there(mark: Mark) -> None:
    broker = Broker(Limits(), schedule=lambda: None, next_turn=at_once)
    owner, other = client_of(broker), client_of(broker)
    broker.marks.advance(Mark("", "p", 0, 5), owner)
    for usual in (Mark("", "p", 0, 0), Mark("", "p", 0, 6), Mark("", "p", 1, 0), Mark("", "p", 2, 10**9)):
        broker.marks.check(usual, other)
    with pytest.raises(NotPermitted, match="batch 0, sequence 5"):
        broker.marks.check(mark, other)
    broker.marks.check(mark, owner)  # its own numbers are its own matter
