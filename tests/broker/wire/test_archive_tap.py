"""The tap: what passes on a route, as columns (wire/tap.pxd)."""

import ctypes
from typing import Any

import pytest

from fanlight_broker.protocols.mqtt.format import MQTT_3_1_1, MQTT_5_0
from fanlight_broker.protocols.native.format import FORMAT
from fanlight_broker.wire.archive_tap import ArchiveTap, Columns
from fanlight_broker.wire.fanout import publish
from fanlight_broker.wire.ledger import Ledger
from fanlight_broker.wire.message import Message
from fanlight_broker.wire.outbox import Outbox, Owner
from fanlight_broker.wire.route import Route


class Taken:
    """A tap on a route without subscribers, and what it has handed over."""

    def __init__(self, *, rows_max: int = 4, bytes_max: int = 1 << 20, batch_bytes_max: int = 1 << 16) -> None:
        self.batches: list[Columns] = []
        self.begun = 0
        self.tap = ArchiveTap(
            rows_max=rows_max, bytes_max=bytes_max, batch_bytes_max=batch_bytes_max, begun=self._begun,
            full=self.batches.append,
        )
        self.ledger = Ledger(1 << 20, lambda: None)
        self.route = Route(b"\1a", [], [])
        self.route.tap = self.tap

    def _begun(self) -> None:
        self.begun += 1

    def publish(self, topic: bytes, payload: bytes, outbox: Outbox | None = None, **said: Any) -> None:
        publish(self.route, self.ledger, outbox, Message(said.pop("format", MQTT_3_1_1), topic, 1, payload, **said))


def octets(columns: Columns, name: str) -> bytes:
    address, size = columns.buffers()[name]
    return ctypes.string_at(address, size)


def test_a_batch_has_the_messages_column_by_column() -> None:
    taken = Taken()
    taken.tap.utc, taken.ledger.now = 1_000_000.0, 2.5
    owner = Owner()
    outbox = Outbox(taken.ledger, 1000, "pause", owner)
    taken.publish(b"a/b", b"first", outbox)
    taken.publish(b"c", b"", qos=1, retain=True)
    taken.publish(b"d", b"third", outbox)
    assert taken.batches == []
    assert taken.begun == 1
    taken.tap.flush()
    (batch,) = taken.batches
    assert (batch.rows, batch.first, batch.end) == (3, 0, 3)
    assert octets(batch, "topics") == b"a/bcd"
    assert octets(batch, "values") == b"firstthird"
    assert list(memoryview(octets(batch, "topic_ends")).cast("i")) == [0, 3, 4, 5]
    assert list(memoryview(octets(batch, "value_ends")).cast("i")) == [0, 5, 5, 10]
    assert list(memoryview(octets(batch, "times")).cast("q")) == [1_000_002_500_000] * 3
    assert batch.owners == [owner, None]
    assert list(memoryview(octets(batch, "publishers")).cast("i")) == [0, 1, 0]
    assert (octets(batch, "qos"), octets(batch, "retain"), octets(batch, "syntax")) == (
        b"\0\1\0", b"\0\1\0", b"\1\1\1",
    )
    assert batch.extras == {}


def test_a_batch_is_handed_over_when_it_has_so_many_messages_or_bytes() -> None:
    taken = Taken(rows_max=3, batch_bytes_max=500)
    for number in range(7):
        taken.publish(b"a", b"%d" % number)
    assert [batch.rows for batch in taken.batches] == [3, 3]
    taken.publish(b"a", bytes(500))
    assert [(batch.first, batch.rows) for batch in taken.batches] == [(0, 3), (3, 3), (6, 2)]
    assert taken.begun == 3
    taken.tap.flush()
    assert len(taken.batches) == 3


def test_a_message_that_is_kept_whole_counts_for_a_batch_with_its_fields() -> None:
    taken = Taken(rows_max=100, batch_bytes_max=5_000)
    while not taken.batches:
        taken.publish(b"a", b"", format=MQTT_5_0, fields=b"\x03" + bytes(1_000))
    assert 1_000 * taken.tap.taken < taken.tap.bytes
    assert taken.tap.taken <= 5


def test_what_does_not_fit_is_dropped_and_counted_until_room_is_made() -> None:
    taken = Taken(bytes_max=1_000)
    for _ in range(4):
        taken.publish(b"a", bytes(400))
    assert (taken.tap.taken, taken.tap.dropped) == (3, 1)
    assert taken.tap.crowded
    taken.tap.flush()
    (batch,) = taken.batches
    assert batch.octets == taken.tap.bytes
    taken.tap.free_bytes(batch.octets)
    assert taken.tap.bytes == 0
    taken.publish(b"a", b"again")
    assert (taken.tap.taken, taken.tap.dropped) == (4, 1)
    taken.tap.flush()
    assert taken.batches[-1].first == 3


def test_a_topic_that_is_not_utf_8_is_left_out_and_counted() -> None:
    taken = Taken()
    taken.publish(b"a\xff", b"x")
    assert (taken.tap.taken, taken.tap.unspellable, taken.tap.batch) == (0, 1, None)


def test_a_message_is_kept_whole_only_if_it_says_more_than_topic_and_payload() -> None:
    taken = Taken(rows_max=100)
    plain = b"\xa1a\xc4\x01x"
    for fields in (plain, plain + b"\xc0", plain + b"\xc0\x01", plain + b"\xc0\xc0\xc0", plain + b"\xc0\x01\xc0"):
        taken.publish(b"a", b"x", format=FORMAT, fields=fields, format_data=7)
    taken.publish(b"a", b"x", format=MQTT_5_0)
    # The borrowed message of a lane has its payload among its fields; these point elsewhere, and say more for it.
    taken.tap.flush()
    taken.publish(b"a", b"x", format=MQTT_5_0, fields=b"\x03\0\1t")
    taken.tap.flush()
    assert 5 not in taken.batches[0].extras
    assert [message.fields for message in taken.batches[1].extras.values()] == [b"\x03\0\1t"]


def test_a_batch_of_more_bytes_than_its_ends_can_count_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 1073741824"):
        Taken(batch_bytes_max=1 << 31)
