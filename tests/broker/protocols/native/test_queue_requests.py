"""QUEUE in bytes: an operator adds, lists, describes, peeks into, purges, moves and removes queues (section 3.10)."""

from typing import Any

import pytest

from fanlight_broker.protocols.native.queue_requests import LISTED_MAX
from tests.broker.protocols.native.world import Fields, Peer, World, frame, publish

QUEUE, ACK, NACK, TERM, DELIVERY = 39, 33, 34, 35, 32


@pytest.fixture
def world() -> World:
    return World()


def ask(peer: Peer, verb: str, **arguments: Any) -> Fields:
    """The answer."""
    peer.say(QUEUE, 5, verb, arguments)
    return peer.next()


def done(peer: Peer, verb: str, **arguments: Any) -> dict[str, Any]:
    """The result of an OK."""
    answer = ask(peer, verb, **arguments)
    assert answer[:2] == [7, 5], answer
    result: dict[str, Any] = answer[2]
    return result


def refused(peer: Peer, verb: str, **arguments: Any) -> tuple[str, str]:
    """Code and text of an ERROR that leaves the connection open."""
    answer = ask(peer, verb, **arguments)
    assert answer[:2] == [13, 5], answer
    assert not peer.gone
    return answer[2], answer[3]


def add(peer: Peer, name: str = "billing", *filters: Any, **queue: Any) -> None:
    assert done(peer, "add", name=name, filters=list(filters) or ["orders.#"], queue=queue)["name"] == name


def consume(peer: Peer, name: str, filter: str = "orders.#", number: int = 7) -> None:
    peer.say(6, 1, number, filter, {"consumer": name, "durable": True, "ack": True})


def payloads(peer: Peer, name: str = "billing") -> list[bytes]:
    peer.frames()
    return [each["payload"] for each in done(peer, "peek", name=name, count=200)["messages"]]


def test_the_request_and_its_answer_have_the_bytes_of_the_specification(world: World) -> None:
    peer = world.connect()
    body = b"\x94\x27\x05\xa3add\x82\xa4name\xa1q\xa7filters\x91\x92\xa3a.b\x00"
    octets = len(body).to_bytes(4, "big") + body
    for at in range(len(octets)):  # byte by byte, and a tail behind it
        peer.send(octets[at : at + 1])
    answer = b"\x93\x07\x05\x82\xa4name\xa1q\xa7created\xc3"
    assert peer.received == len(answer).to_bytes(4, "big") + answer
    peer.frames()
    peer.send(octets + frame(11, 1)[:3])
    peer.send(frame(11, 1)[3:])
    assert peer.frames() == [[7, 5, {"name": "q", "created": False}], [12, 1]]


def test_a_queue_is_there_before_its_first_subscriber(world: World) -> None:
    operator = world.connect()
    assert done(operator, "add", name="billing", filters=["orders.#", ["site/+", 1]])["created"] is True
    operator.send(publish("orders.eu", b"1", request=1), publish("site/7", b"2", None, 1, request=2))
    assert [each[2] for each in operator.frames()] == [1, 1]
    worker = world.connect()
    consume(worker, "billing")
    assert [each[5] for each in worker.frames() if each[0] == DELIVERY] == [b"1", b"2"]


def test_the_same_declaration_again_is_fine_and_another_is_refused(world: World) -> None:
    operator = world.connect()
    add(operator, "q", "a", "b", messages_max=5)
    assert done(operator, "add", name="q", filters=["b", "a"], queue={"messages_max": 5})["created"] is False
    assert done(operator, "add", name="q", filters=["a", "b"])["created"] is False  # left out: not compared
    assert refused(operator, "add", name="q", filters=["a"])[0] == "consumer_in_use"
    assert refused(operator, "add", name="q", filters=["a", "b"], queue={"messages_max": 6})[0] == "consumer_in_use"
    worker = world.connect()
    worker.say(6, 1, 7, "t", {"consumer": "temporary", "ack": True})
    assert refused(operator, "add", name="temporary", filters=["t"])[0] == "consumer_in_use"  # it is not durable


@pytest.mark.parametrize("option", ["message_ttl", "expires", "deliveries_max"])
def test_an_option_that_differs_is_named_as_it_was_given(world: World, option: str) -> None:
    operator = world.connect()
    add(operator, "q", "a", **{option: 60})
    answer = ask(operator, "add", name="q", filters=["a"], queue={option: 61})
    assert answer[4] == {"consumer": "q", "option": option}
    assert f"another {option};" in answer[3]


def test_a_queue_that_is_added_expires_like_any_other(world: World) -> None:
    add(world.connect(), "q", expires=60)
    world.pass_time(59)
    assert len(world.broker.queues) == 1
    world.pass_time(2)
    assert len(world.broker.queues) == 0


def test_queues_are_listed_in_order_a_page_at_a_time(world: World) -> None:
    operator = world.connect()
    for name in ("c", "a", "b"):
        add(operator, name)
    operator.send(publish("orders.eu", b"123"))
    page = done(operator, "list", limit=2)
    assert ([each["name"] for each in page["queues"]], page["after"]) == (["a", "b"], "b")
    page = done(operator, "list", limit=2, after="b")
    assert ([each["name"] for each in page["queues"]], page["after"]) == (["c"], None)
    (c,) = page["queues"]
    assert c.pop("bytes") > 3
    assert c == {
        "name": "c", "durable": True, "waiting": 1, "delayed": 0, "unacknowledged": 0, "oldest_seconds": 0.0,
        "consumers": 0, "where": None,
    }


def test_a_long_list_comes_in_pages_that_are_frames(world: World) -> None:
    world = World(frame_bytes_max=4096)
    operator = world.connect()
    names = [f"{n:04}{'x' * 200}" for n in range(LISTED_MAX + 10)]
    for name in names:
        add(operator, name)
    found: list[str] = []
    page: dict[str, Any] = {"after": ""}
    while page["after"] is not None:
        operator.say(QUEUE, 5, "list", {"after": page["after"], "limit": 10_000})
        assert len(operator.received) <= 4 + 4096
        page = operator.next()[2]
        found += [each["name"] for each in page["queues"]]
    assert found == names


def test_what_a_queue_is_like(world: World) -> None:
    operator = world.connect()
    add(operator, "q", "a", ["b/+", 1], overflow="drop_oldest", deliveries_max=3, dead_letter="dead/q",
        dead_letter_syntax=1, message_ttl=60)
    consume(operator, "q", "a")
    operator.frames()
    info = done(operator, "info", name="q")
    assert info["filters"] == [["a", 0], ["b/+", 1]]
    assert (info["dead_letter"], info["dead_letter_syntax"]) == ("dead/q", 1)
    assert [info[key] for key in ("name", "durable", "overflow", "deliveries_max", "message_ttl", "expires")] == [
        "q", True, "drop_oldest", 3, 60, None
    ]
    assert info["consumer_count"] == len(info["consumers"]) == 1
    assert info["consumers"][0]["prefetch"] == 100


def test_the_first_messages_are_seen_and_not_taken(world: World) -> None:
    operator = world.connect()
    add(operator)
    operator.send(
        publish("orders.eu", b"1", {"k": [1, 2]}), publish(b"orders.\xff", b"x" * 5000), publish("orders.us", b"3")
    )
    world.now += 5
    result = done(operator, "peek", name="billing", count=2)
    first, second = result["messages"]
    assert result["waiting"] == 3
    assert first == {
        "topic": "orders.eu", "syntax": 0, "payload": b"1", "headers": {"k": [1, 2]}, "reply": None, "cut": False,
        "attempt": 0, "seconds": 5.0, "size": 1,
    }
    assert (second["topic"], second["payload"], second["size"], second["cut"]) == (
        b"orders.\xff", b"x" * 1024, 5000, True
    )
    assert done(operator, "peek", name="billing", count=2, payload_bytes=0)["messages"][1]["payload"] == b""
    assert len(payloads(operator)) == 3
    consume(operator, "billing")
    assert [each[3] for each in operator.frames() if each[0] == DELIVERY] == [1, 1, 1]  # nobody had them before


def test_an_answer_is_never_longer_than_a_frame(world: World) -> None:
    world = World(frame_bytes_max=4096)
    operator = world.connect()
    add(operator, "billing", *[f"orders.#.{n}{'x' * 30}" for n in range(90)], "orders.#")
    for _ in range(20):
        operator.send(publish("orders.eu", b"x" * 1000, {"h": "y" * 2500}))
    for verb in ("peek", "info", "list"):
        operator.say(QUEUE, 5, verb, {"name": "billing", "count": 20, "payload_bytes": 10_000})
        assert 100 < len(operator.received) <= 4 + 4096
        operator.frames()
    (first,) = done(operator, "peek", name="billing", count=1)["messages"]
    assert (first["headers"], first["cut"]) == (None, True)


def test_a_purge_drops_what_waits_and_not_what_is_in_flight(world: World) -> None:
    worker, operator = world.connect(), world.connect()
    worker.say(6, 1, 7, "orders.#", {"consumer": "billing", "durable": True, "ack": True, "prefetch": 2})
    operator.send(*(publish("orders.eu", b"%d" % n) for n in range(6)))
    worker.frames()
    worker.say(NACK, 7, 1, 60)  # it waits for a minute, and the third is in flight in its place
    assert done(operator, "purge", name="billing") == {"messages": 4}
    (queue,) = world.broker.queues
    assert (queue.inside.unacknowledged, len(queue.inside), queue.inside.discards) == (2, 2, 4)
    world.pass_time(61)
    worker.vanish()
    assert payloads(operator) == [b"1", b"2"]


def test_a_queue_with_messages_or_consumers_is_not_removed_by_mistake(world: World) -> None:
    worker, operator = world.connect(), world.connect()
    add(operator)
    operator.send(publish("orders.eu", b"1"))
    code, text = refused(operator, "remove", name="billing")
    assert code == "queue_not_empty"
    assert "1 messages and 0 consumers" in text
    assert refused(operator, "remove", name="billing", if_empty=True)[0] == "queue_not_empty"
    done(operator, "purge", name="billing")
    consume(worker, "billing")
    worker.frames()
    assert refused(operator, "remove", name="billing")[0] == "queue_not_empty"
    assert done(operator, "remove", name="billing", if_empty=True) == {"messages": 0}
    assert worker.next()[:3] == [9, 7, "consumer_deleted"]
    add(operator)
    operator.send(publish("orders.eu", b"1"), publish("orders.eu", b"2"))
    assert done(operator, "remove", name="billing", force=True) == {"messages": 2}
    assert refused(operator, "info", name="billing")[0] == "no_such_consumer"
    assert (len(world.broker.queues), len(world.broker.router), world.broker.ledger.stored) == (0, 0, 0)


def kill_all(world: World, worker: Peer, *, number: int = 7) -> None:
    for delivery in worker.frames():
        if delivery[0] == DELIVERY:
            worker.say(TERM, number, delivery[2])


def test_dead_letters_go_back_to_the_topics_where_they_were_published(world: World) -> None:
    worker, operator = world.connect(), world.connect()
    worker.say(6, 1, 7, "orders.#", {
        "consumer": "billing", "durable": True, "ack": True, "queue": {"dead_letter": "dead.billing"},
    })
    add(operator, "dead", "dead.#")
    operator.send(publish("orders.eu", b"1", {"k": "v"}), publish("orders/us", b"2", None, 1))
    kill_all(world, worker)
    assert payloads(operator, "dead") == [b"1", b"2"]
    assert done(operator, "move", name="dead") == {"messages": 2, "stopped": None}
    assert payloads(operator, "dead") == []
    again = [each for each in worker.frames() if each[0] == DELIVERY]
    assert [(each[4], each[5], each[7] if len(each) > 7 else 0) for each in again] == [
        ("orders.eu", b"1", 0), ("orders/us", b"2", 1)
    ]
    assert again[0][6]["k"] == "v"
    assert again[0][6]["x-death-count"] == 1  # a loop ends, because its deaths are counted on


def died_in(queue: str, topic: str) -> dict[str, Any]:
    """Headers of a dead letter."""
    return {"x-death-queue": queue, "x-death-topic": topic}


def test_who_publishes_to_a_queue_does_not_say_where_its_messages_are_published_again(world: World) -> None:
    worker, operator, other = world.connect(), world.connect(), world.connect()
    add(operator, "billing", "orders.#", dead_letter="dead.orders")
    consume(worker, "billing")
    add(operator, "dead", "dead.#")
    other.say(6, None, 1, "secret")
    for queue in ("billing", "dead", "none"):
        operator.send(publish("orders.eu", queue.encode(), died_in(queue, "secret")))
    kill_all(world, worker)
    operator.send(publish("dead.x", b"not dead", died_in("billing", "secret")))
    assert done(operator, "move", name="dead", count=3) == {"messages": 3, "stopped": None}
    again = [each for each in worker.frames() if each[0] == DELIVERY]
    assert [(each[4], each[6]["x-death-topic"]) for each in again] == [("orders.eu", "orders.eu")] * 3
    assert "by name" in done(operator, "move", name="dead")["stopped"]
    assert payloads(operator, "dead") == [b"not dead"]
    assert other.frames() == []


def test_a_message_that_nobody_would_get_stays(world: World) -> None:
    operator = world.connect()
    add(operator, "dead", "dead.#")
    add(operator, "gone", "unused", dead_letter="dead.x")
    for n in range(3):
        operator.send(publish("dead.x", b"%d" % n, died_in("gone", "orders.eu" if n else "other")))
    other = world.connect()
    other.say(6, None, 1, "other")
    result = done(operator, "move", name="dead")
    assert result["messages"] == 1
    assert "nobody is subscribed to 'orders.eu'" in result["stopped"]
    assert payloads(operator, "dead") == [b"1", b"2"]
    assert [each[3] for each in other.frames()] == [b"0"]


@pytest.mark.parametrize(("overflow", "words"), [
    ("refuse_publisher", "a queue of this topic is full"), ("drop_newest", "the queues for 'orders.eu' are full"),
])
def test_a_message_for_which_there_is_no_room_stays(world: World, overflow: str, words: str) -> None:
    operator = world.connect()
    add(operator, "billing", messages_max=1, overflow=overflow)
    add(operator, "dead", "dead.#")
    add(operator, "gone", "unused", dead_letter="dead.x")
    operator.send(*(publish("dead.x", b"%d" % n, died_in("gone", "orders.eu")) for n in range(3)))
    result = done(operator, "move", name="dead")
    assert result["messages"] == 1
    assert words in result["stopped"]
    assert (payloads(operator, "dead"), payloads(operator)) == ([b"1", b"2"], [b"0"])


def test_a_message_that_its_mover_must_not_publish_stays(world: World) -> None:
    operator = world.connect()
    add(operator, "dead", "dead.#")
    add(operator, "gone", "unused", dead_letter="dead.x")
    operator.send(publish("dead.x", b"0", died_in("gone", "$SYS.load")))
    result = done(operator, "move", name="dead")
    assert result["messages"] == 0
    assert "$SYS" in result["stopped"]
    assert payloads(operator, "dead") == [b"0"]


def test_messages_are_moved_to_another_queue_in_order_and_reach_nobody_else(world: World) -> None:
    operator, other = world.connect(), world.connect()
    add(operator, "from", "a")
    add(operator, "to", "b", messages_max=3)
    other.say(6, None, 1, "#")
    operator.send(*(publish("a", b"%d" % n) for n in range(5)))
    other.frames()
    assert done(operator, "move", name="from", to="to", count=2) == {"messages": 2, "stopped": None}
    assert (payloads(operator, "from"), payloads(operator, "to")) == ([b"2", b"3", b"4"], [b"0", b"1"])
    result = done(operator, "move", name="from", to="to")
    assert result["messages"] == 1
    assert "'to' is full" in result["stopped"]
    assert (payloads(operator, "from"), payloads(operator, "to")) == ([b"3", b"4"], [b"0", b"1", b"2"])
    assert other.frames() == []
    world.broker.queues.end(world.broker.queues.find("to"))
    world.broker.queues.end(world.broker.queues.find("from"))
    assert world.broker.ledger.stored == 0


def test_a_moved_message_is_delivered_to_a_consumer_that_waits(world: World) -> None:
    operator, worker = world.connect(), world.connect()
    add(operator, "from", "a")
    consume(worker, "to", "b")
    operator.send(publish("a", b"1"))
    worker.frames()
    assert done(operator, "move", name="from", to="to")["messages"] == 1
    (delivery,) = worker.frames()
    assert delivery[:4] + delivery[4:6] == [DELIVERY, 7, 1, 1, "a", b"1"]


def test_what_cannot_be_asked_for_is_refused_with_a_sentence(world: World) -> None:
    operator = world.connect()
    add(operator, "q", "a")
    assert refused(operator, "drop", name="q") == (
        "unsupported",
        "there is no QUEUE verb 'drop': it is one of add, list, info, purge, remove, peek, move, delayed, cancel",
    )
    for verb in ("info", "purge", "remove", "peek", "move"):
        assert refused(operator, verb, name="none") == ("no_such_consumer", "there is no queue 'none'")
    assert refused(operator, "move", name="q", to="none")[0] == "no_such_consumer"
    assert refused(operator, "move", name="q", to="q")[0] == "unsupported"
    assert refused(operator, "add", name="p", filters=["a/#/b", ["x/#/y", 1]])[0] == "invalid_filter"
    assert refused(operator, "add", name="p", filters=[["a", 7]])[0] == "unsupported"
    assert refused(operator, "add", name="p", filters=[f"a.{n}" for n in range(101)])[0] == "limit_exceeded"
    assert len(world.broker.queues) == 1


def test_a_client_sees_and_changes_only_queues_that_it_could_subscribe_to(world: World) -> None:
    owner, other = world.connect(), world.connect()
    add(owner, "private", f"{owner.info['inbox']}.#")
    add(owner, "public", "a")
    assert [each["name"] for each in done(owner, "list")["queues"]] == ["private", "public"]
    assert [each["name"] for each in done(other, "list")["queues"]] == ["public"]
    for verb in ("info", "peek", "purge", "remove", "move"):
        assert refused(other, verb, name="private")[0] == "not_permitted"
    assert refused(other, "move", name="public", to="private")[0] == "not_permitted"


def test_without_a_request_number_only_an_error_is_answered(world: World) -> None:
    peer = world.connect()
    peer.say(QUEUE, None, "add", {"name": "q", "filters": ["a"]})
    assert peer.frames() == []
    peer.say(QUEUE, None, "info", {"name": "none"})
    assert peer.next()[:3] == [13, None, "no_such_consumer"]
    assert len(world.broker.queues) == 1
