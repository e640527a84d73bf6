"""Shares of the pots: what one principal holds leaves room for others (core/shares.py)."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.core.errors import LimitExceeded
from fanlight_broker.core.retained import nbytes_of
from fanlight_broker.core.shares import SharedPot, principal_of
from fanlight_broker.core.subscription import group_name_of, share_bytes
from fanlight_broker.wire.message import HOLDER_BYTES, Message
from fanlight_broker.wire.retained import RetainedEntry, place_bytes
from tests.broker.core.parts import broker_with, connect, subscribe
from tests.broker.core.sessions import Peer, World
from tests.captured_logs import capture_logs

ATTACKER, VICTIM = {"address": "192.0.2.66"}, {"address": "192.0.2.1"}
KIB, MIB = 1024, 1024 * 1024
FOR_EVER = 1e9
COUNTED = [pot for pot in SharedPot if pot is not SharedPot.STORED_BYTES]


def away(world: World, name: str, filter: str = "", **wanted: Any) -> Peer:
    """A session whose client has gone."""
    peer = world.connect(name, **{"expiry": FOR_EVER, **wanted})
    if filter:
        peer.subscribe(filter, 1)
    peer.leave()
    return peer


def until_refused(attempt: Callable[[int], Any], most: int) -> LimitExceeded:
    """The error that ends the attempts."""
    for number in range(most):
        try:
            attempt(number)
        except LimitExceeded as error:
            return error
    raise AssertionError(f"none of {most} was refused")


# -- who a principal is ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "address", "verified", "principal"),
    [
        ("ann", "192.0.2.1", True, "user ann"),
        ("ann", "192.0.2.1", False, "address 192.0.2.1"),
        ("", "192.0.2.1", True, "address 192.0.2.1"),
        ("", "::ffff:192.0.2.1", False, "address 192.0.2.1"),
        ("", "2001:db8:1:2:aaaa::1", False, "address 2001:db8:1:2::/64"),
        ("", "2001:db8:1:2:bbbb::2", False, "address 2001:db8:1:2::/64"),
        ("", "fe80::1%eth0", False, "address fe80::/64"),
        ("", "", False, "address "),
    ],
)
def test_a_principal_is_a_proven_user_or_else_an_address(
    user: str, address: str, verified: bool, principal: str
) -> None:
    assert principal_of(user, address, verified=verified) == principal


def test_a_user_name_that_nothing_proves_is_no_principal_of_its_own() -> None:
    world = World(sessions_max=8)
    names = [f"invented-{number}" for number in range(8)]
    connected = [world.connect(name, user=name) for name in names[:6]]
    with pytest.raises(LimitExceeded):
        world.connect(names[6], user=names[6])
    assert len({peer.client.subscriber.share for peer in connected}) == 1
    assert world.connect("v", user="ann", verified=True).client.subscriber.share.principal == "user ann"


# -- sessions --------------------------------------------------------------------------------------------------------


def test_a_principal_that_takes_all_the_sessions_it_can_leaves_room_for_others() -> None:
    world = World(sessions_max=100)
    for number in range(200):
        away(world, f"a{number}", **ATTACKER)
    assert world.broker.shares.of("address 192.0.2.66").used(SharedPot.SESSIONS) == 75
    for number in range(15):
        assert world.connect(f"v{number}", **VICTIM).session.connected


def test_several_principals_together_leave_room_for_one_more() -> None:
    world = World(sessions_max=1000)
    for host in range(4):
        for number in range(1000):
            away(world, f"{host}-{number}", address=f"192.0.2.{host + 10}")
    assert world.connect("v", **VICTIM).session.connected


def test_where_a_share_is_full_the_session_of_the_client_longest_away_ends_first() -> None:
    world = World(sessions_max=4)  # of which one may have 3
    stays = world.connect("stays", **ATTACKER)
    away(world, "first", will=world.will("gone/first", delay=500), **ATTACKER)
    away(world, "second", **ATTACKER)
    watcher = world.connect("watcher", **VICTIM)
    watcher.subscribe("gone/#")
    away(world, "third", **ATTACKER)
    assert watcher.got() == ["gone/first will 0"]
    assert {session.name for session in world.broker.sessions} == {"stays", "second", "third", "watcher"}
    assert (stays.session.connected, world.broker.sessions.made_room) == (True, 1)


def test_sessions_that_are_in_use_make_no_room_and_the_new_one_is_refused() -> None:
    world = World(sessions_max=4)
    for name in "abc":
        world.connect(name, **ATTACKER)
    with pytest.raises(LimitExceeded) as raised:
        world.connect("d", **ATTACKER)
    assert raised.value.details == {"limit": "sessions_share_percent", "value": 3}
    assert world.broker.shares.refusals(SharedPot.SESSIONS) == 1
    assert world.connect("a", clean_start=False, **ATTACKER).session.connected  # a known one gets in


def test_the_sessions_of_a_verified_user_are_one_share_from_all_addresses() -> None:
    world = World(sessions_max=8)
    for number in range(6):
        world.connect(f"a{number}", user="ann", verified=True, address=f"192.0.2.{number}")
    with pytest.raises(LimitExceeded):
        world.connect("a6", user="ann", verified=True, address="192.0.2.6")


def test_with_a_share_of_100_percent_one_user_has_the_whole_pot() -> None:
    world = World(sessions_max=4, sessions_share_percent=100)
    for number in range(4):
        world.connect(f"a{number}", **ATTACKER)
    with pytest.raises(LimitExceeded) as raised:
        world.connect("v", **VICTIM)
    assert raised.value.details["limit"] == "sessions_max"


def test_large_wills_of_one_principal_leave_room_for_those_of_another() -> None:
    world = World(sessions_bytes_max=2 * MIB)
    refused = until_refused(
        lambda number: world.connect(f"a{number}", will=world.will("will", "w" * 60_000), **ATTACKER), 100
    )
    assert refused.details["limit"] == "sessions_share_percent"
    assert 1.4 * MIB < world.broker.ledger.sessions.used < 1.5 * MIB
    for number in range(5):
        world.connect(f"v{number}", will=world.will("will", "w" * 60_000), **VICTIM)


def test_the_identifiers_of_a_principal_count_in_its_share() -> None:
    world = World(sessions_bytes_max=2 * MIB)
    peers = [world.connect(f"a{number}", **ATTACKER) for number in range(300)]
    refused = until_refused(lambda number: peers[number // 32].session.receive(1 + number % 32 * 2_048), 300 * 32)
    assert "sessions_share_percent" in refused.text
    share = world.broker.shares.of("address 192.0.2.66")
    assert share.used(SharedPot.SESSIONS_BYTES) == world.broker.ledger.sessions.used <= 1.5 * MIB
    assert share.refusals(SharedPot.SESSIONS_BYTES) == world.broker.shares.refusals(SharedPot.SESSIONS_BYTES) == 1
    world.connect("v", will=world.will("will", "w" * 60_000), **VICTIM).session.receive(7)


def test_sessions_that_are_away_make_room_for_a_large_one_of_their_principal() -> None:
    world = World(sessions_bytes_max=MIB)
    for number in range(12):
        away(world, f"a{number}" + "n" * 1_000, user="u" * 1_000, **ATTACKER)
    for number in range(12):
        world.connect(f"b{number}", will=world.will("will", "w" * 60_000), **ATTACKER)
    assert 0 < world.broker.sessions.made_room <= 12
    assert world.connect("v", **VICTIM).session.connected


def test_a_larger_will_of_a_session_that_goes_on_must_fit_into_its_share() -> None:
    world = World(sessions_bytes_max=MIB)
    for number in range(11):
        world.connect(f"a{number}", will=world.will("will", "w" * 60_000), **ATTACKER)
    world.connect("small", expiry=FOR_EVER, **ATTACKER)
    refused = until_refused(
        lambda n: world.connect("small", clean_start=False, will=world.will("will", "w" * 60_000 * n), **ATTACKER), 9
    )
    assert refused.details["limit"] == "sessions_share_percent"


# -- subscriptions ---------------------------------------------------------------------------------------------------


def test_subscriptions_are_shared_over_all_clients_of_a_principal() -> None:
    world = World(subscriptions_max=100)
    for number in range(75):
        peer = world.connect(f"a{number % 4}", clean_start=False, expiry=FOR_EVER, **ATTACKER)
        peer.subscribe(f"{number}")
    with pytest.raises(LimitExceeded) as raised:
        peer.subscribe("more")
    assert raised.value.details == {"limit": "subscriptions_share_percent", "value": 75}
    victim = world.connect("v", **VICTIM)
    for filter in range(18):
        victim.subscribe(f"v/{filter}")
    mine = len(peer.session.subscriptions)
    peer.leave(expiry=0)
    assert world.broker.shares.of("address 192.0.2.66").used(SharedPot.SUBSCRIPTIONS) == 75 - mine < 75


def test_large_filters_of_one_principal_leave_room_for_those_of_another() -> None:
    world = World(subscriptions_bytes_max=2 * MIB)
    peers = [world.connect(f"a{number}", **ATTACKER) for number in range(4)]
    refused = until_refused(
        lambda number: peers[number % 4].subscribe(f"{number}" + "f" * 10_000, group="g" if number % 2 else None), 1_000
    )
    assert refused.details["limit"] == "subscriptions_share_percent"
    pot = world.broker.ledger.subscriptions
    assert MIB < pot.used < 2 * MIB
    world.connect("v", **VICTIM).subscribe("v" * 10_000)
    for peer in peers:
        peer.leave(expiry=0)
    assert world.broker.shares.of("address 192.0.2.66").used(SharedPot.SUBSCRIPTIONS_BYTES) == 0


def test_filters_of_many_words_leave_room_although_the_index_takes_more_for_them() -> None:
    world = World(subscriptions_bytes_max=4 * MIB)
    attacker = world.connect("a", **ATTACKER)
    refused = until_refused(lambda number: attacker.subscribe("/".join([f"{number}", *"abcdefghij" * 10])), 100_000)
    assert refused.details["limit"] == "subscriptions_share_percent"
    victim = world.connect("v", **VICTIM)
    for number in range(20):
        victim.subscribe(f"v/{number}")


def test_filters_with_several_hashes_are_shared() -> None:
    broker = broker_with(searching_filters_max=100)
    (*attackers, victim) = [connect(broker)[0] for _ in range(6)]
    for attacker in attackers:
        attacker.subscriber.share = broker.shares.of(f"address {ATTACKER['address']}")
        broker.shares.join(attacker.subscriber.share)
    for number in range(75):
        subscribe(broker, attackers[number % 5], number, b"#.%d.#" % number)
    with pytest.raises(LimitExceeded) as raised:
        subscribe(broker, attackers[0], 99, b"#.more.#")
    assert raised.value.details == {"limit": "subscriptions_share_percent", "value": 75}
    subscribe(broker, attackers[0], 99, b"more.#")
    subscribe(broker, victim, 1, b"#.x.#")
    broker.clients.disconnect(attackers[0], "test", 0.0)
    assert broker.shares.of("address 192.0.2.66").used(SharedPot.SEARCHING_FILTERS) == 60


# -- stored bytes ----------------------------------------------------------------------------------------------------


def test_what_one_principal_stores_does_not_fill_the_queues_of_another() -> None:
    world = World(stored_bytes_max=MIB, queue_bytes_max=MIB)
    for number in range(6):
        away(world, f"a{number}", f"a/{number}", **ATTACKER)
    victim = away(world, "v", "v/#", **VICTIM)
    for number in range(6):
        for _ in range(200):
            world.publish(f"a/{number}", "x" * KIB, 1)
    attacker = world.broker.shares.of("address 192.0.2.66")
    assert 0.74 * MIB < attacker.account.stored < 0.76 * MIB
    assert attacker.refusals(SharedPot.STORED_BYTES) == world.broker.ledger.dropped_share > 0
    for _ in range(100):
        world.publish("v/1", "y" * KIB, 1)
    assert len(victim.session.window.queue) == 100


def test_a_message_counts_once_for_each_principal_however_many_of_its_sessions_keep_it() -> None:
    world = World()
    for number in range(5):
        away(world, f"a{number}", "t", **ATTACKER)
    away(world, "v", "t", **VICTIM)
    world.publish("t", "x" * KIB, 1)
    shares = world.broker.shares
    accounts = [shares.of(f"address {each['address']}").account.stored for each in (ATTACKER, VICTIM)]
    (message,) = {message for session in world.broker.sessions for message in session.window.queue.waiting()}
    assert accounts == [message.nbytes + 5 * HOLDER_BYTES, message.nbytes + HOLDER_BYTES]


def test_the_queue_of_a_group_is_paid_for_by_a_principal_that_is_in_it() -> None:
    world = World()
    first, second = world.connect("a", expiry=FOR_EVER, **ATTACKER), world.connect("v", expiry=FOR_EVER, **VICTIM)
    for peer in (first, second):
        peer.subscribe("t", 1, group="g")
        peer.leave()
    world.publish("t", "x" * KIB, 1)
    shares = world.broker.shares
    attacker, victim = shares.of("address 192.0.2.66"), shares.of("address 192.0.2.1")
    assert (attacker.account.stored, victim.account.stored) == (world.broker.ledger.stored, 0)
    world.broker.sessions.end(first.session, world.now)
    assert (attacker.account.stored, victim.account.stored) == (0, world.broker.ledger.stored)
    again = world.connect("v", clean_start=False, expiry=FOR_EVER, **VICTIM)
    again.acknowledge()
    assert world.broker.ledger.stored == victim.account.stored == 0
    assert attacker not in list(shares)


# -- retained messages -----------------------------------------------------------------------------------------------


def test_retained_messages_of_one_principal_leave_room_for_those_of_another() -> None:
    world = World(retained_messages_max=100)
    attacker, victim = world.connect("a", **ATTACKER), world.connect("v", **VICTIM)
    for number in range(100):
        attacker.publish(f"a/{number}", retain=True)
    assert len(world.broker.retained) == 75
    for number in range(18):
        victim.publish(f"v/{number}", retain=True)
    assert len(world.broker.retained) == 93
    victim.publish("a/1", "mine", retain=True)  # another's topic: it counts as the victim's from now on
    assert world.broker.shares.of("address 192.0.2.66").used(SharedPot.RETAINED_MESSAGES) == 74


# -- what the operator sees ------------------------------------------------------------------------------------------


def test_that_a_share_is_used_up_is_logged_once_for_each_principal_and_pot() -> None:
    world = World(sessions_max=4, stored_bytes_max=MIB, queue_bytes_max=MIB)
    with capture_logs() as logs:
        for name in "abc":
            world.connect(name, expiry=FOR_EVER, **ATTACKER).subscribe("#", 1)
        for _ in range(3):
            with pytest.raises(LimitExceeded):
                world.connect("d", **ATTACKER)
        for session in list(world.broker.sessions):
            world.broker.sessions.leave(session.client, world.now, will=False)
        for _ in range(2):
            for _ in range(1000):
                world.publish("t", "x" * KIB, 1)
            world.later(1)
    told = [(entry["principal"], entry["pot"]) for entry in logs if entry["event"] == "share_used_up"]
    assert told == [("address 192.0.2.66", "sessions"), ("address 192.0.2.66", "stored_bytes")]


# -- counts ----------------------------------------------------------------------------------------------------------

OPERATION = st.tuples(
    st.sampled_from(["connect", "connect clean", "leave", "subscribe", "share", "unsubscribe", "publish", "retain",
                     "clear", "acknowledge", "end", "later"]),
    st.integers(0, 5), st.integers(0, 3),
)  # fmt: skip


def retained(world: World) -> list[RetainedEntry]:
    store = world.broker.retained
    ids = [id for part in range(store.parts) for id in store.ids(b"#", "mqtt", part)]
    return [entry for entry in map(store.entry, ids) if entry is not None]


def held(world: World) -> dict[str, Counter[str]]:
    """What each principal holds, counted one by one."""
    found: dict[str, Counter[str]] = {}
    broker = world.broker
    for session in broker.sessions:
        found.setdefault(session.share.principal, Counter())["sessions"] += 1
        found[session.share.principal]["sessions_bytes"] += session.nbytes
    for client in broker.clients:
        found.setdefault(client.subscriber.share.principal, Counter())["clients"] += 1
    for subscription in broker.router.subscriptions():
        count = found.setdefault(subscription.owner.share.principal, Counter())
        count["subscriptions"] += 1
        count["subscriptions_bytes"] += share_bytes(subscription.filter, group_name_of(subscription))
        count["searching_filters"] += subscription.filter.count(b"#") > 1
    for entry in retained(world):
        if entry.share is not None:
            count = found.setdefault(entry.share.principal, Counter())
            count["retained_messages"] += 1
            count["retained_bytes"] += nbytes_of(entry.message)
    return found


def stored(world: World) -> dict[str, int]:
    """What the messages take that each principal keeps: each once, and each place where one is kept."""
    kept: dict[str, list[Message]] = {}
    broker, places = world.broker, Counter[str]()
    for session in broker.sessions:
        flights = [flight.message for flight in session.window.flights() if flight.message is not None]
        kept.setdefault(session.share.principal, []).extend([*session.window.queue.waiting(), *flights])
    for queue in {s.group.queue for s in broker.router.subscriptions() if s.group is not None} - {None}:
        assert queue is not None
        (payer,) = (share for share in broker.shares if share.account is queue.account)
        kept.setdefault(payer.principal, []).extend(queue.waiting())
    for entry in retained(world):
        if entry.share is not None:
            kept.setdefault(entry.share.principal, []).append(entry.message)
            places[entry.share.principal] += place_bytes(entry.message)
    return {
        principal: sum(message.nbytes for message in set(mine)) + len(mine) * HOLDER_BYTES + places[principal]
        for principal, mine in kept.items() if mine
    }  # fmt: skip


def do(world: World, peers: dict[int, Peer], operation: str, who: int, what: int) -> None:
    name, topic = f"c{who}", f"t/{what}"
    peer = peers.get(who)
    if operation.startswith("connect"):
        if peer is not None:
            peer.leave()
        clean = operation == "connect clean"
        try:
            peers[who] = world.connect(
                name, clean_start=clean, expiry=[0, 10, 1000, FOR_EVER][what], address=f"192.0.2.{who % 3}"
            )
        except LimitExceeded:
            peers.pop(who, None)
    elif operation == "publish":
        world.publish(topic, "x" * 200 * KIB, 1)
    elif operation == "later":
        world.later(11.0)
    elif operation == "end":
        found = world.broker.sessions.get(name)
        if found is not None and not found.connected:
            world.broker.sessions.end(found, world.now)
    elif peer is None:
        return
    elif operation == "leave":
        peers.pop(who).leave()
    elif operation in ("subscribe", "share"):
        with suppress(LimitExceeded):
            peer.subscribe(topic, 1, group="g" if operation == "share" else None)
    elif operation == "unsubscribe":
        for subscription in list(peer.session.subscriptions):
            world.broker.subscribing.end(subscription)
    elif operation in ("retain", "clear"):
        peer.publish(topic, "" if operation == "clear" else "y" * what, retain=True, qos=1)
    elif operation == "acknowledge":
        peer.acknowledge()


@settings(max_examples=100, deadline=None)
@given(st.lists(OPERATION, max_size=40))
def test_what_is_counted_in_the_shares_is_what_is_there_and_in_the_end_nothing(
    operations: list[tuple[str, int, int]],
) -> None:
    world = World(sessions_max=5, subscriptions_max=9, stored_bytes_max=2 * MIB, retained_messages_max=3)
    peers: dict[int, Peer] = {}
    for operation, who, what in operations:
        do(world, peers, operation, who, what)
        counted = {share.principal: share for share in world.broker.shares}
        assert {principal: +Counter({"clients": share.clients} | {pot.value: share.used(pot) for pot in COUNTED})
                for principal, share in counted.items()} == held(world)
        assert {p: s.account.stored for p, s in counted.items() if s.account.stored} == stored(world)
        totals = {pot: sum(share.held[pot] for share in counted.values()) for pot in SharedPot}
        assert totals == world.broker.shares.totals
        assert world.broker.ledger.sessions.used == sum(share.sessions.used for share in counted.values())
    for peer in peers.values():
        peer.leave()
    for session in list(world.broker.sessions):
        world.broker.sessions.end(session, world.now)
    for number in range(4):
        world.publish(f"t/{number}", "", retain=True)
    assert (list(world.broker.shares), world.broker.ledger.stored) == ([], 0)


@given(
    st.integers(0, 50), st.integers(0, 50), st.integers(0, 200), st.integers(1, 100), st.integers(-60, 120),
    st.integers(0, 50),
)  # fmt: skip
def test_a_share_fits_what_its_most_is(mine: int, others: int, limit: int, percent: int, more: int, back: int) -> None:
    shares = World(queues_max=limit, queues_share_percent=percent).broker.shares
    share = shares.of("user a")
    for owner, count in ((share, mine), (shares.of("user b"), others)):
        shares.charge(owner, SharedPot.QUEUES, count)
    fits = shares.fits(share, SharedPot.QUEUES, more, back)
    assert fits == (share.used(SharedPot.QUEUES) + more <= shares.most(share, SharedPot.QUEUES, back))
