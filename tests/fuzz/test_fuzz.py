"""Random octets and damaged frames, some thousands in every run; `make fuzz` goes on for longer.

Most random octets die at the first frame, so other cases damage real frames, or put strange values into sound
ones. What once broke something stays as an example.
"""

import json
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.fuzz import mqtt_selectors, selectors
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


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), st.text(max_size=8), st.binary(max_size=8),
    st.sampled_from([*range(-1, 20), 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1]),
    st.sampled_from(["client", "user", "password", "syntax", "group", "no_echo", "credit", "after", "slow_policy"]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    # Keys of any kind, arrays among them: msgpack allows what Python's dict does not.
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(SCALARS, st.tuples(SCALARS)), inner, max_size=4),
        inner.map(lambda value: msgpack.ExtType(5, msgpack.packb(value))),
    ),
    max_leaves=12,
)


@st.composite
def strange(draw: st.DrawFn) -> bytes:
    """Well-formed frames of known types, whose fields are anything."""
    octets = b""
    for kind in draw(st.lists(st.integers(1, 16), min_size=1, max_size=4)):
        body = msgpack.packb([kind, *draw(st.lists(VALUES, max_size=6))])
        octets += len(body).to_bytes(4, "big") + body
    return octets


PIECES = st.sampled_from([1, 2, 3, 7, 64, 100_000])


@settings(max_examples=200, deadline=None)
@given(octets=st.binary(max_size=600), piece=PIECES, greet=st.booleans())
def test_any_octets_are_answered_or_closed_and_nobody_else_suffers(octets: bytes, piece: int, greet: bool) -> None:
    try_octets(octets, piece=piece, greet=greet)


@settings(max_examples=400, deadline=None)
@given(octets=damaged(), piece=PIECES, greet=st.booleans())
def test_damaged_frames_are_answered_or_closed_and_nobody_else_suffers(
    octets: bytes, piece: int, greet: bool
) -> None:
    try_octets(octets, piece=piece, greet=greet)


AFTER = "cfffffffffffffffff"  # 2**64 - 1 messages, which a signed counter does not hold


@settings(max_examples=400, deadline=None)
@given(octets=strange(), piece=PIECES, greet=st.booleans())
@example(octets=bytes.fromhex("00000007930101819100c0"), piece=64, greet=False)  # an array as a key
@example(octets=bytes.fromhex("000000169506c001a16181a56166746572" + AFTER), piece=64, greet=True)
@example(octets=bytes.fromhex("000000069406c001a1610000000d9408c001" + AFTER), piece=64, greet=True)
def test_strange_fields_are_answered_or_closed_and_nobody_else_suffers(
    octets: bytes, piece: int, greet: bool
) -> None:
    try_octets(octets, piece=piece, greet=greet)


TEXTS = st.one_of(
    st.binary(max_size=40),
    st.lists(st.sampled_from([b"a", b"b", b".", b"/", b"*", b"+", b"#", b"$", b"\0", b"\xff"]), max_size=20).map(
        b"".join
    ),
)


@settings(max_examples=400, deadline=None)
@given(filter=TEXTS, filter_syntax=st.sampled_from(SYNTAXES), topic=TEXTS, topic_syntax=st.sampled_from(SYNTAXES))
def test_any_two_texts_match_or_not_as_the_oracle_says(
    filter: bytes, filter_syntax: str, topic: bytes, topic_syntax: str
) -> None:
    try_texts(filter, filter_syntax, topic, topic_syntax)


WORDS = [
    "a", "b", "value", "payload.a", "$qos", "$words", "$word[1]", "$client", "'a'", "'%a_'", "1", "-1.5e3", "25", " ",
    " AND ", " OR ", "NOT ", "(", ")", ",", "=", "<>", "<", ">=", " LIKE ", " IN ", " BETWEEN ", " IS NULL", "&", "?",
    "AT LEAST 1 OF ", "TRUE", "\"", "'", "é", "%", "#", "/", "+", "$share/g/",
]  # fmt: skip
SELECTORS = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=12).map("".join),
    st.sampled_from(
        ["a = 'a' AND value > 20", "NOT (a = 'b')", "b IS NULL OR value BETWEEN 1 AND 30", "$client = 'p'"]
    ),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20),
)
SUFFIXES = st.one_of(st.sampled_from(["a=a", "value>20&a=a", "value<=30", "b=b&&", "$qos=0", ""]), SELECTORS)
FILTERS = st.one_of(
    st.sampled_from(["a", "#", "+/b", "s/+/t", "$share/g/#", "$share/g/a", "", "$share/g", "a#"]), SELECTORS
)


@settings(max_examples=200, deadline=None)
@given(
    version=st.sampled_from([V3, V5]), filter=FILTERS, suffix=st.none() | SUFFIXES, where=st.none() | SELECTORS,
    topic=st.sampled_from(mqtt_selectors.TOPICS),
    fields=st.lists(st.tuples(st.sampled_from(["a", "b", "value", "payload.a", "$qos"]),
                              st.sampled_from(["a", "b", "25", "1e1", "", "nan"])), max_size=3),
)  # fmt: skip
def test_a_subscription_by_content_is_refused_or_gets_what_its_selectors_are_true_of(
    version: Version, filter: str, suffix: str | None, where: str | None, topic: str, fields: list[tuple[str, str]]
) -> None:
    whole = filter if suffix is None else f"{filter}?{suffix}"
    mqtt_selectors.try_selectors(version, whole, where if version is V5 else None, topic, fields)


@pytest.mark.parametrize("seed", mqtt_selectors.seeds())
def test_the_seeds_of_selectors_are_tries(seed: bytes) -> None:
    mqtt_selectors.try_octets(seed)
    for at in range(len(seed)):
        mqtt_selectors.try_octets(seed[:at] + bytes([seed[at] ^ 1]) + seed[at + 1 :])


def test_a_broker_that_does_not_ask_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mqtt_selectors, "is_true", lambda *arguments: True)
    with pytest.raises(AssertionError):
        mqtt_selectors.try_selectors(V5, "a?value>25", None, "a", [("value", "1")])


@st.composite
def changed_text(draw: st.DrawFn, seeds: tuple[bytes, ...]) -> bytes:
    """A sound text with some bytes changed, left out or put in."""
    octets = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(octets)))
        piece = st.one_of(st.binary(max_size=2), st.sampled_from([b"NOT ", b"(", b")", b"'", b" OR ", b".", b"9"]))
        octets[at : at + draw(st.integers(0, 3))] = draw(piece)
    return bytes(octets)


@settings(max_examples=200, deadline=None)
@given(octets=st.one_of(TEXTS, changed_text(selectors.TEXTS)))
@example(octets=b"NOT " * 16 + b"a")
@example(octets=b"a LIKE '" + b"%_" * 60 + b"'")
def test_any_text_is_a_selector_or_refused_at_a_byte(octets: bytes) -> None:
    selectors.try_octets(octets)


@settings(max_examples=200, deadline=None)
@given(octets=st.one_of(TEXTS, changed_text(selectors.SUFFIXES)))
def test_any_suffix_is_a_selector_or_refused_at_a_byte(octets: bytes) -> None:
    selectors.try_suffix(octets)
