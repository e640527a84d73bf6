"""A table of decisions, each made in native, in MQTT 3.1.1 and in MQTT 5.0, by the codes of each; and any rules at all.

The second half changes rules, subscribes and publishes at random: nothing is delivered that the plain interpreter of
the rules (core/reference.py) denies, and nothing is missing that it allows.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matchcore
from fanlight_broker.core.permissions import Access, Action, Asker, Unrestricted
from tests.broker.core.reference import Reference, ReferenceGrant, Rule, allow, deny
from tests.broker.protocols.permitted import DIALECTS, Client, World

GROUPS = {"alice": frozenset({"staff"}), "root": frozenset({"admins", "staff"})}
RULES = (
    allow("connect"),
    deny("publish subscribe", "plant/locked/#"),
    allow("all", "# $SYS/#", group="admins"),
    allow("publish", "devices/%u/#"),
    allow("subscribe", "commands/%c/+"),
    deny("publish", "plant/+/set", group="staff"),
    allow("publish subscribe", "plant/# chat/#", user="alice"),
    allow("subscribe", "news/#", group="anonymous"),
    allow("subscribe", "news/sport", user="bob"),
    allow("publish", "native/#", protocol="native"),
    allow("publish", "mqtt/#", protocol="mqtt"),
    deny("subscribe", "old/mqtt/#", protocol="mqtt"),
    allow("subscribe", "old/#"),
    allow("subscribe", "exact"),
)
# Who, what, on which topic or filter: is it allowed? n: in the native protocol alone; m: in MQTT alone.
TABLE = """
alice  publish    plant/1/state       yes
alice  publish    plant/1/set         no
alice  publish    plant/locked/a      no
alice  publish    plant               yes
alice  publish    chat/room           yes
alice  publish    chatter             no
alice  publish    devices/alice/t     yes
alice  publish    devices/alice       yes
alice  publish    devices/bob/t       no
alice  publish    devices             no
alice  publish    native/a            n
alice  publish    mqtt/a              m
alice  subscribe  old/mqtt/a          n
alice  subscribe  plant/#             yes
alice  subscribe  plant/1/+           yes
alice  subscribe  plant/locked/a      no
alice  subscribe  plant/locked/#      no
alice  subscribe  +/1/state           no
alice  subscribe  #                   no
alice  subscribe  chat/+              yes
alice  subscribe  commands/alice/go   yes
alice  subscribe  commands/alice/+    yes
alice  subscribe  commands/alice/#    no
alice  subscribe  commands/bob/go     no
alice  subscribe  commands/+/go       no
alice  subscribe  news/sport          no
alice  subscribe  exact               yes
alice  subscribe  exact/#             no
bob    publish    devices/bob/t       yes
bob    publish    devices/alice/t     no
bob    publish    plant/1/state       no
bob    publish    native/a            n
bob    subscribe  news/sport          yes
bob    subscribe  news/#              no
bob    subscribe  news/+              no
bob    subscribe  commands/bob/stop   yes
bob    subscribe  $SYS/#              no
bob    subscribe  $inbox/other/1      no
root   publish    anything/at/all     yes
root   publish    plant/locked/a      no
root   publish    plant/1/set         yes
root   publish    devices/alice/t     yes
root   publish    $SYS/broker/mine    no
root   subscribe  #                   yes
root   subscribe  $SYS/#              yes
root   subscribe  $inbox/other/1      no
root   subscribe  plant/locked/#      no
root   subscribe  plant/#             yes
a+b    publish    devices/a+b/t       -
a+b    publish    devices/x/t         no
a+b    subscribe  commands/x/go       no
#      publish    devices/x/t         no
#      subscribe  commands/x/go       no
+      subscribe  commands/x/go       no
+      publish    devices/x/t         no
x/y    publish    devices/x/y         no
x/y    publish    devices/x/y/t       no
x/y    subscribe  commands/x/y        no
x.y    publish    devices/x/y         no
x.y    subscribe  commands/x/y        no
%u     publish    devices/alice/t     no
%u     publish    devices/%u/t        yes
-      publish    devices/alice/t     no
-      publish    native/a            n
-      subscribe  news/#              yes
-      subscribe  news/a/b            yes
-      subscribe  #                   no
-      subscribe  exact               yes
-      subscribe  plant/1             no
"""
ROWS = [tuple(line.split()) for line in TABLE.strip().splitlines()]
NOT_PERMITTED = {"native": "not_permitted", "mqtt3": 0x80, "mqtt5": 0x87}


def test_there_are_about_two_hundred_decisions() -> None:
    assert 3 * len(ROWS) >= 200


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("user", "action", "topic", "expected"), ROWS)
def test_decision(dialect: str, user: str, action: str, topic: str, expected: str) -> None:
    if expected == "-" or (topic == "$inbox/other/1" and dialect == "native"):
        expected = "no"
    world = World()
    world.groups.update(GROUPS)
    world.broker.use_permissions(Reference(*RULES))
    client = world.client(dialect, "" if user == "-" else user)
    permitted = expected == "yes" or expected == ("n" if dialect == "native" else "m")
    if action == "subscribe":
        assert client.subscribe(topic) == permitted
        assert client.refusal == (None if permitted else NOT_PERMITTED[dialect])
        return
    if "+" in topic or "#" in topic:
        topic = topic.replace("+", "p")  # no topic name in MQTT
    before = world.broker.ledger.messages_in
    for _ in range(2):
        client.publish(topic, qos=1)
    assert world.broker.ledger.messages_in - before == (2 if permitted else 0)
    refusal = {"native": "not_permitted", "mqtt3": None, "mqtt5": 0x87}[dialect]
    assert client.refusal == (None if permitted else refusal)
    assert not client.peer.gone


# -- any rules ---------------------------------------------------------------------------------------------------------

USERS = ("a", "b", "c")
topics = st.sampled_from(["x", "x/y", "x/z", "y", "y/x", "a", "a/x", "b/y", "x/y/z"])
filters = st.sampled_from(["#", "+", "x/#", "+/y", "x/+", "y", "a/#", "%u/#", "x/y", "+/+", "%u/x", "x/y/z"])
asked = st.sampled_from(["#", "+", "x/#", "+/y", "x/+", "y", "a/#", "x/y", "+/+", "x/y/z", "+/x", "+/#"])
rules = st.builds(
    Rule, st.booleans(), st.sampled_from(["publish", "subscribe", "publish subscribe", "retain"]), filters,
    user=st.sampled_from([None, None, *USERS]),
)
# Mostly something is allowed at the end: what is denied before it leaves holes in filters.
rule_lists = st.tuples(st.lists(rules, max_size=5), st.sampled_from([(), (allow("all"),), (allow("all"),)])).map(
    lambda parts: [*parts[0], *parts[1]]
)
steps = st.one_of(
    st.tuples(st.just("rules"), st.one_of(st.none(), rule_lists)),
    st.tuples(st.just("subscribe"), st.sampled_from(range(6)), asked, st.sampled_from([None, None, "g", "n > 1"])),
    st.tuples(st.just("publish"), st.sampled_from(range(6)), topics, st.booleans(), st.integers(0, 3)),
    st.tuples(st.just("publish"), st.sampled_from(range(6)), topics, st.booleans(), st.integers(0, 3)),
)


class Model:
    """What each client should get, by the rules alone."""

    def __init__(self) -> None:
        self.rules: list[Rule] | None = None
        self.world = World()
        self.clients: list[Client] = []
        self.subscribed: list[dict[tuple[str, str | None], str | None]] = []  # filter, group: selector
        for number in range(6):
            self.open(number)

    def open(self, number: int) -> None:
        client = self.world.client(("native", "mqtt5")[number % 2], USERS[number // 2])
        del self.clients[number : number + 1], self.subscribed[number : number + 1]
        self.clients.insert(number, client)
        self.subscribed.insert(number, {})

    def grant(self, number: int) -> ReferenceGrant | None:
        if self.rules is None:
            return None
        user = USERS[number // 2]
        dialect = ("native", "mqtt 5.0")[number % 2]
        return ReferenceGrant((allow("connect"), *self.rules), Asker(user, client=user, protocol=dialect), 0)

    def may(self, number: int, action: Action, topic: str) -> bool:
        grant = self.grant(number)
        return grant is None or grant.decide(action, topic.encode(), "mqtt").allowed

    def may_subscribe(self, number: int, filter: str, group: str | None) -> bool:
        grant = self.grant(number)
        if grant is None:
            return True
        access = grant.decide_filter(Action.SUBSCRIBE, filter.encode(), "mqtt").access
        return access is Access.ALL or (access is Access.PARTLY and group is None)

    def use(self, rules: list[Rule] | None) -> None:
        self.rules = rules
        self.world.broker.use_permissions(
            Unrestricted() if rules is None else Reference(allow("connect"), *rules, first=62)
        )
        self.world.turn()
        for number, subscribed in enumerate(self.subscribed):
            gone = [key for key in subscribed if not self.may_subscribe(number, *key)]
            for key in gone:
                del subscribed[key]
            client = self.clients[number]
            if number % 2 and gone:
                assert client.peer.close_reason is not None
                client.peer.vanish()
                self.open(number)
            elif not number % 2:
                client.got()
                assert len(client.ended) == len(gone)  # type: ignore[attr-defined]
                client.ended.clear()  # type: ignore[attr-defined]

    def subscribe(self, number: int, filter: str, option: str | None) -> None:
        group, where = (option, None) if option == "g" else (None, option)
        if (filter, group) in self.subscribed[number]:
            return
        options: dict[str, Any] = {"group": group} if group is not None else {"where": where} if where else {}
        granted = self.clients[number].subscribe(filter, **options)
        assert granted == self.may_subscribe(number, filter, group)
        if granted:
            self.subscribed[number][filter, group] = where
            if number % 2:
                self.clients[number].got()  # what was retained, which is looked at elsewhere

    def publish(self, number: int, topic: str, retain: bool, n: int) -> None:
        retain = retain and number % 2 == 1
        options: dict[str, Any] = {"retain": True} if retain else {}
        self.clients[number].publish(topic, b"1", headers={"n": n} if number % 2 == 0 else {"n": str(n)}, **options)
        published = self.may(number, Action.PUBLISH, topic) and (not retain or self.may(number, Action.RETAIN, topic))
        in_groups = 0
        for reader, subscribed in enumerate(self.subscribed):
            matching = [
                (filter, group) for (filter, group), where in subscribed.items()
                if matchcore.covers(filter, topic, a_syntax="mqtt", b_syntax="mqtt") and (where is None or n > 1)
            ]
            got = self.clients[reader].topics()
            assert set(got) <= {topic}
            if not published or not self.may(reader, Action.SUBSCRIBE, topic):
                assert got == []
                continue
            alone = sum(group is None for _, group in matching)
            if reader % 2:
                alone = min(alone, 1)  # the filters of a session that overlap
            assert alone <= len(got) <= alone + len(matching)
            in_groups += len(got) - alone
        members = {
            (filter, group) for subscribed in self.subscribed for filter, group in subscribed if group is not None
            and matchcore.covers(filter, topic, a_syntax="mqtt", b_syntax="mqtt")
        }
        assert in_groups == (len(members) if published else 0)


@settings(max_examples=180, deadline=None)
@given(st.lists(steps, min_size=5, max_size=30))
def test_nothing_is_delivered_that_the_plain_interpreter_denies(actions: list[tuple[Any, ...]]) -> None:
    model = Model()
    for kind, *arguments in actions:
        match kind:
            case "rules":
                model.use(*arguments)
            case "subscribe":
                model.subscribe(*arguments)
            case _:
                model.publish(*arguments)


def test_many_classes_in_turn_are_asked_once_each() -> None:
    world = World()
    names = [f"u{number}" for number in range(40)]
    clients = [world.client(("native", "mqtt5")[number % 2], name) for number, name in enumerate(names)]
    reader = world.client("native", "reader")
    assert reader.subscribe("#")
    denied: set[str] = set()
    for changed in ((), ("u3", "u20"), ("u20",), ()):
        denied = set(changed)
        rules = Reference(*(deny("publish", "a", user=name) for name in changed), allow("all"), first=64)
        world.broker.use_permissions(rules)
        world.turn()
        asked = []
        for _ in range(3):
            for client, name in zip(clients, names, strict=True):
                for topic in ("a", "b"):
                    client.publish(topic, name.encode())
                    got = [payload for _, payload in reader.got()]
                    assert got == ([] if topic == "a" and name in denied else [name.encode()])
            asked.append(sum(grant.asked for grant in rules.grants.values() if grant.asker.user not in denied))
        assert asked[2] == asked[1] == asked[0]
