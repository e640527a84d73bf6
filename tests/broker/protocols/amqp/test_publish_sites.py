"""Sites of basic.publish and routes of exchanges: what the lane finds without Python, and what is let go."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.exchange_routes import ExchangeRoutes
from fanlight_broker.protocols.amqp.methods import method_frame
from fanlight_broker.protocols.amqp.publish_routes import site_of
from fanlight_broker.protocols.amqp.publish_sites import PublishSites
from tests.broker.protocols.amqp.test_lane import Side
from tests.broker.protocols.amqp.world import Peer, World, published


def asked_of_python(peer: Peer) -> list[bytes]:
    """The arguments of basic.publish that Python makes sites of from now on."""
    asked: list[bytes] = []
    vhost, lane = peer.protocol.vhost, peer.protocol.lane

    def resolve(arguments: bytes) -> Any:
        asked.append(arguments)
        return site_of(vhost, arguments)

    vhost.sites = lane.sites = PublishSites(resolve)
    return asked


def test_keys_that_never_repeat_are_the_lanes() -> None:
    side = Side(compiled=True, confirming=False)
    asked = asked_of_python(side.writer)
    sites = side.writer.protocol.lane.sites
    assert sites is not None
    for at in range(30):
        side.writer.publish(f"a.{at}", b"x", "topic")
        side.writer.publish(f"c.{at}", b"x", "topic")
    assert len(asked) == 1
    assert len(sites) == 60
    assert sites.room.taken == (8 + 2) + 8  # those of q and r, and of nobody
    assert side.counts("q") == side.counts("r") == 30


def test_headers_that_never_repeat_are_the_lanes() -> None:
    side = Side(compiled=True, confirming=False)
    asked = asked_of_python(side.writer)
    sites = side.writer.protocol.lane.sites
    assert sites is not None
    for at in range(30):
        side.writer.publish("", b"x", "headers", headers={"n": 1, "at": at})
        side.writer.publish("", b"x", "headers", headers={"n": at + 2, "at": at})
    assert len(asked) == len(sites) == 1
    assert sites.room.taken == (8 + 1) + 8
    assert (side.counts("q"), side.counts("r")) == (30, 0)


def test_a_key_that_leads_on_to_an_exchange_is_made_by_python_once() -> None:
    side = Side(compiled=True, confirming=False)
    asked = asked_of_python(side.writer)
    for _ in range(3):
        for key in ("a.1", "b.1", "b.2"):
            side.writer.publish(key, b"x", "topic")
    assert len(asked) == 3
    assert side.counts("r") == 9


def test_exchanges_behind_topics_are_the_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    side = Side(compiled=True, confirming=False)
    asked: list[object] = []
    exchanges = side.writer.protocol.vhost.exchanges
    publish = exchanges.publish

    def by_python(*arguments: Any) -> Any:
        asked.append(arguments)
        return publish(*arguments)

    monkeypatch.setattr(exchanges, "publish", by_python)
    for _ in range(3):
        for key in ("a.b", "a.c", "b.c"):
            side.writer.publish(key, b"x", "amq.topic")
    assert len(asked) == 3  # once a key
    assert (side.counts("q"), side.counts("r")) == (9, 9)
    side.writer.ask(entity.QueueUnbind(queue="q", exchange="amq.topic", routing_key="a.*"))
    side.writer.publish("a.b", b"x", "amq.topic")
    side.writer.publish("a.c", b"x", "amq.topic")
    assert (side.counts("q"), side.counts("r")) == (10, 11)
    side.writer.ask(entity.ExchangeUnbind(destination="fanout", source="amq.topic", routing_key="*.c"))
    side.writer.publish("a.c", b"x", "amq.topic")
    side.writer.publish("b.c", b"x", "amq.topic")
    assert (side.counts("q"), side.counts("r")) == (10, 12)


def test_a_binding_that_changes_makes_other_routes() -> None:
    side = Side(compiled=True, confirming=False)
    side.writer.publish("a.1", b"x", "topic")
    side.writer.publish("", b"x", "headers", headers={"n": 1})
    side.writer.ask(entity.QueueUnbind(queue="q", exchange="topic", routing_key="a.#"))
    side.writer.ask(entity.QueueBind(queue="r", exchange="headers", arguments={"n": None}))
    side.writer.publish("a.1", b"x", "topic")
    side.writer.publish("a.2", b"x", "topic")
    side.writer.publish("", b"x", "headers", headers={"n": 1})
    assert (side.counts("q"), side.counts("r")) == (1 + 2, 3 + 1)


def test_a_queue_that_is_deleted_and_declared_again_in_one_read_is_another() -> None:
    world = World()
    peer = world.channel()
    for queue in ("q", "r", "s"):
        peer.declare(queue)
        peer.ask(entity.QueueBind(queue=queue, exchange="amq.fanout"))
    both = published("q", b"x") + published("", b"x", "amq.fanout")
    delete = {name: method_frame(1, entity.QueueDelete(queue=name, no_wait=True)) for name in ("q", "s")}
    declare = method_frame(1, entity.QueueDeclare(queue="q", no_wait=True))
    peer.send(both + delete["q"] + declare + both + delete["s"] + both)
    assert [peer.counts(queue)[0] for queue in ("q", "r")] == [2, 3], "the new one is not bound"


def test_routes_of_bindings_that_were_changed_are_let_go() -> None:
    """Sites that were found before keep the object, and nobody would count what is in it."""
    sites = PublishSites(lambda arguments: None)
    before, after = (ExchangeRoutes(b"", lambda numbers: None, sites.room) for _ in range(2))
    before.valid = after.valid = True  # as when they were asked for the first time
    sites.add(b"\1x", before)
    sites.add(b"\1x", before)
    assert before.valid
    sites.add(b"\1x", after)
    assert (before.valid, after.valid) == (False, True)
    assert len(before) == 0


def test_sites_and_routes_make_room_for_others() -> None:
    side = Side(compiled=True, confirming=False)
    vhost, lane = side.writer.protocol.vhost, side.writer.protocol.lane
    vhost.sites = lane.sites = sites = PublishSites(partial(site_of, vhost), 8)
    sites.room.most = 60
    most = 0
    for at in range(40):
        side.writer.ask(entity.QueueDeclare(queue=f"q{at}", no_wait=False))
        side.writer.ask(entity.QueueBind(queue=f"q{at}", exchange="amq.headers", arguments={"at": at}))
    for at in range(80):
        side.writer.publish(f"a.{at}", b"x", "topic")
        side.writer.publish("", b"x", "amq.headers", headers={"at": at % 40})
        assert len(sites) <= 8
        most = max(most, sites.room.taken)
    assert 8 < most <= 60
    assert side.counts("q") == 80
    assert all(side.counts(f"q{at}") == 2 for at in range(40))


def test_what_sites_and_routes_drop_is_freed_in_slices() -> None:
    later: list[Callable[[], None]] = []
    side = Side(compiled=True, confirming=False)
    vhost, lane = side.writer.protocol.vhost, side.writer.protocol.lane
    vhost.sites = lane.sites = sites = PublishSites(partial(site_of, vhost), 2_000, later.append)
    for at in range(3_000):
        side.writer.publish(f"a.{at}", b"x", "topic")
    assert (len(sites), sites.room.unfreed) == (2_000, 1_000)
    unfreed = []
    while later:
        later.pop()()
        unfreed.append(sites.room.unfreed)
    assert unfreed == [488, 0]
    sites.clear()
    assert sites.room.unfreed == 2_000 + 1  # and the one route of them
    while later:
        later.pop()()
    assert sites.room.unfreed == 0
