"""SUBSCRIBE and UNSUBSCRIBE without options, read in C: as the codec and frames.parse read them."""

from typing import Any

import msgpack  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.core.errors import FanlightError
from fanlight_broker.protocols.native import frames
from fanlight_broker.protocols.native.codec import decode
from fanlight_broker.protocols.native.plain_request import plain_request

SYNTAX_ALONE = ([{}], [{"syntax": 0}], [{"syntax": 1}])
VALUES = (
    st.none() | st.booleans() | st.integers(-1, 2**64 - 1) | st.sampled_from([0, 1, 2**32 - 1, 2**32])
    | st.text(max_size=40) | st.binary(max_size=40) | st.just([]) | st.just({}) | st.floats(allow_nan=False)
)


def plainly(body: bytes) -> tuple[int, int | None, int, bytes, int] | None:
    """None: it is refused, or no plain one."""
    values = decode(body)
    try:
        frame = frames.parse(values)
    except FanlightError:
        return None
    if isinstance(frame, frames.SubscribeFrame) and (len(values) == 4 or values[4:] in SYNTAX_ALONE):
        return frames.Type.SUBSCRIBE, frame.request, frame.subscription, frame.filter, frame.syntax or 0
    if isinstance(frame, frames.UnsubscribeFrame) and len(values) == 3:
        return frames.Type.UNSUBSCRIBE, frame.request, frame.subscription, b"", 0
    return None


@settings(max_examples=600, deadline=None)
@given(st.sampled_from([6, 8]), st.lists(VALUES, max_size=5))
def test_it_reads_what_the_codec_reads(kind: int, values: list[Any]) -> None:
    body = msgpack.packb([kind, *values], use_bin_type=True)
    assert plain_request(body) == plainly(body)


@given(
    st.dictionaries(
        st.sampled_from(["syntax", "syntaxes", "group", "no_echo", "x"]),
        st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from(["g"]), max_size=3,
    )
)
def test_it_reads_the_option_that_the_codec_reads(options: dict[str, Any]) -> None:
    body = msgpack.packb([6, 1, 2, "a", options])
    assert plain_request(body) == plainly(body)


@settings(max_examples=200, deadline=None)
@given(
    st.none() | st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.text(max_size=300) | st.binary(max_size=300)
)
def test_plain_ones_are_not_left_to_the_codec(request: int | None, number: int, filter: str | bytes) -> None:
    octets = filter.encode() if isinstance(filter, str) else filter
    for syntax in (0, 1):
        body = msgpack.packb([6, request, number, filter, {"syntax": syntax}], use_bin_type=True)
        assert plain_request(body) == plainly(body) == (6, request, number, octets, syntax)
    for values in ([6, request, number, filter], [8, request, number]):
        body = msgpack.packb(values, use_bin_type=True)
        expected = (values[0], request, number, octets if values[0] == 6 else b"", 0)
        assert plain_request(body) == plainly(body) == expected


@pytest.mark.parametrize(
    "values",
    [
        [6, 1, 2, "a", {"syntax": 2}], [6, 1, 2, "a", {"group": "g"}], [6, 1, 2, "a", {"syntax": 1, "group": "g"}],
        [6, 1, 2, "a", None], [6, 1, 2, "a", {"syntax": True}], [6, 1, 2, "a", {}, 1], [6, 1, 2], [8, 1, 2, 3],
        [9, 1, 2],
    ],
)
def test_others_are_left_to_it(values: list[Any]) -> None:
    assert plain_request(msgpack.packb(values)) is None


def test_no_cut_is_read_beyond_its_end() -> None:
    body = msgpack.packb([6, 2**32 - 1, 2**32 - 1, "a" * 40])
    assert [plain_request(body[:size]) for size in range(len(body))] == [None] * len(body)
    assert plain_request(body + b"\0") is None
