"""Topics that no route is kept for: what the compiled half delivers, against a broker that routes in Python.

Two brokers get the same packets. One works routes out in compiled code, keeps few of them, and brings them up to date
when they are used; the other matches each message anew, in Python. Every client gets the same packets from both.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from fanlight_broker.core.archive_selection import ArchiveSelection
from fanlight_broker.core.enforcement import UNKNOWN
from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.packets import Packet, PubAck, Publish, Subscribe, Subscription, Unsubscribe
from fanlight_broker.protocols.mqtt.properties import NONE, Properties
from fanlight_broker.protocols.mqtt.version import V3, V5
from fanlight_broker.wire.archive_tap import ArchiveTap
from fanlight_broker.wire.routes import RouteCache
from tests.broker.protocols.mqtt.world import World

CLIENTS = 4
WORDS = ("a", "b", "", "$x", "w1", "w2", "w3")
LEVELS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map("/".join).map(lambda topic: topic or "a")
NUMBERED = st.integers(0, 40).map("a/{}".format)
TOPICS = st.one_of(LEVELS, NUMBERED, st.sampled_from(["$SYS/x", "$SYS", "a/+", "a/b/c/d/e"]))
FILTERS = st.one_of(
    st.sampled_from(["#", "a/#", "+/+", "a/+", "+", "$x/#", "+/b/#"]),
    st.lists(st.sampled_from((*WORDS, "+", "+")), min_size=1, max_size=3).map("/".join).map(lambda text: text or "+"),
)


def side(in_python: bool, selected: bool) -> World:
    world = World(routes_max=16, topic_words_max=4)
    router = world.broker.router
    if selected:
        tap = ArchiveTap(rows_max=10_000, bytes_max=1 << 20, batch_bytes_max=1 << 20, begun=lambda: None,
                         full=lambda batch: None)  # fmt: skip
        router.archive_selection = ArchiveSelection(tap, [(b"a/#", "mqtt"), (b"+/b", "mqtt")])
    if in_python:
        def route(topic: bytes, syntax: str) -> Any:
            known = router.own_route(topic, syntax) if len(topic.split(b"/")) <= 4 else type(router).route(
                router, topic, syntax)
            selection = router.archive_selection
            if selection is not None and selection.wants(topic, syntax):
                known.tap = selection.tap
            return known
        router.route = route  # type: ignore[method-assign]
    return world


class ColdTopics(RuleBasedStateMachine):
    @initialize(selected=st.booleans())
    def begin(self, selected: bool) -> None:
        self.worlds = [side(False, selected), side(True, selected)]
        self.peers = [[world.connect(f"c{i}", (V5, V3)[i == 3]) for i in range(CLIENTS)] for world in self.worlds]
        for peer in self.peers[1]:
            peer.protocol.lane.badge = UNKNOWN
        self.held: list[set[str]] = [set() for _ in range(CLIENTS)]
        self.id = 0

    def say(self, who: int, packets: list[Packet]) -> None:
        for peers in self.peers:
            peer = peers[who]
            peer.send(b"".join(encode(packet, peer.version) for packet in packets))
        self.compare()

    def compare(self) -> None:
        for compiled, python in zip(*self.peers, strict=True):
            assert compiled.gone == python.gone
            while True:
                got = compiled.packets()
                assert got == python.packets()
                acks = [PubAck(each.packet_id or 0) for each in got if isinstance(each, Publish) and each.qos]
                if not acks:
                    break
                compiled.say(*acks)
                python.say(*acks)
        for name in ("messages_in", "messages_out", "unroutable", "payload_in", "payload_out"):
            assert len({getattr(world.broker.ledger, name) for world in self.worlds}) == 1, name
        taps = [world.broker.router.archive_selection for world in self.worlds]
        batches = [tap.tap.batch for tap in taps if tap is not None]
        assert len({batch.rows if batch is not None else 0 for batch in batches}) <= 1

    @rule(who=st.integers(0, CLIENTS - 1), filter=FILTERS, qos=st.integers(0, 1), group=st.booleans(),
          no_local=st.booleans(), as_published=st.booleans(), number=st.sampled_from([None, 7, 300]))
    def subscribe(
        self, who: int, filter: str, qos: int, group: bool, no_local: bool, as_published: bool, number: int | None
    ) -> None:
        self.id += 1
        v3 = who == 3
        if group and not v3:
            filter, no_local = f"$share/g/{filter}", False
        wanted = Subscription(filter, qos) if v3 else Subscription(filter, qos, no_local, as_published)
        properties = NONE if v3 or number is None else Properties(subscription_identifiers=(number,))
        self.say(who, [Subscribe(self.id, (wanted,), properties)])
        self.held[who].add(filter)

    @rule(who=st.integers(0, CLIENTS - 1), nth=st.integers(0, 9))
    def unsubscribe(self, who: int, nth: int) -> None:
        if self.held[who]:
            filter = sorted(self.held[who])[nth % len(self.held[who])]
            self.held[who].discard(filter)
            self.id += 1
            self.say(who, [Unsubscribe(self.id, (filter,))])

    @rule(who=st.integers(0, CLIENTS - 1), topics=st.lists(TOPICS, min_size=1, max_size=12), qos=st.integers(0, 1),
          retain=st.booleans())
    def publish(self, who: int, topics: list[str], qos: int, retain: bool) -> None:
        packets: list[Packet] = []
        for topic in topics:
            self.id += 1
            if "+" not in topic:
                packets.append(Publish(topic, b"%d" % self.id, qos, retain, packet_id=self.id if qos else None))
        self.say(who, packets)

    @rule(who=st.integers(0, CLIENTS - 1), start=st.integers(0, 1_000), qos=st.integers(0, 1))
    def publish_many(self, who: int, start: int, qos: int) -> None:
        """In one read, each topic once: they are joined in batches, as if they were one topic."""
        self.say(who, [
            Publish(f"a/{start + i}", b"%d" % i, qos, packet_id=1 + i if qos else None) for i in range(40)
        ])

    @rule(who=st.integers(0, CLIENTS - 1))
    def come_back(self, who: int) -> None:
        for world, peers in zip(self.worlds, self.peers, strict=True):
            peers[who].vanish()
            peers[who] = world.connect(f"c{who}", peers[who].version)
        self.peers[1][who].protocol.lane.badge = UNKNOWN
        self.held[who].clear()
        self.compare()


ColdTopics.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestColdTopics = ColdTopics.TestCase


def test_a_topic_that_is_used_once_makes_no_route() -> None:
    world = World(routes_max=16)
    publisher, subscriber = world.connect("p"), world.connect("s")
    subscriber.subscribe("#")
    for n in range(100):
        publisher.publish(f"t/{n}", b"x")
    assert [message.topic for message in subscriber.messages()] == [f"t/{n}" for n in range(100)]
    assert len(world.broker.routes) == 16
    assert (world.broker.routes.hits, world.broker.routes.misses) == (0, 100)
    for _ in range(20):  # it has been seen before, and is kept as soon as the hand has found one that is not used
        publisher.publish("t/99", b"x")
        publisher.publish("t/0", b"x")
    assert world.broker.routes.get(RouteCache.key_of(1, b"t/99")) is not None


def test_the_brokers_own_topics_are_refused_on_the_cold_path_too() -> None:
    world = World(routes_max=16)
    publisher, subscriber = world.connect("p"), world.connect("s")
    subscriber.subscribe("$SYS/#", "#")
    publisher.publish("$SYS/x", b"x")
    publisher.publish("$SYS.x", b"x")
    publisher.publish("$SYSx", b"x")
    assert [message.topic for message in subscriber.messages()] == []
    assert len(world.broker.routes) == 1
