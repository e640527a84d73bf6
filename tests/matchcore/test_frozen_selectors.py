"""A frozen index with selectors: it answers as the index did, and damaged or forged bytes are refused."""

import pickle
import random
import struct
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matchcore
from matchcore import FilterIndex, FrozenIndex, InvalidFrozenIndex, freeze
from matchcore.frozen import checksum_of
from matchcore.selector import Attribute, Selector
from matchcore.where import parse_where
from tests.matchcore.selectors import FIELDS, SELECTORS
from tests.matchcore.switching import side_by_side

AT = 1_000  # where the header says where the selectors are
FILTERS = st.sampled_from([("a", "amqp"), ("a.*", "amqp"), ("#", "amqp"), ("+/b", "mqtt"), ("a/b", "mqtt")])


def with_selectors() -> FilterIndex:
    index = FilterIndex()
    for id in range(40):
        index.insert(f"a.{id % 5}.*", id, where=f"x = {id % 7} OR y LIKE '%é{id % 3}'")
    index.insert("#", 100, where="$word[2] = '3' AND price BETWEEN 1 AND 2")
    index.insert("a/+/#", 101, where="flag", syntax="mqtt")
    index.insert("a.#", 102)
    index.insert("gone", 103, where="confidential = 1")
    index.remove("gone", 103)
    return index


ASKED: list[tuple[str, dict[str, object]]] = [
    ("a.3.x", {"x": 1, "price": 1.5}), ("a.0.x", {"y": "zé2", "flag": True}), ("b", {}), ("a.4.4", {}), ("a", {"x": 3}),
]  # fmt: skip


def answers(index: FilterIndex) -> list[object]:
    """Everything that it can be asked."""
    found: list[object] = []
    for topic, fields in ASKED:
        found += [index.match(topic, fields=fields), index.match_any(topic, fields=fields), index.asked(topic)]
        found.append(sorted(index.selected(topic, fields=fields), key=str))
    topics = [topic for topic, _ in ASKED]
    columns = {name: [fields.get(name) for _, fields in ASKED] for name in ("x", "y", "price", "flag")}
    found += [part.tolist() for part in index.match_many(topics, fields=columns)]
    return [*found, index.hits({"x": 3, "flag": True}), sorted(index.selectors()), sorted(index.filters()), len(index)]


def test_a_copy_with_selectors_answers_as_the_index(tmp_path: Path) -> None:
    index = with_selectors()
    frozen = freeze(index)
    assert freeze(frozen) is frozen
    assert frozen.version == index.version
    frozen.save(tmp_path / "frozen")
    expected = answers(index)
    copies = [
        frozen, FrozenIndex.open(tmp_path / "frozen"), FrozenIndex.open(tmp_path / "frozen", verify=False),
        FrozenIndex.from_buffer(frozen.to_bytes()), *(pickle.loads(pickle.dumps(frozen, n)) for n in (2, 5)),
    ]  # fmt: skip
    index.remove("a.#", 102)
    index.insert("a.0.*", 5, where="x = 1000")
    for copy in copies:
        assert answers(copy) == expected
        with pytest.raises(TypeError, match="does not change"):
            copy.insert("a", 1, where="x = 1")
        with pytest.raises(TypeError, match="does not change"):
            copy.remove("a.0.*", 5)
        assert matchcore.explain(copy, "a.3.x", fields={"x": 1}) == matchcore.explain(frozen, "a.3.x", fields={"x": 1})
    assert b"confidential" not in frozen.to_bytes()
    assert answers(index) != expected


@pytest.mark.parametrize("many", [False, True])
def test_screens_are_built_when_a_topic_first_matches_their_filter(many: bool) -> None:
    """By rows as well; and of an index with room for one number of attributes only, where there are many."""
    index = FilterIndex()
    for id in range(300):
        index.insert(f"t.{id}.*", id, where=f"name{id} = {id}")
    frozen = freeze(index)
    before = frozen.nbytes
    assert before < index.nbytes
    if many:
        topics, fields = [f"t.{id}.x" for id in range(300)], {f"name{id}": list(range(300)) for id in (149, 150)}
        assert frozen.match_many(topics, fields=fields)[1].tolist() == [149, 150]
    else:
        for id in range(300):
            assert frozen.match(f"t.{id}.x", fields={f"name{id}": id}) == (id,)
    assert frozen.nbytes > before
    assert frozen.match("t.7.x", fields={"name7": 8, "name8": 7}) == ()


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(FILTERS, st.integers(0, 3), st.none() | SELECTORS), max_size=12),
    st.lists(st.tuples(st.sampled_from(["a", "a.b", "b", ""]), FIELDS), min_size=1, max_size=3),
)
def test_random_selectors_go_along(
    held: list[tuple[tuple[str, str], int, Selector | None]], asked: list[tuple[str, dict[Attribute, object]]]
) -> None:
    index = FilterIndex(max_words=7)
    for (filter, syntax), id, selector in held:
        index.insert(filter, id, where=selector and parse_where(str(selector)), syntax=syntax)
    frozen = FrozenIndex.from_buffer(freeze(index).to_bytes())
    for topic, fields in asked:
        assert frozen.match(topic, fields=fields) == index.match(topic, fields=fields)
        assert frozen.asked(topic) == index.asked(topic)
    assert frozen.match_many([topic for topic, _ in asked])[1].tolist() == [
        id for topic, _ in asked for id in index.match(topic)
    ]
    assert sorted(frozen.selectors()) == sorted(index.selectors())


def test_without_selectors_it_is_of_the_format_before() -> None:
    index = FilterIndex()
    index.insert("a.*", 1)
    assert struct.unpack_from("<I", freeze(index).to_bytes(), 8) == (2,)
    index.insert("a.*", 2, where="x = 1")
    octets = freeze(index).to_bytes()
    assert struct.unpack_from("<I", octets, 8) == (3,)
    assert struct.unpack_from("<QQ", octets, AT)[1] > 1_000
    index.remove("a.*", 2)
    assert struct.unpack_from("<I", freeze(index).to_bytes(), 8) == (2,)


def test_a_page_is_enough_to_read_them() -> None:
    """docs/frozen-format.md: this is a reader made of that page alone."""
    octets = freeze(with_selectors()).to_bytes()
    start, size = struct.unpack_from("<QQ", octets, AT)
    section = octets[start : start + size]
    index, filters, subscriptions, texts, _, text_bytes = struct.unpack_from("<QIIIIQ", section)
    numbers = struct.unpack_from(f"<{filters + 1 + 2 * subscriptions + texts + 1}I", section, 64 + index)
    firsts, ids = numbers[: filters + 1], numbers[filters + 1 : filters + 1 + subscriptions]
    places = numbers[filters + 1 + subscriptions : filters + 1 + 2 * subscriptions]
    ends = numbers[filters + 1 + 2 * subscriptions :]
    text = section[-text_bytes:]
    held = {
        (number, ids[at]): text[ends[places[at]] : ends[places[at] + 1]].decode()
        for number in range(filters)
        for at in range(firsts[number], firsts[number + 1])
    }
    names = {id: filter for filter, _, id in FrozenIndex.from_buffer(section[64 : 64 + index]).filters()}
    found = sorted((names[number], id, where) for (number, id), where in held.items())
    assert found == sorted((filter, id, where) for filter, _, id, where in with_selectors().selectors())
    assert texts < subscriptions


# ---- damaged and forged ------------------------------------------------------------------------------------


def resealed(octets: bytearray) -> bytes:
    return bytes(octets[:24]) + checksum_of(bytes(octets)).to_bytes(8, "little") + bytes(octets[32:])


def test_cut_off_or_changed_it_is_refused() -> None:
    octets = bytearray(freeze(with_selectors()).to_bytes())
    start, size = struct.unpack_from("<QQ", octets, AT)
    for cut in range(start, len(octets), 64):
        with pytest.raises(InvalidFrozenIndex):
            FrozenIndex.from_buffer(bytes(octets[:cut]))
    for at in [*range(AT, AT + 24), *range(start, start + size, 11)]:
        octets[at] ^= 0x55
        with pytest.raises(InvalidFrozenIndex):
            FrozenIndex.from_buffer(bytes(octets))
        octets[at] ^= 0x55
    assert answers(FrozenIndex.from_buffer(bytes(octets))) == answers(with_selectors())


def test_forged_bytes_lead_no_search_astray() -> None:
    """A number changed and the checksum made to fit: refused at once or when it is asked, or answered with whatever."""
    dice = random.Random(16)
    octets = bytearray(freeze(with_selectors()).to_bytes())
    start, size = struct.unpack_from("<QQ", octets, AT)
    index = struct.unpack_from("<Q", octets, start)[0]
    refused = taken = 0
    for round in range(1_200):
        forged = bytearray(octets)
        part = ((0, 64), (64 + index, size), (64, 64 + index))[round % 3]
        at = start + dice.randrange(*part)
        width = dice.choice([1, 4])
        forged[at : at + width] = dice.choice([b"\0" * width, b"\xff" * width, dice.randbytes(width)])
        try:
            frozen = FrozenIndex.from_buffer(resealed(forged), verify=round % 3 != 1 or round % 2 == 0)
            taken += 1
            for topic, fields in ASKED:
                frozen.match(topic, fields=fields)
            with suppress(RuntimeError):
                answers(frozen)
        except InvalidFrozenIndex:
            refused += 1
    assert refused > 100 < taken


def test_selectors_within_selectors_are_refused() -> None:
    """However deep: what is inside is looked at before it is opened."""
    from matchcore.frozen_selectors import packed

    inner = freeze(with_selectors()).to_bytes()
    octets = bytearray(freeze(with_selectors()).to_bytes())
    start, _ = struct.unpack_from("<QQ", octets, AT)
    section = packed(inner, [{}])
    forged = octets[:start] + section
    forged += bytes(-len(forged) % 64)
    struct.pack_into("<QQ", forged, AT, start, len(section))
    struct.pack_into("<Q", forged, 16, len(forged))
    with pytest.raises(InvalidFrozenIndex, match="of its selectors: the index of their filters has another format"):
        FrozenIndex.from_buffer(resealed(forged))


def test_a_text_that_is_no_selector_is_found_when_it_is_asked_for() -> None:
    octets = bytearray(freeze(with_selectors()).to_bytes())
    at = octets.index(b"flag")
    octets[at : at + 4] = b"fl)g"
    frozen = FrozenIndex.from_buffer(resealed(octets))
    assert frozen.match("b.3", fields={"price": 1}) == (100,)
    for ask in (lambda: frozen.match("a/1", syntax="mqtt"), lambda: frozen.match_many(["a/1"], syntax="mqtt")):
        with pytest.raises(InvalidFrozenIndex, match=r"a selector of it is none: .*'fl\)g = TRUE', byte 2"):
            ask()


# ---- threads -----------------------------------------------------------------------------------------------


def test_threads_that_ask_a_new_copy_build_its_screens_once_for_all() -> None:
    index = FilterIndex()
    for id in range(400):
        index.insert(f"t.{id % 40}", id, where=f"n{id % 90} = 1 OR $word[2] = '{id % 40 + id // 200}'")
    topics = [f"t.{id}" for id in range(40)] * 3
    expected = [part.tolist() for part in index.match_many(topics, fields={"n3": [1] * 120})]
    problems: list[object] = []

    def ask(frozen: FrozenIndex, start: threading.Barrier, turn: int) -> None:
        try:
            start.wait()
            fields = {"n3": 1}
            mine = topics[turn::7]
            found = [[one.match(topic, fields=fields) for topic in mine] for one in (frozen, index)]
            if found[0] != found[1]:
                problems.append(mine)
            got = [part.tolist() for part in frozen.match_many(topics, fields={"n3": [1] * 120})]
            if got != expected:
                problems.append(got)
        except BaseException as error:
            problems.append(error)

    for _ in range(5):
        frozen, start = freeze(index), threading.Barrier(4)
        side_by_side(*(partial(ask, frozen, start, turn) for turn in range(4)), problems=problems)
    assert problems == []


def test_a_copy_made_beside_a_writer_is_of_one_moment() -> None:
    index = FilterIndex()
    index.insert("a", 0, where="x = 0")
    problems: list[object] = []
    copies: list[FrozenIndex] = []
    done = threading.Event()

    def write() -> None:
        for round in range(1, 400):
            index.insert("a", round, where=f"x = {round}")
            index.remove("a", round - 1)
        done.set()

    def copy() -> None:
        try:
            while not done.is_set():
                with suppress(RuntimeError):  # of an index that never stands still
                    copies.append(freeze(index))
        except BaseException as error:
            problems.append(error)

    side_by_side(write, copy, problems=problems)
    assert problems == []
    copies.append(freeze(index))
    for frozen in copies:
        held: Any = frozen.selectors()
        assert 1 <= len(held) == len(frozen) <= 2
        for _, _, id, where in held:
            assert where == f"x = {id}"
            assert frozen.match("a", fields={"x": id}) == (id,)
