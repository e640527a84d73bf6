"""Messages in the columns of a record batch: their fields are those of the messages that they were."""

import json
from typing import Any

import msgpack  # type: ignore[import-untyped]
import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_archive import MESSAGE
from fanlight_broker.core.field_reader import FieldReader
from fanlight_broker.core.topics import SYNTAXES
from fanlight_broker.wire.message import Message
from matchcore.body_reader import BODY_FORMATS, BodyCounts, body_format
from matchcore.field_numbers import FieldNumbers
from matchcore.field_values import values_of
from matchcore.fields import Attributes
from matchcore.kleene import Untyped, attribute_of, holds, typed
from matchcore.message_rows import MessageReader, MessageRows
from matchcore.row_screener import RowScreener
from matchcore.where import parse_where
from tests.broker.core.bodies import OTHER
from tests.broker.wire.formats import LineFormat

NAMES = ("a", "b", "", "a longer name", "ä")
KNOWN = ("$words", "$bytes", "$qos", "$retain", "$time", "$client", "$content_type", "$user", "$word[1]", "$word[3]")
BODY_NAMES = ("payload.n", "payload.deep.n")
LINE = LineFormat("line")
BODIES = [b"", b"{", b'{"n": 7}', b'{"n": null, "n": 2.5}', b'{"deep": {"n": "t"}, "n": true}', b'{"n": [1]}', b"[1]",
          msgpack.packb({"n": -1}), msgpack.packb({"deep": {"n": 2**63}, "n": 0.1}), b'{"n": 9007199254740993}',
          b'{"x": "\\u00e4", "n": "\\n"}', b'{"n": "' + "ä".encode() * 20 + b'"}', b"x" * 65_537]  # fmt: skip
KINDS = [None, "", "text/plain", "application/json", "application/msgpack", "Application/X+Json"]

Row = dict[str, Any]
ROWS = st.fixed_dictionaries(
    {
        "timestamp": st.integers(-(10**15), 10**16),
        "topic": st.lists(st.sampled_from(["a", "bc", "/", ".", "$x", "ä"]), max_size=6).map("".join),
        "value": st.sampled_from(BODIES),
        "headers": st.one_of(
            st.none(),
            st.lists(
                st.tuples(
                    st.sampled_from(NAMES),
                    st.one_of(
                        st.none(), st.text(max_size=9).map(str.encode), st.binary(max_size=9), st.just(bytes(300)),
                        st.sampled_from([b"1", b"2.5", b"9007199254740993", b"nan", b"true", b"1e400"]),
                    ),
                ), max_size=5,
            ),
        ),
        "client": st.sampled_from([None, "", "cl\u00e4ra"]),
        "syntax": st.sampled_from(SYNTAXES),
        "qos": st.integers(0, 2),
        "retain": st.booleans(),
        "content_type": st.sampled_from(KINDS),
        "format": st.sampled_from([0, *BODY_FORMATS.values()]),
    }
)  # fmt: skip


def batch_of(rows: list[Row]) -> Any:
    columns = {name: [row[name] for row in rows] for name in ("topic", "value", "client", "syntax", "content_type")}
    return pa.record_batch(
        {
            "timestamp": pa.array([row["timestamp"] for row in rows], pa.timestamp("us", tz="UTC")),
            "headers": pa.array(
                [None if row["headers"] is None else [{"key": key, "value": value} for key, value in row["headers"]]
                 for row in rows],
                MESSAGE.field("headers").type,
            ),
            "qos": pa.array([row["qos"] for row in rows], pa.int8()),
            "retain": pa.array([row["retain"] for row in rows], pa.bool_()),
            "protocol": ["native"] * len(rows),
            "reply_topic": pa.nulls(len(rows), pa.string()),
            "correlation": pa.nulls(len(rows), pa.binary()),
            **{name: pa.array(values, MESSAGE.field(name).type) for name, values in columns.items()},
        },
        schema=MESSAGE,
    )  # fmt: skip


class Live:
    """The reader of live messages, for what lies in a body and in a topic."""

    def __init__(self) -> None:
        self.attributes = Attributes()
        names = (*BODY_NAMES, *KNOWN)
        self.names = {self.attributes.acquire(attribute_of(name)): name for name in names}
        self.reader = FieldReader(self.attributes)

    def of(self, row: Row) -> dict[str, Any]:
        format = row["format"] if row["content_type"] is None else body_format(row["content_type"])
        message = Message(LINE, row["topic"].encode(), SYNTAXES.index(row["syntax"]), row["value"], qos=row["qos"],
                          retain=row["retain"])  # fmt: skip
        self.reader.read_fields(message, format, None, row["timestamp"] / 1e6)
        return {self.names[number]: value for number, value in self.reader.values().items()}


LIVE = Live()


def expected(row: Row) -> dict[str, Any]:
    found = LIVE.of(row)
    if row["content_type"] is not None:
        found["$content_type"] = row["content_type"]
    if row["client"]:
        found["$client"] = row["client"]
    for name, value in row["headers"] or ():
        if value is not None and name not in found:
            try:
                found[name] = Untyped(value.decode())
            except UnicodeDecodeError:
                found[name] = OTHER
    return found


def with_types(values: dict[str, Any]) -> dict[str, tuple[type, Any]]:
    return {name: (type(value), value) for name, value in values.items()}


@settings(max_examples=200, deadline=None)
@given(rows=st.lists(ROWS, max_size=8), skipped=st.integers(0, 3), with_formats=st.booleans())
def test_a_row_has_the_fields_of_the_message_that_it_was(rows: list[Row], skipped: int, with_formats: bool) -> None:
    if not with_formats:
        rows = [row | {"format": 0} for row in rows]
    attributes = Attributes()
    names = {attributes.acquire(attribute_of(name)): name for name in (*NAMES, *KNOWN, *BODY_NAMES)}
    counts = BodyCounts()
    reader = MessageReader(attributes, counts)
    formats = bytes(row["format"] for row in rows[skipped:]) if with_formats else None
    found = MessageRows(batch_of(rows).slice(skipped), formats)
    assert len(found) == len(rows[skipped:])
    before = LIVE.reader.bodies.decoded, LIVE.reader.bodies.malformed, LIVE.reader.bodies.too_large
    for number, row in enumerate(rows[skipped:]):
        values = {names[place]: value for place, value in values_of(reader.read_row(found, number)).items()}
        assert with_types(values) == with_types(expected(row))
    after = LIVE.reader.bodies.decoded, LIVE.reader.bodies.malformed, LIVE.reader.bodies.too_large
    counted = counts.decoded, counts.malformed, counts.too_large
    assert counted == tuple(end - start for start, end in zip(before, after, strict=True))
    with pytest.raises(IndexError):
        reader.read_row(found, len(found))


WHERES = ["a = 1", "b <> 'x'", "payload.n > 2 AND a IS NULL", "NOT payload.deep.n = 't'", "$words > 2 OR $qos = 1",
          "$time < 0", "$client LIKE 'cl%'", "a IN (1, 2.5, 'true') OR $word[1] = 'ä'"]  # fmt: skip


@settings(max_examples=140, deadline=None)
@given(rows=st.lists(ROWS, max_size=8), where=st.sampled_from(WHERES))
def test_a_selector_is_true_of_the_rows_of_whose_fields_it_is_true(rows: list[Row], where: str) -> None:
    counts = BodyCounts()
    screener = RowScreener(parse_where(where), counts)
    assert screener.asks_bodies == ("payload" in where)
    found = screener.true_of(MessageRows(batch_of(rows), bytes(row["format"] for row in rows)))
    assert found.tolist() == [holds(parse_where(where), expected(row)) is True for row in rows]
    again = counts.decoded, counts.malformed, counts.too_large
    screener.true_of(MessageRows(batch_of(rows), bytes(row["format"] for row in rows)))
    assert (counts.decoded, counts.malformed, counts.too_large) == tuple(2 * count for count in again)


@settings(max_examples=140, deadline=None)
@given(batches=st.lists(st.lists(ROWS, max_size=5), max_size=3))
def test_the_numbers_of_fields_are_those_that_comparisons_see(batches: list[list[Row]]) -> None:
    names = ("a", "b", "payload.n", "payload.deep.n", "$time", "$bytes")
    numbers = FieldNumbers([attribute_of(name) for name in names])
    rows = [row for rows in batches for row in rows]
    first = 0
    for some in batches:
        numbers.add(MessageRows(batch_of(some), bytes(row["format"] for row in some)), first)
        first += len(some)
    for name, column in zip(names, numbers.columns(len(rows)), strict=True):
        values = [expected(row).get(name) for row in rows]
        values = [typed(value, 0) if isinstance(value, Untyped) else value for value in values]
        known = [isinstance(value, int | float) and not isinstance(value, bool) for value in values]
        if column is None:
            assert not any(known)
            continue
        assert list(column.known) == known
        for value, is_known, kept in zip(values, known, column.values.tolist(), strict=True):
            assert not is_known or value == kept, name


def test_integers_beyond_what_floats_hold_stay_exact_beside_floats() -> None:
    row = {"timestamp": 0, "topic": "t", "headers": None, "client": None, "syntax": "amqp", "qos": 0, "retain": False,
           "content_type": "application/json", "format": 0}  # fmt: skip
    bodies = [2**53 + 1, 0.5, -(2**53) - 1, "x", 2**53]
    numbers = FieldNumbers([attribute_of("payload.n")])
    numbers.add(MessageRows(batch_of([row | {"value": json.dumps({"n": n}).encode()} for n in bodies])), 0)
    (column,) = numbers.columns(5)
    assert column is not None
    assert column.values.tolist() == [2**53 + 1, 0.5, -(2**53) - 1, 0, 2**53]
    assert [type(value) for value in column.values.tolist()[:3]] == [int, float, int]
    assert column.known.tolist() == [True, True, True, False, True]


SOUND = batch_of([{"timestamp": 0, "topic": "t", "value": b"", "headers": [("a", b"1")], "client": None,
                   "syntax": "amqp", "qos": 0, "retain": False, "content_type": None}])  # fmt: skip


def replaced(name: str, values: Any) -> Any:
    place = SOUND.schema.get_field_index(name)
    return SOUND.set_column(place, pa.field(name, values.type), values)


@pytest.mark.parametrize(
    ("batch", "formats", "error", "reason"),
    [
        (SOUND.drop_columns(["topic"]), None, ValueError, "a column 'topic', and these have none"),
        (replaced("topic", pa.array([b"t"])), None, TypeError, "'topic' is binary, and not utf8"),
        (replaced("topic", pa.array(["t"]).dictionary_encode()), None, TypeError, "a dictionary"),
        (replaced("qos", pa.array([1])), None, TypeError, "int64, and not int8"),
        (replaced("timestamp", pa.array([1], pa.timestamp("us"))), None, TypeError, "timestamp"),
        (replaced("headers", pa.array([["a"]])), None, TypeError, "no list of keys and values"),
        (replaced("headers", pa.array([[{"key": "a", "value": "b"}]])), None, TypeError, "'headers.value' is utf8"),
        (SOUND, b"", ValueError, "formats of 0 bodies"),
        (pa.array([1]), None, TypeError, "record batch"),
        ([1], None, TypeError, "record batch of Arrow, not list"),
    ],
)
def test_what_is_no_batch_of_messages_is_refused(batch: Any, formats: bytes | None, error: Any, reason: str) -> None:
    with pytest.raises(error, match=reason):
        MessageRows(batch, formats)


@pytest.mark.parametrize("ends", [[0, 1, 0], [0, 2, 1]])
def test_offsets_that_do_not_ascend_are_refused(ends: list[int]) -> None:
    two = pa.concat_batches([SOUND, SOUND])
    place = two.schema.get_field_index("topic")
    buffers = [None, pa.array(ends, pa.int32()).buffers()[1], pa.array(["xx"]).buffers()[2]]
    with pytest.raises(ValueError, match="'topic' is no valid Arrow array: its offsets do not ascend"):
        MessageRows(two.set_column(place, two.schema.field(place), pa.Array.from_buffers(pa.string(), 2, buffers)))


def test_a_list_that_leads_behind_its_pairs_is_refused() -> None:
    place = SOUND.schema.get_field_index("headers")
    headers = SOUND.column(place)
    buffers = [None, pa.array([0, 2, 1], pa.int32()).buffers()[1]]
    longer = pa.Array.from_buffers(headers.type, 2, buffers, children=[headers.values]).slice(0, 1)
    with pytest.raises(ValueError, match="it has 1 pairs, and 2 are needed"):
        MessageRows(SOUND.set_column(place, SOUND.schema.field(place), longer))
