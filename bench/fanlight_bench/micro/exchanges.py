"""Retained publishes, QoS 2, and a SUBSCRIBE with retained messages: µs each through the broker, without its sockets.

    3.1.1 QoS 0, 1    PUBLISH in and out, and the PUBACKs of QoS 1; 1,000 topics in turn, one subscriber
    ... retained      the same with RETAIN 1: each topic has a retained message, which is replaced
    ... QoS 2         the four packets of each side: PUBLISH, PUBREC, PUBREL, PUBCOMP
    ... plain         every PUBLISH through Python, its route in the cache: the lane's oracle
    subscribe         SUBSCRIBE and UNSUBSCRIBE of one topic that has no retained message, among 10,000 that have
    ... one           the same of a topic that has one
    ... one of many   the same by a filter with a wildcard that matches one
    ... hundred       a filter that matches 100, for each of these

The ratio of a retained publish is to the same not retained, that of QoS 2 to QoS 1.
"""

from collections.abc import Iterator

from fanlight_bench.micro.case import Case, Effort, Group, timed
from fanlight_bench.micro.clients import PAYLOAD
from fanlight_bench.micro.publish import NoSocket
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.enforcement import UNKNOWN
from fanlight_broker.core.identity import ANONYMOUS
from fanlight_broker.core.limits import Limits, SlowPolicy
from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.connection import MqttConnection
from fanlight_broker.protocols.mqtt.options import Counts, MqttOptions
from fanlight_broker.protocols.mqtt.packets import Connect, Packet, Publish, Subscribe, Subscription, Unsubscribe
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from fanlight_broker.wire.inbox import ReceiveBuffer

TOPICS = 1_000
MESSAGES = 500  # at once
ROUNDS = 4  # of that in a turn
RETAINED = 10_000
OF_ONE_FILTER = 100
SUBSCRIBES = 100


class BrokerSetup:
    """A broker of its own, without sockets."""

    def __init__(self, version: Version) -> None:
        self.version = version
        limits = Limits(
            slow_policy=SlowPolicy.DROP_NEWEST, inflight_messages_max=MESSAGES, unreleased_messages_max=MESSAGES,
        )
        self.broker = Broker(limits, lambda: None, lambda work: work())
        self.shared = ReceiveBuffer()
        self.spent = 0

    def connect(self, client_id: str) -> MqttConnection:
        connection = MqttConnection(MqttOptions(), Counts(), self.broker, NoSocket(), self.shared, 0.0)
        connection.inbox.feed(encode(Connect(client_id, self.version), self.version))
        connection.receive(0.0)
        connection.authenticated(ANONYMOUS, 0.0)
        self.answers(connection)
        return connection

    def say(self, connection: MqttConnection, octets: bytes) -> bytes:
        """What it answers; the time that it took is in `spent`."""
        wire = connection.transport
        assert isinstance(wire, NoSocket)

        def receive() -> None:
            connection.receive(0.0)
            wire.turn()

        connection.inbox.feed(octets)
        self.spent += timed(receive)
        return self.answers(connection)

    def answers(self, connection: MqttConnection) -> bytes:
        octets = b""
        while connection.outbox.size:
            octets += connection.outbox.read()
        for outbox in self.broker.ledger.pop_dirty():
            outbox.clean()
        return octets

    def of(self, *packets: Packet) -> bytes:
        return b"".join(encode(packet, self.version) for packet in packets)


class ExchangeSetup(BrokerSetup):
    """One publisher, one subscriber to everything."""

    def __init__(self, version: Version, qos: int = 0, *, retain: bool = False, plain: bool = False) -> None:
        super().__init__(version)
        self.qos = qos
        self.publisher, self.subscriber = self.connect("publisher"), self.connect("subscriber")
        self.say(self.subscriber, self.of(Subscribe(1, (Subscription("#", qos),))))
        self.batches = [
            self.of(*(
                Publish(f"site/{at + i}/state", PAYLOAD, qos, retain, packet_id=i + 1 if qos else None)
                for i in range(MESSAGES)
            ))
            for at in range(0, TOPICS, MESSAGES)
        ]  # fmt: skip
        for batch in self.batches:
            self.exchange(batch)
        self.publisher.lane.badge = UNKNOWN if plain else None
        self.tag = 0

    def turn(self) -> int:
        self.spent = 0
        for round in range(ROUNDS):
            self.exchange(self.batches[round % len(self.batches)])
        return self.spent

    def exchange(self, publishes: bytes) -> None:
        """The whole exchange of one batch, on both sides."""
        self.expect(self.say(self.publisher, publishes), (0x40, 0x50)[self.qos - 1] if self.qos else None)
        octets = self.answers(self.subscriber)
        if self.qos == 0:
            return
        tags = [flight.tag for flight in self.subscriber.session.window.flights()]
        if len(tags) != MESSAGES or not octets:
            raise RuntimeError(f"{len(tags)} messages in flight, {len(octets)} bytes")
        if self.qos == 1:
            self.say(self.subscriber, packets(0x40, tags))
            return
        self.expect(self.say(self.subscriber, packets(0x50, tags)), 0x62)
        self.say(self.subscriber, packets(0x70, tags))
        self.expect(self.say(self.publisher, packets(0x62, range(1, MESSAGES + 1))), 0x70)

    def expect(self, octets: bytes, first: int | None) -> None:
        """The answers are acknowledgements of this kind, one a message."""
        expected = b"" if first is None else packets(first, range(1, MESSAGES + 1))
        if first != 0x62 and octets != expected:
            raise RuntimeError(f"{len(octets)} bytes of answers, and {len(expected)} were expected")


class SubscribeSetup(BrokerSetup):
    """One client that subscribes and unsubscribes, one filter in each packet. together: the packets in one read."""

    def __init__(self, version: Version, filters: list[str], *, together: bool = True) -> None:
        super().__init__(version)
        publisher = self.connect("publisher")
        for at in range(0, RETAINED, MESSAGES):
            self.say(publisher, self.of(*(
                Publish(f"retained/{(at + i) // OF_ONE_FILTER}/{(at + i) % OF_ONE_FILTER}", PAYLOAD, 0, True)
                for i in range(MESSAGES)
            )))  # fmt: skip
        self.client = self.connect("client")
        self.subscribes = [self.of(Subscribe(1, (Subscription(filter),))) for filter in filters]
        self.unsubscribes = [self.of(Unsubscribe(2, (filter,))) for filter in filters]
        if together:
            self.subscribes, self.unsubscribes = [b"".join(self.subscribes)], [b"".join(self.unsubscribes)]
        self.octets = 0

    def turn(self) -> int:
        self.spent = 0
        for subscribe, unsubscribe in zip(self.subscribes, self.unsubscribes, strict=True):
            self.octets = len(self.say(self.client, subscribe))
            while self.client.session.cursors:
                self.spent += timed(self.client.unblocked)
                self.octets += len(self.answers(self.client))
            self.say(self.client, unsubscribe)
        return self.spent

    def facts(self) -> dict[str, object]:
        return {"bytes_a_read": self.octets}


def packets(first: int, identifiers: "range | list[int]") -> bytes:
    """Acknowledgements of this kind."""
    return b"".join(bytes((first, 2)) + identifier.to_bytes(2, "big") for identifier in identifiers)


def publishes(version: Version) -> Iterator[Case]:
    ways: dict[str, tuple[ExchangeSetup, str]] = {
        "QoS 0": (ExchangeSetup(version), ""),
        "QoS 0 retained": (ExchangeSetup(version, retain=True), "QoS 0"),
        "QoS 0 retained plain": (ExchangeSetup(version, retain=True, plain=True), "QoS 0"),
        "QoS 1": (ExchangeSetup(version, 1), ""),
        "QoS 1 retained": (ExchangeSetup(version, 1, retain=True), "QoS 1"),
        "QoS 2": (ExchangeSetup(version, 2), "QoS 1"),
        "QoS 2 retained": (ExchangeSetup(version, 2, retain=True), "QoS 2"),
        "QoS 2 plain": (ExchangeSetup(version, 2, plain=True), "QoS 1"),
    }
    for name, (way, beside) in ways.items():
        yield Case(name, MESSAGES * ROUNDS, way.turn, (beside,) if beside else ())


def subscribes(version: Version) -> Iterator[Case]:
    ways = {
        "subscribe": [f"retained/{i}/none" for i in range(SUBSCRIBES)],
        "subscribe one": [f"retained/{i}/{i}" for i in range(SUBSCRIBES)],
        "subscribe one of many": [f"retained/{i}/{i}/#" for i in range(SUBSCRIBES)],
    }
    for name, filters in ways.items():
        way = SubscribeSetup(version, filters)
        yield Case(name, SUBSCRIBES, way.turn, () if name == "subscribe" else ("subscribe",), way.facts)
    way = SubscribeSetup(version, [f"retained/{i}/+" for i in range(SUBSCRIBES)], together=False)
    yield Case("subscribe hundred", SUBSCRIBES * OF_ONE_FILTER, way.turn, (), way.facts)


def groups(effort: Effort) -> Iterator[Group]:
    for version in (V3, V5):
        name = "3.1.1" if version is V3 else "5.0"
        yield Group(name, list(publishes(version)))
        yield Group(f"{name}, 10,000 retained", list(subscribes(version)))
