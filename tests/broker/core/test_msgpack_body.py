"""Fields out of msgpack: what is sound, and what each value is. What holds of JSON too is in test_bodies.py."""

import math
import struct
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.broker.core.bodies import OTHER, Bodies, Pairs, exactly
from tests.broker.core.encodings import LEVELS, MSGPACK


@settings(max_examples=100, deadline=None)
@given(octets=st.one_of(st.binary(max_size=12), st.binary(max_size=60).map(lambda rest: b"\x83\xa1a" + rest)))
@example(octets=b"")
@example(octets=b"\xdf\xff\xff\xff\xff\xc0")
@example(octets=b"\x81\xa1a\xdd\xff\xff\xff\xff")
@example(octets=b"\x81\xa1a\xc9\xff\xff\xff\xff\x01")
@example(octets=b"\x81\xa1a\xc1")
def test_random_octets_are_judged_alike(octets: bytes) -> None:
    MSGPACK.agrees(octets, [("a",)])


@pytest.mark.parametrize("first", range(256))
def test_every_type_is_judged_alike_asked_for_or_not(first: int) -> None:
    for rest in (b"", b"\x00", b"\x01a", b"\x00\x01a", b"\x00\x00\x00\x01a", bytes(40), b"\xff" * 40):
        MSGPACK.agrees(b"\x81\xa1a" + bytes((first,)) + rest, [("a",)])
        MSGPACK.agrees(b"\x81\xa1a" + bytes((first,)) + rest, [])


@pytest.mark.parametrize(
    ("encoded", "value"),
    [
        (b"\xc0", None), (b"\xc2", False), (b"\xc3", True), (b"\x7f", 127), (b"\xe0", -32), (b"\xcc\xff", 255),
        (b"\xcd\xff\xff", 65_535), (b"\xce\xff\xff\xff\xff", 2**32 - 1), (b"\xcf" + b"\x7f" + b"\xff" * 7, 2**63 - 1),
        (b"\xcf" + b"\xff" * 8, float(2**64)), (b"\xd0\x80", -128), (b"\xd1\x80\x00", -32_768),
        (b"\xd2\x80\x00\x00\x00", -(2**31)), (b"\xd3\x80" + bytes(7), -(2**63)),
        (b"\xca" + struct.pack(">f", 0.5), 0.5), (b"\xcb" + struct.pack(">d", -0.0), -0.0),
        (b"\xcb" + struct.pack(">d", math.nan), None), (b"\xca" + struct.pack(">f", math.nan), None),
        (b"\xcb" + struct.pack(">d", math.inf), math.inf), (b"\xa0", ""), (b"\xd9\x02\xc3\xa4", "ä"),
        (b"\xda\x00\x01a", "a"), (b"\xdb\x00\x00\x00\x01a", "a"), (b"\xc4\x01a", OTHER), (b"\xd6\xff\0\0\0\0", OTHER),
        (b"\xc7\x01\x05a", OTHER), (b"\x90", OTHER), (b"\x80", OTHER), (b"\x81\xa1x\x01", OTHER),
    ],
)  # fmt: skip
def test_what_each_type_is(encoded: bytes, value: Any) -> None:
    found = Bodies("msgpack", ("a",)).read(b"\x81\xa1a" + encoded)
    assert exactly(found) == exactly({} if value is None else {("a",): value})


@pytest.mark.parametrize("levels", range(1, 12))
def test_the_levels_of_a_key_count_too(levels: int) -> None:
    bodies = Bodies("msgpack", ("z",))
    found = bodies.read(b"\x82" + b"\x91" * (levels - 1) + b"\xc0\xc0\xa1z\x01")
    assert (found, bodies.refused) == (({("z",): 1}, (0, 0)) if levels <= LEVELS else (None, (0, 1)))


def test_no_number_counts_as_absent() -> None:
    body = Pairs([("a", math.nan), ("a", 1)])
    assert Bodies("msgpack", ("a",)).read(MSGPACK.encode(body)) == {("a",): 1}


def test_the_largest_body_that_is_read_has_64_kib() -> None:
    bodies = Bodies("msgpack", ("z",))
    for size, read in ((65_536, True), (65_537, False)):
        octets = b"\x82\xa1x\xc5" + struct.pack(">H", size - 9) + bytes(size - 9) + b"\xa1z\x01"
        assert len(octets) == size
        assert (bodies.read(octets) == {("z",): 1}) is read
    assert bodies.refused == (0, 1)
    assert bodies.read(b"\x91" * 60_000) is None
    assert bodies.read(b"\x81\xa1x" + b"\x91" * 60_000 + b"\xc0") is None
    assert bodies.refused == (1, 2)
