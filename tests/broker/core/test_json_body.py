"""Fields out of JSON: what is sound, and what each value is. What holds of msgpack too is in test_bodies.py."""

import json
import locale
import struct
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from matchcore.selector import Attribute, Source
from tests.broker.core.bodies import OTHER, Bodies, exactly
from tests.broker.core.encodings import JSON


@settings(max_examples=200, deadline=None)
@given(body=st.text('{}[]:,"\\u0123d8c-+.eEtruefalsn \n', max_size=30).map(str.encode))
@example(body=b"")
@example(body=b"\xef\xbb\xbf{}")
@example(body=b"[1]")
@example(body=b"null")
@example(body=b'{"a":1,}')
@example(body=b'{,"a":1}')
@example(body=b'{"a" 1}')
@example(body=b"{1:1}")
@example(body=b'{"a":NaN}')
@example(body=b'{"a":-Infinity}')
def test_random_texts_are_judged_alike(body: bytes) -> None:
    JSON.agrees(body, [("a",)])
    JSON.agrees(b'{"a":' + body + b"}", [("a",)])
    JSON.agrees(b'{"a":' + body + b"}", [])
    JSON.agrees(b'{"a":"' + body + b'"}', [("a",)])


@settings(max_examples=200, deadline=None)
@given(
    sign=st.sampled_from(["", "-"]), whole=st.text("0123456789", min_size=1, max_size=25),
    fraction=st.text("0123456789", max_size=25), exponent=st.one_of(st.none(), st.integers(-400, 400)),
)  # fmt: skip
@example(sign="", whole="9007199254740993", fraction="", exponent=None)
@example(sign="", whole="9007199254740993", fraction="0", exponent=None)
@example(sign="", whole="8", fraction="5", exponent=22)
@example(sign="", whole="123456789012345678", fraction="5", exponent=-300)
@example(sign="-", whole="2", fraction="2250738585072011", exponent=-308)
def test_numbers_are_the_nearest_that_there_are(sign: str, whole: str, fraction: str, exponent: int | None) -> None:
    text = sign + whole + (f".{fraction}" if fraction else "") + (f"e{exponent:+}" if exponent is not None else "")
    JSON.agrees(f'{{"a":{text}}}'.encode(), [("a",)])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None), ("true", True), ("false", False), ("0", 0), ("-0", 0), ("-0.0", -0.0), ("1.0", 1.0),
        ("1e2", 100.0), ("1E+2", 100.0), ("9223372036854775807", 2**63 - 1), ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", float(2**63)), ("-9223372036854775809", -float(2**63)), ("1e400", None),
        ("-1e400", None), ("1e-400", 0.0), ("0e999999999999", 0.0), ("1e999999999999", None), ("1" * 400, None),
        ("0." + "0" * 5_000 + "5e5000", 0.5), ("1" + "0" * 5_000 + "e-5000", 1.0), ('""', ""), ('"\\u0000"', "\0"),
        (r'"\ud83d\ude00"', "\U0001f600"), (r'"\uD83D\uDE00"', "\U0001f600"), (r'"\ud83d"', OTHER),
        (r'"\ude00"', OTHER), (r'"\ud83d\u0041"', OTHER), (r'"\ud83dA"', OTHER), (r'"\u00e4\u20ac\/\\\""', 'ä€/\\"'),
        ("[]", OTHER), ("{}", OTHER),
    ],
)  # fmt: skip
def test_what_each_value_is(text: str, value: Any) -> None:
    found = Bodies("json", ("a",)).read(f'{{"a":{text}}}'.encode())
    assert exactly(found) == exactly({} if value is None else {("a",): value})


@pytest.mark.parametrize(
    "text",
    [
        "01", "-", "+1", ".5", "1.", "1.e1", "1e", "1e+", "0x10", "1_0", "1f", "Infinity", "nan", "tru", "nul", "True",
        "'a'", '"\\x41"', '"\\u12g4"', '"\\u 123"', '"\t"', '"\\', '"\x00"', "", "/**/1", "1//",
    ],
)  # fmt: skip
def test_what_no_value_is(text: str) -> None:
    for paths in ([("a",)], []):
        assert Bodies("json", *paths).read(f'{{"a":{text}}}'.encode()) is None
        assert Bodies("json", *paths).read(f'{{"b":[{text}],"a":1}}'.encode()) is None or text == ""


def test_text_must_be_utf_8_also_where_nobody_asks_for_it() -> None:
    bodies = Bodies("json", ("a",))
    for text in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"plain and long enough \xe2\x82"):
        assert bodies.read(b'{"a":"' + text + b'"}') is None
        assert bodies.read(b'{"b":"' + text + b'","a":1}') is None
        assert bodies.read(b'{"' + text + b'":1,"a":1}') is None
        assert bodies.read(b'{"b":["' + text + b'"],"a":1}') is None


def test_an_infinite_number_counts_as_absent() -> None:
    assert Bodies("json", ("a",)).read(b'{"a":1e400,"a":1}') == {("a",): 1}


@pytest.mark.parametrize("levels", [9, 16, 17, 39])
def test_no_number_of_levels_is_too_many_to_be_refused(levels: int) -> None:
    bodies = Bodies("json", ("z",))
    assert bodies.read(b'{"a":' * levels + b"7" + b"}" * levels) is None
    assert bodies.read(b'{"b":' + b"[" * (levels - 1) + b"1" + b"]" * (levels - 1) + b',"z":1}') is None
    assert bodies.refused == (0, 2)


def test_names_are_compared_with_their_escapes_decoded() -> None:
    bodies = Bodies("json", ("ab",), ("m", "\U0001f600"))
    assert bodies.read(rb'{"\u0061b":"\u0062", "m":{"\ud83d":1, "\ud83d\ude00":"x\ny"}}') == {
        ("ab",): "b", ("m", "\U0001f600"): "x\ny",
    }  # fmt: skip


def test_the_largest_body_that_is_read_has_64_kib_and_all_of_it_may_be_escaped_text() -> None:
    bodies = Bodies("json", ("z",), ("y",))
    for size, read in ((65_536, True), (65_537, False)):
        body = b'{"y":"' + b"\\n" * 100 + b'","z":"' + b"\\n" * ((size - 218) // 2) + b"a" * (size % 2) + b'"}   '
        body = body[: size - len(body) or None]
        assert len(body) == size
        found = bodies.read(body)
        assert (found is not None) is read
        if found:
            assert found["z",] == "\n" * ((size - 218) // 2)
            assert found["y",] == "\n" * 100
    assert bodies.refused == (0, 1)


def test_floats_have_a_point_whatever_the_locale() -> None:
    before = locale.setlocale(locale.LC_NUMERIC)
    body = b'{"a":0.30000000000000000000001}'
    try:
        for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "C"):
            try:
                locale.setlocale(locale.LC_NUMERIC, name)
            except locale.Error:
                continue
            assert Bodies("json", ("a",)).read(body) == {("a",): 0.3}
    finally:
        locale.setlocale(locale.LC_NUMERIC, before)


@settings(max_examples=140, deadline=None)
@given(bits=st.integers(0, 2**64 - 1))
def test_every_float_is_read_as_it_was_written(bits: int) -> None:
    (value,) = struct.unpack(">d", bits.to_bytes(8, "big"))
    assume(value == value and abs(value) != float("inf"))
    for text in (repr(value), f"{value:.17e}", f"{value:.25e}"):
        found = Bodies("json", ("a",)).read(f'{{"a":{text}}}'.encode())
        assert exactly(found) == exactly({("a",): float(text)})


def test_a_name_has_the_meaning_of_its_place_and_of_the_attributes_that_there_are() -> None:
    bodies = Bodies("json", ("a",), ("m", "a"), ("m", "n", "a"))
    for body in (
        b'{"a":1,"m":{"a":2,"n":{"a":3}}}', b'{"m":{"a":2,"n":{"a":3}},"a":1}', b'{"m":{"n":{"a":3},"a":2},"a":1}'
    ):  # fmt: skip
        for _ in range(2):
            assert bodies.read(body) == {("a",): 1, ("m", "a"): 2, ("m", "n", "a"): 3}
    body = b'{"a":1,"m":{"a":2,"n":{"a":3}}}'
    numbers = {path: number for number, path in bodies.numbers.items()}
    bodies.attributes.release(numbers["m", "a"])
    assert bodies.read(body) == {("a",): 1, ("m", "n", "a"): 3}
    bodies.numbers[bodies.attributes.acquire(Attribute(Source.PAYLOAD, ("m", "n")))] = ("m", "n")
    assert bodies.read(body) == {("a",): 1, ("m", "n"): OTHER, ("m", "n", "a"): 3}


def test_a_body_may_have_more_names_than_are_remembered() -> None:
    names = [f"name{'-' * (number % 40)}{number}" for number in range(300)]
    bodies = Bodies("json", *((name,) for name in names[::3]))
    body = json.dumps({name: number for number, name in enumerate(names)}).encode()
    for _ in range(2):
        assert bodies.read(body) == {(name,): 3 * number for number, name in enumerate(names[::3])}
