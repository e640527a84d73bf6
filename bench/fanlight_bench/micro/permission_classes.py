"""Where permissions fall off: clients of many classes in turn, and routes that leave somebody out. ns a publish.

    TOPICS topics, CLASSES   clients, CLASSES of them, publish in turn, a message each, on one topic or on several. Each
                             is of a class of its own, with a number beyond the bits of a route; `off`: the same without
                             permissions
    wildcard                 scenario C of the peers' bench in one process: 20 publishers, 1,000 topics, 50 subscribers
                             of whom 5 get each message; `on`: 100 rules a user, by which filters that begin with a
                             wildcard are partly allowed

`asked` is how many decisions Python made a message, after a turn in which each pair of a class and a topic was seen.
`valgrind --tool=callgrind python -m fanlight_bench.micro.permission_classes "1 topics, 100" on 5` runs one case for so
many turns: the difference of two runs has the instructions of a publish.
"""

import sys
from collections.abc import Iterator
from functools import partial
from typing import Final

from fanlight_bench.micro.case import Case, Effort, Group, timed
from fanlight_bench.micro.clients import PAYLOAD, frame
from fanlight_bench.micro.publish import NoSocket, take_all
from fanlight_bench.permissions import USER, rows
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.identity import Identity
from fanlight_broker.core.limits import Limits, SlowPolicy
from fanlight_broker.core.permissions import Asker
from fanlight_broker.protocols.native.connection import NativeConnection
from fanlight_broker.wire.inbox import ReceiveBuffer
from fanlight_permissions.permission_file import compile_permissions, parse_permissions
from fanlight_permissions.table import PermissionTable

CLASSES: Final = (5, 64, 100, 1_000, 5_000)
QUICK: Final = (5, 10)
TOPICS: Final = (1, 1_000)
BITS: Final = 64  # classes that have a bit in each route: others are before those that are measured
MESSAGES: Final = 10_000  # of a turn, or as many as there are clients
PUBLISHERS, SUBSCRIBERS, RULES_EACH = 20, 50, 100
WILDCARD: Final = "wildcard"
FILTERS: Final = ("site/+/dev/{}/temp", "site/+/dev/{}/#", "+/+/dev/{}/temp", "+/+/+/{}/+", "site/+/+/{}/#")


def table_of(rules: int, users: int) -> PermissionTable:
    text = rows(rules, users)
    return compile_permissions(parse_permissions(text, "rows", Limits(), is_csv=True), "rows", Limits())


class PermittedSetup:
    """A broker of its own, and its clients; with permissions, or without."""

    def __init__(self, table: PermissionTable | None) -> None:
        self.table = table
        self.broker = Broker(Limits(slow_policy=SlowPolicy.DROP_NEWEST), lambda: None, lambda work: work())
        if table is not None:
            self.broker.use_permissions(table)
        self.shared = ReceiveBuffer()
        self.connections: list[NativeConnection] = []
        self.turns: list[tuple[NativeConnection, bytes]] = []  # who says what in a turn, one after the other
        self.messages = 0  # of them
        self.asked = 0.0

    def connect(self, user: str) -> NativeConnection:
        connection = NativeConnection(self.broker, NoSocket(), self.shared, 0.0)
        connection.inbox.feed(frame(1, 1, {}))
        connection.receive(0.0)
        connection.authenticated(Identity(user, verified=True, credential="x"), 0.0)
        self.connections.append(connection)
        return connection

    def subscribe(self, connection: NativeConnection, filter: str) -> None:
        connection.inbox.feed(frame(6, None, 1, filter, {"syntax": 1}))
        connection.receive(0.0)

    def turn(self) -> int:
        before = self.decisions()
        spent = timed(self.publish)
        self.asked = (self.decisions() - before) / self.messages
        take_all(self.broker, self.connections)
        return spent

    def publish(self) -> None:
        for connection, octets in self.turns:
            connection.inbox.feed(octets)
            connection.receive(0.0)

    def decisions(self) -> int:
        return 0 if self.table is None else sum(map(self.table.answers.count, range(len(self.table))))


def in_turn(classes: int, topics: int, on: bool) -> PermittedSetup:
    """One message after the other, each of another class."""
    users = BITS + classes
    table = table_of(users, users) if on else None
    for number in range(BITS if table is not None else 0):
        assert table is not None
        table.grant_of(Asker(user=f"{USER}{number}"))
    setup = PermittedSetup(table)
    setup.subscribe(setup.connect(f"{USER}{BITS}"), "#")
    clients = [setup.connect(f"{USER}{BITS + number}") for number in range(classes)]
    setup.messages = max(MESSAGES, classes)
    # Each round of the clients begins with the next topic, so that each of them publishes on all.
    setup.turns = [
        (clients[n % classes], frame(3, None, f"t/{(n % classes + n // classes) % topics}", PAYLOAD, None, 1))
        for n in range(setup.messages)
    ]
    setup.turn()  # each pair is seen
    return setup


def wildcard(on: bool) -> PermittedSetup:
    users = PUBLISHERS + SUBSCRIBERS
    setup = PermittedSetup(table_of(RULES_EACH * users, users) if on else None)
    for number in range(SUBSCRIBERS):
        filter = FILTERS[number // 10].format(number % 10)
        setup.subscribe(setup.connect(f"{USER}{number}"), filter)
    for number in range(PUBLISHERS):
        publisher = setup.connect(f"{USER}{SUBSCRIBERS + number}")
        topics = [f"site/{i // 10}/dev/{i % 10}/temp" for i in range(number, 1_000, PUBLISHERS)]
        setup.turns.append((publisher, b"".join(frame(3, None, topic, PAYLOAD, None, 1) for topic in topics)))
    setup.messages = 1_000
    setup.turn()
    return setup


def made(name: str, on: bool) -> PermittedSetup:
    """By the name of a group: raises ValueError."""
    if name == WILDCARD:
        return wildcard(on)
    topics, classes = (int(part.split()[0].replace("_", "")) for part in name.split(", "))
    return in_turn(classes, topics, on)


def groups(effort: Effort) -> Iterator[Group]:
    names = [f"{topics} topics, {classes}" for topics in TOPICS for classes in (QUICK if effort.quick else CLASSES)]
    for name in (*names, WILDCARD):
        off, on = made(name, False), made(name, True)
        yield Group(name, [
            Case("off", off.messages, off.turn),
            Case("on", on.messages, on.turn, ("off",), partial(_facts, on)),
        ])  # fmt: skip


def _facts(setup: PermittedSetup) -> dict[str, object]:
    return {"asked": round(setup.asked, 3)}


def main() -> None:
    name, way, turns = sys.argv[1], sys.argv[2], int(sys.argv[3])
    setup = made(name, way == "on")
    for _ in range(turns):
        setup.turn()
    print(f"{turns * setup.messages} publishes, {setup.asked:.3f} decisions each in the last turn")


if __name__ == "__main__":
    main()
