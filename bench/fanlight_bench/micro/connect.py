"""A connection without its socket, from its first frame to its end: ns to be let in, to leave and to be forgotten.

    at once  with nothing to check: CONNECT or HELLO is answered within its read
    checked  the same after a check of credentials, which takes no time here: what lies between counts

Log lines are made as fanlightd makes them, up to the burst limit, for nobody. 1,000 clients are connected meanwhile.
Beside at once: checked.
"""

import os
from collections.abc import Callable, Iterator

from fanlight_bench.micro.case import Case, Effort, Group, timed
from fanlight_bench.micro.clients import frame
from fanlight_bench.micro.publish import NoSocket
from fanlight_broker import logs
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.connection import ProtocolConnection
from fanlight_broker.core.identity import ANONYMOUS, Identity
from fanlight_broker.core.limits import Limits
from fanlight_broker.protocols.mqtt.codec import encode
from fanlight_broker.protocols.mqtt.connection import MqttConnection
from fanlight_broker.protocols.mqtt.options import Counts, MqttOptions
from fanlight_broker.protocols.mqtt.packets import Connect, Disconnect
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from fanlight_broker.protocols.native.connection import NativeConnection
from fanlight_broker.wire.inbox import ReceiveBuffer

CONNECTS = 500
CONNECTED = 1_000


class OpenDoor(NoSocket):
    """A transport of a broker that checks nobody."""

    def authenticate(self, user: str | None, password: str | None, client: str = "") -> Identity | None:
        return ANONYMOUS


class ConnectSetup:
    """A broker, and what a client says first and last."""

    def __init__(self, version: Version | None, connected: int, at_once: bool) -> None:
        self.broker = Broker(Limits(), lambda: None, lambda work: work())
        self.shared, self.options, self.counts = ReceiveBuffer(), MqttOptions(), Counts()
        self.transport: Callable[[], NoSocket] = OpenDoor if at_once else NoSocket
        self.version, self.number = version, 0
        self.last = frame(14, "bye", "") if version is None else encode(Disconnect(), version)
        for _ in range(connected):
            self.connect()

    def first(self) -> bytes:
        self.number += 1
        name = f"client {self.number}"
        if self.version is None:
            return frame(1, 1, {"client": name})
        return encode(Connect(name, self.version), self.version)

    def made(self) -> ProtocolConnection:
        transport = self.transport()
        if self.version is None:
            return NativeConnection(self.broker, transport, self.shared, 0.0)
        return MqttConnection(self.options, self.counts, self.broker, transport, self.shared, 0.0)

    def connect(self) -> ProtocolConnection:
        connection = self.made()
        connection.inbox.feed(self.first())
        connection.receive(0.0)
        if connection.waiting:
            connection.authenticated(ANONYMOUS, 0.0)
        return connection

    def come_and_go(self) -> None:
        connection = self.connect()
        connection.inbox.feed(self.last)
        connection.receive(0.0)
        connection.lost("it left")
        for outbox in self.broker.ledger.pop_dirty():
            outbox.clean()

    def turn(self) -> int:
        def run() -> None:
            for _ in range(CONNECTS):
                self.come_and_go()

        return timed(run)


def groups(effort: Effort) -> Iterator[Group]:
    nobody = os.open(os.devnull, os.O_WRONLY)
    logs.configure(format="json", fd=nobody)
    connected = effort.sized(CONNECTED, 10)
    try:
        for name, version in (("3.1.1", V3), ("5.0", V5), ("native", None)):
            checked = ConnectSetup(version, connected, at_once=False)
            at_once = ConnectSetup(version, connected, at_once=True)
            yield Group(name, [
                Case("checked", CONNECTS, checked.turn), Case("at once", CONNECTS, at_once.turn, ("checked",)),
            ])  # fmt: skip
    finally:
        logs.close()
        os.close(nobody)
