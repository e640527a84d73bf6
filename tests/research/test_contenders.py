"""Every contender against the plain oracle and against matchcore's index: the same calls, the same answers.

They are there to be compared, so they must be right; being written apart from matchcore, they are also second
oracles for it. A contender that says it cannot hold a filter is not asked about it.
"""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_matchers.protocol import Compiled, Mixing
from fanlight_matchers.registry import CONTENDERS, ContenderEntry
from matchcore import FilterIndex
from matchcore.reference import ReferenceFilterIndex

SEPARATORS = {"amqp": b".", "mqtt": b"/"}
ONE = {"amqp": b"*", "mqtt": b"+"}
WORDS = [b"a", b"b", b"c", b"", b"$x", b"ab*", b"x" * 16, b"x" * 17, b"x" * 40, "é".encode()]

ids = st.sampled_from([0, 1, 2, 3, 2**31, 2**32 - 1])
lengths = st.sampled_from([0, 1, 2, 2, 3, 3, 4, 5, 6])


@st.composite
def topics(draw: st.DrawFn, syntax: str) -> bytes:
    words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6))
    text = SEPARATORS[syntax].join(words)
    return text if text else b"a"


@st.composite
def filters(draw: st.DrawFn, syntax: str) -> bytes:
    words = st.sampled_from([*WORDS[:4], *WORDS, ONE[syntax], ONE[syntax], ONE[syntax], *([b"#"] * 3)])
    if syntax == "amqp":
        return b".".join(draw(st.lists(words, min_size=1, max_size=6)))
    levels = [word for word in draw(st.lists(words, min_size=1, max_size=5)) if word not in (b"#", b"ab*")]
    levels += [b"#"] if draw(st.booleans()) or not levels else []
    return b"/".join(levels) or b"a"


@st.composite
def histories(draw: st.DrawFn, syntax: str) -> list[tuple[str, bytes, int]]:
    """Inserts, removals of what was inserted and of what was not, and matches, of topics and instances."""
    steps: list[tuple[str, bytes, int]] = []
    held: list[tuple[bytes, int]] = []
    for _ in range(draw(st.integers(1, 40))):
        kind = draw(st.sampled_from(["insert"] * 4 + ["remove"] * 2 + ["match"] * 3))
        if kind == "match":
            steps.append((kind, draw(topics(syntax)), 0))
        elif kind == "remove" and held and draw(st.integers(0, 9)):
            text, id = held.pop(draw(st.integers(0, len(held) - 1)))
            steps.append((kind, text, id))
        else:
            text, id = draw(filters(syntax)), draw(ids)
            steps.append((kind, text, id))
            if kind == "insert":
                held.append((text, id))
    steps += [("match", draw(topics(syntax)), 0) for _ in range(4)]
    return steps


@pytest.mark.parametrize("library", ["paho", "hyperscan", "pyroaring"])
def test_the_libraries_of_group_bench_are_among_the_contenders(library: str) -> None:
    if library not in CONTENDERS:
        pytest.skip(f"needs {library}: pip install --group bench")


CASES = [
    pytest.param(contender, syntax, id=f"{contender.name}-{syntax}")
    for contender in CONTENDERS.values()
    for syntax in contender.syntaxes
]


@pytest.mark.parametrize(("contender", "syntax"), CASES)
def test_it_answers_as_the_oracle_and_the_index_do(contender: ContenderEntry, syntax: str) -> None:
    @settings(max_examples=120, deadline=None)
    @given(histories(syntax))
    def check(steps: list[tuple[str, bytes, int]]) -> None:
        matcher = contender.make(syntax)
        oracle, index = ReferenceFilterIndex(), FilterIndex()
        for kind, text, id in steps:
            if kind == "match":
                expected = oracle.match(text, syntax=syntax)
                assert len(text) > contender.right_up_to or matcher.match(text) == expected
                assert index.match(text, syntax=syntax) == expected
            elif kind == "insert":
                try:
                    new = matcher.insert(text, id)
                except NotImplementedError:
                    continue
                assert new is oracle.insert(text, id, syntax=syntax)
                assert index.insert(text, id, syntax=syntax) is new
            else:
                try:
                    gone = matcher.remove(text, id)
                except NotImplementedError:
                    continue
                assert gone is oracle.remove(text, id, syntax=syntax)
                assert index.remove(text, id, syntax=syntax) is gone

    check()


@pytest.mark.parametrize(("contender", "syntax"), CASES)
def test_it_is_empty_again_after_all_removals(contender: ContenderEntry, syntax: str) -> None:
    """Growth, shrinking and the reuse of places, with more filters than hypothesis would try."""
    dice = random.Random(7)
    separator, one = SEPARATORS[syntax], ONE[syntax]
    letters = [b"%d" % i for i in range(12)] + [one, one]

    def filter() -> bytes:
        return separator.join(dice.choices(letters, k=dice.randint(1, 4)) + [b"#"] * (dice.random() < 0.2))

    matcher, index = contender.make(syntax), FilterIndex()
    asked = [separator.join(dice.choices(letters[:12], k=dice.randint(1, 5))) for _ in range(50)]
    for _ in range(2):
        held = list(dict.fromkeys((filter(), dice.randrange(50)) for _ in range(1_500 if contender.compiled else 200)))
        for text, id in held:
            assert matcher.insert(text, id)
            index.insert(text, id, syntax=syntax)
        dice.shuffle(held)
        for i, (text, id) in enumerate(held):
            if i % 100 == 0:
                for topic in asked[:10]:
                    assert matcher.match(topic) == index.match(topic, syntax=syntax)
            assert matcher.remove(text, id)
            assert not matcher.remove(text, id)
            index.remove(text, id, syntax=syntax)
        assert not any(matcher.match(topic) for topic in asked)


MIXING = [contender for contender in CONTENDERS.values() if isinstance(contender.make("amqp"), Mixing)]


@pytest.mark.parametrize("contender", [pytest.param(one, id=one.name) for one in MIXING])
def test_a_mix_of_matches_and_changes_leaves_all_filters_in(contender: ContenderEntry) -> None:
    held = [b"%d.%d.*" % (i % 30, i) for i in range(400)]
    matcher = contender.make("amqp")
    assert isinstance(matcher, Mixing)
    assert isinstance(matcher, Compiled)
    for id, text in enumerate(held):
        matcher.insert(text, id)
    assert matcher.nbytes > 0
    asked = [text[:-1] + b"x" for text in held]
    assert matcher.mix(asked, held, range(400), 500, 5_000) > 0
    with pytest.raises(ValueError, match="filters to change"):
        matcher.mix(asked, held, range(400), 500, 10, 1, 0, 8)
    assert matcher.bench(asked, 2)[1] == 400
    assert [matcher.match(topic) for topic in asked] == [(id,) for id in range(400)]
