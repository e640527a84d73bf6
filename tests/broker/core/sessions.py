"""Clients with sessions, for tests of the core: they speak lines (tests/broker/wire/formats.py)."""

import re
from dataclasses import replace
from typing import Any

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.publication import Publication
from fanlight_broker.core.publishing import Accepted, Direct, Refused
from fanlight_broker.core.requests import ConnectRequest, SessionOptions
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.core.will import Will
from fanlight_broker.wire.fanout import publish
from fanlight_broker.wire.message import Format, Message
from tests.broker.core.parts import Listener, at_once
from tests.broker.wire.formats import LineFormat

SYNTAX = SYNTAXES.index("mqtt")
LINE = re.compile(
    rb"PUB qos=(\d) retain=(\d) dup=(\d) ids=(\S*) (?:left=\d+ )?(?:id=(..) )?(\S+) ([a-z0-9]*)|REL id=(..)", re.DOTALL
)


class Peer:
    """One connection of a client."""

    def __init__(self, world: "World", connect: ConnectRequest, policy: str) -> None:
        self.world = world
        self.connection = Listener()
        self.home = world.broker.named(connect.origin.namespace)
        self.outbox = self.home.new_outbox(policy)
        self.client, self.session, self.present = self.home.sessions.connect(
            self.outbox, self.connection, world.now, connect
        )
        self.home.sessions.resume(self.session, world.now)

    def subscribe(
        self, filter: str, qos: int = 0, *, retained: bool = False, **options: Any
    ) -> tuple[Subscription, bool]:
        found, new = self.home.sessions.subscribe(
            self.session, filter.encode(), "mqtt", SessionOptions(qos=qos, **options)
        )
        if retained:
            self.home.sessions.send_retained(self.session, found)
            self.home.sessions.advance(self.session, self.world.now)
        return found, new

    def publish(self, topic: str, payload: str = "x", qos: int = 0, **options: Any) -> int:
        return self.world.publish(topic, payload, qos, publisher=self, **options)

    def leave(self, *, will: bool = True, expiry: float | None = None) -> None:
        self.home.sessions.leave(self.client, self.world.now, will=will, expiry=expiry)
        self.home.clients.disconnect(self.client, "test", self.world.now)

    def got(self) -> list[str]:
        """What it reads: `topic payload qos` and then what is set of retain, dup, ids."""
        self.world.settle()
        octets, found, at = self.outbox.read(1 << 30), [], 0
        while at < len(octets):
            match = LINE.match(octets, at)
            assert match is not None, octets[at:]
            at = match.end()
            if match[8]:
                found.append(f"REL {int.from_bytes(match[8], 'big')}")
                continue
            flags = [name for name, bit in (("retain", match[2]), ("dup", match[3])) if bit == b"1"]
            ids = [f"ids={match[4].decode()}"] if match[4] else []
            found.append(" ".join([match[6].decode(), match[7].decode(), match[1].decode(), *flags, *ids]))
        return found

    def acknowledge(self) -> None:
        """Everything that is in flight with QoS 1."""
        for flight in self.session.window.flights():
            assert self.session.window.acknowledge(flight.tag, self.world.now)
        self.world.settle()


class World:
    def __init__(self, **limits: Any) -> None:
        # As in parts.py.
        limits = {"burst_seconds_max": 0, "pause_allowed": True, **limits}
        self.broker = Broker(Limits(**limits), schedule=lambda: None, next_turn=at_once, wall=lambda: self.wall)
        self.format: Format = LineFormat("lines")
        self.now = 1_000.0

    @property
    def wall(self) -> float:
        return self.now

    def settle(self) -> None:
        """Finish what takes another turn: nothing does here."""

    def connect(self, name: str, *, policy: str = "drop_newest", **wanted: Any) -> Peer:
        defaults = ConnectRequest(name, self.format, "lines", "192.0.2.1")
        return Peer(self, replace(defaults, **wanted), policy)

    def message(self, topic: str, payload: str = "x", qos: int = 0, **options: Any) -> Message:
        return Message(self.format, topic.encode(), SYNTAX, payload.encode(), qos=qos, **options)

    def publish(
        self, topic: str, payload: str = "x", qos: int = 0, *, publisher: Peer | None = None, **options: Any
    ) -> int:
        message = self.message(topic, payload, qos, **options)
        if publisher is None:
            return self.put_in(message)
        sender = Direct(self.broker.ledger, message, publisher.outbox)
        publishing = publisher.home.publishing
        outcome = publishing.accept(Publication(message, publisher.client.subscriber), sender, self.now)
        if isinstance(outcome, Refused):
            raise outcome.error
        assert isinstance(outcome, Accepted)
        return outcome.routed

    def put_in(self, message: Message) -> int:
        """Fan out and retain a message of somebody who has no connection here."""
        broker = self.broker
        broker.ledger.now = self.now
        route = broker.router.route(message.topic, SYNTAXES[message.syntax])
        routed = publish(broker.router.for_message(route, message, None), broker.ledger, None, message)
        if message.retain:
            broker.retained.put(message, self.now)
        return routed

    def will(self, topic: str, payload: str = "will", *, qos: int = 0, delay: float = 0.0, **options: Any) -> Will:
        return Will(self.message(topic, payload, qos), delay=delay, **options)

    def later(self, seconds: float) -> None:
        self.now += seconds
        self.broker.sweep(self.now)
