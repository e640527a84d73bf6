"""One way in: what `Publishing.accept` does with a message, in which order, and what it returns."""

from typing import Any

import pytest

from fanlight_broker.core.acknowledgements import Acknowledgements
from fanlight_broker.core.archive_selection import ArchiveSelection
from fanlight_broker.core.errors import InvalidTopic, NotPermitted
from fanlight_broker.core.marks import Mark
from fanlight_broker.core.permissions import Action, Asker, Unrestricted, Verdict
from fanlight_broker.core.publication import Publication
from fanlight_broker.core.publishing import HELD, REPEATED, Accepted, Outcome, Refused
from fanlight_broker.core.recorder import NoRecorder
from fanlight_broker.core.rules import NoRules
from fanlight_broker.core.subscriber import Client
from fanlight_broker.wire.archive_tap import ArchiveTap
from fanlight_broker.wire.fanout import publish
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.outbox import Outbox
from fanlight_broker.wire.route import Route
from tests.broker.core.parts import FORMAT, broker_with, connect, subscribe
from tests.broker.core.reference import Reference, ReferenceGrant, allow, deny


class Sending:
    """A sender that notes what is asked of it; `room` says whether there is some."""

    def __init__(self, world: "World", message: Message, publisher: Client) -> None:
        self.world, self.message, self.publisher = world, message, publisher
        self.routed = 0
        self.unkept = False
        self.outbox = publisher.outbox
        self.blocker: Outbox | None = None

    def forward(self, route: Route) -> bool:
        self.world.events.append("forward")
        if not self.world.room:
            return False
        self.world.disk.taken += 1
        self.routed = publish(route, self.world.broker.ledger, self.publisher.outbox, self.message)
        self.unkept = self.world.unkept
        return True

    def hold_back(self, blocker: Outbox | None) -> None:
        self.world.events.append("hold")
        self.blocker = blocker

    def waits(self, route: Route) -> bool:
        return True

    def confirm(self, route: Route) -> bool:
        self.world.events.append("confirm")
        return False


class Disk(NoRecorder):
    """A recorder that stores when the test says `sync`."""

    awaited = True

    def __init__(self, events: list[str], acknowledgements: Acknowledgements) -> None:
        self.events = events
        self.acknowledgements = acknowledgements
        self.taken = 0
        self.full = False

    def note(self, mark: Mark, route: Route) -> None:
        self.events.append("note")

    def undo_note(self) -> None:
        self.events.append("take back")

    def has_room(self, route: Route) -> bool:
        return not self.full

    def sync(self) -> None:
        self.acknowledgements.release(1.0, self.taken)


class Gate(Reference):
    """Permissions: refuses the topics that begin with `no`, and notes that it is asked."""

    def __init__(self, events: list[str]) -> None:
        super().__init__(allow("connect"), deny("publish subscribe", "no/#"), allow("publish subscribe retain"))
        self.events = events

    def grant_of(self, asker: Asker) -> ReferenceGrant:
        grant = super().grant_of(asker)
        decide = grant.decide

        def noted(action: Action, *arguments: Any) -> Verdict:
            if action is not Action.CONNECT:
                self.events.append("permission")
            return decide(action, *arguments)

        grant.decide = noted
        return grant


class WatchedRules(NoRules):
    """Rules that act on no message, and note that they are asked."""

    empty = False

    def __init__(self, events: list[str]) -> None:
        self.events = events

    def concern(self, topic: bytes, syntax: int) -> bool:
        return True

    def plan(self, *_: object, **__: object) -> None:
        self.events.append("rule")


class World:
    def __init__(self, *, restricted: bool = False, **limits: Any) -> None:
        self.events: list[str] = []
        self.broker = broker_with(Gate(self.events) if restricted else Unrestricted(), **limits)
        self.client, _ = connect(self.broker)
        self.receipts: list[Outcome] = []
        self.room = True
        self.unkept = False
        self.disk = Disk(self.events, self.broker.acknowledgements)
        self.broker.record_to(self.disk)
        self.tap = ArchiveTap(
            rows_max=9, bytes_max=1 << 20, batch_bytes_max=1 << 20, begun=lambda: None, full=lambda columns: None
        )
        self.broker.router.archive_selection = ArchiveSelection(self.tap, [(b"#", "amqp")])

    def accept(self, topic: bytes, sequence: int | None = None, *, retain: bool = False) -> Outcome:
        message = Message(FORMAT, topic, 0, b"x", retain=retain)
        mark = None if sequence is None else Mark("", "producer", 0, sequence)
        self.sender = Sending(self, message, self.client)
        return self.broker.publishing.accept(
            Publication(message, self.client.subscriber, mark), self.sender, 1.0, self.receipts.append
        )


def test_the_order_is_permission_rules_store_fan_out_receipt() -> None:
    world = World(restricted=True)
    subscribe(world.broker, world.client, 1, b"a.#")
    world.events.clear()
    world.broker.publishing.use_rules(WatchedRules(world.events))
    assert world.accept(b"a.b", 1) == Accepted(1)
    assert world.events == ["permission", "rule", "note", "forward", "confirm"]
    assert world.receipts == []
    world.disk.sync()
    assert world.receipts == [Accepted(1)]


@pytest.mark.parametrize(
    ("topic", "error", "events"),
    [
        (b"no", NotPermitted, ["permission"]), (b"$SYS.a", NotPermitted, []),
        (b"a." * 200, InvalidTopic, ["permission", "permission"]),
    ],
)  # fmt: skip
def test_what_is_refused_leaves_no_trace(topic: bytes, error: type[Exception], events: list[str]) -> None:
    world = World(restricted=True)
    outcome = world.accept(topic, 1, retain=True)
    assert isinstance(outcome, Refused)
    assert isinstance(outcome.error, error)
    world.disk.sync()
    assert (world.events, world.receipts, len(world.broker.marks), len(world.broker.retained)) == (events, [], 0, 0)


def test_a_repeated_message_gets_its_receipt_and_nobody_gets_it_again() -> None:
    world = World()
    subscribe(world.broker, world.client, 1, b"a")
    assert world.accept(b"a", 1) == Accepted(1)
    world.events.clear()
    assert world.accept(b"a", 1) is REPEATED
    assert world.events == []
    assert world.receipts == []
    world.disk.sync()
    assert world.receipts == [Accepted(1), REPEATED]


def test_what_is_held_may_come_again_and_is_marked_and_retained_only_then() -> None:
    world = World()
    world.room = False
    assert world.accept(b"a", 1, retain=True) is HELD
    assert world.events == ["note", "forward", "take back"]
    assert (len(world.broker.marks), len(world.broker.retained), world.receipts) == (0, 0, [])
    world.room = True
    assert world.accept(b"a", 1, retain=True) == Accepted(0)
    assert (len(world.broker.marks), len(world.broker.retained)) == (1, 1)


def test_a_store_without_room_holds_it_before_anything_else_happens() -> None:
    world = World()
    world.disk.full = True
    assert world.accept(b"a", 1, retain=True) is HELD
    assert world.events == ["hold"]
    assert world.sender.blocker is not None
    assert world.sender.blocker.pausing
    world.disk.full = False
    world.disk.sync()
    assert not world.sender.blocker.pausing


def test_a_message_that_every_queue_turned_away_is_not_retained() -> None:
    world = World()
    world.unkept = True
    assert world.accept(b"a", retain=True) == Accepted(0, kept=False)
    assert len(world.broker.retained) == 0


def test_the_same_permissions_are_asked_before_a_subscription_is_in_force() -> None:
    world = World(restricted=True)
    with pytest.raises(NotPermitted):
        subscribe(world.broker, world.client, 1, b"no.#")
    assert len(world.broker.router) == 0
