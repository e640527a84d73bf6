"""Every path by which something reaches a client, with the same topics, names and client identifiers in two namespaces
and in the root: nothing crosses.

What comes back from the store and the archive is in storage/test_stored_namespaces.py, what HTTP shows in
core/test_namespace_views.py.
"""

from collections.abc import Callable
from typing import Any

import pytest

from fanlight_broker.core.permissions import Unrestricted
from fanlight_broker.core.system_topics import message_of
from fanlight_broker.protocols.mqtt.packets import WillFields
from tests.broker.protocols.permitted import DIALECTS, Client
from tests.broker.protocols.tenants import HOMES, RULES, TENANTS, Tenants

dialects = pytest.mark.parametrize("dialect", DIALECTS)
mqtt_dialects = pytest.mark.parametrize("dialect", DIALECTS[1:])


def each(make: Callable[[str], Any]) -> dict[str, Any]:
    """One of a kind in each namespace and in the root."""
    return {home: make(home) for home in HOMES}


def got(clients: dict[str, Client]) -> dict[str, list[bytes]]:
    return {home: [payload for _, payload in client.got()] for home, client in clients.items()}


NOTHING: dict[str, list[bytes]] = {home: [] for home in HOMES}
OWN = {home: [home.encode()] for home in HOMES}


def publish_own(publishers: dict[str, Client], topic: str = "t/a", **options: Any) -> None:
    """Each publishes the name of its namespace."""
    for home, publisher in publishers.items():
        publisher.publish(topic, home.encode(), **options)


# -- live messages ----------------------------------------------------------------------------------------------------


@dialects
@pytest.mark.parametrize("from_dialect", DIALECTS)
@pytest.mark.parametrize("filter", ["t/a", "t/+", "#", "+/#"])
def test_live_messages(dialect: str, from_dialect: str, filter: str) -> None:
    world = Tenants()
    readers = each(lambda home: world.at(home, dialect, "reader"))
    for reader in readers.values():
        assert reader.subscribe(filter)
    publishers = each(lambda home: world.at(home, from_dialect, "publisher"))
    for _ in range(3):  # the first is not in the cache of routes
        publish_own(publishers)
    assert got(readers) == {home: own * 3 for home, own in OWN.items()}


@mqtt_dialects
def test_the_same_client_identifier_is_another_client_in_each(dialect: str) -> None:
    world = Tenants()
    clients = each(lambda home: world.mqtt(home, "dev", dialect))
    for client in clients.values():
        assert client.subscribe("#")
    publish_own(clients)
    assert got(clients) == OWN
    assert all(client.lost is None and not client.peer.gone for client in clients.values())
    again = world.mqtt("acme", "dev", dialect)
    assert clients["acme"].peer.close_reason is not None, "its own session was taken over"
    assert clients["beta"].peer.close_reason is None
    assert clients[""].peer.close_reason is None
    assert again.let_in


@dialects
def test_selectors(dialect: str) -> None:
    if dialect == "mqtt3":
        return  # it has no User Properties
    world = Tenants()
    readers = each(lambda home: world.at(home, dialect, "reader"))
    for reader in readers.values():
        assert reader.subscribe("#", where="n > 1")
    publishers = each(lambda home: world.at(home, "native", "publisher"))
    publish_own(publishers, headers={"n": 2})
    assert got(readers) == OWN


@pytest.mark.parametrize("dialect", ["native", "mqtt5"])
@pytest.mark.parametrize("qos", [0, 1])
def test_queue_groups(dialect: str, qos: int) -> None:
    world = Tenants()
    readers = each(lambda home: world.at(home, dialect, "reader"))
    for reader in readers.values():
        options = {"qos": qos} if dialect == "mqtt5" else {}
        assert reader.subscribe("t/#", group="g", **options)
    publishers = each(lambda home: world.at(home, dialect, "publisher"))
    publish_own(publishers, qos=qos)
    assert got(readers) == OWN


@pytest.mark.parametrize("dialect", ["native", "mqtt5"])
def test_requests_and_replies(dialect: str) -> None:
    """Who knows the inbox of a client of another namespace reaches nobody with it."""
    world = Tenants()
    clients = each(lambda home: world.native(home, "asker"))
    inboxes = {home: client.inbox.replace(".", "/") for home, client in clients.items()}
    for home, client in clients.items():
        assert client.subscribe(f"{inboxes[home]}/#")
    for home, inbox in inboxes.items():
        for own, other in each(lambda home: world.at(home, dialect, "responder")).items():
            other.publish(f"{inbox}/1", own.encode() or b"root")
        found = got(clients)
        assert found.pop(home) == [home.encode() or b"root"]
        assert not any(found.values())


# -- what is kept -----------------------------------------------------------------------------------------------------


@mqtt_dialects
def test_retained_messages(dialect: str) -> None:
    world = Tenants()
    publishers = each(lambda home: world.mqtt(home, "publisher", dialect))
    for home in HOMES:
        publishers[home].publish("t/a", home.encode() or b"root", retain=True)
        publishers[home].publish("t/a", home.encode() or b"root", retain=True)  # by the lane
    readers = each(lambda home: world.mqtt(home, "reader", dialect))
    for filter in ("t/a", "#"):
        for reader in readers.values():
            assert reader.subscribe(filter)
        assert got(readers) == {"acme": [b"acme"], "beta": [b"beta"], "": [b"root"]}
    publishers["acme"].publish("t/a", b"", retain=True)
    late = each(lambda home: world.mqtt(home, "late", dialect))
    for reader in late.values():
        reader.subscribe("t/a")
    assert got(late) == {"acme": [], "beta": [b"beta"], "": [b"root"]}


@mqtt_dialects
def test_the_queues_of_sessions(dialect: str) -> None:
    world = Tenants()
    for home in HOMES:
        reader = world.mqtt(home, "away", dialect, clean=False)
        assert reader.subscribe("t/#", qos=1)
        reader.peer.vanish()
    publish_own(each(lambda home: world.mqtt(home, "publisher", dialect)), qos=1)
    for home in reversed(HOMES):
        assert got({home: world.mqtt(home, "away", dialect, clean=False)}) == {home: [home.encode()]}


@mqtt_dialects
@pytest.mark.parametrize("retain", [False, True])
def test_wills(dialect: str, retain: bool) -> None:
    world = Tenants()
    readers = each(lambda home: world.at(home, "native", "reader"))
    for reader in readers.values():
        assert reader.subscribe("#")
    for home in HOMES:
        will = WillFields("last/words", home.encode() or b"root", 0, retain)
        world.mqtt(home, "w", dialect, will=will).peer.vanish()
    expected = {"acme": [b"acme"], "beta": [b"beta"], "": [b"root"]}
    assert got(readers) == expected
    late = each(lambda home: world.mqtt(home, "late"))
    for reader in late.values():
        reader.subscribe("last/words")
    assert got(late) == (expected if retain else NOTHING)


@pytest.mark.parametrize("dialect", ["native", "mqtt5"])
def test_delayed_messages(dialect: str) -> None:
    world = Tenants()
    readers = each(lambda home: world.at(home, "native", "reader"))
    for reader in readers.values():
        assert reader.subscribe("#")
    publishers = each(lambda home: world.at(home, dialect, "publisher"))
    publish_own(publishers, delay=5, qos=1)
    assert got(readers) == NOTHING
    for home, operator in each(lambda home: world.native(home, "operator")).items():
        found = queue(operator, "delayed")["messages"]
        assert [message["client"] for message in found] == ["publisher"], home
    world.pass_time(10)
    assert got(readers) == OWN


def test_a_delayed_message_of_another_namespace_is_not_there() -> None:
    world = Tenants()
    world.native("acme", "p").publish("t/a", delay=5, qos=1)
    home = world.broker.namespaces.get("acme")
    assert home is not None
    (entry,) = home.delayed.page(0, 10)
    for other in ("beta", ""):
        operator = world.native(other, "p")
        assert queue(operator, "cancel", id=entry.id) == {"cancelled": False}
    assert len(home.delayed) == 1
    assert queue(world.native("acme", "p2"), "cancel", id=entry.id) == {"cancelled": True}, "it reads all there"


def test_a_delayed_message_of_another_user_of_the_namespace_is_not_ones_own() -> None:
    rules = RULES.replace("[[allow]]", '[[deny]]\nuser = "acme-bob"\nqueue = "#"\n\n[[allow]]')
    world = Tenants(rules)
    world.native("acme", "p").publish("t/a", delay=5, qos=1)
    bob = world.native("acme", "bob", user="acme-bob")
    found = queue(bob, "delayed")
    assert (found["messages"], found["count"]) == ([], 0)
    home = world.broker.namespaces.get("acme")
    assert home is not None
    (entry,) = home.delayed.page(0, 10)
    assert queue(bob, "cancel", id=entry.id) is None
    assert bob.refusal == "not_permitted"


def test_marks() -> None:
    """A producer of the same name and user is another one: nothing is taken for published already."""
    world = Tenants()
    readers = each(lambda home: world.native(home, "reader"))
    for reader in readers.values():
        reader.subscribe("#")
    for home in HOMES:
        client = world.native(home, "producer", user="same")
        world.groups["same"] = frozenset({home}) if home else frozenset()
        client = world.native(home, "producer", user="same")
        world.groups["same"] = frozenset()
        client.peer.say(3, 9, "t.a", home.encode() or b"root", None, 0, None, ["p", 1, 1], None)
        client.peer.frames()
    assert got(readers) == {"acme": [b"acme"], "beta": [b"beta"], "": [b"root"]}


# -- named queues -----------------------------------------------------------------------------------------------------


def queue(client: Any, verb: str, **arguments: Any) -> Any:
    return client.ask(39, 5, verb, arguments)


def test_named_queues() -> None:
    world = Tenants()
    operators = each(lambda home: world.native(home, "operator"))
    for operator in operators.values():
        assert queue(operator, "add", name="q", filters=[["t/#", 1]], queue={}) is not None
    publish_own(each(lambda home: world.native(home, "publisher")), qos=1)
    for operator in operators.values():
        assert [found["name"] for found in queue(operator, "list")["queues"]] == ["q"]
        assert len(queue(operator, "peek", name="q")["messages"]) == 1
    consumers = each(lambda home: world.native(home, "consumer"))
    for consumer in consumers.values():
        assert consumer.subscribe("t/#", consumer="q", ack=True)
    assert got(consumers) == OWN
    assert queue(operators["acme"], "remove", name="q", force=True) is not None
    assert queue(operators["beta"], "info", name="q") is not None
    assert queue(operators["acme"], "info", name="q") is None
    assert operators["acme"].refusal == "no_such_consumer"


def test_dead_letters() -> None:
    world = Tenants()
    readers = each(lambda home: world.native(home, "reader"))
    workers = each(lambda home: world.native(home, "worker"))
    for home in HOMES:
        readers[home].subscribe("dead/#")
        options = {"dead_letter": "dead/letters", "dead_letter_syntax": 1, "deliveries_max": 1}
        assert queue(workers[home], "add", name="q", filters=[["t/#", 1]], queue=options) is not None
        assert workers[home].subscribe("t/#", consumer="q", ack=True)
    publish_own(each(lambda home: world.native(home, "publisher")), qos=1)
    for worker in workers.values():
        ((sequence, _),) = [(each[2], each) for each in worker.peer.frames() if each[0] == 32]
        worker.peer.say(35, worker.number, sequence)
        world.turn()
    assert got(readers) == OWN


def test_what_waits_for_a_session_of_another_namespace() -> None:
    world = Tenants()
    for home in HOMES:
        reader = world.mqtt(home, f"away-{home}", clean=False)
        assert reader.subscribe("t/#", qos=1)
        reader.peer.vanish()
    publish_own(each(lambda home: world.mqtt(home, "publisher")), qos=1)
    for home, operator in each(lambda home: world.native(home, "operator")).items():
        for other in HOMES:
            found = queue(operator, "peek", session=f"away-{other}")
            assert (found is not None) == (other == home)


def test_a_queue_begins_with_the_retained_messages_of_its_namespace() -> None:
    world = Tenants()
    for home in HOMES:
        world.mqtt(home, "p").publish("t/a", home.encode() or b"root", retain=True)
    consumers = each(lambda home: world.native(home, "consumer"))
    for consumer in consumers.values():
        assert consumer.subscribe("t/#", consumer="q", ack=True, deliver="last"), consumer.refusal
    world.turn()
    assert got(consumers) == {"acme": [b"acme"], "beta": [b"beta"], "": [b"root"]}


# -- the broker's own -------------------------------------------------------------------------------------------------


@dialects
def test_a_tenant_sees_nothing_of_sys(dialect: str) -> None:
    world = Tenants()
    readers = each(lambda home: world.at(home, dialect, "reader"))
    for reader in readers.values():
        assert reader.subscribe("$SYS/#")
    world.broker.publishing.announce(message_of("uptime", "1"), world.now)
    world.turn()
    assert {home: bool(found) for home, found in got(readers).items()} == {"acme": False, "beta": False, "": True}
    late = each(lambda home: world.at(home, dialect, "late"))
    for reader in late.values():
        assert reader.subscribe("$SYS/#")
    assert {home: bool(found) for home, found in got(late).items() if home} == {"acme": False, "beta": False}


@dialects
@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize(
    "topic", ["$SYS/a", "$namespace/beta/t/a", "$namespace", "$namespace.beta.t.a", "$stream/q/0/x"]
)
def test_nobody_publishes_as_the_broker_or_another_namespace(dialect: str, home: str, topic: str) -> None:
    world = Tenants()
    readers = each(lambda home: world.native(home, "reader"))
    for reader in readers.values():
        for filter in ("#", "$namespace/#", "$SYS/#", "$stream/#"):
            reader.subscribe(filter)
    publisher = world.at(home, dialect, "publisher")
    for _ in range(3):
        publisher.publish(topic, qos=1)
    assert got(readers) == NOTHING


# -- who is where -----------------------------------------------------------------------------------------------------


@dialects
def test_a_reload_moves_a_client_with_a_reason_and_leaves_its_session(dialect: str) -> None:
    world = Tenants()
    options = {} if dialect == "native" else {"clean": False}
    client = world.at("acme", dialect, "dev", **options)
    stays = world.at("beta", dialect, "dev", **options)
    client.subscribe("#")
    world.use(RULES.replace('group = "acme"\nname = "acme"', 'group = "acme"\nname = "other"'))
    client.got()
    assert client.peer.close_reason == "closed by the broker: not_permitted"
    assert client.lost == {"native": "not_permitted", "mqtt5": 0x87, "mqtt3": None}[dialect]
    assert stays.peer.close_reason is None
    again = world.at("acme", dialect, "dev", **options)
    assert again.let_in
    sessions = {home.name: len(home.sessions) for home in world.broker.namespaces}
    kept = 0 if dialect == "native" else 1
    assert {name: sessions.get(name, 0) for name in ("acme", "beta", "other")} == {
        "acme": kept, "beta": kept, "other": kept
    }  # fmt: skip


def test_lifted_permissions_put_everybody_in_the_root() -> None:
    world = Tenants()
    client, root = world.mqtt("acme"), world.mqtt("")
    world.broker.use_permissions(Unrestricted())
    world.turn()
    assert client.peer.close_reason is not None
    assert root.peer.close_reason is None


@pytest.mark.parametrize(("name", "user", "groups", "home"), [
    ("%u", "ann", [], "ann"), ("%u", "ann@example.com", [], None), ("%u", "+", [], None), ("%u", "#", [], None),
    ("%u", "a/b", [], None), ("%u", "a.b", [], None), ("%u", "$SYS", [], None), ("%u", "x" * 65, [], None),
    ("%u", "", [], None), ("%g", "ann", ["acme"], "acme"), ("%g", "ann", ["acme", "beta"], None),
    ("%g", "ann", [], None), ("%g", "", [], None), ("acme", "", [], "acme"), ("", "ann", [], ""),
])  # fmt: skip
@dialects
def test_a_namespace_called_after_the_client(
    dialect: str, name: str, user: str, groups: list[str], home: str | None
) -> None:
    world = Tenants(f'[[namespace]]\nname = "{name}"\n\n[[allow]]\neverything = "#"\n')
    world.groups[user] = frozenset(groups)
    client = world.stranger(dialect, "dev" if user else "", user=user)
    assert client.let_in == (home is not None)
    if home is None:
        assert client.refusal == ("not_permitted" if dialect == "native" else 0x87)
        assert not len(world.broker.clients), "it is not in the root either"
    else:
        (found,) = world.broker.everybody
        assert found.subscriber.namespace == home


@dialects
def test_namespaces_are_bounded_and_let_go(dialect: str) -> None:
    world = Tenants(namespaces_max=1)
    client = world.at("acme", dialect)
    user = "beta-ann"
    world.groups[user] = frozenset({"beta"})
    other = world.stranger(dialect, "dev", user=user)
    assert not other.let_in
    assert world.broker.namespaces.refused == 1
    client.peer.vanish()
    world.pass_time(1)
    assert len(world.broker.namespaces) == 0
    assert world.stranger(dialect, "dev", user=user).let_in


@pytest.mark.parametrize("what", ["retained", "session", "queue", "delayed"])
def test_a_namespace_stays_while_something_is_kept_in_it(what: str) -> None:
    world = Tenants()
    client = world.mqtt("acme", clean=what != "session")
    if what == "retained":
        client.publish("t/a", b"x", retain=True)
    elif what == "queue":
        queue(world.native("acme", "o"), "add", name="q", filters=[["t/#", 1]], queue={})
    elif what == "delayed":
        client.publish("t/a", b"x", delay=100, qos=1)
    for peer in world.peers:
        if not peer.gone:
            peer.vanish()
    world.pass_time(1)
    assert [home.name for home in world.broker.namespaces] == ["acme"]
    world.pass_time(2_000)
    world.pass_time(1)
    assert [home.name for home in world.broker.namespaces] == ([] if what in ("session", "delayed") else ["acme"])


def test_a_namespace_is_one_principal() -> None:
    world = Tenants()
    ann, bob = world.mqtt("acme", "a"), world.mqtt("acme", "b", user="acme-bob")
    ann.subscribe("#")
    bob.subscribe("#")
    world.mqtt("beta", "a").subscribe("#")
    shares = {share.principal: share.clients for share in world.broker.shares}
    assert shares == {"namespace acme": 2, "namespace beta": 1}


@pytest.mark.parametrize("tenant", TENANTS)
def test_rules_may_ask_for_the_namespace(tenant: str) -> None:
    rules = RULES.replace("[[allow]]", '[[deny]]\nnamespace = "acme"\nsubscribe = "t/#"\n\n[[allow]]')
    world = Tenants(rules)
    assert world.native(tenant).subscribe("t/a") == (tenant == "beta")
