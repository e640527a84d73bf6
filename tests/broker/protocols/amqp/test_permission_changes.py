"""Any rules, changed at random while AMQP clients bind, consume and publish, beside a native publisher.

Nothing is delivered that the plain interpreter of the rules (core/reference.py) denies, and nothing is missing that it
allows. The other protocols' is in tests/broker/test_permission_decisions.py.
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.core.permissions import Access, Action, Asker
from fanlight_broker.protocols.amqp import basic_methods as basic
from fanlight_broker.protocols.amqp import connection_methods as first
from fanlight_broker.protocols.amqp import entity_methods as entity
from tests.broker.core.reference import Reference, ReferenceGrant, Rule, allow
from tests.broker.protocols import permitted
from tests.broker.protocols.amqp.test_permission_paths import PathWorld
from tests.broker.protocols.amqp.test_permission_table import QUEUES
from tests.broker.test_permission_decisions import USERS, asked, rule_lists, topics

users = st.sampled_from(USERS)
steps = st.one_of(
    st.tuples(st.just("use"), rule_lists),
    st.tuples(st.just("bind"), users, asked, st.booleans()),
    st.tuples(st.just("publish"), users, topics, st.sampled_from(["native", "amq.topic", "mine"])),
    st.tuples(st.just("publish"), users, topics, st.sampled_from(["native", "amq.topic", "mine"])),
)


def key_of(filter: str) -> str:
    return filter.replace("/", ".").replace("+", "*")


class Model:
    """`mine` is an exchange in front of amq.topic: what is published there is published on its key."""

    def __init__(self) -> None:
        self.world = PathWorld()
        self.world.groups, self.world.own = {}, {}  # type: ignore[attr-defined]
        self.rules: tuple[Rule, ...] = ()
        self.use([allow("all")])
        self.channel = 1  # that one is open
        self.amqp = {user: self.world.user(user) for user in USERS}
        self.native = {user: permitted.NativeClient(self.world, user) for user in USERS}  # type: ignore[arg-type]
        self.bound: dict[str, tuple[str, str]] = {}  # consumers by their tags, with user and filter
        boss = self.world.user("boss")
        boss.ask(entity.ExchangeDeclare(exchange="mine", type="fanout"))
        assert boss.ask(entity.ExchangeBind(destination="amq.topic", source="mine")) == entity.ExchangeBindOk()

    def grant(self, user: str, protocol: str = "amqp") -> ReferenceGrant:
        return ReferenceGrant(self.rules, Asker(user, client=user, protocol=protocol), 0)

    def use(self, rules: list[Rule]) -> None:
        always = allow("publish", "$exchange/#")  # of exchanges other than amq.topic
        self.rules = (allow("connect"), *QUEUES, always, *rules)
        self.world.broker.use_permissions(Reference(*self.rules))
        self.world.turn()

    def may_read(self, user: str, filter: str) -> bool:
        return self.grant(user).decide_filter(Action.SUBSCRIBE, key_of(filter).encode(), "amqp").access is Access.ALL

    def change(self, rules: list[Rule]) -> None:
        self.use(rules)
        gone = {tag for tag, (user, filter) in self.bound.items() if not self.may_read(user, filter)}
        cancelled = {
            each.method.consumer_tag
            for peer in self.amqp.values() for each in peer.got() if isinstance(each.method, basic.BasicCancel)
        }
        assert cancelled == gone
        for tag in gone:
            del self.bound[tag]

    def begin(self, user: str) -> int:
        """A channel: what is refused closes it."""
        self.channel += 1
        assert self.amqp[user].ask(first.ChannelOpen(), self.channel) == first.ChannelOpenOk()
        return self.channel

    def bind(self, user: str, filter: str, exclusive: bool) -> None:
        peer, channel = self.amqp[user], self.begin(user)
        tag = f"q{channel}"
        peer.ask(entity.QueueDeclare(queue=tag, exclusive=exclusive), channel)
        answer = peer.ask(entity.QueueBind(queue=tag, exchange="amq.topic", routing_key=key_of(filter)), channel)
        assert isinstance(answer, entity.QueueBindOk) == self.may_read(user, filter)
        if isinstance(answer, entity.QueueBindOk):
            answer = peer.ask(basic.BasicConsume(queue=tag, consumer_tag=tag, no_ack=True), channel)
            assert answer == basic.BasicConsumeOk(tag)
            self.bound[tag] = user, filter

    def publish(self, user: str, topic: str, how: str) -> None:
        spelled = (topic.encode(), "mqtt") if how == "native" else (key_of(topic).encode(), "amqp")
        published = self.grant(user, "native" if how == "native" else "amqp").decide(Action.PUBLISH, *spelled).allowed
        if how == "native":
            self.native[user].publish(topic)
        else:
            self.amqp[user].publish(key_of(topic), b"x", how, self.begin(user))
        for reader, peer in self.amqp.items():
            got = [each.method.consumer_tag for each in peer.got() if isinstance(each.method, basic.BasicDeliver)]
            wanted = [
                tag for tag, (whose, filter) in self.bound.items()
                if whose == reader and matches(filter, topic)
            ] if published else []  # fmt: skip
            assert sorted(got) == sorted(wanted), (reader, topic, how)
            assert all(self.grant(reader).decide(Action.SUBSCRIBE, topic.encode(), "mqtt").allowed for _ in got)
            assert peer.close_reason is None


def matches(filter: str, topic: str) -> bool:
    words, rest = filter.split("/"), topic.split("/")
    for place, word in enumerate(words):
        if word == "#":
            return True
        if place == len(rest) or word not in ("+", rest[place]):
            return False
    return len(words) == len(rest)


@settings(max_examples=100, deadline=None)
@given(st.lists(steps, min_size=5, max_size=25))
def test_nothing_is_delivered_that_the_plain_interpreter_denies(actions: list[tuple[Any, ...]]) -> None:
    model = Model()
    for kind, *arguments in actions:
        match kind:
            case "use":
                model.change(*arguments)
            case "bind":
                model.bind(*arguments)
            case _:
                model.publish(*arguments)
