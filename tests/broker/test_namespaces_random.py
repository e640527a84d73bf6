"""Random clients, subscriptions, publishes, wills and reloads of several namespaces, against a plain list of who is
subscribed to what: no delivery crosses, and none is missing.
"""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.protocols.permitted import DIALECTS, Client
from tests.broker.protocols.tenants import HOMES, RULES, TENANTS, Tenants

TOPICS = ["a", "a/b", "b", "b/a", "a/b/c"]
FILTERS = ["#", "a/#", "+", "+/b", "a/b", "b/#", "a/+/c"]
NAMES = ["x", "y"]

homes = st.sampled_from(HOMES)
steps = st.one_of(
    st.tuples(st.just("connect"), homes, st.sampled_from(NAMES), st.sampled_from(DIALECTS)),
    st.tuples(st.just("subscribe"), st.integers(0, 9), st.sampled_from(FILTERS), st.just("")),
    st.tuples(st.just("publish"), st.integers(0, 9), st.sampled_from(TOPICS), st.sampled_from(["", "retain"])),
    st.tuples(st.just("leave"), st.integers(0, 9), st.just(""), st.just("")),
    st.tuples(st.just("move"), st.sampled_from(["acme", "beta"]), st.just(""), st.just("")),
    st.tuples(st.just("sweep"), st.just(0), st.just(""), st.just("")),
)


def matches(filter: str, topic: str) -> bool:
    wanted, words = filter.split("/"), topic.split("/")
    for place, word in enumerate(wanted):
        if word == "#":
            return True
        if place >= len(words) or word not in ("+", words[place]):
            return False
    return len(wanted) == len(words)


@dataclass
class Known:
    """What the list has of a client."""

    group: str
    home: str
    name: str
    dialect: str
    client: Client
    filters: set[str] = field(default_factory=set)
    expected: list[tuple[str, bytes]] = field(default_factory=list)

    def look(self) -> None:
        assert sorted(self.client.got()) == sorted(self.expected), self
        self.expected.clear()


class Model:
    """The broker, and what it should do."""

    def __init__(self) -> None:
        self.world = Tenants()
        self.known: list[Known] = []
        self.retained: dict[tuple[str, str], bytes] = {}
        self.home_of = {each: each for each in HOMES}  # by group
        self.count = 0

    def connect(self, group: str, name: str, dialect: str) -> None:
        home = self.home_of[group]
        if dialect != "native":  # a session of the same identifier ends
            self.drop([
                each for each in self.known if (each.home, each.name) == (home, name) and each.dialect != "native"
            ])
        self.known.append(Known(group, home, name, dialect, self.world.at(group, dialect, name)))

    def drop(self, gone: list[Known]) -> None:
        for each in gone:
            each.look()
            self.known.remove(each)

    def subscribe(self, one: Known, filter: str) -> None:
        if filter in one.filters:
            return
        assert one.client.subscribe(filter)
        one.filters.add(filter)
        if one.dialect != "native":
            one.expected += [
                (topic, payload) for (home, topic), payload in self.retained.items()
                if home == one.home and matches(filter, topic)
            ]

    def publish(self, one: Known, topic: str, retain: str) -> None:
        self.count += 1
        payload = b"%d" % self.count
        options: dict[str, Any] = {"retain": True} if retain and one.dialect != "native" else {}
        one.client.publish(topic, payload, **options)
        if options:
            self.retained[one.home, topic] = payload
        for each in self.known:
            if each.home == one.home:
                found = [filter for filter in each.filters if matches(filter, topic)]
                # A session gets one copy, a native client one for each subscription.
                each.expected += [(topic, payload)] * (len(found) if each.dialect == "native" else bool(found))

    def move(self, group: str) -> None:
        """The group is in another namespace from now on."""
        self.home_of[group] = f"{group}2" if self.home_of[group] == group else group
        rules = RULES
        for each in TENANTS:
            rules = rules.replace(f'name = "{each}"', f'name = "{self.home_of[each]}"')
        self.world.use(rules)
        moved = [each for each in self.known if each.group == group]
        assert all(each.client.peer.close_reason is not None for each in moved)
        self.drop(moved)

    def step(self, kind: str, first: Any, second: str, third: str) -> None:
        if kind == "connect":
            self.connect(first, second, third)
        elif kind == "move":
            self.move(first)
        elif kind == "sweep":
            self.world.pass_time(1)
        elif self.known:
            one = self.known[first % len(self.known)]
            if kind == "subscribe":
                self.subscribe(one, second)
            elif kind == "publish":
                self.publish(one, second, third)
            else:
                one.look()
                one.client.peer.vanish()
                self.known.remove(one)


@settings(max_examples=60)
@given(st.lists(steps, min_size=10, max_size=60))
def test_each_client_gets_what_is_published_in_its_namespace_and_nothing_else(given_steps: list[Any]) -> None:
    model = Model()
    for home in HOMES:
        model.connect(home, NAMES[0], DIALECTS[HOMES.index(home)])
    for each in given_steps:
        model.step(*each)
    for client in model.known:
        client.look()
        assert client.client.peer.close_reason is None
    assert {home.name for home in model.world.broker.namespaces} >= {each.home for each in model.known} - {""}
