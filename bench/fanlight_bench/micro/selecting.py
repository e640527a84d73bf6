"""A publish on a topic whose subscriptions have selectors, through the broker without its sockets: ns a message.

    topic only      no subscription has a selector: the same messages, to one subscriber of all topics
    plain           and as many subscriptions without a selector as are true of each message, on a topic of its own:
                    what the deliveries alone cost
    selectors       and 100,000 subscriptions with selectors on 54 filters: headers read, screens asked, delivered
    ... unmet       the same with a third condition, which no message meets: reading and asking alone
    screens         the screens of the selectors, asked about fields that are read: what matchcore takes
    ... unmet       those of selectors unmet
    in a row        topic only, and each selector of the message's filter evaluated in turn: what a broker does that has
                    no index of selectors, with the same compiled programs

The selectors and messages are those of `screens`: two conditions each; 14 headers. `found` is how many selectors are
true of a message, and for each of them

    plain_ns     what plain takes more than topic only: a delivery
    true_ns      what selectors take more than unmet ones: to find it and a delivery
    finding_ns   what screens take more than unmet ones
    routing_x    the delivery of one that is true, without finding it, beside a plain one, turn by turn

Beside topic only, and beside in a row: the others.
"""

import random
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence

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
Subscription = tuple[int, str, dict[str, object]]  # its number, which decides whose it is; filter; options


def own_topic(number: int) -> str:
    return f"shop.own{number}.orders"


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


def owner(number: int) -> int:
    """Which connection has a subscription."""
    return number // screens.SHARED % CONNECTIONS


def selecting(wheres: Sequence[str]) -> Iterator[Subscription]:
    for number, where in enumerate(wheres):
        yield number, topic(number), {"where": where}


def plain(found: Sequence[Sequence[int]], count: int) -> Iterator[Subscription]:
    """The same subscriptions without selectors, on the topics of the messages that find them, and on others."""
    reached: dict[int, list[str]] = {number: [] for number in range(count)}
    for message, numbers in enumerate(found):
        for number in numbers:
            reached[number].append(own_topic(message))
    for number, topics in reached.items():
        for each in topics or (f"other.{number}",):
            yield number, each, {}


class SelectingSetup:
    """A broker with these subscriptions, and message i on topic i."""

    def __init__(
        self, subscriptions: Iterable[Subscription], published: Sequence[Headers],
        topic_of: Callable[[int], str] = topic,
    ) -> None:
        self.broker = Broker(
            Limits(slow_policy=SlowPolicy.DROP_NEWEST, subscriptions_bytes_max=4 * GIB),
            lambda: None, lambda work: work(),
        )  # fmt: skip
        shared = ReceiveBuffer()
        self.connections = [connect(self.broker, shared) for _ in range(CONNECTIONS + 2)]
        self.publisher, plain, *others = self.connections
        plain.inbox.feed(frame(6, None, 1, "shop.*.orders"))
        plain.receive(0.0)
        for made, (number, filter, options) in enumerate(subscriptions, 1):
            connection = others[owner(number)]
            connection.inbox.feed(frame(6, None, made, filter, options))
            connection.receive(0.0)
        self.batch = b"".join(
            frame(3, None, topic_of(number), PAYLOAD, headers) for number, headers in enumerate(published)
        )
        self.took: list[float] = []
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
        self.took.append(spent / MESSAGES)
        return spent


class ScreenSetup:
    """The screens of the same selectors."""

    def __init__(self, wheres: Sequence[str], published: Sequence[Headers]) -> None:
        attributes = Attributes()
        made = [Screen(attributes) for _ in range(screens.SHARED)]
        for number, where in enumerate(wheres):
            made[number % screens.SHARED].insert(number, parse_where(where))
        self.asked = []
        for number, headers in enumerate(published):
            fields = Fields(attributes)
            fields.load(headers)
            self.asked.append((made[number % screens.SHARED], fields))
        self.found = [made[number % screens.SHARED].match(headers) for number, headers in enumerate(published)]
        self.took: list[float] = []

    def turn(self) -> int:
        spent = timed(screens.ask, self.asked, 1, False)
        self.took.append(spent / MESSAGES)
        return spent


class RowSetup:
    """The same screens, each selector verified in a row, beside a broker without selectors."""

    def __init__(self, screens: ScreenSetup, plain: SelectingSetup) -> None:
        self.plain = plain
        self.asked = screens.asked

    def turn(self) -> int:
        return self.plain.turn() + timed(screens.ask, self.asked, 1, True)


class Share:
    """What each delivery takes: with a selector that is true, and without one."""

    def __init__(self, met: SelectingSetup, *others: SelectingSetup | ScreenSetup) -> None:
        self.met = met
        self.others = others

    def facts(self) -> dict[str, object]:
        found = self.met.found
        if not found:
            return {"found": 0.0}
        turns = zip(*(setup.took[1:] for setup in (self.met, *self.others)), strict=True)  # the first is not measured
        each = [
            ((many - one) / found, (met - unmet) / found, (asked - asked_unmet) / found)
            for met, unmet, many, one, asked, asked_unmet in turns
        ]
        plain, true, finding = (statistics.median(one) for one in zip(*each, strict=True))
        routing = statistics.median((true - finding) / plain for plain, true, finding in each)
        return {
            "found": round(found, 1), "plain_ns": round(plain), "true_ns": round(true), "finding_ns": round(finding),
            "routing_x": round(routing, 2),
        }


def groups(effort: Effort) -> Iterator[Group]:
    count = effort.sized(100_000, 1_000)
    wheres, published = texts(count), messages()
    unmet_wheres = [where + UNMET for where in wheres]
    one = SelectingSetup((), published)
    asked, asked_unmet = ScreenSetup(wheres, published), ScreenSetup(unmet_wheres, published)
    row = RowSetup(asked, SelectingSetup((), published))
    many = SelectingSetup(plain(asked.found, count), published, own_topic)
    met = SelectingSetup(selecting(wheres), published)
    unmet = SelectingSetup(selecting(unmet_wheres), published)
    beside = ("topic only", "in a row")
    yield Group(
        f"{count:,} on {screens.SHARED} filters",
        [
            Case("topic only", MESSAGES, one.turn),
            Case("in a row", MESSAGES, row.turn),
            Case("plain", MESSAGES, many.turn, beside),
            Case("screens", MESSAGES, asked.turn, beside),
            Case("screens unmet", MESSAGES, asked_unmet.turn, beside),
            Case("selectors", MESSAGES, met.turn, beside, Share(met, unmet, many, one, asked, asked_unmet).facts),
            Case("selectors unmet", MESSAGES, unmet.turn, beside),
        ],
        {"selectors": count, "message_bytes": len(msgpack.packb(published[0]))},
    )
