"""A publish on a topic whose subscriptions have selectors, through the broker without its sockets: ns a message.

    topic only      no subscription has a selector: the same messages, to one subscriber of all topics
    selectors       and 100,000 subscriptions with selectors on 54 filters: headers read, screens asked, delivered
    ... unmet       the same with a third condition, which no message meets: reading and asking alone
    in a row        topic only, and each selector of the message's filter evaluated in turn: what a broker does that has
                    no index of selectors, with the same compiled programs

The selectors and messages are those of `screens`: two conditions each; 14 headers. `found` is how many selectors are
true of a message; each is a delivery more. Beside topic only, and beside in a row: the others.
"""

import random
from collections.abc import Iterator, Sequence

import msgpack  # type: ignore[import-untyped]

from fanlight_bench.micro import screens
from fanlight_bench.micro.case import Case, Effort, Group, timed
from fanlight_bench.micro.clients import PAYLOAD, frame
from fanlight_bench.micro.publish import NoSocket, connect
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.limits import Limits, SlowPolicy
from fanlight_broker.wire.inbox import ReceiveBuffer
from matchcore.fields import Attributes, Fields
from matchcore.screen import Screen
from matchcore.where import parse_where

MESSAGES = 216
CONNECTIONS = 50
GIB = 1 << 30
UNMET = " AND user = 'nobody'"

Headers = dict[str, object]


def topic(number: int) -> str:
    return f"shop.{number % screens.SHARED}.orders"


def texts(count: int) -> list[str]:
    """Of selectors of headers alone."""
    dice = random.Random(16)
    return [str(screens.two_conditions(dice)).replace("payload.", "") for _ in range(count)]


def messages() -> list[Headers]:
    dice = random.Random(17)
    made = [screens.message(dice) for _ in range(MESSAGES)]
    return [{str(attribute).removeprefix("payload."): value for attribute, value in one.items()} for one in made]


class SelectingSetup:
    """A broker with these selectors, message i and selector i on the same topic for each multiple of 54."""

    def __init__(self, wheres: Sequence[str], published: Sequence[Headers]) -> None:
        self.broker = Broker(
            Limits(slow_policy=SlowPolicy.DROP_NEWEST, subscriptions_bytes_max=4 * GIB),
            lambda: None, lambda work: work(),
        )  # fmt: skip
        shared = ReceiveBuffer()
        self.connections = [connect(self.broker, shared) for _ in range(CONNECTIONS + 2)]
        self.publisher, plain, *selecting = self.connections
        plain.inbox.feed(frame(6, None, 1, "shop.*.orders"))
        plain.receive(0.0)
        for number, where in enumerate(wheres):
            connection = selecting[number // screens.SHARED % CONNECTIONS]
            connection.inbox.feed(frame(6, None, number + 1, topic(number), {"where": where}))
            connection.receive(0.0)
        self.batch = b"".join(
            frame(3, None, topic(number), PAYLOAD, headers) for number, headers in enumerate(published)
        )
        self.found = 0.0
        self.emptied()

    def emptied(self) -> int:
        """Take what the outboxes have; the deliveries."""
        octets = 0
        for connection in self.connections:
            while connection.outbox.size:
                octets += len(connection.outbox.read())
        self.broker.ledger.pop_dirty()
        for connection in self.connections:
            connection.outbox.clean()
        return octets

    def publish(self) -> None:
        wire = self.publisher.transport
        assert isinstance(wire, NoSocket)
        self.publisher.receive(0.0)
        wire.turn()

    def turn(self) -> int:
        self.publisher.inbox.feed(self.batch)
        before = self.broker.ledger.recipients
        spent = timed(self.publish)
        self.found = (self.broker.ledger.recipients - before) / MESSAGES - 1
        self.emptied()
        return spent

    def facts(self) -> dict[str, object]:
        return {"found": round(self.found, 1)}


class RowSetup:
    """The screens of the same selectors, each verified in a row, beside a broker without selectors."""

    def __init__(self, wheres: Sequence[str], published: Sequence[Headers], plain: SelectingSetup) -> None:
        self.plain = plain
        attributes = Attributes()
        self.screens = [Screen(attributes) for _ in range(screens.SHARED)]
        for number, where in enumerate(wheres):
            self.screens[number % screens.SHARED].insert(number, parse_where(where))
        self.asked = []
        for number, headers in enumerate(published):
            fields = Fields(attributes)
            fields.load(headers)
            self.asked.append((self.screens[number % screens.SHARED], fields))

    def turn(self) -> int:
        return self.plain.turn() + timed(screens.ask, self.asked, 1, True)


def groups(effort: Effort) -> Iterator[Group]:
    count = effort.sized(100_000, 1_000)
    wheres, published = texts(count), messages()
    plain = SelectingSetup((), published)
    met = SelectingSetup(wheres, published)
    unmet = SelectingSetup([where + UNMET for where in wheres], published)
    row = RowSetup(wheres, published, plain)
    beside = ("topic only", "in a row")
    yield Group(
        f"{count:,} on {screens.SHARED} filters",
        [
            Case("topic only", MESSAGES, plain.turn),
            Case("in a row", MESSAGES, row.turn),
            Case("selectors", MESSAGES, met.turn, beside, met.facts),
            Case("selectors unmet", MESSAGES, unmet.turn, beside, unmet.facts),
        ],
        {"selectors": count, "message_bytes": len(msgpack.packb(published[0]))},
    )
