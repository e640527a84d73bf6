"""What audit messages say of subscriptions and their time, and who is a recipient by it."""

import json
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pytest

from fanlight_archive import MESSAGE
from fanlight_spark.recipients import Recipients, asks_content
from fanlight_spark.trail import END, Trail, TrailError, said_by

START = (0, "started", {"version": "1"})


def row(number: int, client: str, filter: str, **more: Any) -> dict[str, Any]:
    return {
        "id": number, "client": client, "user": "", "filter": filter, "syntax": "amqp", "group": None, "qos": 0,
        "no_echo": False, "session": False, "number": 1, "connection": 7, "protocol": "native", "kept": False,
        "partly": 0, **more,
    }  # fmt: skip


def times(trail: Trail) -> list[tuple[str, int, int]]:
    return [(each.filter, each.begin, each.end) for each in trail.subscriptions]


def messages(*given: tuple[int, str, str, int]) -> Any:
    """A batch of (offset, topic, publisher, QoS)."""
    columns: dict[str, list[Any]] = {name: [None] * len(given) for name in MESSAGE.names}
    columns |= {
        "topic": [each[1] for each in given], "client": [each[2] for each in given], "qos": [each[3] for each in given],
        "syntax": ["amqp"] * len(given), "timestamp": [0] * len(given), "value": [b""] * len(given),
        "retain": [False] * len(given),
    }  # fmt: skip
    batch = pa.record_batch(columns, schema=MESSAGE)
    return batch.append_column(pa.field("offset", pa.int64()), pa.array([each[0] for each in given], pa.int64()))


def outcomes(trail: Trail, *given: tuple[int, str, str, int]) -> list[tuple[int, str, str]]:
    found = Recipients(trail).of(messages(*given)).to_pylist()
    return [(each["offset"], each["client"], each["outcome"]) for each in found]


def test_a_subscription_is_there_between_its_two_messages() -> None:
    trail = Trail.of([START, (2, "subscribe", row(0, "a", "x")), (5, "unsubscribe", row(0, "a", "x", dropped=3))])
    assert times(trail) == [("x", 2, 5)]
    assert trail.subscriptions[0].dropped == 3
    assert outcomes(trail, (1, "x", "p", 0), (3, "x", "p", 0), (4, "y", "p", 0), (6, "x", "p", 0)) == [(3, "a", "sent")]


def test_a_connection_takes_its_subscriptions_along_and_a_session_keeps_them() -> None:
    session = row(1, "s", "x", session=True, kept=True, protocol="mqtt 5.0", connection=8, qos=1)
    trail = Trail.of([
        START,
        (1, "connect", {"connection": 7, "client": "a"}), (2, "connect", {"connection": 8, "client": "s"}),
        (3, "subscribe", row(0, "a", "x")), (4, "subscribe", session),
        (6, "disconnect", {"connection": 7, "client": "a"}), (7, "disconnect", {"connection": 8, "client": "s"}),
        (9, "unsubscribe", row(0, "a", "x")),  # swept some turns later
    ])  # fmt: skip
    assert times(trail) == [("x", 3, 6), ("x", 4, END)]
    said = outcomes(trail, (5, "x", "p", 1), (8, "x", "p", 1), (10, "x", "p", 0))
    assert said == [(5, "a", "sent"), (5, "s", "sent"), (8, "s", "queued"), (10, "s", "missed")]


def test_a_restart_ends_all_and_what_is_restored_is_there_from_then_on() -> None:
    kept = row(0, "s", "x", session=True, kept=True, connection=None)
    trail = Trail.of([
        START, (1, "subscribe", kept), (2, "subscribe", row(1, "a", "x")),
        (5, "started", {}), (7, "subscribe", kept | {"restored": True}), (8, "restored", {}),
    ])  # fmt: skip
    assert times(trail) == [("x", 1, 5), ("x", 2, 5), ("x", 5, END)]
    assert outcomes(trail, (6, "x", "p", 0)) == [(6, "s", "missed")]


def test_other_options_take_the_place_of_those_before() -> None:
    trail = Trail.of([START, (1, "subscribe", row(0, "a", "x")), (4, "subscribe", row(0, "a", "x", qos=1))])
    assert times(trail) == [("x", 1, 4), ("x", 4, END)]


def test_an_end_without_a_beginning_was_there_from_the_start() -> None:
    trail = Trail.of([(3, "started", {}), (9, "unsubscribe", row(0, "a", "x"))])
    assert [(each.begin, each.end, each.assumed) for each in trail.subscriptions] == [(3, 9, True)]


def test_groups_queues_no_echo_sessions_and_selectors() -> None:
    trail = Trail.of([
        START,
        (1, "subscribe", row(0, "g", "x", group="g")), (1, "subscribe", row(1, "q", "x", protocol="queue", group="q")),
        (1, "subscribe", row(2, "p", "x", no_echo=True)), (1, "subscribe", row(3, "w", "x", where="n > 1")),
        (1, "subscribe", row(4, "t", "acme", namespace="acme")),
        (1, "connect", {"connection": 9, "client": "s"}),
        (1, "subscribe", row(5, "s", "x", session=True)), (1, "subscribe", row(6, "s", "#", session=True)),
    ])  # fmt: skip
    assert asks_content(trail)
    found = outcomes(trail, (2, "x", "p", 0), (3, "$namespace.acme.acme", "p", 0))
    assert found == [(2, "g", "group"), (2, "q", "queued"), (2, "s", "sent"), (3, "t", "sent")]


def test_what_cannot_be_read_is_named_by_its_offset() -> None:
    with pytest.raises(TrailError, match="offset 4 is no JSON"):
        list(said_by([(4, "$audit/started", b"{")]))
    with pytest.raises(TrailError, match="offset 5 is no JSON object"):
        list(said_by([(5, "$audit/started", b"1")]))
    with pytest.raises(TrailError, match="offset 6, subscribe: KeyError"):
        Trail.of([(6, "subscribe", json.loads("{}"))])


def test_lost_messages_are_counted() -> None:
    assert Trail.of([START, (1, "lost", {"count": 3})]).lost == 3
    assert Trail.of([]).first is None
