"""Hostile names: clients called like wildcards, separators, placeholders and worse, under rules with %u, %c and %g.

The rules are a real file's, and the clients speak all protocols. Whatever an attacker is called, and whatever it asks
for, it gets nothing of the victim's, the victim gets nothing of it, and the broker goes on.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from fanlight_broker.core.limits import Limits
from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_broker.protocols.mqtt.packets import WillFields
from fanlight_broker.protocols.mqtt.version import V3, V5
from fanlight_permissions.permission_file import load
from fanlight_permissions.table import PermissionTable
from tests.broker.protocols import permitted
from tests.broker.protocols.amqp import world as amqp
from tests.broker.protocols.amqp.test_permission_paths import PathWorld
from tests.broker.protocols.amqp.test_permission_table import KnownPeer

RULES = """
[[deny]]
everything = ["vault/%u/#", "vault/%c/#"]

[[allow]]
user = "*"
everything = ["own/%u/#", "mine/%c/#", "group/%g/#", "amqp:flat.%u.#", "vault/#", "$queue/%u/#"]

[[allow]]
user = "victim"
everything = "#"
"""
SECRETS = ("own/victim/x", "mine/victim/x", "group/staff/x", "flat/victim/x", "own/victim", "own//x")
NAMES = (
    "+", "#", "*", ".", "/", "%u", "%c", "%g", "own", "victim/", "/victim", "victim/x", "victim.x", "vict*", "+/victim",
    "$SYS", "$inbox", "$queue", " victim", "victim ", "Victim", "victim\u200b", "\uff56ictim", "staff", "\x01",
    "n" * 255, "mqtt:victim", "victim#", "#victim", "''", "\\", "own/victim/#", "é", "e\u0301", "\U0010ffff",
)  # fmt: skip
FILTERS = (
    "#", "+", "+/#", "own/#", "own/+/x", "own/victim/#", "own/victim/x", "+/victim/#", "+/+/x", "mine/victim/#",
    "mine/+/x", "group/+/x", "group/staff/#", "flat/victim/#", "flat/+/x", "own/%u/#", "own/+/#", "own//x", "/#",
    "own/victim", "own/**", "$share/g/own/victim/#", "$share/g/#", "$SYS/#", "$inbox/#", "own/victim/x/",
)  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> PermissionTable:
    path = tmp_path_factory.mktemp("names") / "permissions.toml"
    path.write_text(RULES)
    return load(path, Limits())


def payloads(client: permitted.Client) -> set[bytes]:
    return {payload for _, payload in client.got()}


def tried(table: PermissionTable, dialect: str, name: str, **fields: Any) -> Iterator[tuple[Any, Any]]:
    """The victim, and an attacker of this name; nothing if a client cannot be called so."""
    world = permitted.World()
    world.groups.update({"victim": frozenset({"staff"})})
    world.broker.use_permissions(table)
    victim = world.client("native", "victim")
    assert victim.subscribe("#")
    attacker = world.stranger(dialect, name, **fields)
    if attacker.let_in:
        yield victim, attacker
    else:
        assert attacker.peer.gone or attacker.peer.close_reason is not None
    assert not victim.peer.gone


@pytest.mark.parametrize("dialect", permitted.DIALECTS)
def test_a_name_opens_nothing_of_others(table: PermissionTable, dialect: str) -> None:
    let_in = 0
    for name in NAMES:
        for victim, attacker in tried(table, dialect, name):
            let_in += 1
            granted = {filter for filter in FILTERS if attacker.subscribe(filter)}
            assert granted <= {f"own/{name}/#"} - {f"own/{name}/#" for name in ("+", "#", "victim")}, (name, granted)
            for topic in SECRETS:
                victim.publish(topic, b"victim's")
                attacker.publish(topic, b"attacker's")
            assert payloads(attacker) == set(), name
            assert payloads(victim) == {b"victim's"}, name
            assert not attacker.peer.gone, name
    assert let_in >= len(NAMES) - 1  # natively a name has 64 octets at most


@pytest.mark.parametrize("dialect", permitted.DIALECTS)
def test_an_ordinary_name_has_what_is_its_own(table: PermissionTable, dialect: str) -> None:
    for victim, attacker in tried(table, dialect, "plain"):
        granted = [root for root in ("own", "mine", "flat", "vault") if attacker.subscribe(f"{root}/plain/#")]
        assert granted == ["own", "mine", "flat"]
        attacker.publish("own/plain/x", b"its own")
        assert payloads(attacker) == payloads(victim) == {b"its own"}


@pytest.mark.parametrize("dialect", permitted.DIALECTS)
def test_a_name_of_64_kib_is_refused(table: PermissionTable, dialect: str) -> None:
    assert [*tried(table, dialect, "n" * 65_535)] == []


@pytest.mark.parametrize("dialect", permitted.DIALECTS[1:])
def test_a_name_retains_and_wills_nothing_of_others(table: PermissionTable, dialect: str) -> None:
    for name in NAMES:
        for topic in SECRETS:
            for victim, attacker in tried(table, dialect, name, will=WillFields(topic, b"attacker's")):
                attacker.peer.vanish()
                assert payloads(victim) == set(), (name, topic)
        for victim, attacker in tried(table, dialect, name):
            for topic in SECRETS:
                attacker.publish(topic, b"attacker's", retain=True)
            assert payloads(victim) == set(), name
            assert not victim.publish("own/victim/x", b"victim's")
            assert victim.subscribe("own/#")
            assert payloads(victim) == {b"victim's"}, name


def test_a_name_opens_no_queue_and_no_answer_of_others(table: PermissionTable) -> None:
    for name in NAMES:
        for victim, attacker in tried(table, "native", name):
            asked = ("own/victim/#", "own/#", "#", "$queue/victim", "$inbox/#")
            for number, each in enumerate(asked):
                assert attacker.ask(39, 1, "add", {"name": f"q{number}", "filters": [each], "syntax": 1}) is None
                assert attacker.refusal == "not_permitted" or each.startswith("$"), (name, each, attacker.refusal)
            assert not attacker.subscribe(victim.inbox.replace(".", "/") + "/#"), name


def test_a_name_opens_nothing_by_amqp(table: PermissionTable) -> None:
    for name in NAMES:
        world = PathWorld()
        world.groups, world.own = {"victim": frozenset({"staff"})}, {}  # type: ignore[attr-defined]
        world.broker.use_permissions(table)
        victim = permitted.NativeClient(world, "victim")  # type: ignore[arg-type]
        assert victim.subscribe("#")
        attacker = KnownPeer(world)
        attacker.shake_hands(amqp.PLAIN._replace(response=f"\0{name}\0x".encode()))
        channel = 0
        for filter in FILTERS:  # a channel each: a refusal closes it
            channel += 1
            key = filter.replace("/", ".").replace("+", "*")
            for method in (
                first.ChannelOpen(), entity.QueueDeclare(queue=name),
                entity.QueueBind(queue=name, exchange="amq.topic", routing_key=key),
                basic.BasicConsume(queue=name, consumer_tag="c", no_ack=True),
            ):
                attacker.say(method, channel)
        for topic in SECRETS:
            channel += 1
            victim.publish(topic, b"victim's")
            attacker.say(first.ChannelOpen(), channel)
            attacker.publish(topic.replace("/", "."), b"attacker's", "amq.topic", channel)
        assert [each.body for each in attacker.got() if each.body] == [], name
        assert payloads(victim) == {b"victim's"}, name
        assert attacker.close_reason is None, name


@pytest.mark.parametrize("octets", [b"\xed\xa0\x80", b"\xff", b"a\xc0\xafb", b"victim\0"], ids=repr)
def test_octets_that_are_no_name_do_not_come_in(table: PermissionTable, octets: bytes) -> None:
    world = permitted.World()
    world.broker.use_permissions(table)
    for version in (b"\x04", b"\x05\0"):
        level, properties = version[:1], version[1:]
        for client, user in ((octets, b"u"), (b"c", octets)):
            peer = permitted.MqttPeer(world, V3 if level == b"\x04" else V5)
            body = b"\0\4MQTT" + level + b"\xc2\0\0" + properties
            for text in (client, user, b"x"):
                body += len(text).to_bytes(2, "big") + text
            peer.send(bytes((0x10, len(body))) + body)
            assert peer.gone, (version, client, user)
    native = permitted.NativePeer(world)  # type: ignore[arg-type]
    name = bytes((0xA0 | len(octets),)) + octets  # of msgpack
    native.send(with_size(b"\x93\x01\x01\x82\xa4user" + name + b"\xa8password\xa1x"))
    assert native.gone or octets == b"victim\0"  # there a name may have any character, and is another one


def with_size(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body
