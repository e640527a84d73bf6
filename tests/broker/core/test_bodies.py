"""What holds of bodies in both encodings: fields agree with what a package reads, whole, cut short and damaged."""

import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.broker.core.bodies import Bodies, Pairs, depth, exactly, expected
from tests.broker.core.encodings import JSON, JSON_WITH_BLANKS, LEVELS, MSGPACK, Encoding

BOTH = pytest.mark.parametrize("encoding", [MSGPACK, JSON, JSON_WITH_BLANKS], ids=["msgpack", "json", "blanks"])
DAMAGES = 12  # of each body that is drawn: to draw one costs far more than to read it


@BOTH
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_each_value_is_found_by_its_path(encoding: Encoding, data: st.DataObject) -> None:
    value = data.draw(encoding.maps)
    body, paths = encoding.encode(value), encoding.paths_in(value)
    encoding.agrees(body, paths)
    if paths:
        encoding.agrees(body, data.draw(st.lists(st.sampled_from(paths), max_size=3)))


@BOTH
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_a_body_that_is_cut_short_or_goes_on_has_no_fields(encoding: Encoding, data: st.DataObject) -> None:
    value = data.draw(encoding.maps)
    assume(depth(value) <= LEVELS)
    body = encoding.encode(value)
    bodies = Bodies(encoding.name, *encoding.paths_in(value))
    for end in range(len(body)):
        assert bodies.read(body[:end]) is None
    behind = (b"\xc0",) if encoding is MSGPACK else (b"}", b",", b"1", b"{}", b"\0")
    for more in behind:
        assert bodies.read(body + more) is None
    assert bodies.refused == (len(body) + len(behind), 0)
    if encoding is not MSGPACK:
        assert bodies.read(body + b" \t\r\n") is not None


@BOTH
@settings(max_examples=30, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_damaged_bodies_are_judged_alike(encoding: Encoding, data: st.DataObject, seed: int) -> None:
    value = data.draw(encoding.maps)
    body, paths, choose = encoding.encode(value), encoding.paths_in(value), random.Random(seed)
    for _ in range(DAMAGES):
        damaged = bytearray(body)
        for _ in range(choose.randint(1, 3)):
            octet = choose.choice(encoding.damage) if choose.random() < 0.5 else choose.randrange(256)
            damaged[choose.randrange(len(body))] = octet
        encoding.agrees(bytes(damaged), paths)


@BOTH
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_one_reader_reads_bodies_of_several_kinds_in_turn(encoding: Encoding, data: st.DataObject) -> None:
    values = data.draw(st.lists(encoding.maps, min_size=2, max_size=4))
    paths = sorted({path for value in values for path in encoding.paths_in(value)})
    bodies = Bodies(encoding.name, *paths)
    for value in [*values, *values]:
        if depth(value) <= LEVELS:
            body = encoding.encode(value)
            assert exactly(bodies.read(body)) == exactly(expected(encoding.decode(body), paths))


@BOTH
def test_of_several_values_of_a_path_the_first_that_is_not_absent_counts(encoding: Encoding) -> None:
    bodies = Bodies(encoding.name, ("a",), ("m", "x"), ("m", "y"))
    body = Pairs([
        ("a", None), ("a", 1), ("a", 2), ("m", 5), ("m", Pairs([("x", 1)])), ("m", Pairs([("x", 2), ("y", 3)])),
    ])  # fmt: skip
    assert bodies.read(encoding.encode(body)) == {("a",): 1, ("m", "x"): 1, ("m", "y"): 3}


@BOTH
def test_nothing_is_read_behind_the_last_field_that_is_asked_for(encoding: Encoding) -> None:
    bodies = Bodies(encoding.name, ("a",), ("m", "x"))
    bodies.attributes.release(next(number for number, path in bodies.numbers.items() if path == ("nowhere\0",)))
    before, rubbish = Pairs([("a", 5), ("m", Pairs([("x", 6), ("z", "rubbish")]))]), encoding.encode("rubbish")
    body = encoding.encode(before).partition(rubbish)[0] + b"\xc1"
    assert bodies.read(body) == {("a",): 5, ("m", "x"): 6}
    other = encoding.encode(Pairs([("a", 5), ("m", Pairs([("y", 6), ("z", "rubbish")]))])).partition(rubbish)[0]
    assert bodies.read(other + b"\xc1") is None
    assert bodies.refused == (1, 0)


@BOTH
@pytest.mark.parametrize("levels", range(1, 12))
def test_a_body_has_eight_levels_at_most(encoding: Encoding, levels: int) -> None:
    names = tuple("abcdefghijk"[:levels])
    maps: Pairs | int = 7
    for name in reversed(names):
        maps = Pairs([(name, maps)])
    bodies = Bodies(encoding.name, names[:LEVELS])
    found = bodies.read(encoding.encode(maps))
    lists = Bodies(encoding.name, ("z",)).read(encoding.encode(Pairs([("b", lists_of(levels - 1)), ("z", 1)])))
    if levels <= LEVELS:
        assert found == {names: 7}
        assert lists == {("z",): 1}
    else:
        assert found is lists is None
        assert bodies.refused == (0, 1)


def lists_of(levels: int) -> list[object] | int:
    return [lists_of(levels - 1)] if levels else 1
