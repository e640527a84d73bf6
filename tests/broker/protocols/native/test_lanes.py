"""Both lanes of a PUBLISH do the same, and do what a model in plain Python says.

Hypothesis writes conversations of several clients: subscriptions that come and go between publishes (and so invalidate
routes), with and without receipts, reply topics, marks, unknown trailing fields and headers, which switch the lane
within one read. Each conversation runs with the fast lane and without, and over the model.
"""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from matchcore import reference
from tests.broker.protocols.native.world import Fields, Peer, World, frame, split

SYNTAXES = ("amqp", "mqtt")
TOPICS = [("a", 0), ("a.b", 0), ("b.a.b", 0), ("", 0), ("a..b", 0), ("a", 1), ("a/b", 1), ("a.b", 1), ("$SYSx.a", 0)]
FILTERS = [
    ("a", 0), ("a.b", 0), ("*", 0), ("#", 0), ("a.#", 0), ("#.b", 0), ("*.#.b", 0), ("", 0), ("a.*.b", 0),
    ("$SYSx.#", 0), ("#", 1), ("+/b", 1), ("a/#", 1), ("a/b", 1), ("a.b", 1), ("$SYSx/+", 1),
]  # fmt: skip
PENDING = 3  # pending_messages_max


@dataclass(frozen=True)
class Subscribe:
    number: int
    filter: tuple[str, int]
    group: str | None = None
    no_echo: bool = False
    credit: int | None = None
    after: int | None = None

    def frame(self, request: int | None, _: int) -> bytes:
        options = {
            "syntax": self.filter[1], "group": self.group, "no_echo": self.no_echo, "credit": self.credit,
            "after": self.after,
        }
        return frame(6, request, self.number, self.filter[0], options)


@dataclass(frozen=True)
class Unsubscribe:
    number: int
    after: int | None = None

    def frame(self, request: int | None, _: int) -> bytes:
        return frame(8, request, self.number, self.after)


@dataclass(frozen=True)
class Credit:
    number: int
    messages: int

    def frame(self, request: int | None, _: int) -> bytes:
        return frame(10, self.number, self.messages)


@dataclass(frozen=True)
class Publish:
    topic: tuple[str, int]
    reply: str | None = None
    headers: dict[str, Any] | None = None
    mark: tuple[str, int, int] | None = None
    trailing: tuple[Any, ...] = ()
    as_bin: bool = False
    large: bool = False

    def frame(self, request: int | None, count: int) -> bytes:
        topic, syntax = self.topic
        payload = count.to_bytes(4, "big") + bytes(20_000 if self.large else 0)
        return frame(
            3, request, topic.encode() if self.as_bin else topic, payload, self.headers, syntax, self.reply,
            self.mark, *self.trailing,
        )


@dataclass(frozen=True)
class Ping:
    def frame(self, request: int | None, count: int) -> bytes:
        return frame(11, count)


Command = Subscribe | Unsubscribe | Credit | Publish | Ping


@dataclass(frozen=True)
class Step:
    """What one client sends at once; every command with a request or none of them."""

    client: int
    commands: tuple[Command, ...]
    requests: bool
    cut: int  # where the read ends; the rest comes in a second one


NUMBERS = st.integers(1, 3)
SMALL = st.integers(0, 3)
PUBLISH = st.builds(
    Publish,
    topic=st.sampled_from(TOPICS),
    reply=st.sampled_from([None, None, None, "r", "a/b"]),
    headers=st.sampled_from([None, {}, {"k": [1, None]}]),
    mark=st.one_of(st.none(), st.none(), st.tuples(st.sampled_from("pq"), st.integers(0, 1), SMALL)),
    trailing=st.sampled_from([(), (), (None,), (None, "y"), ({"x": 1}, "y")]),
    as_bin=st.booleans(),
    large=st.sampled_from([False, False, False, True]),
)
SUBSCRIBE = st.builds(
    Subscribe,
    number=NUMBERS,
    filter=st.sampled_from(FILTERS),
    no_echo=st.booleans(),
    credit=st.one_of(st.none(), SMALL),
    after=st.one_of(st.none(), st.none(), st.integers(1, 4)),
)
OTHERS = [
    st.builds(Unsubscribe, number=NUMBERS, after=st.one_of(st.none(), SMALL)),
    st.builds(Credit, number=NUMBERS, messages=SMALL),
    st.just(Ping()),
]


def steps(*kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Step]]:
    commands = st.lists(st.one_of(PUBLISH, PUBLISH, *kinds), min_size=1, max_size=6).map(tuple)
    step = st.builds(
        Step, client=st.integers(0, 2), commands=commands, requests=st.booleans(), cut=st.integers(0, 60)
    )
    return st.lists(step, min_size=1, max_size=12)


def run(conversation: list[Step], plain: bool) -> tuple[World, list[bytes]]:
    """The broker's bytes for each client, all of them behind WELCOME."""
    world = World(plain=plain, pending_messages_max=PENDING)
    peers = [world.connect() for _ in range(3)]
    count = 0
    for step in conversation:
        octets = b""
        for command in step.commands:
            count += 1
            octets += command.frame(count if step.requests else None, count)
        peers[step.client].send(octets[: step.cut], octets[step.cut :])
    assert not any(peer.gone for peer in peers)
    assert_nothing_is_left(world, peers)
    return world, [peer.received for peer in peers]


def assert_nothing_is_left(world: World, peers: list[Peer]) -> None:
    held = sum(peer.protocol.outbox.awaiting_credit for peer in peers)
    assert world.broker.ledger.used == held
    assert world.broker.ledger.pausing == 0
    assert all(peer.protocol.outbox.size == 0 for peer in peers)


GROUPED = st.builds(
    Subscribe, number=NUMBERS, filter=st.sampled_from(FILTERS[:5]), group=st.sampled_from(["g", "h"]),
    no_echo=st.booleans(), credit=st.one_of(st.none(), SMALL),
)  # fmt: skip


@settings(max_examples=140, deadline=None)
@given(conversation=steps(SUBSCRIBE, GROUPED, *OTHERS))
def test_both_lanes_give_everyone_the_same_bytes(conversation: list[Step]) -> None:
    _, fast = run(conversation, plain=False)
    _, plain = run(conversation, plain=True)
    assert fast == plain


@dataclass
class Held:
    """A subscription of the model."""

    command: Subscribe
    credit: int | None
    delivered: int = 0
    dropped: int = 0
    after: int | None = None
    waiting: list[int] = field(default_factory=list)


class Model:
    """What every client must get, by sections 3.3, 3.5 and 6 of the specification; no groups."""

    def __init__(self) -> None:
        self.held: list[dict[int, Held]] = [{}, {}, {}]
        self.got: list[dict[int, list[int]]] = [{}, {}, {}]  # by subscription number
        self.answers: list[list[Fields]] = [[], [], []]  # in order; texts left out
        self.ended: list[list[Fields]] = [[], [], []]
        self.marks: dict[str, tuple[int, int]] = {}

    def deliver(self, client: int, held: Held, count: int) -> None:
        held.delivered += 1
        self.got[client].setdefault(held.command.number, []).append(count)
        if held.credit is not None:
            held.credit -= 1
        if held.delivered == held.after:
            self.end(client, held)

    def end(self, client: int, held: Held) -> None:
        del self.held[client][held.command.number]
        held.dropped += len(held.waiting)
        self.ended[client].append([9, held.command.number, "after", held.delivered, held.dropped])

    def publish(self, client: int, command: Publish, count: int) -> int:
        routed = 0
        topic, syntax = command.topic
        for other in range(3):
            for held in list(self.held[other].values()):
                wanted, filter_syntax = held.command.filter
                if (held.command.no_echo and other == client) or not reaches(wanted, filter_syntax, topic, syntax):
                    continue
                routed += 1
                if held.credit != 0:
                    self.deliver(other, held, count)
                elif len(held.waiting) < PENDING:
                    held.waiting.append(count)
                else:
                    held.dropped += 1
        return routed

    def do(self, client: int, command: Command, request: int | None, count: int) -> None:
        held, answers = self.held[client], self.answers[client]
        error = [13, None, ""] if isinstance(command, Credit) else [13, request, ""]
        answer: Fields | None = None
        match command:
            case Ping():
                answers.append([12, count])
            case Publish(mark=(producer, *place)) if tuple(place) <= self.marks.get(producer, (-1, -1)):
                answer = [5, request, 0, None, True]
            case Publish():
                if command.mark is not None:
                    self.marks[command.mark[0]] = command.mark[1:]
                answer = [5, request, self.publish(client, command, count)]
            case Subscribe() if command.number in held:
                answers.append([*error[:2], "subscription_in_use"])
            case Subscribe():
                held[command.number] = Held(command, command.credit, after=command.after)
                answer = [7, request]
            case Unsubscribe() | Credit() if command.number not in held:
                answers.append([*error[:2], "no_such_subscription"])
            case Unsubscribe() if command.after:
                mine = held[command.number]
                mine.after = command.after
                answer = [7, request]
                if mine.delivered >= command.after:
                    self.end(client, mine)
            case Unsubscribe():
                mine = held.pop(command.number)
                dropped = mine.dropped + len(mine.waiting)
                answer = [7, request, {"delivered": mine.delivered, "dropped": dropped}]
            case Credit():
                mine = held[command.number]
                if mine.credit is None:
                    answers.append([*error[:2], "protocol_error"])
                    return
                mine.credit += command.messages
                while mine.credit and mine.waiting and held.get(command.number) is mine:
                    self.deliver(client, mine, mine.waiting.pop(0))
        if answer is not None and request is not None:
            answers.append(answer)


def reaches(wanted: str, filter_syntax: int, topic: str, syntax: int) -> bool:
    return reference.matches(wanted, SYNTAXES[filter_syntax], topic, SYNTAXES[syntax])


@settings(max_examples=180, deadline=None)
@given(conversation=steps(SUBSCRIBE, *OTHERS))
@example(  # a subscription that ends within a read, and is subscribed again behind it
    conversation=[
        Step(
            client=0, requests=True, cut=0,
            commands=(Subscribe(1, ("a", 0), after=1), Publish(("a", 0)), Subscribe(1, ("a", 0)), Publish(("a", 0))),
        )
    ]
)
def test_everyone_gets_what_the_model_says(conversation: list[Step]) -> None:
    model = Model()
    count = 0
    for step in conversation:
        for command in step.commands:
            count += 1
            model.do(step.client, command, count if step.requests else None, count)
    world, received = run(conversation, plain=False)
    for client, octets in enumerate(received):
        frames = list(split(octets))
        got: dict[int, list[int]] = {}
        for fields in frames:
            if fields[0] == 4:
                got.setdefault(fields[1], []).append(int.from_bytes(fields[3][:4], "big"))
        assert got == model.got[client]
        answers = [fields[:3] if fields[0] == 13 else fields for fields in frames if fields[0] not in (4, 9)]
        assert answers == model.answers[client]
        # In no promised order: one message may be the last of several subscriptions.
        assert sorted(fields for fields in frames if fields[0] == 9) == sorted(model.ended[client])
    counters = world.broker.ledger
    assert model.marks == {
        mark.producer: (mark.batch, mark.sequence) for mark in world.broker.marks
    }
    assert counters.messages_out == sum(len(each) for got in model.got for each in got.values())
    assert counters.receipts == sum(answer[0] == 5 for answers in model.answers for answer in answers)


def test_a_stream_that_changes_lanes_keeps_its_order() -> None:
    world = World()
    subscriber, publisher = world.connect(), world.connect()
    subscriber.say(6, None, 1, "a.#")
    octets = b""
    for count in range(2_000):
        variants = [
            Publish(("a.b", 0)), Publish(("a.b", 0), trailing=(None, 1)), Publish(("a.b", 0), reply="r"),
            Publish(("a/b", 1)), Publish((f"a.{count}", 0)), Publish(("a.b", 0), headers={"k": 1}),
        ]  # fmt: skip
        octets += variants[count % 6].frame(count if count % 5 == 0 else None, count)
        if count % 7 == 0:
            octets += frame(6, None, 10, "a.b")  # what is known of the route is no longer true
        elif count % 7 == 3:
            octets += frame(8, None, 10)
    publisher.send(octets)
    got = [int.from_bytes(fields[3][:4], "big") for fields in subscriber.frames()]
    assert got == list(range(2_000))
    receipts = [fields for fields in publisher.frames() if fields[0] == 5]
    both = {count for count in range(2_000) if count % 7 in (1, 2, 3) and count % 6 != 4}
    assert receipts == [[5, count, 2 if count in both else 1] for count in range(0, 2_000, 5)]
    assert world.broker.routes.hits > 300  # the fast lane was taken, too
    assert world.broker.router.invalidated > 200


def test_one_read_of_any_size_gives_the_same() -> None:
    conversation: list[Command] = [
        Subscribe(1, ("#", 0), credit=5), Publish(("a", 0)), Publish(("a.b", 0), large=True), Publish(("a", 0)), Ping(),
        Unsubscribe(1), Publish(("a", 0)), Publish(("a/b", 1), reply="r"), Ping(),
    ]  # fmt: skip
    octets = b"".join(command.frame(count, count) for count, command in enumerate(conversation))
    results = set()
    for size in (1, 2, 3, 5, 11, 1_000, 16_384, 16_385, 40_000, 100_000):
        world = World(receive_bytes=32 * 1024)
        peer = world.connect()
        peer.send(*(octets[at : at + size] for at in range(0, len(octets), size)))
        results.add(peer.received)
        assert world.broker.ledger.used == 0
    assert len(results) == 1
