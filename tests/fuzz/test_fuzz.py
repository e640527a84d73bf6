"""Random octets and damaged frames, some thousands in every run; `make fuzz` goes on for longer.

Most random octets die at the first frame, so half of the cases start from real frames and damage them.
"""

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.native import try_octets
from tests.fuzz.topics import SYNTAXES, try_texts

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
VECTORS: dict[str, Any] = json.loads((DOCS / "native-protocol-vectors.json").read_text(encoding="utf-8"))
REAL_FRAMES = [
    bytes.fromhex(vector["bytes"])
    for vector in [*VECTORS["frames"], *VECTORS["invalid"]]
    if vector.get("direction", "client") != "broker"
]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Real frames, one behind the other, with some octets changed, left out or put in."""
    octets = bytearray(b"".join(draw(st.lists(st.sampled_from(REAL_FRAMES), min_size=1, max_size=6))))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(octets)))
        removed = draw(st.integers(0, 3))
        octets[at : at + removed] = draw(st.binary(max_size=3))
    return bytes(octets)


PIECES = st.sampled_from([1, 2, 3, 7, 64, 100_000])


@settings(max_examples=300, deadline=None)
@given(octets=st.binary(max_size=600), piece=PIECES, greet=st.booleans())
def test_any_octets_are_answered_or_closed_and_nobody_else_suffers(octets: bytes, piece: int, greet: bool) -> None:
    try_octets(octets, piece=piece, greet=greet)


@settings(max_examples=1000, deadline=None)
@given(octets=damaged(), piece=PIECES, greet=st.booleans())
def test_damaged_frames_are_answered_or_closed_and_nobody_else_suffers(
    octets: bytes, piece: int, greet: bool
) -> None:
    try_octets(octets, piece=piece, greet=greet)


TEXTS = st.one_of(
    st.binary(max_size=40),
    st.lists(st.sampled_from([b"a", b"b", b".", b"/", b"*", b"+", b"#", b"$", b"\0", b"\xff"]), max_size=20).map(
        b"".join
    ),
)


@settings(max_examples=1000, deadline=None)
@given(filter=TEXTS, filter_syntax=st.sampled_from(SYNTAXES), topic=TEXTS, topic_syntax=st.sampled_from(SYNTAXES))
def test_any_two_texts_match_or_not_as_the_oracle_says(
    filter: bytes, filter_syntax: str, topic: bytes, topic_syntax: str
) -> None:
    try_texts(filter, filter_syntax, topic, topic_syntax)
