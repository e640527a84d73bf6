"""RabbitMQ's permissions of users, imported as rules, against what RabbitMQ documents for each operation.

rabbitmq.com/docs/access-control, "How Operations Are Authorised": which regular expression is asked about which name.
Python's `re` is the oracle. Never is more allowed; and nothing less, unless the import has reported something.
"""

import re
from typing import NamedTuple

import pytest

from fanlight_broker.core.limits import Limits
from fanlight_broker.core.permissions import Action, Asker
from fanlight_broker.permitting.import_rabbitmq import import_definitions
from fanlight_broker.permitting.importing import Imported, WrongImport
from fanlight_broker.permitting.rabbitmq_names import allowed_by, both
from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from fanlight_permissions.permission_file import compile_permissions, parse_permissions
from fanlight_permissions.table import PermissionTable
from tests.broker.protocols.amqp.test_permission_table import KnownPeer
from tests.broker.protocols.amqp.world import PLAIN, Peer, World

QUEUES = ("orders", "orders.new", "bob-q", "plant", "other")
EXCHANGES = ("orders", "events.all", "bob-x", "amq.direct")
IN_FILE = {
    "queues": [{"name": name, "vhost": "/"} for name in (*QUEUES, "orders-late")],
    "exchanges": [{"name": name, "vhost": "/"} for name in EXCHANGES[:3]],
}


class Regexes(NamedTuple):
    configure: str
    write: str
    read: str


USERS = {  # and whether all of it is converted
    "all": (Regexes(".*", ".*", ".*"), True), "nobody": (Regexes("^$", "", "^$"), True),
    "reader": (Regexes("^$", "^$", ".*"), False), "publisher": (Regexes("", r"^(orders|amq\.default)$", ""), False),
    "words": (Regexes(r"^orders\..*", r"^orders\..*", r"^orders(\..*)?$"), False),
    "list": (Regexes("^(orders|plant)$", "^orders$|^plant$", r"^orders$|^amq\.direct$"), True),
    "bob": (Regexes("^bob-.*", "^(bob-.*|orders)$", "^bob-.*"), False),
    "end": (Regexes("orders", "s$", "[a-z]+"), False),
    "uneven": (Regexes("^orders$", ".*", "^plant$"), False), "topics": (Regexes("^$", r"^amq\.topic$", "^$"), True),
    "generated": (Regexes(r"^amq\.gen-.*", r"^amq\.gen-.*", r"^(amq\.gen-.*|orders)$"), True),
    "dots": (Regexes(r"^events\.all$", r"^events\.all$", r"^events\.all$"), True),
}  # fmt: skip


def imported(user: str, regexes: Regexes, **more: object) -> Imported:
    permission = {"user": user, "vhost": "/", **regexes._asdict()}
    return import_definitions({**IN_FILE, "permissions": [permission], **more}, "/", "x.json")


def table_of(made: Imported) -> PermissionTable:
    return compile_permissions(parse_permissions(made.toml(), "imported", Limits()), "imported", Limits())


def finds(regex: str, name: str) -> bool:
    return regex != "" and re.search(regex, name) is not None


def peer_of(world: World, user: str, table: PermissionTable) -> Peer:
    """A verified user with channel 1 open."""
    world.groups, world.own = {}, {}  # type: ignore[attr-defined]
    world.broker.use_permissions(table)
    peer = KnownPeer(world)
    peer.shake_hands(PLAIN._replace(response=f"\0{user}\0x".encode()))
    assert peer.ask(first.ChannelOpen()) == first.ChannelOpenOk()
    return peer


class Tried:
    """One user of a broker with these queues and exchanges; each operation on a channel of its own."""

    def __init__(self, user: str, regexes: Regexes, table: PermissionTable) -> None:
        self.user, self.regexes, self.table = user, regexes, table
        self.wrong: list[str] = []
        self.missing: list[str] = []

    def peer(self) -> Peer:
        world = World()
        operator = world.channel()
        for queue in QUEUES:
            operator.declare(queue)
        for exchange in EXCHANGES[:3]:
            operator.ask(entity.ExchangeDeclare(exchange=exchange, type="direct"))
        return peer_of(world, self.user, self.table)

    def ask(self, peer: Peer, method: object, expected: bool) -> Peer:
        peer.say(method)
        answers = [got.method for got in peer.got()]
        refused = any(getattr(answer, "reply_code", 0) == 403 for answer in answers)
        self.note(str(method), not refused, expected)
        return self.peer() if any(isinstance(each, first.ChannelClose) for each in answers) else peer

    def note(self, what: str, allowed: bool, expected: bool) -> None:
        if allowed and not expected:
            self.wrong.append(what)
        if expected and not allowed:
            self.missing.append(what)


@pytest.mark.parametrize("user", USERS)
def test_operations(user: str) -> None:
    regexes, whole = USERS[user]
    made = imported(user, regexes)
    tried = Tried(user, regexes, table_of(made))
    configure, write, read = (lambda name, each=each: finds(each, name) for each in regexes)
    peer = tried.peer()
    for queue in (*QUEUES, "orders-new", "orders.later"):
        there = queue in QUEUES
        if there:
            peer = tried.ask(peer, basic.BasicGet(queue=queue, no_ack=True), read(queue))
            peer = tried.ask(peer, entity.QueuePurge(queue=queue), read(queue))
            for exchange in EXCHANGES:
                method = entity.QueueBind(queue=queue, exchange=exchange, routing_key="k")
                peer = tried.ask(peer, method, write(queue) and read(exchange))
        peer = tried.ask(peer, entity.QueueDeclare(queue=queue), configure(queue))
        peer = tried.ask(peer, entity.QueueDelete(queue=queue), configure(queue) or not (there or configure(queue)))
        arguments = {"x-dead-letter-exchange": "orders", "x-dead-letter-routing-key": "k"}
        dead = entity.QueueDeclare(queue=f"{queue}", arguments=arguments)
        if not there:
            peer = tried.ask(peer, dead, configure(queue) and read(queue) and write("orders"))
    for exchange in EXCHANGES:
        if not exchange.startswith("amq."):
            peer = tried.ask(peer, entity.ExchangeDeclare(exchange=exchange, type="direct"), configure(exchange))
        for source in EXCHANGES:
            bind = entity.ExchangeBind(destination=exchange, source=source, routing_key="k")
            peer = tried.ask(peer, bind, write(exchange) and read(source))
    alternate = entity.ExchangeDeclare(exchange="bob-y", type="direct", arguments={"alternate-exchange": "orders"})
    peer = tried.ask(peer, alternate, configure("bob-y") and read("bob-y") and write("orders"))
    peer.ask(entity.ConfirmSelect())
    for exchange in ("", *EXCHANGES, "amq.topic"):
        peer.publish("plant", b"x", exchange)
        allowed = any(isinstance(got.method, basic.BasicAck) for got in peer.got())
        tried.note(f"publish to {exchange!r}", allowed, write(exchange or "amq.default"))
        if not allowed:
            peer = tried.peer()
            peer.ask(entity.ConfirmSelect())
    assert tried.wrong == []
    assert (made.left_out == []) == whole
    if whole:
        assert tried.missing == []


def test_queues_whose_names_the_broker_has_chosen() -> None:
    peer = peer_of(World(), "generated", table_of(imported("generated", USERS["generated"][0])))
    made = peer.ask(entity.QueueDeclare())
    assert isinstance(made, entity.QueueDeclareOk)
    assert made.queue.startswith("amq.gen-")
    peer.say(basic.BasicGet(queue=made.queue, no_ack=True))
    assert isinstance(peer.method(), basic.BasicGetEmpty)


REGEXES = [".*", "", "^$", "^a$", "^(a|b)$", "^a$|^b$", r"^a\..*", r"^a\.b$", "a", "^a", "a$", "^a-.*", "(a|b)",
           "^a|b$", r"^(a|b)\..*$", "a|", "^[ab]$", r"^a\-b$", "^.$", "(?i)^A$", r"^a\.", r"^(a\.b|b)$"]  # fmt: skip
NAMES = ["a", "b", "ab", "a.b", "a.", "b.a.c", "a-b", "A", "", "c"]


@pytest.mark.parametrize("words", [True, False])
@pytest.mark.parametrize("regex", REGEXES)
def test_an_expression_finds_no_more_names_than_re(regex: str, words: bool) -> None:
    found = allowed_by(regex, ["a", "ab"], words=words)
    for name in NAMES:
        allowed = found.everything or name in found.names or any(name.startswith(f"{each}.") for each in found.under)
        assert not allowed or finds(regex, name), name
        if not found.reasons and name:
            assert allowed == finds(regex, name), name


@pytest.mark.parametrize("regex", REGEXES)
def test_what_both_allow_is_allowed_by_each(regex: str) -> None:
    for other in REGEXES:
        found = both(*(allowed_by(each, ["a", "ab"], words=True) for each in (regex, other)))
        for name in NAMES:
            if found.everything or name in found.names or any(name.startswith(f"{each}.") for each in found.under):
                assert finds(regex, name)
                assert finds(other, name)


def test_vhosts_are_apart() -> None:
    """A user of one vhost is nobody in another one, in whatever order the files are put together."""
    definitions = {"permissions": [
        {"user": "ann", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"},
        {"user": "bob", "vhost": "shop", "configure": "^q$", "write": ".*", "read": ".*"},
        {"user": "eve", "vhost": "shop", "configure": "", "write": "", "read": ""},
    ]}  # fmt: skip
    parts = [import_definitions(definitions, vhost, "x").toml() for vhost in ("/", "shop")]
    for text in ("".join(parts), "".join(reversed(parts))):
        table = compile_permissions(parse_permissions(text, "x", Limits()), "x", Limits())
        for user, namespace, may_connect, may_publish in [
            ("ann", "", True, True), ("ann", "shop", False, False), ("bob", "shop", True, True),
            ("bob", "", True, False), ("eve", "shop", True, False), ("eve", "", True, False),
        ]:
            grant = table.grant_of(Asker(user=user, client="c", protocol="amqp", namespace=namespace))
            assert grant.decide(Action.CONNECT).allowed is may_connect, (user, namespace)
            assert grant.decide(Action.PUBLISH, b"$exchange.x.k", "amqp").allowed is may_publish, (user, namespace)
            table.release(grant)


def test_a_vhost_whose_name_no_namespace_has() -> None:
    with pytest.raises(WrongImport):
        import_definitions({"permissions": []}, "a b", "x")
