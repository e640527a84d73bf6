"""Ordinary subscriptions begin and end in compiled code as they do in Python (wire/subscription_table.pxd)."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.errors import FanlightError, InvalidFilter, LimitExceeded, NotPermitted
from fanlight_broker.core.limits import Limits
from fanlight_broker.core.requests import SessionOptions
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.core.subscribing import Subscribing
from fanlight_broker.core.subscription import Subscription
from fanlight_broker.core.topics import INBOX_ROOT
from tests.broker.core.parts import broker_with, connect, subscribe
from tests.broker.core.reference import Reference, allow, deny
from tests.broker.core.sessions import Peer, World

TIGHT = {
    "subscriptions_max": 9, "subscriptions_per_client_max": 5, "subscriptions_bytes_max": 6_000, "topic_words_max": 4,
    "topic_bytes_max": 12, "filter_hashes_max": 2, "searching_filters_max": 2, "share_percent": 60,
}  # fmt: skip
ROOMY = {"share_percent": 90}
WORDS = ["a", "bb", "+", "*", "#", "", "$x", "$inbox", "ccccccccc"]


class InPython(Subscribing):
    """No subscription is ordinary."""

    def enter(self, subscriber: Subscriber, subscription: Subscription) -> bool:
        return False

    def leave(self, subscriber: Subscriber, subscription: Subscription) -> bool:
        return False


class Both:
    """A client without a session and two sessions, of two principals."""

    def __init__(self, *, in_python: bool, **limits: Any) -> None:
        self.world, self.in_python = World(**limits), in_python
        self.broker = self.world.broker
        if in_python:
            self.broker.subscribing.__class__ = InPython
        self.client, _ = connect(self.broker)
        self.peers = [self.world.connect(name, address=f"192.0.2.{at}") for at, name in enumerate("pq", 1)]
        self.routes = [self.broker.router.route(topic, "mqtt") for topic in (b"a", b"a/bb", b"/a")]

    def act(self, what: str, who: int, text: str, syntax: str, number: int) -> object:
        """What has come of it."""
        peer, filter = self.peers[who % 2], text.encode()
        try:
            if what == "subscribe" and who == 2:
                made = subscribe(self.broker, self.client, number, filter, syntax, credit=number % 3 - 1)
                return made.number, made.id
            if what == "subscribe":
                group = "g" if number == 9 else None
                options = {"group": group, "identifier": b"i" * (number % 2), "no_local": number > 5}
                if group is None and number > 3 and not self.in_python:
                    begun = self.enter(peer, filter, SessionOptions(number % 3, **options))
                    if begun is not None:
                        return begun.number, begun.id, True
                found, new = peer.subscribe(text, number % 3, **options)
                return found.number, found.id, new
            if what == "unsubscribe" and who == 2:
                return self.broker.subscribing.unsubscribe(self.client, number).id
            if what == "unsubscribe":
                return self.broker.sessions.unsubscribe(peer.session, filter, "g" if number == 9 else None)
            if what == "limits":
                self.broker.use(Limits(**(TIGHT if number < 6 else ROOMY)))
            if what == "leave":
                peer.leave(expiry=0.0)
                self.peers[who % 2] = self.world.connect("pq"[who % 2], address=f"192.0.2.{who % 2 + 1}")
        except FanlightError as error:
            return type(error), error.text, error.details
        return None

    def enter(self, peer: Peer, filter: bytes, options: SessionOptions) -> Subscription | None:
        """As one of many filters."""
        sessions = self.broker.sessions
        entering = sessions.entering(peer.session)
        assert entering is not None
        return entering.enter(sessions.variant_of(peer.session, options), filter, 1, options.no_local)

    def state(self) -> dict[str, object]:
        broker = self.broker
        return {
            "in force": sorted((each.id, each.filter, each.number) for each in broker.router.subscriptions()),
            "shares": {share.principal: (share.held, share.refused) for share in broker.shares},
            "totals": (broker.shares.totals, broker.shares.refused),
            "counts": (
                len(broker.router), broker.router.searching, broker.router.shared, broker.subscribing.begun,
                broker.subscribing.ended, broker.ledger.subscriptions.used, broker.router.index_bytes,
            ),
            "numbers": [peer.session.numbers for peer in self.peers],
            "own": [
                (len(each.subscriptions), each.searching)
                for each in (self.client.subscriber, *(peer.session.subscriber for peer in self.peers))
            ],
            "routes": [
                sorted((target.number, target.filter) for target in broker.router.route(topic, "mqtt").targets)
                for topic in (b"a", b"a/bb", b"/a")
            ],
        }  # fmt: skip


OPERATIONS = st.tuples(
    st.sampled_from(["subscribe"] * 5 + ["unsubscribe"] * 2 + ["limits", "leave"]), st.integers(0, 2),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=5), st.sampled_from(["mqtt", "amqp"]), st.integers(0, 9),
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.lists(OPERATIONS, max_size=40), st.sampled_from([TIGHT, ROOMY]))
def test_compiled_code_does_what_python_does(
    operations: list[tuple[str, int, list[str], str, int]], limits: dict[str, Any]
) -> None:
    compiled, plain = Both(in_python=False, **limits), Both(in_python=True, **limits)
    for what, who, words, syntax, number in operations:
        spelled = syntax if who == 2 else "mqtt"
        text = ("/" if spelled == "mqtt" else ".").join(words)
        assert compiled.act(what, who, text, spelled, number) == plain.act(what, who, text, spelled, number)
        assert compiled.state() == plain.state()


def test_a_filter_that_is_refused_leaves_nothing_behind() -> None:
    """Not even a larger table of the client's, whose order decides which ids are free first. How filters lie in it
    depends on their hashes, which are others in each process: so there are many.
    """
    both = [Both(in_python=False), Both(in_python=True)]
    for number in range(40):
        for operation in (
            *(("subscribe", f"{number}/{word}") for word in "abc"), ("subscribe", f"{number}/#/b"), ("leave", ""),
            *(("subscribe", f"{number}/{word}") for word in "def"),
        ):
            what, text = operation
            compiled, plain = (each.act(what, 0, text, "mqtt", 5) for each in both)
            assert compiled == plain
        for each in both:
            each.act("leave", 0, "", "mqtt", 0)
    assert both[0].state() == both[1].state()


class Told:
    """A journal's part: what it is told of subscriptions."""

    def __init__(self, journal: Any) -> None:
        self.journal = journal
        self.told: list[tuple[str, bytes]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.journal, name)

    def subscribed(self, subscription: Subscription) -> None:
        self.told.append(("subscribed", subscription.filter))

    def unsubscribed(self, subscription: Subscription) -> None:
        self.told.append(("unsubscribed", subscription.filter))


def test_an_ordinary_subscription_is_reported_to_the_journal() -> None:
    world = World()
    journal = world.broker.subscribing.journal = Told(world.broker.subscribing.journal)
    peer = world.connect("s")
    peer.subscribe("a/+")
    world.broker.sessions.unsubscribe(peer.session, b"a/+", None)
    assert journal.told == [("subscribed", b"a/+"), ("unsubscribed", b"a/+")]


def test_permissions_are_asked_for_each_filter() -> None:
    permissions = Reference(allow("connect"), deny("subscribe", "a/b"), allow("subscribe", "a/#"))
    broker = broker_with(permissions)
    client, _ = connect(broker)
    assert subscribe(broker, client, 1, b"a.*.c").partly == 0
    assert subscribe(broker, client, 2, b"a.*").partly == 1
    with pytest.raises(NotPermitted):
        subscribe(broker, client, 3, b"a.b")
    world = World()
    session = world.connect("s").session
    assert world.broker.sessions.entering(session) is not None
    world.broker.use_permissions(permissions)
    assert world.broker.sessions.entering(session) is None


def test_a_filter_that_begins_with_a_dollar_is_left_to_python() -> None:
    broker = broker_with()
    client, _ = connect(broker)
    with pytest.raises(FanlightError):
        subscribe(broker, client, 1, INBOX_ROOT + b".another")
    assert len(broker.router) == 0


def test_an_invalid_filter_changes_nothing() -> None:
    broker = broker_with()
    client, _ = connect(broker)
    for _ in range(2):  # first with a new id, then with one that is free
        with pytest.raises(InvalidFilter):
            subscribe(broker, client, 1, b"a/b#", "mqtt")
        assert (len(broker.router), len(client.subscriber.subscriptions)) == (0, 0)
        assert list(broker.router.subscriptions()) == []
        subscribe(broker, client, 1, b"a")
        broker.subscribing.unsubscribe(client, 1)
    assert subscribe(broker, client, 1, b"a").id == 0


def test_subscriptions_from_before_a_restart_count_as_subscriptions() -> None:
    world = World(subscriptions_max=3)
    peer = world.connect("s")
    variant = world.broker.variants.of(world.format, 1)
    made = [Subscription(peer.session.window, variant, number, b"f/%d" % number, 1) for number in range(3)]
    world.broker.subscribing.restore([(peer.session.subscriber, made)])
    assert len(world.broker.router) == 3
    with pytest.raises(LimitExceeded, match="too many subscriptions"):
        peer.subscribe("f/3")


def test_a_principal_whose_last_subscription_ends_is_forgotten() -> None:
    broker: Broker = broker_with()
    client, _ = connect(broker)
    share = client.subscriber.share
    broker.shares.leave((share,))  # as if nothing else was counted
    subscribe(broker, client, 1, b"a")
    assert list(broker.shares) == [share]
    broker.subscribing.unsubscribe(client, 1)
    assert list(broker.shares) == []
    subscribe(broker, client, 1, b"a")  # Python takes it in again
    assert list(broker.shares) == [share]


def test_a_peer_gets_what_its_filter_matches_at_once_and_nothing_after() -> None:
    world = World()
    peer: Peer = world.connect("s")
    world.publish("a/b", "before")
    peer.subscribe("a/+")
    world.publish("a/b", "between")
    world.broker.sessions.unsubscribe(peer.session, b"a/+", None)
    world.publish("a/b", "after")
    assert peer.got() == ["a/b between 0"]
