"""Walking over msgpack agrees with the msgpack package about what is sound, and with Python about UTF-8."""

from typing import Any

import msgpack  # type: ignore[import-untyped]
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fanlight_broker.wire.msgpack import check, valid_utf8

DEPTH = 8

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(),
    st.text(max_size=40),
    st.binary(max_size=40),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=20), st.dictionaries(st.text(max_size=5), inner, max_size=20)),
    max_leaves=40,
)


class Unsound(Exception):
    """By the judgement of the msgpack package."""


def decode(octets: bytes) -> Any:
    def extension(code: int, data: bytes) -> Any:
        raise Unsound("an extension")

    try:
        value = msgpack.unpackb(
            octets, raw=False, strict_map_key=False, ext_hook=extension, object_pairs_hook=Pairs
        )
    except (ValueError, UnicodeDecodeError, msgpack.UnpackException) as error:
        raise Unsound(str(error)) from error
    if isinstance(value, msgpack.Timestamp):
        raise Unsound("an extension")
    return value


class Pairs(list[Any]):
    """A map: any value may be a key."""


def depth(value: Any) -> int:
    if isinstance(value, Pairs):
        return 1 + max((depth(item) for pair in value for item in pair), default=0)
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


def has_extension(value: Any) -> bool:
    if isinstance(value, Pairs):
        return any(has_extension(item) for pair in value for item in pair)
    return any(map(has_extension, value)) if isinstance(value, list) else isinstance(value, msgpack.Timestamp)


def agrees(octets: bytes) -> None:
    verdict = check(octets, DEPTH)
    try:
        value = decode(octets)
    except Unsound:
        assert verdict is not None
        return
    if depth(value) > DEPTH or has_extension(value):
        assert verdict is not None
    else:
        assert verdict is None


@settings(max_examples=200, deadline=None)
@given(value=VALUES)
def test_what_the_package_encodes_is_sound(value: Any) -> None:
    octets = msgpack.packb(value)
    agrees(octets)
    assert check(octets, 64) is None
    assert check(octets + b"\xc0", 64) == "1 bytes left over behind the value"
    for end in range(max(0, len(octets) - 12), len(octets)):
        assert check(octets[:end], 64) == "a value goes on behind the end of the frame"


@settings(max_examples=600, deadline=None)
@given(octets=st.one_of(st.binary(max_size=12), st.binary(max_size=60)))
@example(octets=b"")
@example(octets=b"\xc1")
@example(octets=b"\xdf\xff\xff\xff\xff\xc0")
@example(octets=b"\xdd\xff\xff\xff\xff")
@example(octets=b"\x81\x90\xc0")
@example(octets=b"\xd6\xff\x00\x00\x00\x01")
def test_random_octets_are_judged_alike(octets: bytes) -> None:
    agrees(octets)


@settings(max_examples=280, deadline=None)
@given(value=VALUES, at=st.integers(0, 200), octet=st.integers(0, 255))
def test_damaged_values_are_judged_alike(value: Any, at: int, octet: int) -> None:
    octets = bytearray(msgpack.packb(value))
    octets[at % len(octets)] = octet
    agrees(bytes(octets))


@pytest.mark.parametrize("first", range(256))
def test_every_first_octet_is_judged_alike(first: int) -> None:
    for rest in (b"", b"\x00", b"\x01a", b"\x00\x01a", b"\x00\x00\x00\x01a", bytes(40), b"\xff" * 40):
        agrees(bytes((first,)) + rest)


@pytest.mark.parametrize("levels", range(12))
def test_depth_is_counted_in_levels(levels: int) -> None:
    arrays = b"\x91" * levels + b"\xc0"
    maps = b"\x81\xa1k" * levels + b"\xc0"
    for octets in (arrays, maps):
        assert (check(octets, DEPTH) is None) is (levels <= DEPTH)
        assert check(octets, levels) is None
    assert check(b"\x91" * 1_000_000, DEPTH) == "nested too deep"


TEXTS = st.one_of(
    st.binary(max_size=12),
    st.text(max_size=12).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.lists(st.sampled_from([0x41, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xE0, 0xED, 0xF0, 0xF4, 0xF5])).map(
        bytes
    ),
)


@settings(max_examples=600, deadline=None)
@given(text=TEXTS, before=st.integers(0, 9))
def test_utf8_is_what_python_says_it_is(text: bytes, before: int) -> None:
    text = b"a" * before + text  # at every place within the eight octets that are looked at together
    try:
        text.decode()
    except UnicodeDecodeError:
        assert not valid_utf8(text)
    else:
        assert valid_utf8(text)


def test_every_sequence_of_two_octets_is_judged_as_python_does() -> None:
    for first in range(128, 256):
        for second in range(256):
            for rest in (b"", b"\x80", b"\x80\x80"):
                text = bytes((first, second)) + rest
                try:
                    text.decode()
                    good = True
                except UnicodeDecodeError:
                    good = False
                assert valid_utf8(text) is good, text
