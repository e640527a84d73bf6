"""Vhosts: namespaces of their own, that clients choose, and those that the permissions put clients in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fanlight_broker.core.protocol_part import PluginError
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.amqp.exchanges.ports import ExchangeLimits
from fanlight_broker.protocols.amqp.frames import PROTOCOL_HEADER
from fanlight_broker.protocols.amqp.vhost import Vhosts, vhost_names
from tests.broker.core.reference import Reference, allow
from tests.broker.protocols.amqp.stored import StoredAmqp
from tests.broker.protocols.amqp.world import PLAIN, Peer, World
from tests.broker.storage.stored_world import OPENED


@pytest.fixture
def world() -> World:
    world = World()
    world.vhosts = Vhosts({"shop", "lab"})
    return world


@pytest.fixture(autouse=True)
def _logs_closed() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().log.close()


def refused(world: World, vhost: str) -> first.ConnectionClose:
    peer = world.open()
    peer.verified = True
    peer.send(PROTOCOL_HEADER)
    peer.method(first.ConnectionStart)
    peer.say(PLAIN, 0)
    peer.method(first.ConnectionTune)
    peer.say(first.ConnectionTuneOk(2_047, 131_072, 0), 0)
    peer.say(first.ConnectionOpen(vhost), 0)
    method = peer.method(first.ConnectionClose)
    assert isinstance(method, first.ConnectionClose)
    assert (method.reply_code, method.class_id, method.method_id) == (530, 10, 40)
    assert len(world.broker.everybody) == 0
    return method


def test_vhosts_have_nothing_in_common(world: World) -> None:
    peers = [world.channel(vhost=name) for name in ("/", "shop", "lab")]
    for peer in peers:
        peer.declare("q", exclusive=True)
        assert peer.ask(entity.ExchangeDeclare(exchange="x", type="fanout")) == entity.ExchangeDeclareOk()
        assert peer.ask(entity.QueueBind(queue="q", exchange="amq.topic", routing_key="#")) == entity.QueueBindOk()
        assert peer.ask(entity.QueueBind(queue="q", exchange="x")) == entity.QueueBindOk()
    peers[1].publish("a.b", b"1", "amq.topic")
    peers[1].publish("a.b", b"2", "x")
    assert [peer.counts("q")[0] for peer in peers] == [0, 2, 0]
    assert world.channel(vhost="shop").protocol.vhost is peers[1].protocol.vhost


@pytest.mark.parametrize("name", ["", "nowhere", "shop/", "$shop"])
def test_an_unknown_vhost_closes_the_connection(world: World, name: str) -> None:
    assert refused(world, name).reply_text == f"NOT_ALLOWED - vhost {name} not found"


def test_permissions_of_a_vhost(world: World) -> None:
    world.broker.use_permissions(Reference(allow("connect", namespace="lab")))
    assert refused(world, "shop").reply_text == "NOT_ALLOWED - access to vhost 'shop' refused for user 'guest'"
    assert refused(world, "/").reply_text == "NOT_ALLOWED - access to vhost '/' refused for user 'guest'"
    peer = world.connect(vhost="lab")
    world.broker.use_permissions(Reference(allow("connect", namespace="lab"), allow("publish")))
    world.turn()
    assert peer.got() == []  # it is where it may be
    world.broker.use_permissions(Reference(allow("connect", namespace="shop")))
    world.turn()
    assert peer.error() == (True, 403, (0, 0))


def test_more_namespaces_than_there_may_be() -> None:
    world = World(namespaces_max=1)
    world.vhosts = Vhosts({"shop", "lab"})
    shop = world.connect(vhost="shop")
    peer = world.open()
    peer.send(PROTOCOL_HEADER)
    peer.got()
    peer.say(PLAIN, 0)
    peer.got()
    peer.say(first.ConnectionTuneOk(2_047, 131_072, 0), 0)
    peer.say(first.ConnectionOpen("lab"), 0)
    assert peer.error() == (True, 530, (10, 40))
    shop.vanish()
    world.pass_time(1.0)
    world.connect(vhost="lab")


def test_a_vhost_in_which_something_is_declared_stays(world: World) -> None:
    peer = world.channel(vhost="shop")
    peer.ask(entity.ExchangeDeclare(exchange="x", type="fanout", durable=True))
    peer.vanish()
    world.pass_time(1.0)
    peer = world.channel(vhost="shop")
    assert peer.ask(entity.ExchangeDeclare(exchange="x", passive=True)) == entity.ExchangeDeclareOk()
    peer.ask(entity.ExchangeDelete(exchange="x"))
    peer.vanish()
    world.pass_time(1.0)
    assert world.broker.namespaces.get("shop") is None
    world.channel(vhost="shop").declare("q")
    assert world.broker.namespaces.get("shop") is not None


def test_a_vhost_is_there_after_a_restart(tmp_path: Path) -> None:
    world = StoredAmqp(tmp_path, names={"shop"})
    peer: Peer = world.channel(vhost="shop")
    peer.declare("q", durable=True, arguments={"x-max-length": 3})
    peer.ask(entity.ExchangeDeclare(exchange="x", type="fanout", durable=True))
    peer.ask(entity.QueueBind(queue="q", exchange="x"))
    world.channel().declare("root", durable=True)
    world.kill()
    peer = world.channel(vhost="shop")
    peer.declare("q", durable=True, arguments={"x-max-length": 3})
    peer.publish("", b"1", "x")
    assert peer.counts("q") == (1, 0)
    assert [queue.name for queue in world.broker.queues] == ["root"]


def test_exchanges_of_a_vhost_are_bounded() -> None:
    world = World()
    world.vhosts = Vhosts(limits=ExchangeLimits(exchanges_max=6))
    peer = world.channel()
    assert peer.ask(entity.ExchangeDeclare(exchange="x")) == entity.ExchangeDeclareOk()
    peer.say(entity.ExchangeDeclare(exchange="y"))
    assert peer.error() == (False, 406, (40, 10))


def test_names_of_the_setting() -> None:
    assert vhost_names("shop, lab,") == {"shop", "lab"}
    for text in ("a/b", "/", "x" * 65, "a b"):
        with pytest.raises(PluginError, match="amqp_vhosts"):
            vhost_names(text)
