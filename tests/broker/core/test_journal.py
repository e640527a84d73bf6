"""What the core reports to a journal tells sessions, subscriptions, retained messages and QoS 2 identifiers."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.core.delayed import DelayedMessage
from fanlight_broker.core.marks import Mark
from fanlight_broker.core.shares import Share
from fanlight_broker.core.subscriber import Session
from fanlight_broker.core.subscription import Subscription, group_name_of
from fanlight_broker.wire.journal import JournalPosition, QueueJournal
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.queue import Queue
from tests.broker.core.sessions import World
from tests.broker.wire.test_journal import Records


class Journal:
    """A plain image of what was reported. Sessions that expire with their connection are not kept."""

    pages = None

    def __init__(self) -> None:
        self.position = JournalPosition()
        self.sessions: dict[str, tuple[float, bool, bool]] = {}  # name -> expiry, connected, has a will
        self.queues: dict[str, Records] = {}
        self.groups: dict[tuple[str, bytes], Records] = {}
        self.unreleased: dict[str, set[int]] = {}
        self.subscriptions: dict[tuple[str, bytes, str | None], int] = {}  # -> QoS
        self.kept: dict[bytes, Message] = {}
        self.ended: dict[Session, Records] = {}
        self.ended_groups: list[Records] = []

    def session_begun(self, session: Session) -> QueueJournal | None:
        assert session.name not in self.sessions
        self.session_changed(session)
        self.unreleased[session.name] = set()
        return self.queues.setdefault(session.name, Records())

    def session_changed(self, session: Session) -> None:
        self.sessions[session.name] = (session.expiry, session.connected, session.will is not None)

    def session_ended(self, session: Session) -> None:
        del self.sessions[session.name], self.unreleased[session.name]
        self.ended[session] = self.queues.pop(session.name)
        assert self.ended[session].flights == {}

    def session_drained(self, session: Session) -> None:
        assert self.ended.pop(session).waiting == {}

    def received(self, session: Session, identifier: int) -> None:
        self.unreleased[session.name].add(identifier)

    def released(self, session: Session, identifier: int) -> None:
        self.unreleased[session.name].remove(identifier)

    def group_begun(self, name: str, filter: bytes, syntax: str, where: str | None) -> QueueJournal | None:
        return self.groups.setdefault((name, filter), Records())

    def group_ended(self, name: str, filter: bytes, syntax: str, where: str | None) -> None:
        self.ended_groups.append(self.groups.pop((name, filter)))

    def group_drained(self, queue: Queue) -> None:
        (ended,) = [records for records in self.ended_groups if records is queue.journal]
        self.ended_groups.remove(ended)
        assert not ended.waiting

    def subscribed(self, subscription: Subscription) -> None:
        key = subscription.owner.name, subscription.filter, group_name_of(subscription)
        self.subscriptions[key] = subscription.variant.qos

    def unsubscribed(self, subscription: Subscription) -> None:
        # It has left its group by now: the filter is known once, with a group or without.
        owner = subscription.owner.name, subscription.filter
        (key,) = [key for key in self.subscriptions if key[:2] == owner]
        del self.subscriptions[key]

    def retained(self, message: Message, share: Share | None, origin: str | None) -> None:
        self.kept[message.topic] = message

    def cleared(self, topic: bytes, syntax: str) -> None:
        del self.kept[topic]

    def marked(self, mark: Mark) -> None:
        raise AssertionError("nobody has published with a mark")

    def delayed(self, id: int, due: float, delayed: DelayedMessage) -> None:
        raise AssertionError("nobody has published with a delay")

    def delayed_done(self, id: int) -> None:
        raise AssertionError("nobody has published with a delay")


def agree(world: World, journal: Journal) -> None:
    sessions = list(world.broker.sessions)
    assert journal.sessions == {
        each.name: (each.expiry, each.connected, each.will is not None) for each in sessions
    }
    for each in sessions:
        records = journal.queues[each.name]
        assert records.messages() == each.window.queue.waiting()
        assert list(records.flights) == [flight.tag for flight in each.window.flights()]
        assert journal.unreleased[each.name] == {id for id in range(10) if id in each.unreleased}
    assert journal.subscriptions == {
        (each.name, one.filter, group_name_of(one)): one.variant.qos for each in sessions for one in each.subscriptions
    }
    assert set(journal.groups) == {
        (one.group.name, one.filter) for each in sessions for one in each.subscriptions if one.group is not None
    }
    retained = world.broker.retained
    assert len(journal.kept) == len(retained)
    for topic, message in journal.kept.items():
        assert retained.get(topic, "mqtt", world.now) in (message, None)  # None: it has expired and is not swept yet


ACTIONS = st.sampled_from([
    "connect", "clean", "leave", "subscribe", "group", "unsubscribe", "publish", "publish", "retain", "clear",
    "receive", "release", "acknowledge", "wait",
])  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(ACTIONS, st.integers(0, 2), st.integers(0, 8)), max_size=40))
def test_the_image_of_a_journal_is_the_broker(steps: list[tuple[str, int, int]]) -> None:
    world, journal = World(retained_messages_max=3, queue_messages_max=4), Journal()
    world.broker.journal_to(journal)
    assert world.broker.position is journal.position
    peers = {n: world.connect(f"c{n}", expiry=50.0, clean_start=False) for n in range(3)}
    for what, who, nth in steps:
        peer, topic = peers[who], f"t/{nth % 3}"
        session = peer.session
        match what:
            case "connect" | "clean":
                will = world.will("w") if nth & 1 else None
                peers[who] = world.connect(f"c{who}", expiry=50.0 * (nth % 3), clean_start=what == "clean", will=will)
            case "leave" if session.client is peer.client:
                peer.leave(will=bool(nth & 1), expiry=float(nth) if session.expiry and nth > 3 else None)
            case "subscribe" if session.client is peer.client:
                if not any(one.group is not None and one.filter == topic.encode() for one in session.subscriptions):
                    peer.subscribe(topic, qos=nth % 3)
            case "group" if session.client is peer.client:
                if not any(one.group is None and one.filter == topic.encode() for one in session.subscriptions):
                    peer.subscribe(topic, qos=2, group="g")
            case "unsubscribe" if session.client is peer.client and len(session.subscriptions):
                one = list(session.subscriptions)[nth % len(session.subscriptions)]
                world.broker.sessions.unsubscribe(session, one.filter, group_name_of(one))
            case "publish":
                world.publish(topic, "x", 1 + nth % 2)
            case "retain":
                world.publish(topic + "/r" * (nth % 2), "x", retain=True, expires_at=world.now + nth * 10)
            case "clear":
                world.publish(topic, "", retain=True)
            case "receive" if not session.ended:
                session.receive(1 + nth)
            case "release" if not session.ended:
                session.release(1 + nth)
            case "acknowledge" if session.client is peer.client:
                for flight in session.window.flights():
                    session.window.acknowledge(flight.tag, world.now)
            case "wait":
                world.later(10.0 * nth)
        agree(world, journal)


def test_a_broker_without_a_journal_reports_nothing() -> None:
    world = World()
    peer = world.connect("c", expiry=60.0)
    subscription, _ = peer.subscribe("t", qos=1, group="g")
    assert peer.session.window.queue.journal is None
    assert subscription.group is not None
    assert subscription.group.queue.journal is None
    world.publish("t", "x", 1)
    assert (world.broker.position.appended, world.broker.position.synced) == (0, 0)
