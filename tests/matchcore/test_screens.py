"""A screen answers with the ids of which the definition (kleene.py) says true, whatever came and went before."""

import gc
import random
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fanlight_bench.micro.screens import two_conditions
from matchcore.fields import Attributes, Fields
from matchcore.kleene import Untyped, holds
from matchcore.normal_form import AllOf
from matchcore.pooling import _pool_from
from matchcore.screen import Screen
from matchcore.selector import And, Attribute, Not, Selector
from matchcore.where import parse_where
from tests.matchcore.selectors import FIELDS, SELECTORS
from tests.matchcore.test_selectors import CRITERIA, MESSAGES


def expected(selectors: Mapping[int, Selector], fields: Mapping[Any, object]) -> tuple[int, ...]:
    return tuple(sorted(id for id, selector in selectors.items() if holds(selector, fields) is True))


def screen_of(selectors: Mapping[int, Selector]) -> Screen:
    screen = Screen(Attributes())
    for id, selector in selectors.items():
        assert screen.insert(id, selector)
    return screen


def of_texts(*texts: str) -> dict[int, Selector]:
    return {id: parse_where(text) for id, text in enumerate(texts)}


@given(st.lists(SELECTORS, max_size=40), st.lists(FIELDS, min_size=1, max_size=4))
@settings(max_examples=60)
def test_the_ids_are_those_that_the_definition_calls_true(
    selectors: Sequence[Selector], messages: Sequence[dict[Attribute, object]]
) -> None:
    known = dict(enumerate(selectors))
    screen = screen_of(known)
    for fields in messages:
        assert screen.match(fields) == expected(known, fields)


class Changing(RuleBasedStateMachine):
    """Insert, replace, remove, ask, in any order; two screens share their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.attributes = Attributes()
        self.screens = [Screen(self.attributes), Screen(self.attributes)]
        self.known: list[dict[int, Selector]] = [{}, {}]

    @rule(which=st.integers(0, 1), selectors=st.dictionaries(st.integers(0, 30), SELECTORS, max_size=20))
    def insert(self, which: int, selectors: dict[int, Selector]) -> None:
        for id, selector in selectors.items():
            assert self.screens[which].insert(id, selector) is (id not in self.known[which])
            self.known[which][id] = selector

    @rule(which=st.integers(0, 1), ids=st.sets(st.integers(0, 30), max_size=20))
    def remove(self, which: int, ids: set[int]) -> None:
        for id in ids:
            assert self.screens[which].remove(id) is (id in self.known[which])
            self.known[which].pop(id, None)

    @rule(fields=FIELDS)
    def ask(self, fields: dict[Attribute, object]) -> None:
        for screen, known in zip(self.screens, self.known, strict=True):
            assert screen.match(fields) == expected(known, fields)

    @invariant()
    def counts(self) -> None:
        assert [len(screen) for screen in self.screens] == [len(known) for known in self.known]
        asked = set().union(*(screen.asked() for screen in self.screens))
        assert len(asked) == self.attributes.count
        if not any(self.known):
            assert self.attributes.count == 0


TestChanging = Changing.TestCase
TestChanging.settings = settings(max_examples=25, stateful_step_count=8)

CITIES = ["Rome", "Oslo", "Bonn", "Bern", "Kiev", "Riga", "Lima", "Cairo"]


def some_selector(dice: random.Random) -> str:
    """Of the kinds that subscribers have: most with a test that few messages pass."""
    tests = [
        f"city = '{dice.choice(CITIES)}'", f"price > {dice.randrange(1_000)}", f"price < {dice.randrange(1_000)}",
        f"id = {dice.randrange(200)}", f"id IN ({dice.randrange(200)}, {dice.randrange(200)}, 7.5)",
        f"low BETWEEN {dice.randrange(50)} AND {dice.randrange(50, 100)}", "urgent", "NOT urgent", "note IS NULL",
        f"name LIKE '{dice.choice(CITIES)[:2]}%'", f"name LIKE '%{dice.choice(CITIES)[2:]}'", "note IS NOT NULL",
        f"city <> '{dice.choice(CITIES)}'", f"name LIKE '%{dice.choice('aeiou')}%'", f"city > '{dice.choice(CITIES)}'",
        f"id = '{dice.randrange(200)}'", f"price = {dice.randrange(1_000)}.5", f"price NOT IN (1, {dice.randrange(9)})",
    ]
    chosen = dice.sample(tests, dice.choice((1, 2, 2, 3)))
    joined = dice.choice((" AND ", " AND ", " AND ", " OR ", None))
    if joined is None:
        return f"AT LEAST {dice.randint(1, len(chosen))} OF ({', '.join(chosen)})"
    return joined.join(chosen)


def some_message(dice: random.Random) -> dict[str, object]:
    fields: dict[str, object] = {
        "city": dice.choice(CITIES), "price": dice.choice((dice.randrange(1_000), dice.random() * 1_000)),
        "id": dice.choice((dice.randrange(200), Untyped(str(dice.randrange(200))), str(dice.randrange(200)), 7.5)),
        "low": dice.randrange(100), "urgent": dice.choice((True, False, Untyped("true"))),
        "name": dice.choice(CITIES), "note": "",
    }
    return {name: value for name, value in fields.items() if dice.random() < 0.8}


def test_thousands_of_selectors_that_come_and_go() -> None:
    dice = random.Random(1)
    screen = Screen(Attributes())
    known: dict[int, Selector] = {}
    for round in range(6):
        for _ in range(600):
            id = dice.randrange(2_000)
            known[id] = parse_where(some_selector(dice))
            screen.insert(id, known[id])
        for _ in range(25):
            fields = some_message(dice)
            assert screen.match(fields) == expected(known, fields)
        for id in dice.sample(sorted(known), len(known) // 3 if round < 5 else len(known)):
            del known[id]
            assert screen.remove(id)
        fields = some_message(dice)
        assert screen.match(fields) == expected(known, fields)
    assert len(screen) == screen.attributes.count == 0
    assert screen.nbytes < 10_000


def test_what_came_and_went_leaves_no_memory_behind() -> None:
    dice = random.Random(2)
    selectors = [parse_where(some_selector(dice)) for _ in range(1_000)]
    screen = Screen(Attributes())
    sizes = []
    for _ in range(4):
        for id, selector in enumerate(selectors):
            screen.insert(id, selector)
        sizes.append(screen.nbytes)
        for id in dice.sample(range(1_000), 1_000):
            screen.remove(id)
        sizes.append(screen.nbytes)
    assert max(sizes[2::2]) <= 1.1 * sizes[0]
    assert max(sizes[3::2]) <= 1.1 * sizes[1]


@pytest.fixture
def without_pool() -> Iterator[None]:
    before = _pool_from(2**31)
    yield
    _pool_from(before)


@pytest.mark.usefixtures("without_pool")
def test_a_selector_of_two_conditions_takes_120_bytes() -> None:
    """Those of `fanlight_bench micro screens`, as many as a filter has there; the values that it names are included.

    A pool takes some 40 bytes more for each that is in it (docs/decisions/0016-selectors.md).
    """
    dice = random.Random(16)
    screen = Screen(Attributes())
    for id in range(1_852):
        screen.insert(id, two_conditions(dice))
    assert screen.nbytes <= 120 * 1_852


def test_an_id_that_is_free_again_is_not_found() -> None:
    screen = screen_of(of_texts("a = 1", "b = 1", "a = 1 OR b = 1"))
    assert screen.match({"a": 1, "b": 1}) == (0, 1, 2)
    assert screen.remove(1)
    assert not screen.remove(1)
    assert screen.insert(9, parse_where("a = 1"))
    assert screen.match({"a": 1, "b": 1}) == (0, 2, 9)


def test_the_later_selector_of_an_id_replaces_the_earlier() -> None:
    screen = screen_of(of_texts("a = 1"))
    assert screen.insert(0, parse_where("b = 1")) is False
    assert (screen.match({"a": 1}), screen.match({"b": 1}), len(screen)) == ((), (0,), 1)
    assert [str(attribute) for attribute in screen.asked()] == ["b"]


@pytest.mark.usefixtures("without_pool")
@pytest.mark.parametrize(
    ("text", "keyed"),
    [
        ("id = {}", True), ("id = {} AND city <> 'Rome'", True), ("id IN ({}, 3)", True),
        ("id = {} OR city = 'R{}'", True),
        ("name LIKE 'Ro{}%'", True), ("name LIKE '%m{}'", True), ("price BETWEEN {} AND {} + 1", True),
        ("price > {} AND price < {} + 2", True), ("NOT (id <> {})", True), ("note IS NOT NULL AND price > {}", True),
        ("AT LEAST 2 OF (id = {}, city <> 'Rome', price <> 1)", False), ("id <> {}", False), ("price > {}", None),
        ("AT LEAST 2 OF (id = {}, city = 'R{}', price <> 1)", True), ("name LIKE '%m{}%'", False),
        ("id = {} OR price <> 3", False), ("note IS NULL AND id <> {}", False),
    ],
)  # fmt: skip
def test_what_is_seldom_true_is_not_verified_in_a_row(text: str, keyed: bool | None) -> None:
    """From the 17th on, ranges once there are cells; None: some."""
    texts = [text.replace("{} + 1", str(i + 1)).replace("{} + 2", str(i + 2)).replace("{}", str(i)) for i in range(300)]
    screen = screen_of(of_texts(*texts))
    few = 16 + 64 if "price >" in text or "BETWEEN" in text else 16
    in_a_row = screen._shape()["row"]
    if keyed is None:
        assert 64 < in_a_row < 300
    else:
        assert in_a_row <= few if keyed else in_a_row == 300
    if "IS NOT NULL" in text:
        assert screen.match({"price": 1_000}) == ()
        assert len(screen.match({"price": 1_000, "note": 1})) == 300


def test_constants() -> None:
    screen = screen_of(of_texts("TRUE", "FALSE", "a = 1 OR TRUE", "a = 1 AND FALSE", "NOT FALSE"))
    assert screen.match({}) == (0, 2, 4)
    assert screen.asked() == ()


def test_what_is_no_selector_or_no_id_is_refused() -> None:
    screen = screen_of(of_texts("a = 1"))
    with pytest.raises(TypeError, match="a selector is wanted"):
        screen.insert(1, AllOf(()))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="an id must be"):
        screen.insert("1", parse_where("a = 1"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="within"):
        screen.remove(-1)
    assert (len(screen), screen.attributes.count) == (1, 1)


def test_a_tree_deeper_than_any_text_is_refused_before_anything_changes() -> None:
    screen = screen_of(of_texts("a = 1"))
    deep = parse_where("b = 1")
    for _ in range(100_000):
        deep = Not(deep)
    with pytest.raises(ValueError, match="inside each other"):
        screen.insert(1, deep)
    with pytest.raises(TypeError, match="a selector is wanted"):
        screen.insert(1, And((parse_where("b = 1"), 5)))  # type: ignore[arg-type]
    assert (len(screen), screen.attributes.count) == (1, 1)


def test_memory_that_runs_out_leaves_the_screen_as_it_was() -> None:
    dice = random.Random(3)
    screen = Screen(Attributes())
    known: dict[int, Selector] = {}
    failures = 0
    for id in range(250):
        selector = parse_where(some_selector(dice))
        for allowed in range(50):
            screen._fail_after(allowed)
            try:
                screen.insert(id, selector)
                break
            except MemoryError:
                failures += 1
                screen._fail_after(-1)
                assert len(screen) == len(known)
                if failures % 10 == 0:
                    fields = some_message(dice)
                    assert screen.match(fields) == expected(known, fields)
        screen._fail_after(-1)
        known[id] = selector
    assert failures > 20
    for _ in range(20):
        fields = some_message(dice)
        assert screen.match(fields) == expected(known, fields)
    screen._fail_after(0)
    for id in known:
        assert screen.remove(id)
    assert screen.attributes.count == 0


def test_a_mapping_that_asks_the_screen_itself_while_it_is_read() -> None:
    screen = screen_of(of_texts("a = 1", "b = 1"))

    class Asking(dict[str, object]):
        def items(self) -> Any:
            for key, value in super().items():
                assert screen.match({"b": 1}) == (1,)
                screen.insert(2, parse_where("c = 1"))
                yield key, value

    assert screen.match(Asking(a=1, c=1)) == (0, 2)
    with pytest.raises(AttributeError):
        screen.match(5)  # type: ignore[arg-type]
    assert screen.match({"a": 1}) == (0,)


def test_several_threads_ask_beside_one_that_changes() -> None:
    """Each call is atomic: an answer is that of some moment."""
    dice = random.Random(4)
    always = {id: parse_where(some_selector(dice)) for id in range(60)}
    screen = screen_of(always)
    messages = [some_message(dice) for _ in range(20)]
    answers = [set(expected(always, fields)) for fields in messages]
    problems: list[object] = []
    done = threading.Event()

    def ask() -> None:
        try:
            while not done.is_set():
                for fields, answer in zip(messages, answers, strict=True):
                    if {id for id in screen.match(fields) if id < 1_000} != answer:
                        problems.append(fields)
        except BaseException as error:
            problems.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=ask) for _ in range(3)]
    try:
        for thread in threads:
            thread.start()
        for id in range(1_000, 1_400):
            screen.insert(id, parse_where(some_selector(dice)))
            if id % 3:
                screen.remove(id)
    finally:
        done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert problems == []


def test_several_threads_ask_at_the_same_time_without_the_gil() -> None:
    dice = random.Random(5)
    known = {id: parse_where(some_selector(dice)) for id in range(300)}
    screen = screen_of(known)
    messages = [some_message(dice) for _ in range(8)]
    problems: list[object] = []
    start = threading.Barrier(4)

    def ask() -> None:
        try:
            fields = Fields(screen.attributes)
            start.wait()
            for message in messages:
                fields.load(message)
                found = screen._ask(fields, 500, False)
                if found != 500 * len(expected(known, message)) or found != screen._ask(fields, 500, True):
                    problems.append(message)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_a_screen_that_is_collected_with_a_cycle_gives_its_attributes_back() -> None:
    attributes = Attributes()
    screen = Screen(attributes)
    for id in range(40):
        screen.insert(id, parse_where(f"a = {id} AND b > {id}"))
    assert screen.match({"a": 7, "b": 8}) == (7,)
    cycle: list[object] = [screen, attributes]
    cycle.append(cycle)
    del screen, cycle
    gc.collect()
    assert attributes.count == 0


def test_fields_of_other_attributes_are_refused() -> None:
    with pytest.raises(ValueError, match="other attributes"):
        Screen(Attributes())._ask(Fields(Attributes()), 1, False)


# Vectors of the literature

@pytest.mark.parametrize("name", MESSAGES)
def test_the_field_matching_of_imatix(name: str) -> None:
    fields, hits, all_of = MESSAGES[name]
    criteria = dict(enumerate(dict.fromkeys(text for texts in CRITERIA for text in texts)))
    rows = screen_of({id: parse_where(text) for id, text in criteria.items()})
    true = {criteria[id] for id in rows.match(fields)}
    assert "".join(str(len(true.intersection(texts))) for texts in CRITERIA) == hits
    screen = screen_of(of_texts(*(" AND ".join(texts) for texts in CRITERIA)))
    assert list(screen.match(fields)) == all_of
    any_of = screen_of(of_texts(*(" OR ".join(texts) for texts in CRITERIA)))
    assert list(any_of.match(fields)) == [id for id, count in enumerate(hits) if count != "0"]


WORDS = ("thought", "cloth", "lot", "palm", "plant", "bath", "trap")
ACCENTS = ["ɔ ɒ ɑ ɑː ɑː ɑː æ", "ɔ ɔ ɑ ɑ æ æ æ", "ɑ ɑ ɑ ɑ æ æ æ", "* * ɑ ɑ æ æ æ", "* * * * * * æ", "* * * * * * *"]


def test_the_accents_of_startin() -> None:
    """The first row that fits wins: so all that fit must be found, in the order of their ids."""
    def row(cells: str) -> str:
        tests = [f"{word} = '{cell}'" for word, cell in zip(WORDS, cells.split(), strict=True) if cell != "*"]
        return " AND ".join(tests) or "TRUE"

    known = of_texts(*map(row, ACCENTS))
    screen = screen_of(known)
    spoken = {
        "ɔ ɒ ɑ ɑː ɑː ɑː æ": (0, 4, 5), "ɔ ɔ ɑ ɑ æ æ æ": (1, 3, 4, 5), "ɑ ɑ ɑ ɑ æ æ æ": (2, 3, 4, 5),
        "ɒ ɒ ɑ ɑ æ æ æ": (3, 4, 5), "a b c d e f æ": (4, 5), "a b c d e f g": (5,),
    }
    for cells, found in spoken.items():
        fields = dict(zip(WORDS, cells.split(), strict=True))
        assert screen.match(fields) == found == expected(known, fields)
