"""Pots of groups, clients and addresses: what each of these holders uses, counted one by one (core/share.py)."""

from collections import Counter
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.core.errors import LimitExceeded
from fanlight_broker.core.permissions import Origin
from fanlight_broker.core.quota import NoQuotas
from fanlight_broker.core.share import Share, holders_in
from fanlight_broker.core.shares import SharedPot
from fanlight_broker.core.subscriber import Subscriber
from fanlight_broker.core.subscription import group_name_of, share_bytes
from fanlight_broker.permitting.quota_file import parse_quotas
from fanlight_broker.wire.message import HOLDER_BYTES
from fanlight_broker.wire.retained import place_bytes
from tests.broker.core.sessions import Peer, World
from tests.broker.core.test_shares import FOR_EVER, KIB, MIB, held, retained, stored

FILES = [  # of quotas, each of them after any other
    "",
    """
    [[quota]]
    name = "g"
    group = "g*"
    per = "group"
    subscriptions = 4
    sessions = 3
    stored_bytes = 700_000
    retained_messages = 2
    """,
    """
    [[quota]]
    name = "g"
    group = ["g0", "g1"]
    per = "group"
    subscriptions = 2
    [[quota]]
    name = "c"
    per = "client"
    subscriptions = 3
    retained_messages = 1
    stored_bytes = 500_000
    [[quota]]
    name = "a"
    per = "address"
    sessions = 2
    subscriptions = 5
    """,
]
HOLDER_POTS = [
    SharedPot.SESSIONS, SharedPot.SUBSCRIPTIONS, SharedPot.SUBSCRIPTIONS_BYTES, SharedPot.RETAINED_MESSAGES,
    SharedPot.STORED_BYTES,
]


def by_holder(world: World) -> dict[tuple[str, ...], Counter[SharedPot]]:
    """What each group, client and address uses: the sum of what each of its clients does."""
    found: dict[tuple[str, ...], Counter[SharedPot]] = {}

    def count(share: Share | None, pot: SharedPot, amount: int) -> None:
        for holder in share.holders if share is not None else ():
            found.setdefault(holder.key, Counter())[pot] += amount

    kept: dict[Share, list[Any]] = {}
    for session in world.broker.sessions:
        count(session.share, SharedPot.SESSIONS, 1)
        flights = [flight.message for flight in session.window.flights() if flight.message is not None]
        kept.setdefault(session.share, []).extend([*session.window.queue.waiting(), *flights])
    for subscription in world.broker.router.subscriptions():
        owner: Subscriber = subscription.owner
        count(owner.share, SharedPot.SUBSCRIPTIONS, 1)
        nbytes = share_bytes(subscription.filter, group_name_of(subscription))
        count(owner.share, SharedPot.SUBSCRIPTIONS_BYTES, nbytes)
    for entry in retained(world):
        count(entry.share, SharedPot.RETAINED_MESSAGES, 1)
        count(entry.share, SharedPot.STORED_BYTES, place_bytes(entry.message))
        if entry.share is not None:
            kept.setdefault(entry.share, []).append(entry.message)
    for share, messages in kept.items():
        octets = sum(message.nbytes for message in set(messages)) + len(messages) * HOLDER_BYTES
        count(share, SharedPot.STORED_BYTES, octets)
    return {key: used for key, each in found.items() if (used := +each)}


def check(world: World) -> None:
    shares = world.broker.shares
    assert {
        each.key: used for each in shares.holders
        if (used := +Counter({pot: each.used(pot) for pot in HOLDER_POTS}))
    } == by_holder(world)  # fmt: skip
    # Of principals, and in all, everything counts once, as without quotas.
    principals = {share.principal: share for share in shares}
    assert {name: share.account.stored for name, share in principals.items() if share.account.stored} == stored(world)
    mine = held(world)
    for name, share in principals.items():
        assert {pot: share.used(pot) for pot in (SharedPot.SESSIONS, SharedPot.SUBSCRIPTIONS)} == {
            pot: mine.get(name, Counter())[pot] for pot in (SharedPot.SESSIONS, SharedPot.SUBSCRIPTIONS)
        }
    assert shares.totals == {pot: sum(share.held[pot] for share in principals.values()) for pot in SharedPot}
    assert world.broker.ledger.sessions.used == sum(share.sessions.used for share in principals.values())
    present = Counter(part for client in world.broker.clients for part in client.parts)
    assert {share: share.clients for share in (*shares, *shares.holders) if share.clients} == present


def request(who: int, where: int, group: int) -> dict[str, Any]:
    address = f"192.0.2.{where}"
    return {
        "user": f"u{who % 3}", "verified": True, "address": address,
        "origin": Origin(groups=frozenset({f"g{group}"}), address=address),
    }  # fmt: skip


def do(world: World, peers: dict[int, Peer], operation: str, who: int, what: int) -> None:
    """Something a client does. What was refused has changed nothing: `check` says so."""
    peer, topic = peers.get(who), f"t/{what}"
    if operation.startswith("connect"):
        if peer is not None and operation != "connect again":
            peer.leave()
        try:
            found = world.connect(
                f"c{who}", clean_start=operation == "connect clean", expiry=FOR_EVER * (what > 0),
                **request(who, what, (who + what) % 3),
            )
        except LimitExceeded:
            if operation != "connect again":
                peers.pop(who, None)
            return
        if peer is not None and operation == "connect again":
            peer.leave()  # its session is the new connection's
        peers[who] = found
    elif operation == "quotas":
        text = FILES[what % len(FILES)]
        world.broker.use_quotas(parse_quotas(text, "q") if text else NoQuotas())
    elif operation == "publish":
        world.publish(topic, "x" * 100 * KIB, 1)
    elif operation == "end":
        session = world.broker.sessions.get(f"c{who}")
        if session is not None and not session.connected:
            world.broker.sessions.end(session, world.now)
    elif peer is None:
        return
    elif operation == "leave":
        peers.pop(who).leave()
    elif operation in ("subscribe", "share"):
        with suppress(LimitExceeded):
            peer.subscribe(topic, 1, group="s" if operation == "share" else None)
    elif operation == "unsubscribe":
        for subscription in list(peer.session.subscriptions):
            world.broker.subscribing.end(subscription)
    elif operation in ("retain", "clear"):
        peer.publish(topic, "" if operation == "clear" else "y" * what, retain=True, qos=1)
    else:
        peer.acknowledge()


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from([
            "connect", "connect clean", "connect again", "leave", "quotas", "subscribe", "subscribe", "share",
            "unsubscribe", "publish", "retain", "clear", "acknowledge", "end",
        ]),
        st.integers(0, 5), st.integers(0, 3),
    ), max_size=40,
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(OPERATIONS)
def test_what_holders_use_is_the_sum_of_what_their_clients_do_and_in_the_end_nothing(
    operations: list[tuple[str, int, int]],
) -> None:
    world = World(sessions_max=8, subscriptions_max=12, stored_bytes_max=3 * MIB, retained_messages_max=4)
    world.broker.use_quotas(parse_quotas(FILES[1], "q"))
    peers: dict[int, Peer] = {}
    for operation, who, what in operations:
        before = {each.key: each.used(SharedPot.SUBSCRIPTIONS) for each in world.broker.shares.holders}
        do(world, peers, operation, who, what)
        check(world)
        if operation in ("subscribe", "share"):  # nothing grew beyond its quota
            for each in world.broker.shares.holders:
                quota, used = each.quota(SharedPot.SUBSCRIPTIONS), each.used(SharedPot.SUBSCRIPTIONS)
                assert quota is None or used <= max(quota, before.get(each.key, 0))
    for peer in peers.values():
        peer.leave()
    for session in list(world.broker.sessions):
        world.broker.sessions.end(session, world.now)
    for number in range(4):
        world.publish(f"t/{number}", "", retain=True)
    assert (list(world.broker.shares), world.broker.ledger.stored) == ([], 0)
    assert all(not each.counts and not each.account.stored for each in world.broker.shares.holders)


# -- what each holder is refused ---------------------------------------------------------------------------------------


@pytest.fixture
def world() -> World:
    return World()


def quotas(world: World, per: str, **pots: int) -> None:
    lines = "\n".join(f"{name} = {value}" for name, value in pots.items())
    group = 'group = "g"\n' if per == "group" else ""
    world.broker.use_quotas(parse_quotas(f'[[quota]]\nper = "{per}"\n{group}{lines}', "q"))


def of(world: World, name: str, user: str, *, group: str = "g", address: str = "192.0.2.1", **wanted: Any) -> Peer:
    origin = Origin(groups=frozenset({group}), address=address)
    return world.connect(name, user=user, verified=True, address=address, origin=origin, **wanted)


def names(world: World, pot: SharedPot) -> dict[str, int]:
    return {each.principal: each.used(pot) for each in world.broker.shares.holders if each.used(pot)}


def test_users_of_a_group_have_its_subscriptions_together(world: World) -> None:
    quotas(world, "group", subscriptions=3)
    ann, bob, eve = of(world, "a", "ann"), of(world, "b", "bob"), of(world, "e", "eve", group="h")
    ann.subscribe("t/1")
    ann.subscribe("t/2")
    bob.subscribe("t/3")
    for peer in (ann, bob):
        with pytest.raises(LimitExceeded) as raised:
            peer.subscribe("t/4")
        assert (raised.value.details, raised.value.text) == (
            {"limit": "quota subscriptions", "value": 3},
            "group g has used up its quota of subscriptions; at most 3 (quota subscriptions)",
        )
    eve.subscribe("t/4")
    for subscription in list(ann.session.subscriptions):
        world.broker.subscribing.end(subscription)
    bob.subscribe("t/4")


def test_of_a_group_a_new_session_is_refused_unless_its_own_user_has_one_to_end(world: World) -> None:
    quotas(world, "group", sessions=2)
    of(world, "a1", "ann", expiry=FOR_EVER).leave()
    of(world, "b1", "bob", expiry=FOR_EVER).leave()
    with pytest.raises(LimitExceeded):
        of(world, "e1", "eve")
    assert {session.name for session in world.broker.sessions} == {"a1", "b1"}
    of(world, "a2", "ann")
    assert {session.name for session in world.broker.sessions} == {"b1", "a2"}


def test_a_session_counts_for_the_address_that_its_client_came_from_last(world: World) -> None:
    quotas(world, "address", sessions=1, subscriptions=2)
    peer = of(world, "c", "ann", expiry=FOR_EVER)
    peer.subscribe("t/1")
    peer.subscribe("t/2")
    peer.leave()
    assert names(world, SharedPot.SUBSCRIPTIONS) == {"address 192.0.2.1": 2}
    moved = of(world, "c", "ann", address="192.0.2.2", clean_start=False, expiry=FOR_EVER)
    assert names(world, SharedPot.SUBSCRIPTIONS) == {"address 192.0.2.2": 2}
    assert names(world, SharedPot.SESSIONS) == {"address 192.0.2.2": 1}
    with pytest.raises(LimitExceeded):
        moved.subscribe("t/3")
    of(world, "d", "bob", address="192.0.2.3", expiry=FOR_EVER).leave()
    with pytest.raises(LimitExceeded):  # its address has a session already
        of(world, "d", "bob", address="192.0.2.2", clean_start=False)


def test_what_waits_for_a_client_is_bounded_for_this_client_alone(world: World) -> None:
    quotas(world, "client", stored_bytes=150 * KIB)
    first, second = (of(world, name, "ann", expiry=FOR_EVER) for name in "ab")
    for peer in (first, second):
        peer.subscribe("t", 1)
        peer.leave()
    first = of(world, "a", "ann", clean_start=False, expiry=FOR_EVER)
    world.publish("t", "x" * 100 * KIB, 1)
    assert len(first.got()) == 1
    first.acknowledge()
    world.publish("t", "y" * 100 * KIB, 1)
    assert len(first.got()) == 1
    assert [len(session.window.queue) for session in world.broker.sessions] == [0, 1]  # b has the first one alone
    assert world.broker.shares.holder(("client", "client b of user ann", "entry 1")).account.refused == 1
    assert world.broker.shares.of("user ann").account.refused == 0


def test_a_message_of_many_sessions_counts_once_for_the_user_and_for_each_client_of_a_group(world: World) -> None:
    quotas(world, "group", stored_bytes=10 * MIB)
    for name in "abc":
        peer = of(world, name, "ann", expiry=FOR_EVER)
        peer.subscribe("t", 1)
        peer.leave()
    world.publish("t", "x" * 100 * KIB, 1)
    one = names(world, SharedPot.STORED_BYTES)["group g"] / 3
    assert 100 * KIB < one < 101 * KIB
    assert one < world.broker.shares.of("user ann").account.stored < 1.1 * one


def test_quotas_put_in_force_count_what_is_there_and_take_nothing_away(world: World) -> None:
    peer = of(world, "c", "ann", expiry=FOR_EVER)
    peer.subscribe("t/+", 1)
    peer.subscribe("u/+", 1)
    world.publish("t/1", "x" * KIB, 1)
    quotas(world, "group", subscriptions=1, sessions=1, stored_bytes=10)
    check(world)
    assert names(world, SharedPot.SUBSCRIPTIONS) == {"group g": 2}
    assert names(world, SharedPot.STORED_BYTES)["group g"] > KIB
    with pytest.raises(LimitExceeded):
        peer.subscribe("v", 1)
    world.broker.use_quotas(NoQuotas())
    assert names(world, SharedPot.SUBSCRIPTIONS) == {}
    peer.subscribe("v", 1)
    peer.acknowledge()
    check(world)


def test_a_replaced_retained_message_needs_no_room_but_for_what_it_is_larger(world: World) -> None:
    quotas(world, "group", retained_messages=1)
    for text in ("one", "two"):  # two connections, as each has a share of its own
        peer = of(world, "c", "ann")
        peer.publish("t", text, retain=True)
        peer.leave()
    assert [entry.message.payload for entry in retained(world)] == [b"two"]
    of(world, "b", "bob").publish("u", "three", retain=True)
    assert [entry.message.payload for entry in retained(world)] == [b"two"]
    assert names(world, SharedPot.RETAINED_MESSAGES) == {"group g": 1}


def test_the_name_of_a_share_in_the_store_says_whose_it_is(world: World) -> None:
    quotas(world, "client", subscriptions=3)
    share = of(world, 'a"\n[', "ann").session.share
    found = world.broker.shares.stored(share.stored_name)
    assert (found.root, found.holders) == (share.root, share.holders)
    assert world.broker.shares.stored(share.root.stored_name) is share.root
    assert holders_in(share.root.stored_name) == ("user ann", [])
    long = world.broker.shares.joint(share.root, [("client", "x" * 70_000, "entry 1")])
    assert long.stored_name == "user ann"  # it would not fit into a record

