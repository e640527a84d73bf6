"""JSON objects to columns: what is not odd is what Python's json reads; tests/without_spark has the rest."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matchcore.json_columns import KEYS_MOST, KINDS, PRESENT, JsonColumns

KEYS = {"b": "boolean", "i": "integer", "r": "real", "t": "text", "p": "presence"}
TYPES: dict[str, tuple[type, ...]] = {"b": (bool,), "i": (int,), "r": (int, float), "t": (str,)}
NAMES = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "a", "é😀", '"\\\n', "\ud800"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2), max_leaves=4,
)  # fmt: skip


def read(*payloads: bytes, keys: dict[str, str] = KEYS) -> tuple[list[dict[str, Any]], list[bool]]:
    """(rows of what is not absent, which are odd)."""
    columns = JsonColumns([key.encode() for key in keys], bytes(KINDS.index(kind) for kind in keys.values()))
    ends = np.cumsum([0, *map(len, payloads)]).astype(np.int32)
    found, odd = columns.read(ends, np.frombuffer(b"".join(payloads), np.uint8))
    rows: list[dict[str, Any]] = [{} for _ in payloads]
    for (key, kind), (valid, *arrays) in zip(keys.items(), found, strict=True):
        for row in range(len(payloads)):
            if kind == "presence":
                if valid[row]:
                    rows[row][key] = PRESENT[valid[row]]
            elif valid[row >> 3] >> (row & 7) & 1:
                rows[row][key] = value(kind, arrays, row)
    return rows, odd.tolist()


def value(kind: str, arrays: list[Any], row: int) -> Any:
    if kind == "text":
        offsets, octets = arrays
        return octets[offsets[row] : offsets[row + 1]].tobytes().decode()
    return bool(arrays[0][row >> 3] >> (row & 7) & 1) if kind == "boolean" else arrays[0][row].item()


def fits(key: str, found: Any) -> bool:
    if found is None or key == "p":
        return True
    if type(found) not in TYPES.get(key, ()):
        return False
    return "\ud800" not in found if key == "t" else key != "i" or -(2**63) <= found < 2**63


@settings(deadline=None, max_examples=100)
@given(st.lists(st.dictionaries(st.sampled_from([*KEYS, "?"]), VALUES, max_size=6), max_size=6), st.booleans())
def test_what_is_not_odd_is_what_python_reads(objects: list[dict[str, Any]], ascii: bool) -> None:
    payloads = [json.dumps(each, ensure_ascii=ascii).encode("utf-8", "surrogatepass") for each in objects]
    for each, row, odd in zip(objects, *read(*payloads), strict=True):
        known = {key: found for key, found in each.items() if found is not None}
        if not odd:
            present = {key: NAMES[type(found)] if key == "p" else found for key, found in known.items()}
            assert row == present
            assert all(type(row[key]) is float for key in row if key == "r")
        elif ascii and not any(isinstance(found, list | dict) for found in each.values()):
            assert "?" in known or not all(fits(key, found) for key, found in each.items())


@pytest.mark.parametrize(
    "payload",
    [b"", b" ", b"[]", b"{", b"}", b'{"i":1', b'{"i":1}}', b'{"i":1}{', b'{"i":1,}', b'{,"i":1}', b'{"i" 1}', b'{"i":}',
     b'{"i":1 "r":2}', b'{"i":01}', b'{"i":1.0}', b'{"i":9223372036854775808}', b'{"r":NaN}', b'{"r":1e999}', b'{"r":-',
     b'{"i":1,"i":1}', b'{"\\u0069":1}', b'{"t":"\xff"}', b'{"t":"\xed\xa0\x80"}', b'{"t":"\\ud800"}', b'{"t":"a\nb"}',
     b'{"t":"', b'{"t":"\\', b'{"t":"\\u00', b'{"b":tru', b'{"b":1}', b'{"?":0}', b'{"p":[1,2}',
     b'{"p":[[[[[[[[[[]]]]]]]]]]}', b"\xef\xbb\xbf{}", b'{"p":[' + b"1," * 3_000 + b"1]}"],
)  # fmt: skip
def test_each_of_these_is_odd_and_its_neighbours_are_not(payload: bytes) -> None:
    good = b' { "t" : "\\u00e9\\n" , "r":-0.5e1,"i":-9223372036854775808,"?":null, "b": true, "p":{} }\r\n'
    whole = {"t": "é\n", "r": -5.0, "i": -(2**63), "b": True, "p": "object"}
    rows, odd = read(good, payload, good)
    assert (rows[0], rows[2], odd) == (whole, whole, [False, True, False])


def test_many_keys_are_found_in_any_order() -> None:
    keys = {f"key-{number}": "integer" for number in range(KEYS_MOST)}
    forth = {name: number for number, name in enumerate(keys)}
    back = dict(reversed(forth.items()))
    rows, odd = read(json.dumps(forth).encode(), json.dumps(back).encode(), b"{}", keys=keys)
    assert (rows, odd) == ([forth, forth, {}], [False] * 3)


def test_what_cannot_be_read_is_refused() -> None:
    columns = JsonColumns([b"i"], b"\x01")
    for ends in ([0, 5], [3, 2], [-1, 1], []):
        with pytest.raises(ValueError, match="do not ascend within 4 octets"):
            columns.read(np.array(ends, np.int32), np.zeros(4, np.uint8))
    for keys, kinds in (([b"i", b"i"], b"\0\0"), ([b"i"], b""), ([b"i"], b"\x09")):
        with pytest.raises(ValueError, match="kind"):
            JsonColumns(keys, kinds)
    assert columns.read(np.zeros(1, np.int32), np.zeros(0, np.uint8))[1].tolist() == []
