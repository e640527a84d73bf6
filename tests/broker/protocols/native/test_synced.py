"""No RECEIPT and no OK before what it promises is synced: messages for durable named queues, and the queues."""

import pytest

from tests.broker.core.held_journal import HeldJournal
from tests.broker.protocols.native.world import Fields, Peer, World, frame, publish

ACK = 33


class Durable(World):
    """A broker whose journal is synced by `sync`."""

    def __init__(self, *, plain: bool = False) -> None:
        super().__init__(plain=plain)
        self.journal = HeldJournal(self.broker)

    def sync(self, changes: int | None = None) -> None:
        self.journal.sync(changes, self.now)
        self.turn()

    def consumer(self, *, synced: bool = True) -> Peer:
        """A client that asks for a consumer of the durable queue `billing`, subscription 7."""
        peer = self.connect()
        peer.say(6, 1, 7, "orders.#", {"consumer": "billing", "durable": True, "ack": True})
        if synced:
            self.sync()
            assert peer.next()[:2] == [7, 1]
        return peer


@pytest.fixture(params=[False, True], ids=["fast", "plain"])
def world(request: pytest.FixtureRequest) -> Durable:
    return Durable(plain=request.param)


def types(peer: Peer) -> list[int]:
    return [each[0] for each in peer.frames()]


def receipts(peer: Peer) -> list[Fields]:
    return [each[1:3] for each in peer.frames() if each[0] == 5]


def test_a_receipt_waits_until_the_message_is_synced_in_a_durable_queue(world: Durable) -> None:
    world.consumer().vanish()
    publisher = world.connect()
    for request in (1, 2, 3):
        publisher.send(publish("orders.eu", b"x", request=request))
    publisher.send(publish("other", b"x", request=4))
    assert receipts(publisher) == [[4, 0]], "nobody stores it, and receipts keep no order"
    world.sync(1)
    assert receipts(publisher) == [[1, 1]]
    world.sync()
    assert receipts(publisher) == [[2, 1], [3, 1]]


def test_deliveries_and_acknowledgements_of_consumers_wait_for_nothing(world: Durable) -> None:
    consumer, publisher = world.consumer(), world.connect()
    publisher.send(publish("orders.eu", b"x"))
    (delivery,) = consumer.frames()
    consumer.say(ACK, 7, delivery[2])
    assert world.broker.ledger.acknowledged == 1


def test_a_pong_waits_until_the_acknowledgements_before_its_ping_are_synced(world: Durable) -> None:
    consumer, publisher = world.consumer(), world.connect()
    publisher.send(publish("orders.eu", b"x"))
    world.sync()
    (delivery,) = consumer.frames()
    consumer.say(ACK, 7, delivery[2])
    consumer.say(8, 2, 7)
    assert consumer.next()[:2] == [7, 2]
    consumer.say(11, 5)
    publisher.say(11, 6)
    assert (consumer.frames(), publisher.next()) == ([], [12, 6])
    world.sync()
    assert consumer.next() == [12, 5]


def test_the_answer_to_a_durable_consumer_waits_until_its_queue_is_synced(world: Durable) -> None:
    consumer, publisher = world.consumer(synced=False), world.connect()
    publisher.send(publish("orders.eu", b"1"))
    assert consumer.frames() == []
    world.sync()
    assert types(consumer) == [7, 32]


def test_a_consumer_that_has_ended_before_its_answer_gets_none(world: Durable) -> None:
    consumer = world.consumer(synced=False)
    consumer.say(8, 2, 7)
    assert [each[:2] for each in consumer.frames()] == [[7, 2]]
    world.sync()
    assert consumer.frames() == []


def test_the_receipt_of_a_marked_message_waits_for_its_mark(world: Durable) -> None:
    publisher = world.connect()
    for request in (1, 2):  # the second is a repetition
        publisher.say(3, request, "other", b"x", None, None, None, ["p", 0, 1])
    assert receipts(publisher) == []
    world.sync()
    assert receipts(publisher) == [[1, 0], [2, 0]]


def test_a_connection_that_ends_before_its_answer_leaves_nothing(world: Durable) -> None:
    peer = world.consumer(synced=False)
    assert world.broker.acknowledgements.receipts.count == 1
    peer.vanish()
    assert world.broker.acknowledgements.receipts.count == 0
    world.sync()
    assert peer.received == b""


def test_a_store_that_refuses_is_an_error_and_a_full_one_holds_back(world: Durable) -> None:
    consumer, publisher = world.consumer(), world.connect()
    world.journal.position.refusing = True
    publisher.send(publish("orders.eu", b"x", request=1))
    assert publisher.next()[:3] == [13, 1, "limit_exceeded"]
    publisher.send(publish("other", b"x", request=2))
    assert receipts(publisher) == [[2, 0]]
    other = world.connect()
    other.send(frame(6, 1, 7, "n.#", {"consumer": "new", "durable": True, "ack": True}))
    assert other.next()[:3] == [13, 1, "limit_exceeded"]
    assert types(world.consumer()) == []
    world.journal.position.refusing, world.journal.position.full = False, True
    publisher.send(publish("orders.eu", b"y", request=3))
    assert publisher.protocol.blocked
    world.journal.position.full = False
    world.sync()
    assert not publisher.protocol.blocked
    world.sync()
    assert receipts(publisher) == [[3, 1]]
    assert consumer.close_reason is None
