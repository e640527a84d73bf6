"""Lists of the API: pages of any order against sorting everything, rows that come and go, cursors from elsewhere."""

import random
from collections.abc import Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pytest

from fanlight_broker.admin.api.declared import Call, read_parameters
from fanlight_broker.admin.api.declared import Operation as Declared
from fanlight_broker.admin.api.lists import LOOK, LOOK_SEARCHED, Id, Listing, behind
from fanlight_broker.admin.api.operated import Operated
from fanlight_broker.admin.api.problems import BadParameter
from fanlight_broker.admin.api.retained import RetainedOperations
from fanlight_broker.admin.slices import Slices
from fanlight_broker.core.identity import ANONYMOUS
from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.wire.message import Message
from tests.broker.protocols.mqtt.world import World


@dataclass
class Thing:
    number: int
    name: str
    size: int | None


class Query(dict[str, str]):
    """As aiohttp's."""

    def getall(self, name: str) -> list[str]:
        return [self[name]]


def id_of(thing: Thing) -> Id:
    return (thing.number,)


def listing(things: list[Thing], *, ordered: bool = False) -> Listing[Thing]:
    def rows(after: Id | None) -> Iterable[Thing | None]:
        if not ordered:
            return list(things)
        return behind(list(things), id_of, after)

    return Listing(
        rows=rows, count=lambda: len(things), id=id_of, view=lambda thing: vars(thing),
        keys={"name": lambda thing: thing.name, "size": lambda thing: thing.size}, searched=("name",),
        exact=("name",), ordered=ordered,
    )


def ask(of: Listing[Thing], **query: Any) -> dict[str, Any]:
    operation = Declared("GET", "/things", "", of.page, {}, of.parameters())
    asked = Query({name: str(value) for name, value in query.items()})
    call = Call(read_parameters(operation, {}, asked), {}, ANONYMOUS, None, "")  # type: ignore[arg-type]
    return finished(of.page(call))


def test_a_page_that_takes_too_long_is_answered_as_far_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = count()  # each look at it is a second later
    monkeypatch.setattr("fanlight_broker.admin.api.lists.perf_counter", lambda: float(next(clock)))
    things = [Thing(number, "x", -number) for number in range(100 * LOOK)]
    page = ask(listing(things), sort="size", limit=2)
    assert not page["complete"]
    assert page["total"] == len(things)
    assert [each["number"] for each in page["items"]] == [5 * LOOK - 1, 5 * LOOK - 2]
    searched = ask(listing(things), q="x")
    assert (searched["complete"], searched["total"]) == (False, 5 * LOOK_SEARCHED)


def finished(steps: Generator[None, None, dict[str, Any]]) -> dict[str, Any]:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: dict[str, Any] = end.value
            return found


def pages(of: Listing[Thing], **query: Any) -> list[int]:
    found, page = [], ask(of, **query)
    while True:
        found += [row["number"] for row in page["items"]]
        if page["next"] is None:
            return found
        page = ask(of, cursor=page["next"], **query)


def test_pages_are_what_sorting_all_of_them_gives() -> None:
    chance = random.Random(19)
    for _ in range(30):
        things = [
            Thing(number, chance.choice(("é", "b", "B", "")), chance.choice((None, 1, 2, 2**60)))
            for number in chance.sample(range(1_000), chance.randrange(40))
        ]
        for order in ("asc", "desc"):
            for ordered in (False, True):
                if ordered:
                    things.sort(key=lambda thing: thing.number)
                of, backwards, limit = listing(things, ordered=ordered), order == "desc", chance.randrange(1, 9)
                expected = sorted(things, key=lambda thing: thing.number, reverse=backwards)
                assert pages(of, order=order, limit=limit) == [thing.number for thing in expected]
                expected = sorted(
                    things, key=lambda thing: (thing.size is not None, thing.size or 0, thing.number),
                    reverse=backwards,
                )
                assert pages(of, sort="size", order=order, limit=limit) == [thing.number for thing in expected]
                matching = [thing.number for thing in things if "b" in thing.name.casefold()]
                assert sorted(pages(of, q="b", sort="name", limit=limit)) == sorted(matching)
                assert ask(of, q="b", limit=1)["total"] == len(matching)
                assert ask(of, name="b")["total"] == sum(thing.name == "b" for thing in things)


def test_what_is_there_all_the_time_is_listed_once_while_others_come_and_go() -> None:
    things = [Thing(number, "", None) for number in range(0, 200, 2)]
    of, found, query = listing(things), list[int](), dict[str, Any]()
    while True:
        page = ask(of, limit=7, **query)
        found += [row["number"] for row in page["items"]]
        if page["next"] is None:
            break
        query = {"cursor": page["next"]}
        things[:] = [each for each in things if each.number % 4 == 0 or each.number > found[-1] + 20]
        things.insert(0, Thing(1_001 + len(found), "", None))
    assert [number for number in found if number % 4 == 0 and number < 200] == list(range(0, 200, 4))
    assert len(found) == len(set(found))


def test_a_page_in_the_order_of_the_rows_looks_at_no_more_than_it_needs() -> None:
    looked_at = 0

    def rows(after: Id | None) -> Iterable[Thing | None]:
        nonlocal looked_at
        for number in range((after[0] if after else -1) + 1, 10**9):
            looked_at += 1
            yield Thing(number, "", None)

    things = listing([], ordered=True)
    of = Listing(**{**{name: getattr(things, name) for name in Listing.__slots__}, "rows": rows})
    page = ask(of, limit=10)
    assert looked_at == 11
    assert [row["number"] for row in ask(of, limit=3, cursor=page["next"])["items"]] == [10, 11, 12]


def test_what_goes_while_a_page_is_made_is_left_out_of_it() -> None:
    things = [Thing(number, f"thing {number}", None) for number in range(40)]
    gone = {3, 4, 9}
    of = replace(listing(things), view=lambda thing: None if thing.number in gone else vars(thing))
    assert pages(of, limit=5) == [number for number in range(40) if number not in gone]


def test_a_retained_message_that_is_replaced_meanwhile_is_listed_and_one_that_is_cleared_is_not() -> None:
    world = World()
    broker = world.broker

    def publish(payload: bytes, numbers: range) -> None:
        for number in numbers:
            assert broker.retained.put(Message(FORMAT, b"busy.%d" % number, 0, payload), world.now)

    publish(b"old", range(100))
    operated = Operated(broker, None, lambda: world.now, "", FORMAT, Slices())  # type: ignore[arg-type]
    listing = RetainedOperations(operated, None, None).listing  # type: ignore[arg-type]
    operation = Declared("GET", "/retained", "", listing.page, {}, listing.parameters())
    call = Call(read_parameters(operation, {}, Query(limit="1000", q="busy")), {}, ANONYMOUS, None, "")  # type: ignore[arg-type]
    steps = listing.page(call)
    made: dict[str, Any] = {}
    try:
        while True:
            next(steps)
            publish(b"newer", range(90))
            publish(b"", range(90, 100))
    except StopIteration as end:
        made = end.value
    sizes = {row["topic"]: row["size"] for row in made["items"]}
    assert set(sizes) == {f"busy.{number}" for number in range(90)}
    assert set(sizes.values()) == {5}


def test_a_page_of_long_names_has_fewer_rows_and_none_is_left_out() -> None:
    of = listing([Thing(number, "x" * 60_000, None) for number in range(100)])
    assert 1 < len(ask(of, limit=1_000)["items"]) < 50
    assert pages(of, limit=1_000, sort="name") == list(range(100))
    assert len(ask(listing([Thing(1, "x" * 3_000_000, None)]))["items"]) == 1


def test_looking_at_many_rows_gives_the_loop_back() -> None:
    of = listing([Thing(number, "", None) for number in range(10 * LOOK)])
    operation = Declared("GET", "/things", "", of.page, {}, of.parameters())
    call = Call(read_parameters(operation, {}, Query(sort="size")), {}, ANONYMOUS, None, "")  # type: ignore[arg-type]
    assert sum(1 for _ in of.page(call)) >= 10


@pytest.mark.parametrize("cursor", [
    "", "x", "bnVsbA", "W10", "WzEsMiwzLDQsNV0", "W251bGwsZmFsc2UsMCwiIixbXV0", "W251bGwsZmFsc2UsMCwiIixbImEiXV0",
    "W251bGwsZmFsc2UsMSwiIixbMV1d", "é", "W" * 1_000,
])  # fmt: skip
def test_a_cursor_from_elsewhere_is_refused_or_harmless(cursor: str) -> None:
    for ordered in (False, True):
        with suppress(BadParameter):
            page = ask(listing([Thing(1, "", None), Thing(2, "", None)], ordered=ordered), cursor=cursor)
            assert len(page["items"]) <= 2
