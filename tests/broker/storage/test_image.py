"""Records that say nothing sensible, and what a start that takes long logs."""

from pathlib import Path

import pytest

from fanlight_broker import storing
from fanlight_broker.storage import records
from fanlight_broker.storage.facts import SessionFact, SubscriptionFact, packed, pair
from fanlight_broker.storage.image import Image
from fanlight_broker.storage.records import BadRecord
from fanlight_broker.storage.recovery import Recovered
from tests.broker.storage import plain_image
from tests.broker.storage.stored_world import StoredWorld
from tests.captured_logs import capture_logs

SESSION = packed(SessionFact(1, "a", "", "p", "lines", False, "", "address ::1", "i", 60.0, None, 0, None))


@pytest.mark.parametrize(
    ("type", "body"),
    [
        (99, b""),
        (records.MESSAGE, b"x" * 41),
        (records.SLOT, packed((1, 2))),
        (records.SLOT, packed((1 << 33, 2, None))),
        (records.SLOT, packed((1, -2, None))),
        (records.SLOT, packed((1, 2, (1, 0)))),
        (records.SLOT, packed((1, 2, (1, 0, "text")))),
        (records.SLOT, packed((1, 2, (1, 256, b"")))),
        (records.SLOT, packed((1, 2, (1, 0, b"xyz")))[:-1]),
        (records.SESSION, packed((1, "a"))),
        (records.SESSION, packed(("1", *range(12)))),
        (records.SESSION, b""),
        (records.SUBSCRIBED, packed((1, 2, b"t"))),
        (records.SESSION_ENDED, b"x" * 11),
        (records.SLOT_SET, b"x" * 7),
        (records.RETAINED, bytes(20)),
        (records.ENDED, b"\xff"),
        (records.MOVES, b"\x00"),
    ],
)
def test_a_record_that_makes_no_sense_is_refused(type: int, body: bytes) -> None:
    image = Image()
    image.apply(records.SESSION, SESSION)
    with pytest.raises(BadRecord):
        image.apply(type, body)


@pytest.mark.parametrize("make", [Image, plain_image.Image])
def test_what_is_not_there_can_end(make: type[Image]) -> None:
    """What is before the floor is not known."""
    image = make()
    image.apply(records.SESSION, SESSION)
    image.apply(records.ENDED, b"\x03\x00\x14")  # numbers 0 and 5 of queue 1
    image.apply(records.UNSUBSCRIBED, pair(1, 7))
    image.apply(records.RELEASED, pair(1, 7))
    image.apply(records.SESSION_ENDED, pair(2, 0))
    assert len(image.queues[1].waiting) == 0


@pytest.mark.parametrize(
    ("options", "group"),
    [((2, True, 1, b"\x0b\x05"), None), ((0, False, 2, b""), None), ((1, False, 0, b""), "workers")],
)
def test_subscriptions_are_read_as_they_were_written(options: tuple[int, bool, int, bytes], group: str | None) -> None:
    facts = [
        SubscriptionFact(1, number, filter, syntax, group, *options)
        for number, filter, syntax in ((70_000, b"a/+/#", 1), (3, b"", 0), (1 << 31, b"f" * 300, 1))
    ]
    image = Image()
    image.apply(records.SESSION, SESSION)
    for fact, more in zip(facts, ((), ("of a later version",), ()), strict=True):
        image.apply(records.SUBSCRIBED, packed((*fact, *more)))
    assert image.sessions[1].filters_in_order() == facts
    assert [type(each) for each in image.sessions[1].filters_in_order()[0]] == [type(each) for each in facts[0]]


@pytest.mark.parametrize("cut", [5, 12, 20])
def test_a_subscription_that_ends_too_early_is_refused(cut: int) -> None:
    image = Image()
    image.apply(records.SESSION, SESSION)
    body = packed(SubscriptionFact(1, 2, b"a/topic/of/words", 1, None, 1, False, 0, b""))
    image.apply(records.SUBSCRIBED, body[:cut])
    with pytest.raises(BadRecord):
        image.sessions[1].filters_in_order()


def test_a_bad_record_is_named_by_its_entry(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    world.publish("t", "x", retain=True)
    world.turn()
    world.log.append(records.SESSION, b"")
    world.turn()
    with pytest.raises(BadRecord, match="entry 2, SESSION: no msgpack array"):
        world.crash()


def test_a_long_start_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter((0.0, 0.5, 1.0, 1.5, 2.0))
    monkeypatch.setattr(storing.time, "monotonic", lambda: next(times))
    start = storing.StartLog()
    found = Recovered(10, 1, 2, 3, 4, 5, 6, 7, 8)
    with capture_logs() as events:
        for share in (0.1, 0.25, 0.5, 1.0):
            start.note("reading", share, lambda: found)
    assert [(each["event"], each["percent"], each["messages"], each["retained"]) for each in events] == [
        ("store_reading", 25, 4, 5), ("store_reading", 100, 4, 5),
    ]


def test_progress_is_reported_while_the_log_is_read_and_while_things_are_made(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    for number in range(5_000):
        world.publish(f"t/{number}", "x", retain=True)
    world.turn()
    world.crash()
    shares: dict[str, list[float]] = {"reading": [], "restoring": []}
    for doing, share, retained in world.progress:
        shares[doing].append(share)
        assert 0 < retained <= 5_000
    assert len(shares["reading"]) == 1
    assert shares["restoring"] == sorted(shares["restoring"])
    assert len(shares["restoring"]) == 4
    assert all(0 < share <= 1 for each in shares.values() for share in each)
