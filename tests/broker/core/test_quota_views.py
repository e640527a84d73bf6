"""What /quotas shows and metrics count: whatever a quota bounds, each principal once, and no series without end."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from fanlight_broker.core.broker import Broker
from fanlight_broker.core.metrics import OTHER, BoundedCounts
from fanlight_broker.core.ports import View
from fanlight_broker.core.quota import NoQuotas, Per, Quota, Rate, quota_of
from fanlight_broker.core.quota_views import (
    PRINCIPALS_AT_ONCE,
    QUOTA_ORDERS,
    SHOWN_MAX,
    counts_of,
    quota_families,
    quotas_view,
    rates_of,
)
from fanlight_broker.permitting.quota_file import parse_quotas
from tests.broker.protocols.native import world as native
from tests.broker.protocols.native.world import publish

NO_RATE = Rate()
Made = TypeVar("Made")


def done(steps: Generator[None, None, Made]) -> tuple[Made, int]:
    """What steps make, and how many there were."""
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            made: Made = end.value
            return made, count
        count += 1


def view(broker: Broker, **asked: Any) -> View:
    return done(quotas_view(broker, 0.0, **{
        "offset": 0, "limit": 100, "by": "part", "principal": None, "entry": None, **asked,
    }))[0]


class Everybody(NoQuotas):
    """One quota for all."""

    empty = False

    def __init__(self, **entries: Any) -> None:
        self._quota = quota_of(entries, "all")

    def of(self, asker: object, own: object) -> Quota:
        return self._quota


def world_of(**entries: Any) -> native.World:
    world = native.World()
    world.broker.clients.quotas = Everybody(**entries)
    return world


def connected(world: native.World, address: str) -> native.Peer:
    peer = world.open()
    peer.address = address
    peer.send(native.frame(1, 1, {}))
    assert peer.next()[0] == 2
    return peer


def address(number: int) -> str:
    return f"192.0.2.{number}"


def test_a_quantity_that_a_quota_gets_later_is_shown_without_being_named_here() -> None:
    @dataclass(frozen=True, slots=True)
    class Later(Quota):
        longest: int | None = None
        queue_length: int | None = None
        deliver: Rate = NO_RATE

    later = Later("q", connections=3, longest=7, deliver=Rate(5))
    assert counts_of(later) == {"connections": 3, "longest": 7}
    assert rates_of(later) == {"logins": NO_RATE, "publish": Rate(), "deliver": Rate(5)}
    world = world_of()
    world.broker.clients.quotas = Everybody()
    world.broker.clients.quotas._quota = later
    connected(world, address(1))
    (row,) = view(world.broker)["quotas"]
    assert row["quantities"]["longest"] == {"used": None, "limit": 7, "quota": 7, "refused": 0}
    assert row["quantities"]["connections"]["used"] == 1


def test_who_has_the_one_connection_that_is_allowed_is_not_near_a_limit() -> None:
    world = world_of(connections=1, subscriptions=10)
    for number in (1, 2):
        connected(world, address(number))
    world.peers[-1].send(native.frame(6, 1, 1, "a"))
    assert [(row["principal"], row["part"]) for row in view(world.broker)["quotas"]] == [
        ("address 192.0.2.2", 0.1), ("address 192.0.2.1", 0.0),
    ]


def test_traffic_is_of_all_connections_of_a_user_also_of_those_that_have_ended() -> None:
    world = world_of()
    first, second = connected(world, address(1)), connected(world, address(1))
    first.send(publish("a", b"123"))
    second.send(publish("a", b"1") + publish("a", b"2"))
    (row,) = view(world.broker)["quotas"]
    assert (row["messages_in"], row["bytes_in"], row["connections"]) == (3, 8, 2)
    first.vanish()
    (row,) = view(world.broker)["quotas"]
    assert (row["messages_in"], row["bytes_in"], row["connections"]) == (3, 8, 1)
    second.vanish()
    assert view(world.broker)["quotas"] == []


def test_principals_are_in_order_and_in_pages() -> None:
    world = world_of()
    for number in range(1, 8):
        connected(world, address(number)).send(publish("a") * (3 * number % 7))
    counts = [3 * number % 7 for number in range(1, 8)]
    everybody = view(world.broker, by="messages_in")
    assert [row["messages_in"] for row in everybody["quotas"]] == sorted(counts, reverse=True)
    pages = [view(world.broker, by="messages_in", offset=at, limit=3)["quotas"] for at in (0, 3, 6, 9)]
    assert [row for page in pages for row in page] == everybody["quotas"]
    assert everybody["total"] == 7
    for order in QUOTA_ORDERS:
        assert len(view(world.broker, by=order)["quotas"]) == 7
    (one,) = view(world.broker, principal="address 192.0.2.3")["quotas"]
    assert one["principal"] == "address 192.0.2.3"


def test_a_view_of_many_is_made_in_steps() -> None:
    world = world_of()
    for number in range(1, 201):
        connected(world, address(number))
    assert done(quota_families(world.broker))[1] >= 200 // PRINCIPALS_AT_ONCE
    steps = quotas_view(world.broker, 0.0, offset=0, limit=100, by="part", principal=None, entry=None)
    assert done(steps)[1] >= 200 // PRINCIPALS_AT_ONCE


def test_metrics_have_some_principals_and_the_sum_of_the_others() -> None:
    world = world_of(subscriptions=10)
    count = SHOWN_MAX + 5
    for number in range(1, count + 1):
        peer = connected(world, address(number))
        for each in range(9 if number <= SHOWN_MAX else 2):
            peer.send(native.frame(6, each, each, f"a{each}"))
    used, limit = done(quota_families(world.broker))[0]
    assert len(used.samples) == len(limit.samples) == SHOWN_MAX + 1
    rows = {(labels["principal"], labels["quantity"]): value for labels, value in used.samples}
    assert rows[OTHER, "subscriptions"] == 5 * 2
    assert rows["address 192.0.2.1", "subscriptions"] == 9
    assert {labels["principal"]: value for labels, value in limit.samples}[OTHER] == 5 * 10


def test_groups_clients_and_addresses_are_shown_on_request_and_in_metrics() -> None:
    world = native.World()
    world.broker.use_quotas(parse_quotas(
        '[[quota]]\nname = "all"\ngroup = "anonymous"\nper = "group"\nsubscriptions = 4\nconnections = 3\n'
        '[[quota]]\nname = "each"\nper = "address"\npublish_messages = 5\nconnections = 7\n', "q"
    ))
    for number in (1, 2):
        peer = connected(world, address(number))
        peer.send(publish("a", b"123") + native.frame(6, 1, 1, "a"))
    (row,) = view(world.broker, per=Per.GROUP)["quotas"]
    assert (row["principal"], row["quota"], row["connections"], row["messages_in"]) == ("group anonymous", "all", 2, 2)
    assert row["quantities"]["subscriptions"] == {"used": 2, "limit": 4, "quota": 4, "refused": 0}
    assert row["quantities"]["connections"] == {"used": 2, "limit": 3, "quota": 3, "refused": 0}
    assert (row["part"], row["sessions"], row["away"]) == (0.6667, 0, None)
    rows = view(world.broker, per=Per.ADDRESS, by="messages_in")["quotas"]
    assert [(row["principal"], row["quota"], row["connections"]) for row in rows] == [
        ("address 192.0.2.1", "each", 1), ("address 192.0.2.2", "each", 1),
    ]
    assert [row["rates"]["publish"]["passed"] for row in rows] == [1, 1]
    assert view(world.broker, per=Per.CLIENT)["quotas"] == []
    assert [row["principal"] for row in view(world.broker)["quotas"]] == ["address 192.0.2.1", "address 192.0.2.2"]
    used, _ = done(quota_families(world.broker))[0]
    assert ({"principal": "group anonymous (all)", "quantity": "subscriptions"}, 2.0) in used.samples


def test_nobody_has_a_quota_and_there_is_no_family() -> None:
    world = native.World()
    connected(world, address(1))
    assert done(quota_families(world.broker))[0] == []


def test_labels_that_clients_cause_are_bounded_and_no_count_goes_down() -> None:
    counts = BoundedCounts(2)
    seen: dict[str, float] = {}
    for label in "aabcbdcea":
        counts.add(label, "x")
        now = {labels["group"]: value for labels, value in counts.samples("group", "action")}
        assert all(now.get(each, 0) >= value for each, value in seen.items())
        seen = now
    assert seen == {"a": 3, "b": 2, OTHER: 4}
