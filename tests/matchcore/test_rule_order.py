"""The rules of a RuleIndex win in the order of their salience, as in an ordered list that is read to the first.

The oracle is that list, each selector asked of kleene.py.
"""

import gc
import random
import threading
import weakref
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from matchcore import InvalidFilter, InvalidTopic, RuleIndex
from matchcore.reference import ReferenceRuleIndex
from matchcore.rule_text import packed, unpacked
from matchcore.rules import Rule
from matchcore.selector import Attribute, In, Selector, Source
from tests.matchcore.selectors import FIELDS, SELECTORS
from tests.matchcore.test_screens import some_message, some_selector

TOPICS = st.sampled_from(["", "a", "a.b", "a.2", "$SYS.b"])
FILTERS = st.sampled_from([None, None, "#", "a.*", "a.#", "*.b", "a.b"])
SALIENCES = st.sampled_from([-1e300, -1, 0, 0.5, 1, 2, 2**53, float("inf")])


class Changing(RuleBasedStateMachine):
    """Insert and remove in any order, with equal saliences, and ask."""

    def __init__(self) -> None:
        super().__init__()
        self.index, self.oracle = RuleIndex(), ReferenceRuleIndex()
        self.rules: dict[int, Rule] = {}

    @rule(rules=st.lists(st.tuples(SELECTORS, SALIENCES, FILTERS), min_size=1, max_size=20))
    def insert(self, rules: list[tuple[Selector, float, str | None]]) -> None:
        for selector, salience, topic in rules:
            made = self.index.insert(selector, [selector], salience=salience, topic=topic)
            assert self.oracle.insert(selector, salience=salience, topic=topic) == made.number
            assert (made.selector, made.salience, made.topic) == (selector, salience, topic or "#")
            self.rules[made.number] = made

    @rule(dice=st.randoms(use_true_random=False))
    def remove(self, dice: random.Random) -> None:
        for number in dice.sample(sorted(self.rules), len(self.rules) // 2):
            assert self.index.remove(self.rules.pop(number))
            self.oracle.remove(number)

    @rule(fact=FIELDS, topic=TOPICS)
    def ask(self, fact: dict[Attribute, object], topic: str) -> None:
        wanted = self.oracle.matches(fact, topic=topic)
        found = self.index.matches(fact, topic=topic)
        assert [one.number for one in found] == wanted
        assert [one.result for one in found] == [[self.rules[number].selector] for number in wanted]
        assert self.index.first(fact, topic=topic) == next(iter(found), None)
        assert self.index.count(fact, topic=topic) == len(wanted)
        for one, by in self.index.shadowed():
            assert one.number not in wanted or (by is not None and by.number in wanted)

    @invariant()
    def all_are_there(self) -> None:
        assert len(self.index) == len(self.rules)
        assert list(self.index) == sorted(self.rules.values(), key=lambda one: (one.salience, one.number))
        if not self.rules:
            assert self.index._table.attributes.count == 0


TestChanging = Changing.TestCase
TestChanging.settings = settings(max_examples=25, stateful_step_count=8, deadline=None)


def test_thousands_of_rules_that_come_and_go() -> None:
    dice = random.Random(1)
    index, oracle = RuleIndex(), ReferenceRuleIndex()
    rules: dict[int, Rule] = {}
    for round in range(5):
        for _ in range(500):
            text, salience, topic = (
                some_selector(dice),
                dice.randrange(50),
                dice.choice([None, None, "a.#", "*.b", "b"]),
            )
            made = index.insert(text, text, salience=salience, topic=topic)
            rules[oracle.insert(text, salience=salience, topic=topic)] = made
        for _ in range(12):
            fact, topic = some_message(dice), dice.choice(["", "a", "a.b", "b"])
            wanted = oracle.matches(fact, topic=topic)
            assert [one.number for one in index.matches(fact, topic=topic)] == wanted
            first = index.first(fact, topic=topic)
            assert (first and first.number) == next(iter(wanted), None)
        for number in dice.sample(sorted(rules), len(rules) // 3 if round < 4 else len(rules)):
            assert index.remove(rules.pop(number))
            oracle.remove(number)
    assert len(index) == index._table.attributes.count == 0
    assert index.nbytes < RuleIndex().nbytes + 20_000


def test_what_came_and_went_leaves_no_memory_behind() -> None:
    dice = random.Random(2)
    texts = [some_selector(dice) for _ in range(800)]
    index = RuleIndex()
    stays = index.insert("x = 1", topic="a.*")
    sizes = []
    for _ in range(4):
        rules = [index.insert(text, salience=dice.randrange(9), topic=dice.choice([None, f"a.{i}"]))
                 for i, text in enumerate(texts)]  # fmt: skip
        sizes.append(index.nbytes)
        for made in dice.sample(rules, len(rules)):
            index.remove(made)
        sizes.append(index.nbytes)
    assert list(index) == [stays]
    assert max(sizes[2::2]) <= 1.1 * sizes[0]
    assert max(sizes[3::2]) <= 1.1 * sizes[1]


def test_first_looks_at_no_rule_that_is_less_salient_than_the_one_that_wins() -> None:
    index = RuleIndex()
    for i in range(2_000):
        index.insert(f"user = 'u{i % 10}' AND hour <> {-i}", salience=i + 10)  # 200 under a key
        index.insert(f"hour <> {i}", salience=i + 10)  # no key
    table = index._table
    assert table._looked_at({"user": "u3", "hour": 5_000}, "", False) == 2_200
    assert table._looked_at({"user": "u3", "hour": 5_000}, "", True) == 1
    assert table._looked_at({"user": "u3", "hour": 0}, "", True) == 2  # hour <> 0 is not true, hour <> 1 is
    index.insert(salience=5)
    assert table._looked_at({"user": "u3", "hour": 5_000}, "", True) == 1
    index.insert("user = 'u3'", "best", salience=1)
    best = index.first({"user": "u3"})
    assert best is not None
    assert best.result == "best"
    assert table._looked_at({"user": "u3"}, "", True) == 1


def test_a_rule_under_several_keys_is_found_once() -> None:
    index = RuleIndex()
    for i in range(300):
        index.insert(f"a = {i} OR b = {i} OR c IN ({i}, {i + 1})", i, salience=-i)
    found = [one.result for one in index.matches({"a": 7, "b": 7, "c": 8})]
    assert found == [8, 7]
    assert index.count({"a": 7, "b": 7, "c": 8}) == 2


def test_rules_of_many_filters_are_kept_apart() -> None:
    index = RuleIndex()
    for i in range(500):
        index.insert("kind = 'x'", i, topic=f"site.{i % 50}.*", salience=-i)
        index.insert(None, -i, topic=f"site.*.{i % 50}", salience=i)
    assert [one.result for one in index.matches({"kind": "x"}, topic="site.7.t")] == list(range(457, 0, -50))
    assert [one.result for one in index.matches({}, topic="site.7.8")] == [-i for i in range(8, 500, 50)]
    first = index.first({"kind": "x"}, topic="site.7.8")
    assert first is not None
    assert first.result == 457
    assert index._table._looked_at({"kind": "x"}, "site.7.8", False) == 20


@pytest.mark.parametrize("salience", [2**53 + 1, 10**400, "1"])
def test_a_salience_that_no_float_holds_is_refused(salience: Any) -> None:
    index = RuleIndex()
    with pytest.raises((ValueError, TypeError)):
        index.insert("a = 1", salience=salience)
    assert len(index) == 0


def test_saliences_of_all_sizes_are_in_order() -> None:
    saliences = [float("-inf"), -1e300, -(2**53), -1.5, -1, -5e-324, 0, 5e-324, 0.5, 1, 2**53, 2**60, 1e300]
    index = RuleIndex()
    for salience in random.Random(1).sample(saliences, len(saliences)):
        index.insert(salience=salience)
    assert [one.salience for one in index.matches({})] == saliences
    assert [type(one.salience) for one in index][4:7] == [int, float, int]


def test_a_rule_outlives_its_index() -> None:
    index = RuleIndex()
    made = index.insert("a = 1 AND b LIKE 'x%'", "result", name="n", topic="t.*")
    again = index.first({"a": 1, "b": "xy"}, topic="t.1")
    assert again == made
    assert hash(again) == hash(made)
    assert index.remove(made)
    index.insert("c = 1", name="n")
    assert made != index["n"]
    assert not index.remove(made)
    assert (str(made.selector), made.result, made.name, made.topic) == ("a = 1 AND b LIKE 'x%'", "result", "n", "t.*")
    assert made != 5
    assert not RuleIndex().remove(made)
    del index
    gc.collect()
    assert repr(made) == "<rule 'n' (salience 0): a = 1 AND b LIKE 'x%'>"


def test_an_index_that_is_collected_with_a_cycle() -> None:
    class Result:
        pass

    for where in ("result", "rule"):
        index, result = RuleIndex(), Result()
        gone = weakref.ref(result)
        for i in range(40):
            index.insert(f"a = {i} AND b > {i}", result, topic=f"t.{i}")
        result.cycle = index if where == "result" else index.first({"a": 1, "b": 2}, topic="t.1")  # type: ignore[attr-defined]
        assert index.count({"a": 1, "b": 2}, topic="t.1") == 1
        del index, result
        gc.collect()
        assert gone() is None


def test_a_selector_whose_text_is_too_long_to_be_read_again() -> None:
    index = RuleIndex()
    (wide,) = index.load([{"a": list(range(1_000))}], "table")
    assert wide.selector == In(Attribute(Source.HEADER, ("a",)), tuple(range(1_000)))
    assert index.first({"a": 999}) == wide
    assert index.first({"a": 1_000}) is None
    assert list(index) == [wide]
    assert index.remove(wide)


@given(st.text(st.sampled_from("a'= ANDORLIKE(%\x01\x07\0é"), max_size=30))
def test_a_packed_text_is_the_text_again(text: str) -> None:
    assert unpacked(packed(text)) == text


def test_packed_texts_are_short() -> None:
    assert len(packed("user = 'u123' AND action = 'read' AND path LIKE '/17/%'")) == 33


def test_memory_that_runs_out_leaves_the_rules_as_they_were() -> None:
    dice = random.Random(3)
    index, oracle = RuleIndex(), ReferenceRuleIndex()
    failures = 0
    for _ in range(200):
        text, salience, topic = some_selector(dice), dice.randrange(9), dice.choice([None, "a.#", "*"])
        for allowed in range(40):
            index._table._fail_after(allowed)
            try:
                index.insert(text, salience=salience, topic=topic)
                break
            except MemoryError:
                failures += 1
                index._table._fail_after(-1)
                assert len(index) == len(oracle)
        index._table._fail_after(-1)
        oracle.insert(text, salience=salience, topic=topic)
        if failures % 5 == 0:
            fact = some_message(dice)
            assert [one.number for one in index.matches(fact, topic="a")] == oracle.matches(fact, topic="a")
    assert failures > 20
    for made in index:
        assert index.remove(made)
    assert index._table.attributes.count == 0


def test_topics_and_filters_that_are_invalid_are_refused() -> None:
    index = RuleIndex(max_words=3)
    with pytest.raises(InvalidTopic):
        index.first({}, topic="a.b.c.d")
    with pytest.raises(InvalidTopic):
        index.first({}, topic="", syntax="mqtt")
    with pytest.raises(InvalidFilter):
        index.insert("a = 1", topic="a.b.c.d")
    assert len(index) == index._table.attributes.count == 0
    with pytest.raises(AttributeError):
        index.first(5)  # type: ignore[arg-type]
    assert index.first({}) is None


def test_a_fact_that_changes_the_rules_while_it_is_read() -> None:
    index = RuleIndex()
    index.insert("a = 1", "one")

    class Changing(dict[str, object]):
        def items(self) -> Any:
            for key, value in super().items():
                if len(index) == 1:
                    assert index.first({"a": 1}) is not None
                    index.insert("b = 1", "two", salience=-1)
                yield key, value

    first = index.first(Changing(b=1, a=1))
    assert first is not None
    assert first.result == "two"


def test_results_and_names_are_freed_with_the_rule_though_they_change_the_index() -> None:
    index = RuleIndex()

    class Result:
        def __del__(self) -> None:
            index.insert("z = 1", salience=3)

    rules = [index.insert(f"a = {i}", Result()) for i in range(5)]
    for made in rules:
        assert index.remove(made)
    rules.clear()
    del made
    gc.collect()
    assert [str(one.selector) for one in index] == ["z = 1"] * 5
    assert index.count({"z": 1}) == 5


def test_several_threads_ask_beside_one_that_changes() -> None:
    dice = random.Random(4)
    index, oracle = RuleIndex(), ReferenceRuleIndex()
    for _ in range(60):
        text = some_selector(dice)
        index.insert(text)
        oracle.insert(text)
    facts = [some_message(dice) for _ in range(20)]
    answers = [next(iter(oracle.matches(fact)), None) for fact in facts]
    problems: list[object] = []
    done = threading.Event()

    def ask() -> None:
        try:
            while not done.is_set():
                for fact, answer in zip(facts, answers, strict=True):
                    first = index.first(fact)
                    if answer is not None and (first and first.number) != answer:
                        problems.append(fact)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for i in range(300):
            made = index.insert(some_selector(dice), salience=1, topic=dice.choice([None, "a.#"]))
            if i % 3:
                index.remove(made)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert problems == []
