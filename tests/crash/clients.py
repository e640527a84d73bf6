"""The clients of tests/simulation, with what a crash is checked by: retained values, and acknowledgements that are
known to be processed.
"""

from typing import Any

from fanlight_broker.protocols.mqtt.packets import (
    ConnAck,
    Connect,
    Packet,
    PingReq,
    PingResp,
    PubAck,
    Publish,
    PubRec,
    SubAck,
    Subscribe,
    Subscription,
)  # fmt: skip
from fanlight_broker.protocols.mqtt.properties import NONE
from fanlight_broker.protocols.mqtt.version import V5
from tests.crash.history import KEPT, CrashHistory
from tests.simulation.clients import Client, Outgoing, Publisher, Subscriber

EVERY = 0.01  # seconds at most between two messages of a publisher
KEPT_TOPICS = 3  # of each publisher: what is retained has one publisher, so that there is one order


class CrashPublisher(Publisher):
    """Publishes until `stop`; retained values on topics of its own."""

    history: CrashHistory
    kept_qos = 2

    def publish(self) -> None:
        if self.left:
            self.schedule.soon(self.publish, most=EVERY)
        if not (self.left and self.connected and len(self.outgoing) < min(self.window, self.quota)):
            return
        self.number += 1
        kept = self.random.random() < 0.2
        topic = f"{KEPT}{self.name}/{self.random.randrange(KEPT_TOPICS)}" if kept else self.random.choice(self.topics)
        # A QoS 1 message that is sent again is published again, one with QoS 2 is not: with both, an older value may be
        # the last one that was published.
        qos = self.kept_qos if kept else self.random.choice((1, 2))
        message = Outgoing(
            self.history.publish(self.name, self.number, topic, qos, self.fields), topic, qos, kept
        )
        packet_id = next(id for id in range(1, 65_536) if id not in self.outgoing)
        self.outgoing[packet_id] = message
        self._write(packet_id, message, dup=False)

    def _write(self, packet_id: int, message: Outgoing, *, dup: bool) -> None:
        self.history.wrote(message.payload)
        super()._write(packet_id, message, dup=dup)

    def stop(self) -> None:
        self.left = 0


class CrashSubscriber(Subscriber):
    """Asks for a PINGRESP behind its acknowledgements: when it comes, the broker has processed them."""

    history: CrashHistory

    def begin(self, connack: ConnAck) -> None:
        self._at_hand: dict[int, bytes] = {}  # packet identifier -> payload
        self._sent: list[bytes] = []  # whose last acknowledgement was written
        self._asked: list[bytes] = []  # those before the PINGREQ that is not answered
        super().begin(connack)

    def _got(self, packet: Publish) -> None:
        if packet.packet_id is not None:
            self._at_hand[packet.packet_id] = packet.payload
        super()._got(packet)

    def _answer(self, link: Any, answer: Packet) -> None:
        super()._answer(link, answer)
        if link is not self.link:
            return
        if isinstance(answer, PubAck | PubRec):  # from PUBREC on the message is not sent again
            self._sent.append(self._at_hand.pop(answer.packet_id))
            self._ask()

    def _ask(self) -> None:
        if not self._asked and self._sent:
            self._asked, self._sent = self._sent, []
            self.send(PingReq())

    def handle(self, packet: Packet) -> None:
        if isinstance(packet, PingResp):
            for payload in self._asked:
                if not self.brief:
                    self.history.settle(self.name, payload)
            self._asked = []
            self._ask()
        else:
            super().handle(packet)


class Prober(Client):
    """Reads all retained values, once, on a connection without a session."""

    history: CrashHistory

    def __init__(self, network: Any, name: str) -> None:
        self.values: dict[str, bytes] = {}
        self.done = False
        super().__init__(network, name, V5)
        self.patience = 0.1

    def connect(self) -> None:
        if self.link is None and not self.done:
            self.link = self.network.dial(self, self.version)
            self.send(Connect(self.name, self.version, clean_start=True, properties=NONE))

    def begin(self, connack: ConnAck) -> None:
        self.met = False  # it has no session
        self.values.clear()
        self.least = dict(self.history.latest)
        self.send(Subscribe(1, (Subscription(f"{KEPT}#", 0),)))

    def handle(self, packet: Packet) -> None:
        match packet:
            case Publish():
                if packet.topic in self.least:
                    self.history.check_value(packet.topic, packet.payload, self.least[packet.topic])
                self.values[packet.topic] = packet.payload
            case SubAck():
                pass
            case _:
                super().handle(packet)
        if set(self.least) <= set(self.values) and not self.done:
            self.done = True
            self.leave()
