"""Fields out of msgpack agree with the msgpack package about what is sound, and about each value."""

import math
import struct
from collections.abc import Iterator
from typing import Any

import msgpack  # type: ignore[import-untyped]
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from msgpack import fallback

from tests.broker.core.bodies import OTHER, Bodies, Pairs, Path, depth, exactly, expected, values_of

LEVELS = 8
NAMES = st.sampled_from(["a", "b", "c", "price", "region", "a rather long name of a field", "ä€", ""])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.sampled_from([0, -1, 127, 128, -32, -33, 255, 256, 2**63 - 1, 2**63, 2**64 - 1, -(2**63)]),
    st.floats(),
    st.floats(width=32),
    st.text(max_size=40),
    st.binary(max_size=40),
    st.builds(msgpack.ExtType, st.integers(0, 127), st.binary(max_size=20)),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=6),
        st.lists(st.tuples(st.one_of(NAMES, SCALARS), inner), max_size=6).map(Pairs),
    ),
    max_leaves=30,
)
MAPS = st.lists(st.tuples(st.one_of(NAMES, NAMES, SCALARS), VALUES), max_size=8).map(Pairs)


class Unsound(Exception):
    """By the judgement of the msgpack package."""


def encode(value: Any) -> bytes:
    """With the pairs of a map as they are."""
    if isinstance(value, Pairs):
        head = msgpack.Packer().pack_map_header(len(value))
        return bytes(head) + b"".join(encode(one) for pair in value for one in pair)
    if isinstance(value, list):
        return bytes(msgpack.Packer().pack_array_header(len(value))) + b"".join(map(encode, value))
    return bytes(msgpack.packb(value))


class Timeless:
    """Extensions as they are: of the types that are reserved the package takes times only, and not all of these."""

    @staticmethod
    def from_bytes(octets: bytes) -> msgpack.ExtType:
        return msgpack.ExtType(0, octets)

    @staticmethod
    def extension(code: int, octets: bytes) -> msgpack.ExtType:
        return msgpack.ExtType(0, octets)


@pytest.fixture(autouse=True, scope="module")
def without_times() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fallback, "Timestamp", Timeless)
        yield


def decode(octets: bytes) -> Any:
    try:
        return fallback.unpackb(
            octets, raw=False, strict_map_key=False, object_pairs_hook=Pairs, ext_hook=Timeless.extension
        )
    except (ValueError, msgpack.UnpackException) as error:
        raise Unsound(str(error)) from error


def paths_in(value: Any) -> list[Path]:
    return sorted({path for path, _ in values_of(value) if len(path) <= LEVELS}) if isinstance(value, Pairs) else []


def agrees(octets: bytes, paths: list[Path]) -> None:
    bodies = Bodies("msgpack", *paths)
    found = bodies.read(octets)
    try:
        value = decode(octets)
    except Unsound:
        assert found is None
        assert sum(bodies.refused) == 1
        return
    if not isinstance(value, Pairs) or depth(value) > LEVELS:
        assert found is None
        assert bodies.refused == ((0, 1) if isinstance(value, Pairs) else (1, 0))
    else:
        assert exactly(found) == exactly(expected(value, paths))


@settings(max_examples=100, deadline=None)
@given(value=MAPS, data=st.data())
def test_each_value_is_found_by_its_path(value: Pairs, data: st.DataObject) -> None:
    octets, paths = encode(value), paths_in(value)
    agrees(octets, paths)
    if paths:
        agrees(octets, data.draw(st.lists(st.sampled_from(paths), max_size=3)))


@settings(max_examples=50, deadline=None)
@given(value=MAPS)
def test_a_body_that_is_cut_short_or_goes_on_has_no_fields(value: Pairs) -> None:
    assume(depth(value) <= LEVELS)
    octets = encode(value)
    bodies = Bodies("msgpack", *paths_in(value))
    for end in range(len(octets)):
        assert bodies.read(octets[:end]) is None
    assert bodies.read(octets + b"\xc0") is None
    assert bodies.refused == (len(octets) + 1, 0)


@settings(max_examples=150, deadline=None)
@given(value=MAPS, changes=st.lists(st.tuples(st.integers(0, 500), st.integers(0, 255)), min_size=1, max_size=3))
def test_damaged_bodies_are_judged_alike(value: Pairs, changes: list[tuple[int, int]]) -> None:
    octets = bytearray(encode(value))
    for at, octet in changes:
        octets[at % len(octets)] = octet
    agrees(bytes(octets), paths_in(value))


@settings(max_examples=150, deadline=None)
@given(octets=st.one_of(st.binary(max_size=12), st.binary(max_size=60).map(lambda rest: b"\x83\xa1a" + rest)))
@example(octets=b"")
@example(octets=b"\xdf\xff\xff\xff\xff\xc0")
@example(octets=b"\x81\xa1a\xdd\xff\xff\xff\xff")
@example(octets=b"\x81\xa1a\xc9\xff\xff\xff\xff\x01")
@example(octets=b"\x81\xa1a\xc1")
def test_random_octets_are_judged_alike(octets: bytes) -> None:
    agrees(octets, [("a",)])


@pytest.mark.parametrize("first", range(256))
def test_every_type_is_judged_alike_asked_for_or_not(first: int) -> None:
    for rest in (b"", b"\x00", b"\x01a", b"\x00\x01a", b"\x00\x00\x00\x01a", bytes(40), b"\xff" * 40):
        agrees(b"\x81\xa1a" + bytes((first,)) + rest, [("a",)])
        agrees(b"\x81\xa1a" + bytes((first,)) + rest, [])


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


def test_of_several_values_of_a_path_the_first_that_is_not_absent_counts() -> None:
    bodies = Bodies("msgpack", ("a",), ("m", "x"), ("m", "y"))
    body = Pairs([
        ("a", None), ("a", math.nan), ("a", 1), ("a", 2), ("m", 5), ("m", Pairs([("x", 1)])),
        ("m", Pairs([("x", 2), ("y", 3)])),
    ])  # fmt: skip
    assert bodies.read(encode(body)) == {("a",): 1, ("m", "x"): 1, ("m", "y"): 3}


def test_nothing_is_read_behind_the_last_field_that_is_asked_for() -> None:
    bodies = Bodies("msgpack", ("a",), ("m", "x"))
    bodies.attributes.release(next(number for number, path in bodies.numbers.items() if path == ("nowhere\0",)))
    assert bodies.read(b"\x84\xa1a\x05\xa1m\x82\xa1x\x06\xc1") == {("a",): 5, ("m", "x"): 6}
    assert bodies.read(b"\x84\xa1a\x05\xa1m\x82\xa1y\x06\xc1") is None
    assert bodies.refused == (1, 0)


@pytest.mark.parametrize("levels", range(1, 12))
def test_a_body_has_eight_levels_at_most(levels: int) -> None:
    names = tuple("abcdefgh")
    bodies = Bodies("msgpack", names[:levels])
    maps = b"".join(b"\x81\xa1" + "abcdefghijkl"[level].encode() for level in range(levels)) + b"\x07"
    found = bodies.read(maps)
    lists = Bodies("msgpack", ("z",)).read(b"\x82\xa1b" + b"\x91" * (levels - 1) + b"\xc0\xa1z\x01")
    keys = Bodies("msgpack", ("z",)).read(b"\x82" + b"\x91" * (levels - 1) + b"\xc0\xc0\xa1z\x01")
    if levels <= LEVELS:
        assert found == {names[:levels]: 7}
        assert lists == keys == {("z",): 1}
    else:
        assert found is lists is keys is None
        assert bodies.refused == (0, 1)


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
