"""Every path by which a message or an answer can reach a client, tried with rules that allow it and that deny it.

`secret/#` is what the rules are about, `open/#` what everybody may have. What reaches a client over HTTP is in
admin/test_permissions.py, replays are in storage/test_replay_permissions.py.
"""

from typing import Any

import pytest

from fanlight_broker import audit
from fanlight_broker.core.limits import SubscribePartly
from fanlight_broker.core.rule_actions import ActionKind, RoutingRule, TopicTemplate
from fanlight_broker.core.rule_set import RuleSet
from fanlight_broker.core.system_topics import message_of
from fanlight_broker.protocols.mqtt.options import MqttOptions
from fanlight_broker.protocols.mqtt.packets import WillFields
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.publish_denied import PublishDenied
from matchcore.where import parse_where
from tests.broker.core.reference import Reference, Rule, allow, deny
from tests.broker.protocols.native.world import frame
from tests.broker.protocols.permitted import DIALECTS, MqttClient, NativeClient, World

MQTT_DIALECTS = DIALECTS[1:]
NOT_PERMITTED = {"native": "not_permitted", "mqtt3": 0x80, "mqtt5": 0x87}
ALL = allow("all")
dialects = pytest.mark.parametrize("dialect", DIALECTS)
mqtt_dialects = pytest.mark.parametrize("dialect", MQTT_DIALECTS)
allowed = pytest.mark.parametrize("permitted", [True, False], ids=["allowed", "denied"])


def world_of(*rules: Rule, options: MqttOptions | None = None, **limits: Any) -> World:
    world = World(options=options, **limits)
    world.broker.use_permissions(Reference(*rules))
    return world


def unless(permitted: bool, actions: str, **asks: Any) -> tuple[Rule, ...]:
    """Everything is allowed, or everything but this on `secret/#`."""
    return (ALL,) if permitted else (deny(actions, "secret/#", **asks), ALL)


def native(world: World, name: str = "") -> NativeClient:
    client = world.client("native", name)
    assert isinstance(client, NativeClient)
    return client


# -- PUBLISH ----------------------------------------------------------------------------------------------------------


@dialects
@allowed
@pytest.mark.parametrize("qos", [0, 1])
def test_a_message_is_published(dialect: str, permitted: bool, qos: int) -> None:
    world = world_of(*unless(permitted, "publish", user="p"))
    reader, publisher = world.client("native"), world.client(dialect, "p")
    reader.subscribe("#")
    for _ in range(3):  # the first asks, the others find the answer in the route
        publisher.publish("secret/a", qos=qos)
        publisher.publish("open/a", qos=qos)
    expected = ["secret/a", "open/a"] if permitted else ["open/a"]
    assert reader.topics() == expected * 3
    assert world.denied("publish") == (0 if permitted else 3)
    if not permitted and qos:
        assert publisher.refusal == {"native": "not_permitted", "mqtt3": None, "mqtt5": 0x87}[dialect]
    assert not publisher.peer.gone


@dialects
def test_what_one_class_may_publish_another_may_not(dialect: str) -> None:
    world = world_of(deny("publish", "secret/#", user="bob"), ALL)
    reader, alice, bob = world.client("native"), world.client(dialect, "alice"), world.client(dialect, "bob")
    reader.subscribe("#")
    for _ in range(3):
        alice.publish("secret/a", b"alice")
        bob.publish("secret/a", b"bob")
    assert reader.got() == [("secret/a", b"alice")] * 3


@pytest.mark.parametrize("dialect", ["native", "mqtt5"])
def test_a_route_is_asked_once_by_a_class_however_many_have_a_number_beyond_its_bits(dialect: str) -> None:
    world = World()
    permissions = Reference(deny("publish", "secret/#", user="u2"), ALL, first=63)
    world.broker.use_permissions(permissions)
    reader = world.client("native")
    reader.subscribe("#")
    publishers = [world.client(dialect, f"u{number}") for number in range(4)]
    for _ in range(3):
        for number, publisher in enumerate(publishers):
            publisher.publish("secret/a", b"%d" % number)
    assert [payload for _, payload in reader.got()] == [b"0", b"1", b"3"] * 3
    asked = {asker.user: grant.asked for asker, grant in permissions.grants.items()}
    again = dict(asked)
    for number in (0, 1, 3):
        publishers[number].publish("secret/a")
    assert {asker.user: grant.asked for asker, grant in permissions.grants.items()} == again


@mqtt_dialects
@allowed
def test_a_message_is_retained(dialect: str, permitted: bool) -> None:
    world = world_of(*unless(permitted, "retain", user="p"))
    reader, publisher = world.client("native"), world.client(dialect, "p")
    assert isinstance(publisher, MqttClient)
    reader.subscribe("#")
    for payload in (b"1", b"2"):
        publisher.publish("secret/a", payload, retain=True)
        publisher.publish("secret/a", b"live")
    payloads = [payload for _, payload in reader.got()]
    assert payloads == ([b"1", b"live", b"2", b"live"] if permitted else [b"live", b"live"])
    late = world.client("mqtt5")
    late.subscribe("#")
    assert late.got() == ([("secret/a", b"2")] if permitted else [])
    assert world.denied("retain") == (0 if permitted else 2)


@pytest.mark.parametrize("dialect", ["native", "mqtt5"])
@allowed
def test_a_message_names_a_topic_for_the_reply(dialect: str, permitted: bool) -> None:
    world = world_of(*unless(permitted, "request", user="p"))
    reader, publisher = world.client("native"), world.client(dialect, "p")
    reader.subscribe("#")
    for _ in range(2):
        publisher.publish("secret/a", b"request", reply="answers/1")
        publisher.publish("secret/a", b"plain")
    payloads = [payload for _, payload in reader.got()]
    assert payloads == ([b"request", b"plain"] * 2 if permitted else [b"plain"] * 2)
    assert world.denied("request") == (0 if permitted else 2)


@pytest.mark.parametrize("dialect", ["native", "mqtt5"])
@allowed
def test_a_message_is_delayed(dialect: str, permitted: bool) -> None:
    world = world_of(*unless(permitted, "publish", user="p"))
    reader, publisher = world.client("native"), world.client(dialect, "p")
    reader.subscribe("#")
    publisher.publish("secret/a", delay=5, qos=1)
    world.pass_time(10)
    assert reader.topics() == (["secret/a"] if permitted else [])


@pytest.mark.parametrize(("policy", "closed"), [(PublishDenied.DROP, False), (PublishDenied.CLOSE, True)])
@mqtt_dialects
@pytest.mark.parametrize("qos", [0, 1])
def test_a_denied_publish_of_mqtt_is_dropped_or_closes_the_connection(
    dialect: str, policy: PublishDenied, closed: bool, qos: int
) -> None:
    world = world_of(*unless(False, "publish"), options=MqttOptions(publish_denied=policy))
    publisher = world.client(dialect, "p")
    publisher.publish("secret/a", qos=qos)
    has_error = dialect == "mqtt5" and qos == 1
    assert (publisher.peer.close_reason is not None) == (closed and not has_error)
    assert publisher.lost == (0x87 if closed and dialect == "mqtt5" and not has_error else None)


# -- wills ------------------------------------------------------------------------------------------------------------


@mqtt_dialects
@pytest.mark.parametrize("action", ["will", "publish", "retain", None])
def test_a_will_is_asked_for_at_connect(dialect: str, action: str | None) -> None:
    world = world_of(*unless(action is None, action or "", user="w"))
    reader = world.client("native")
    reader.subscribe("#")
    client = world.stranger(dialect, "w", will=WillFields("secret/a", b"x", 0, True))
    assert client.let_in == (action is None)
    assert client.refusal == (None if action is None else 0x87)
    client.peer.vanish()
    assert reader.topics() == (["secret/a"] if action is None else [])
    assert world.denied("will") == (action is not None)


@allowed
def test_a_will_with_a_topic_for_the_reply_is_a_request(permitted: bool) -> None:
    world = world_of(*unless(permitted, "request", user="w"))
    will = WillFields("secret/a", b"x", properties=Properties(response_topic="answers"))
    assert world.stranger("mqtt5", "w", will=will).let_in == permitted


@mqtt_dialects
@pytest.mark.parametrize("action", ["will", "publish", None])
def test_a_will_is_asked_for_again_when_it_is_published(dialect: str, action: str | None) -> None:
    world = world_of(ALL)
    reader = world.client("native")
    reader.subscribe("#")
    client = world.client(dialect, "w", will=WillFields("secret/a", b"x"))
    world.broker.use_permissions(Reference(*unless(action is None, action or "", user="w")))
    client.peer.vanish()
    assert reader.topics() == (["secret/a"] if action is None else [])


# -- SUBSCRIBE --------------------------------------------------------------------------------------------------------


@dialects
@allowed
def test_a_subscription(dialect: str, permitted: bool) -> None:
    world = world_of(*unless(permitted, "subscribe", user="s"))
    reader, publisher = world.client(dialect, "s"), world.client("native")
    assert reader.subscribe("secret/a") == permitted
    assert reader.subscribe("open/a")
    publisher.publish("secret/a")
    publisher.publish("open/a")
    assert reader.topics() == (["secret/a", "open/a"] if permitted else ["open/a"])
    if not permitted:
        assert reader.refusal == NOT_PERMITTED[dialect]
        assert world.denied("subscribe") == 1


@dialects
@pytest.mark.parametrize("partly", list(SubscribePartly))
@pytest.mark.parametrize("where", [None, "n > 1"])
def test_a_filter_that_is_partly_allowed(dialect: str, partly: SubscribePartly, where: str | None) -> None:
    if dialect == "mqtt3" and where is not None:
        where = None  # it has no User Properties
    world = world_of(*unless(False, "subscribe", user="s"), subscribe_partly=partly)
    reader, publisher = world.client(dialect, "s"), world.client("native")
    options: dict[str, Any] = {} if where is None else {"where": where}
    filters = partly is SubscribePartly.FILTER
    for filter in ("#", "+/a", "secret/+", "+/+"):
        assert reader.subscribe(filter, **options) == (filters and filter != "secret/+")
    for _ in range(2):
        for topic in ("secret/a", "open/a", "secret/b"):
            publisher.publish(topic, headers={"n": 2})
    assert set(reader.topics()) == ({"open/a"} if filters else set())


@dialects
def test_routes_of_the_same_who_read_partly_share_a_batch(dialect: str) -> None:
    world = world_of(*unless(False, "subscribe", user="s"))
    readers = [world.client(dialect, "s", user="s"), world.client(dialect, "s2", user="s")]
    for reader in readers:
        assert reader.subscribe("+/a")
    publisher = native(world)
    topics = [f"open{n % 7}/a" for n in range(140)] + ["secret/a"]
    publisher.peer.send(b"".join(frame(3, None, topic, b"x" * 100, None, 1) for topic in topics))
    assert [reader.topics() for reader in readers] == [topics[:-1]] * 2
    assert world.broker.routes.batcher.joined > 70


@dialects
def test_a_route_that_is_known_leaves_out_who_may_not_read_it(dialect: str) -> None:
    world = world_of(*unless(False, "subscribe", user="s"))
    publisher, everybody = world.client("native"), world.client("native")
    everybody.subscribe("#")
    for topic in ("secret/a", "open/a"):  # both are in the cache from now on
        publisher.publish(topic)
    reader = world.client(dialect, "s")
    reader.subscribe("#")
    for _ in range(2):
        for topic in ("secret/a", "open/a"):
            publisher.publish(topic)
        world.client("native").subscribe("secret/#")  # a change of the route that is no reason to match it again
    assert reader.topics() == ["open/a"] * 2
    assert everybody.topics().count("secret/a") == 3


@mqtt_dialects
@pytest.mark.parametrize("where", [None, "n > 1"])
def test_retained_messages(dialect: str, where: str | None) -> None:
    if dialect == "mqtt3":
        where = None
    world = world_of(*unless(False, "subscribe", user="s"))
    publisher = world.client("mqtt5")
    assert isinstance(publisher, MqttClient)
    for topic in ("secret/a", "open/a", "secret/b"):
        publisher.publish(topic, retain=True, headers={"n": "2"})
    reader = world.client(dialect, "s")
    options: dict[str, Any] = {} if where is None else {"where": where}
    reader.subscribe("#", **options)
    reader.subscribe("secret/a", **options)
    assert reader.topics() == ["open/a"]
    other = world.client(dialect, "other")
    other.subscribe("#", **options)
    assert sorted(other.topics()) == ["open/a", "secret/a", "secret/b"]


@mqtt_dialects
@allowed
def test_the_queue_of_a_session(dialect: str, permitted: bool) -> None:
    world = world_of(*unless(permitted, "subscribe", user="s"))
    world.client(dialect, "s", clean=False).subscribe("#", qos=1)
    world.broker.sessions.get("s").client.connection.transport.vanish()  # type: ignore[union-attr]
    publisher = world.client("mqtt5")
    publisher.publish("secret/a", qos=1)
    publisher.publish("open/a", qos=1)
    assert world.client(dialect, "s", clean=False).topics() == (["secret/a", "open/a"] if permitted else ["open/a"])


@dialects
@pytest.mark.parametrize("rights", ["all", "some", "none"])
def test_a_member_of_a_queue_group_may_read_all_of_its_filter(dialect: str, rights: str) -> None:
    """What waits in a group is given to any member."""
    world = world_of(*{
        "all": (ALL,), "some": unless(False, "subscribe", user="s"), "none": (deny("subscribe", user="s"), ALL),
    }[rights])  # fmt: skip
    member, publisher = world.client(dialect, "s"), world.client("native")
    assert member.subscribe("#", group="g") == (rights == "all")
    publisher.publish("secret/a")
    assert member.topics() == (["secret/a"] if rights == "all" else [])


@dialects
@allowed
def test_the_brokers_own_topics(dialect: str, permitted: bool) -> None:
    rules = (ALL,) if permitted else (deny("subscribe", "$SYS/broker/secret/#", user="s"), allow("all", "# $SYS/#"))
    world = world_of(*rules)
    reader = world.client(dialect, "s")
    assert reader.subscribe("$SYS/#")
    for name in ("secret/a", "open"):
        world.broker.publishing.announce(message_of(name, "1"), world.now)
    world.turn()
    assert reader.topics() == (["$SYS/broker/secret/a"] if permitted else []) + ["$SYS/broker/open"]
    late = world.client(dialect, "s2" if permitted else "s")
    assert late.subscribe("$SYS/broker/secret/#") == permitted


@dialects
def test_an_inbox_is_its_owners_alone_whatever_the_rules_say(dialect: str) -> None:
    world = world_of(deny("subscribe", "#", user="owner"), ALL)
    owner, other = native(world, "owner"), world.client(dialect, "other")
    inbox = owner.inbox.replace(".", "/")
    assert owner.subscribe(f"{inbox}/#"), "its own, without a rule"
    assert not other.subscribe(f"{inbox}/#")
    assert other.refusal == NOT_PERMITTED[dialect]
    assert not other.subscribe("$inbox/#")
    other.subscribe("#")
    other.publish(f"{inbox}/1", b"answer")
    assert owner.got() == [(f"{inbox}/1", b"answer")]
    assert other.got() == []


@allowed
def test_replies_reach_an_inbox_from_those_who_may_publish_there(permitted: bool) -> None:
    world = world_of(*((ALL,) if permitted else (deny("publish", "$inbox/#", user="p"), ALL)))
    owner, responder = native(world, "owner"), world.client("native", "p")
    owner.subscribe(f"{owner.inbox.replace('.', '/')}/#")
    responder.publish(f"{owner.inbox.replace('.', '/')}/1")
    assert len(owner.got()) == permitted


def test_what_a_rule_copies_reaches_those_who_may_read_its_topic() -> None:
    template = TopicTemplate(b"secret.copy", "amqp")
    copying = RoutingRule(0, "line 1", None, b"open.#", "amqp", parse_where("TRUE"), 0, ActionKind.COPY, template)
    world = world_of(*unless(False, "subscribe", user="s"))
    world.broker.publishing.use_rules(RuleSet([copying], world.broker.limits))
    reader, other, publisher = world.client("native", "s"), world.client("native"), world.client("native", "p")
    for each in (reader, other):
        each.subscribe("#")
    publisher.publish("open/a")
    assert (reader.topics(), sorted(other.topics())) == (["open/a"], ["open/a", "secret/copy"])


# -- named queues -----------------------------------------------------------------------------------------------------


def queue(client: NativeClient, verb: str, **arguments: Any) -> Any:
    return client.ask(39, 5, verb, arguments)


@pytest.mark.parametrize("action", ["queue", "subscribe", None])
def test_every_request_about_a_queue(action: str | None) -> None:
    world = world_of(*unless(action is None, action or "", user="o"))
    boss, operator = native(world, "boss"), native(world, "o")
    assert queue(boss, "add", name="there", filters=[["secret/#", 1]], queue={}) is not None
    boss.publish("secret/a", b"waiting")
    ok = action is None
    assert (queue(operator, "peek", name="there") is not None) == ok
    assert (queue(operator, "info", name="there") is not None) == ok
    assert [each["name"] for each in queue(operator, "list")["queues"]] == (["there"] if ok else [])
    assert (queue(operator, "move", name="there") is not None) == ok
    assert (queue(operator, "purge", name="there") is not None) == ok
    assert (queue(operator, "add", name="more", filters=[["secret/b", 1]], queue={}) is not None) == ok
    assert (queue(operator, "remove", name="there", force=True) is not None) == ok
    assert operator.refusal == (None if ok else "not_permitted")


@pytest.mark.parametrize("rights", ["all", "some", "none"])
def test_a_consumer_may_read_all_that_is_in_its_queue(rights: str) -> None:
    world = world_of(*{
        "all": (deny("queue", user="s"), ALL), "some": unless(False, "subscribe", user="s"),
        "none": (deny("subscribe", user="s"), ALL),
    }[rights])  # fmt: skip
    boss, consumer = native(world, "boss"), native(world, "s")
    assert queue(boss, "add", name="q", filters=[["#", 1]], queue={}) is not None
    boss.publish("secret/a")
    assert consumer.subscribe("#", consumer="q", durable=True, ack=True) == (rights == "all")
    assert [payload for _, payload in consumer.got()] == ([b"x"] if rights == "all" else [])


@allowed
def test_a_consumer_that_declares_its_queue_may_do_so(permitted: bool) -> None:
    world = world_of(*unless(permitted, "queue", user="s"))
    assert native(world, "s").subscribe("secret/#", consumer="q", durable=True, ack=True) == permitted


@allowed
def test_dead_letters_go_where_whoever_made_the_queue_may_publish(permitted: bool) -> None:
    world = world_of(*unless(permitted, "publish", user="s"))
    maker = native(world, "s")
    options = {"dead_letter": "secret.dead"}
    assert (queue(maker, "add", name="q", filters=[["open/#", 1]], queue=options) is not None) == permitted


@pytest.mark.parametrize("name", ["q", "admin"])
def test_a_queue_does_not_borrow_the_rights_of_a_client_of_its_name(name: str) -> None:
    world = world_of(allow("all", client="admin"), allow("connect queue subscribe publish", "open/# dead/#"))
    maker, reader = native(world, "maker"), native(world, "admin")
    reader.subscribe("dead/#")
    options = {"dead_letter": "dead/letters", "dead_letter_syntax": 1, "deliveries_max": 1}
    assert queue(maker, "add", name=name, filters=[["open/#", 1]], queue=options) is not None
    maker.subscribe("open/#", consumer=name, ack=True)
    world.broker.use_permissions(Reference(allow("all", client="admin"), allow("connect subscribe", "open/# dead/#")))
    reader.publish("open/a")
    ((sequence, _),) = [(each[2], each) for each in maker.peer.frames() if each[0] == 32]
    maker.peer.say(35, maker.number, sequence)
    world.turn()
    assert reader.topics() == [], "the maker may not publish any more"
    assert world.denied("publish") == 1


@pytest.mark.parametrize("rights", ["all", "subscribe", "queue"])
def test_what_waits_for_another_client_is_for_those_who_may_do_everything(rights: str) -> None:
    rules = (ALL,) if rights == "all" else (deny(rights, "secret/#", user="o"), ALL)
    world = world_of(*rules)
    world.client("mqtt5", "away", clean=False).subscribe("open/#", qos=1)
    assert (queue(native(world, "o"), "peek", session="away") is not None) == (rights == "all")


@allowed
def test_delayed_messages_of_others(permitted: bool) -> None:
    world = world_of(*((ALL,) if permitted else (deny("queue", user="o"), ALL)))
    world.client("mqtt5", "p").publish("open/a", delay=50, qos=1)
    operator = native(world, "o")
    assert len(queue(operator, "delayed")["messages"]) == permitted
    (entry,) = world.broker.delayed.page(0, 10)
    assert (queue(operator, "cancel", id=entry.id) is not None) == permitted


# -- connections ------------------------------------------------------------------------------------------------------


@dialects
@allowed
def test_a_connection(dialect: str, permitted: bool) -> None:
    world = world_of(*((ALL,) if permitted else (deny("connect", user="c"), ALL)))
    client = world.stranger(dialect, "c")
    assert client.let_in == permitted
    assert client.refusal == (None if permitted else "not_permitted" if dialect == "native" else 0x87)
    assert world.denied("connect") == (not permitted)
    assert len(world.broker.clients) == permitted


@dialects
def test_an_anonymous_client_is_in_its_group_and_a_name_that_nobody_has_checked_is_none(dialect: str) -> None:
    world = world_of(allow("connect"), allow("subscribe", "open/#", group="anonymous"))
    assert world.client(dialect).subscribe("open/a")
    assert not world.client(dialect, "named").subscribe("open/a")


# -- the audit log -----------------------------------------------------------------------------------------------------


@dialects
def test_a_refusal_is_in_the_audit_log_once_for_each_client_and_cause(dialect: str) -> None:
    class Notes:
        def __init__(self) -> None:
            self.taken: list[tuple[str, dict[str, Any]]] = []

        def note(self, kind: str, keys: dict[str, Any]) -> None:
            self.taken.append((kind, keys))

        def hears(self, kind: str) -> bool:
            return True

    notes = Notes()
    before = audit.use(notes)
    try:
        world = world_of(*unless(False, "publish"))
        client = world.client(dialect, "c")
        for _ in range(3):
            client.publish("secret/a")
    finally:
        audit.use(before)
    kinds = [(kind, keys["action"], keys["topic"]) for kind, keys in notes.taken if kind == "permission_refused"]
    assert kinds == [("permission_refused", "publish", "secret/a")]
