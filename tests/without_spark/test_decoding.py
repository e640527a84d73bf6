"""Decoders on Arrow's arrays: JSON as Python's json reads it, whatever bytes come; and the other formats."""

import json
import math
import random
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pa: Any = pytest.importorskip("pyarrow")

TYPES = {"i": "bigint", "n": "int", "d": "double", "b": "boolean", "s": "string", "t": "date", "l": "array<bigint>",
         "o": "struct<x: double, y: string>"}  # fmt: skip
FLAT = {name: kind for name, kind in TYPES.items() if name not in "lo"}  # which compiled code reads
BIG = 2**63
NUMBERS = st.sampled_from([0, 1, -5, 2**31, BIG - 1, BIG, -BIG - 1, 10**30, 1.5, -0.0, 1e300, 0.1])
TEXTS = st.sampled_from(["", "a", "é€😀", "line\nfeed", "nul\x00", '"quoted\\"', "{", "}\n{", "2018-01-02", "\u2028"])
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.sampled_from("xyz"), SCALARS, max_size=3)
FITTING = {
    "i": st.integers(-BIG, BIG - 1), "n": st.integers(-(2**31), 2**31 - 1), "b": st.booleans(), "s": TEXTS,
    "t": st.dates().map(str),
    "d": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-100, 100),
    "l": st.lists(st.none() | st.integers(-9, 9), max_size=3),
    "o": st.fixed_dictionaries({}, optional={"x": st.none() | st.floats(-9, 9), "y": st.none() | TEXTS}),
}  # fmt: skip
GOOD = st.fixed_dictionaries({}, optional={name: st.none() | values for name, values in FITTING.items()})
ODD = st.dictionaries(st.sampled_from([*TYPES, "new", "ä", ""]), VALUES, max_size=5)
RAW = st.sampled_from(
    [
        b"", b" ", b"{}", b" {}\n", b"{}{}", b'{"i":1}\n{"i":2}', b'{"i":1', b',"s":"x"}', b'{"i":1,"i":2}',
        b'{"d":NaN}', b'{"d":-Infinity}', b'{"o":{"x":Infinity}}', b'{"new":NaN}', b'{"d":1e400}', b'{"i":01}',
        b'{"s":"\xff"}', b'{"s":"\xed\xa0\x80"}', b'{"s":"\\ud83d"}', b'{"s":"\\ud83d\\ude00"}', b'{"s":"a\nb"}',
        b'{"s":"a\tb"}', b'{"s":"\\u0000"}', b'{"s":"x\x00"}', b'{"i":1}\x00', b'{"i":1} x', b"[1]", b"null", b'"{}"',
        b"{'i':1}", b'{"i":1,}', b'{"i":+1}', b'{"d":.5}', b'{"d":1.}', b'{"i":1E2}', b'{"i":-0}', b'{"d":-0}',
        b"\xef\xbb\xbf{}", b'{"i": /**/ 1}', b'{"b":True}', b"{" * 70 + b"}" * 70,
        b'{"l":' + b"[" * 99 + b"]" * 99 + b"}",
        b'{"new":' + b"[" * 5_000 + b"]" * 5_000 + b"}", b'{"new":' + b"[" * 200_000 + b"}",
        b'{"i":' + b"9" * 5_000 + b"}", b'{"n":2147483648}',
        b'{\n  "i": 1,\r\n  "s": "x"\n}', b'{"\\u0069":7}', b'{"d":123456789012345678901234567890}',
        b'{"d":' + b"9" * 400 + b"}",
    ]
)  # fmt: skip


@st.composite
def payloads(draw: Any) -> bytes:
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return bytes(draw(RAW))
    record = draw(ODD if kind == 1 else GOOD)
    text = json.dumps(record, ensure_ascii=draw(st.booleans()), indent=2 if kind == 2 else None).encode()
    if kind == 3 and text:  # one byte is another
        at = draw(st.integers(0, len(text) - 1))
        text = text[:at] + bytes([draw(st.sampled_from(b'{}[],:"\\\n 09eE-x\xc3'))]) + text[at + 1 :]
    return bytes(text)


def oracle(payload: bytes, types: dict[str, str] = TYPES) -> tuple[dict[str, Any], set[tuple[str, str]]] | None:
    """(the fields, the drift) by Python's json and what the page says of types; None: it does not decode."""

    def refuse(_: str) -> Any:
        raise ValueError

    try:
        found = json.loads(payload.decode(), parse_constant=refuse)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    drift = {(name, "missing") for name in types if found.get(name) is None}
    drift |= {(name, "new") for name in found if name not in types and found[name] is not None}
    row: dict[str, Any] = {}
    for name in types:
        value = found.get(name)
        row[name] = value
        if value is None:
            continue
        if name in "in":
            bound = BIG if name == "i" else 2**31
            good = type(value) is int and -bound <= value < bound
        elif name == "d":
            good, row[name] = real(value)
        elif name == "t":
            good, row[name] = day(value)
        elif name in "bs":
            good = type(value) is (bool if name == "b" else str) and encodable(value)
        elif name == "l":
            good = type(value) is list and all(
                each is None or (type(each) is int and -BIG <= each < BIG) for each in value
            )
        else:
            good = type(value) is dict
            x, y = (value.get("x"), value.get("y")) if good else (None, None)
            fine, x = (True, None) if x is None else real(x)
            good = good and fine and (y is None or (type(y) is str and encodable(y)))
            row[name] = {"x": x, "y": y}
            drift |= {("o.z", "new")} if good and value.get("z") is not None else set()
        if not good:
            return None
    return row, drift


def real(value: Any) -> tuple[bool, float | None]:
    if type(value) not in (int, float):
        return False, None
    try:
        return math.isfinite(float(value)), float(value)
    except OverflowError:
        return False, None


def day(value: Any) -> tuple[bool, Any]:
    try:
        return True, date.fromisoformat(value if len(value) == 10 else "")
    except (TypeError, ValueError):
        return False, None


def encodable(value: Any) -> bool:
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return False
    return True


def json_decoder(types: dict[str, str] = TYPES) -> Any:
    from fanlight_spark.decoding.file import parse
    from fanlight_spark.decoding.table import format_of

    fields = "\n".join(f'{name} = "{kind}"' for name, kind in types.items())
    text = f'[[decoder]]\ntable = "t"\nfilter = "#"\nformat = "json"\n[decoder.fields]\n{fields}\n'
    return format_of(parse(text)["t"])


def check(values: list[bytes], decoder: Any, types: dict[str, str] = TYPES) -> None:
    found = decoder.decode(pa.array(values, pa.binary()))
    columns = [column.to_pylist() for column in (*found.columns, found.problems, found.drift)]
    assert len(columns[0]) == len(values)
    for value, (*fields, problem, drift) in zip(values, zip(*columns, strict=True), strict=True):
        row = dict(zip(types, fields, strict=True))
        expected = oracle(value, types)
        assert (problem is None) == (expected is not None), (value[:200], problem)
        if expected is None:
            assert row == dict.fromkeys(types), value[:200]
        else:
            assert (row, {(note["field"], note["change"]) for note in drift or ()}) == expected, value[:200]


@settings(deadline=None, max_examples=100)
@given(st.lists(payloads(), max_size=12))
def test_json_is_what_pythons_json_reads_whatever_bytes_come(values: list[bytes]) -> None:
    check(values, json_decoder())
    flat = json_decoder(FLAT)
    check(values, flat, FLAT)
    check(values * 20, flat, FLAT)  # so many that what is unknown is learnt
    check(values, flat, FLAT)


@settings(deadline=None, max_examples=15)
@given(st.lists(payloads(), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_bad_payloads_among_many_leave_the_others_their_rows(odd: list[bytes], dice: random.Random) -> None:
    values = [json.dumps({"i": number, "n": number, "d": number / 3, "b": True, "s": f"{number}", "l": [number],
                          "o": {"x": 1}}).encode() for number in range(700)]  # fmt: skip
    for value in odd:
        values[dice.randrange(len(values))] = value
    for types in (TYPES, FLAT):
        decoder = json_decoder(types)
        check(values, decoder, types)
        check(values, decoder, types)  # once more, with what it has learnt of unknown fields


def decoder_of(format: str, fields: str, more: str = "", folder: Any = None) -> Any:
    from pathlib import Path

    from fanlight_spark.decoding.file import parse

    text = f'[[decoder]]\ntable = "t"\nfilter = "#"\nformat = "{format}"\n{more}\n[decoder.fields]\n{fields}\n'
    return parse(text, folder=folder or Path())["t"]


def decoded(decoder: Any, *values: bytes) -> list[tuple[Any, ...]]:
    """A row for each payload: its fields, the problem, and the drift as (field, change, found)."""
    from fanlight_spark.decoding.table import format_of

    found = format_of(decoder).decode(pa.array(values, pa.binary()))
    drift = [[tuple(note.values()) for note in notes or ()] for notes in found.drift.to_pylist()]
    return list(zip(*(column.to_pylist() for column in (*found.columns, found.problems)), drift, strict=True))


def test_a_problem_names_the_field_or_the_byte() -> None:
    decoder = decoder_of("json", 'price = "double"\nlegs = "array<struct<size: int>>"\nwhen = "date"')
    whole = b'{"price":1,"legs":[{"size":2}],"when":"2018-01-02"}'
    bad = [
        b"", b'{"price":1', b'{"price":"\xff"}', b"[]", b'{"price":NaN}', whole.replace(b":1,", b':"1",'),
        whole.replace(b":2}", b":2.5}"), whole.replace(b":2}", b":2147483648}"), whole.replace(b"-02", b"-32"),
    ]  # fmt: skip
    assert [row[-2] for row in decoded(decoder, whole, *bad)] == [
        None, "empty", "not JSON: Expecting ',' delimiter, byte 10", "not UTF-8, byte 10",
        "array in place of an object", "not JSON: NaN is none of its numbers", "price: string in place of double",
        "legs[].size: 2.5 in place of int", "legs[].size: 2147483648 is out of range of int",
        "when: '2018-01-32' is no date",
    ]  # fmt: skip


def test_drift_is_reported_by_field_and_a_field_of_another_type_is_no_null() -> None:
    decoder = decoder_of("json", 'price = "double"\nsize = "bigint"\nnote = { type = "string", optional = true }')
    rows = decoded(
        decoder, b'{"price":1,"size":2}', b'{"price":1,"venue":"x","odd":null}', b'{"price":"1","size":2}',
        b'{"price":1,"size":2,"venue":"y"}',
    )  # fmt: skip
    assert [row[-1] for row in rows] == [
        [], [("size", "missing", None), ("venue", "new", "string")], [("price", "type", "string")],
        [("venue", "new", "string")],
    ]  # fmt: skip
    assert [row[-2] is None for row in rows] == [True, True, False, True]


@pytest.mark.parametrize("more", ["", '\nl = { type = "array<bigint>", optional = true }'])
def test_unknown_fields_of_their_own_in_each_payload_take_bounded_memory(more: str) -> None:
    from fanlight_spark.decoding.json_flat import LEARNT_MAX
    from fanlight_spark.decoding.table import format_of

    rows: Any = format_of(decoder_of("json", 'a = "bigint"' + more))
    values = [json.dumps({"a": number, f"k{number}": number}).encode() for number in range(300)]
    found = rows.decode(pa.array(values, pa.binary()))
    assert found.columns[0].to_pylist() == list(range(300))
    assert all(len(notes) == 1 for notes in found.drift.to_pylist())
    assert 0 < len((rows if more else rows._flat)._learnt) <= LEARNT_MAX


@settings(deadline=None, max_examples=40)
@given(st.lists(ODD | GOOD, max_size=6), st.binary(max_size=3))
def test_msgpack_is_what_its_library_reads(records: list[dict[str, Any]], tail: bytes) -> None:
    import msgpack

    fields = "\n".join(f'{name} = "{kind}"' for name, kind in TYPES.items())
    packable = [record for record in records if fits_msgpack(record)]
    values = [msgpack.packb(record) for record in packable]
    rows = decoded(decoder_of("msgpack", fields), *values, *(value + tail for value in values))
    for number, row in enumerate(rows):
        record = packable[number % len(values)]
        behind = number >= len(values) and tail
        expected = None if behind else oracle(json.dumps(record).encode())
        assert (row[-2] is None) == (expected is not None)
        if expected is not None:
            assert dict(zip(TYPES, row, strict=False)) == expected[0]


def fits_msgpack(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(fits_msgpack, value.values()))
    if isinstance(value, list):
        return all(map(fits_msgpack, value))
    return type(value) is not int or -BIG <= value < 2 * BIG


def test_msgpack_has_binaries_times_and_numbers_that_json_has_not() -> None:
    from datetime import UTC, datetime

    import msgpack

    at = datetime(2018, 3, 4, 5, 6, 7, 891_000, tzinfo=UTC)
    decoder = decoder_of("msgpack", 'raw = "binary"\nat = "timestamp"\nd = "double"')
    good = msgpack.packb({"raw": b"\xff", "at": at, "d": float("inf")}, datetime=True)
    bad = [b"", b"\xc1", good + b"\x00", msgpack.packb([1]), b"\x81\xa1a\xa1\xff", b"\x81\x80\x01"]
    rows = decoded(decoder, good, *bad)
    assert rows[0] == (b"\xff", at, float("inf"), None, [])
    assert [row[-2] for row in rows[1:]] == [
        "empty", "not MessagePack: FormatError", "not MessagePack: 1 bytes behind it", "array in place of a map",
        "not MessagePack: a text is not UTF-8, its byte 0", "not MessagePack: unhashable type: 'dict'",
    ]  # fmt: skip


def test_csv_is_one_record_a_payload() -> None:
    decoder = decoder_of("csv", 'name = "string"\nsize = "bigint"\nprice = "double"\nok = "boolean"', 'delimiter = ";"')
    rows = decoded(
        decoder, b'"a;""b""\nc";1;2.5;true\r\n', b";;;", b"a;1", b"a;1;2;false;more", b"a;x;2;true", b"a;1_0;2;true",
        b"a;1;2;true\nb;1;2;true", b'"a;1', b"\xff;1;2;true", b"",
    )  # fmt: skip
    assert rows[0] == ('a;"b"\nc', 1, 2.5, True, None, [])
    assert rows[1][:5] == ("", None, None, None, None)
    assert rows[2][-1] == [("price", "missing", None), ("ok", "missing", None)]
    assert rows[3][-1] == [("column 5", "new", "string")]
    assert [row[-2] for row in rows[4:]] == [
        "size: string in place of bigint", "size: string in place of bigint", "2 lines in place of one",
        "not CSV: unexpected end of data", "not UTF-8, byte 0", "empty",
    ]  # fmt: skip


def test_text_is_the_payload() -> None:
    rows = decoded(decoder_of("text", 'line = "string"'), "é\n".encode(), b"", b"a\xff")
    assert [row[:2] for row in rows] == [("é\n", None), ("", None), (None, "not UTF-8, byte 1")]


def test_avro_is_read_by_the_writers_schema(tmp_path: Any) -> None:
    import io
    from datetime import UTC, datetime
    from decimal import Decimal

    fastavro: Any = pytest.importorskip("fastavro")
    leg = {"type": "record", "name": "Leg",
           "fields": [{"name": "n", "type": "int"}, {"name": "side", "type": "Side"}]}  # fmt: skip
    schema = {
        "type": "record", "name": "Quote", "fields": [
            {"name": "ticker", "type": "string"}, {"name": "size", "type": ["null", "long"]},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
            {"name": "side", "type": {"type": "enum", "name": "Side", "symbols": ["BUY", "SELL"]}},
            {"name": "legs", "type": {"type": "array", "items": leg}}, {"name": "seen", "type": "long"},
        ],
    }  # fmt: skip
    (tmp_path / "quote.avsc").write_text(json.dumps(schema), encoding="utf-8")
    at = datetime(2018, 3, 4, 5, 6, 7, tzinfo=UTC)
    record = {"ticker": "A", "size": None, "at": at, "price": Decimal("1.25"), "side": "SELL",
              "legs": [{"n": 1, "side": "BUY"}], "seen": 1_520_000_000}  # fmt: skip
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), record)
    more = 'schema = "quote.avsc"\nframing = "confluent"\nschema_id = 7\ntime = "at"'
    decoder = decoder_of("avro", 'seen = { type = "timestamp", unit = "s" }', more, tmp_path)
    framed = b"\x00\x00\x00\x00\x07" + out.getvalue()
    other = b"\x00\x00\x00\x00\x08" + out.getvalue()
    rows = decoded(decoder, framed, framed[:-3], framed + b"x", other, out.getvalue())
    seen = datetime.fromtimestamp(1_520_000_000, UTC)
    assert rows[0] == ("A", None, at, Decimal("1.25"), "SELL", [{"n": 1, "side": "BUY"}], seen, None, [])
    assert "not Avro of this schema" in rows[1][-2]
    assert [row[-2] for row in rows[2:]] == [
        "not Avro of this schema: 1 bytes behind it", "of schema 8, not 7", "not framed as Confluent's clients do",
    ]  # fmt: skip


def test_protobuf_is_read_by_its_descriptors(tmp_path: Any) -> None:
    from datetime import UTC, datetime

    pytest.importorskip("google.protobuf")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="q.proto", package="m", syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    file.enum_type.add(name="Side").value.add(name="BUY", number=0)
    leg = file.message_type.add(name="Leg")
    leg.field.add(name="n", number=1, type=kinds.TYPE_INT32, label=1)
    quote = file.message_type.add(name="Quote")
    quote.field.add(name="ticker", number=1, type=kinds.TYPE_STRING, label=1)
    quote.field.add(name="at", number=2, type=kinds.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp", label=1)
    quote.field.add(name="legs", number=3, type=kinds.TYPE_MESSAGE, type_name=".m.Leg", label=3)
    quote.field.add(name="side", number=4, type=kinds.TYPE_ENUM, type_name=".m.Side", label=1)
    quote.field.add(name="big", number=5, type=kinds.TYPE_UINT64, label=1)
    descriptors = descriptor_pb2.FileDescriptorSet()
    timestamp_pb2.DESCRIPTOR.CopyToProto(descriptors.file.add())
    descriptors.file.append(file)
    (tmp_path / "q.desc").write_bytes(descriptors.SerializeToString())
    pool = descriptor_pool.DescriptorPool()
    for each in descriptors.file:
        pool.Add(each)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("m.Quote"))(ticker="A", big=2**64 - 1)
    made.at.FromDatetime(at := datetime(2018, 3, 4, 5, 6, 7, tzinfo=UTC))
    made.legs.add(n=-1)
    decoder = decoder_of("protobuf", "", 'descriptor = "q.desc"\nmessage = "m.Quote"\ntime = "at"', tmp_path)
    good = made.SerializeToString()
    rows = decoded(decoder, good, b"", good + b"\x48\x01", good[:-1])
    assert rows[0] == ("A", at, [{"n": -1}], "BUY", 2**64 - 1, None, [])
    assert rows[1] == ("", None, [], "BUY", 0, None, [])
    assert rows[2][-1] == [("field 9", "new", "number")]
    assert rows[3][-2].startswith("not Protobuf of this message")
