"""`load_making` and `load_model`: what is made is what the model says, and what is written the harness reads.

What the model of `workload` learns from messages is in tests/pipeline/test_workload.py.
"""

import json
import math
from collections import Counter
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_bench.load.kinds import recording
from fanlight_bench.load.speaker import Refused
from fanlight_spark.jobs.load_making import Message, make, names, scaled, topic, write
from fanlight_spark.jobs.load_model import PROBABILITIES, Kind, Level, Model, load, zipf
from tests.without_spark.models import MODEL, SIZES


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 20)), max_size=4),
    st.sampled_from([1.0, 0.3, 2.0, 7.5]),
)
def test_the_topics_of_a_tree_are_all_different_and_have_just_its_nodes_and_words(
    given: list[tuple[int, int]], scale: float
) -> None:
    levels = [Level(1, 1, ("root",))]
    for factor, words in given:
        nodes = levels[-1].nodes * factor
        levels.append(Level(nodes, min(nodes, max(factor, words))))
    kind = Kind("root", 1.0, levels[-1].nodes, tuple(levels), 0, 0, SIZES, 1, 1, 1)
    kind = scaled(kind, scale)
    if len(levels) > 1:
        assert kind.topics == max(1, round(levels[-1].nodes * scale))
    made = [topic(kind, number).split("/") for number in range(kind.topics)]
    for at, level in enumerate(kind.levels):
        assert len({tuple(words[: at + 1]) for words in made}) == level.nodes
        assert len({words[at] for words in made}) == level.words


def test_names_are_fit_for_a_recording_and_stay_different() -> None:
    given = ["a", "BRK.B", "BRK/B", "", "x y", "+", "l2-17", "é"]
    assert names(given) == ("a", "BRK-B", "BRK-B-2", "-", "x-y", "--2", "é")


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.7])
def test_zipfs_exponent_is_found_where_the_ranks_are_known(exponent: float) -> None:
    weights = np.arange(1, 1001) ** -exponent
    drawn = np.random.default_rng(1).choice(1000, size=50_000, p=weights / weights.sum())
    found, error = zipf(len(drawn), float(np.log(drawn + 1).sum()), 1000)
    assert abs(found - exponent) < 4 * error < 0.05


def test_zipf_of_nothing_to_compare_is_none() -> None:
    assert zipf(10, 0.0, 1) == zipf(0, 0.0, 5) == (0.0, 0.0)


def test_a_load_is_the_same_with_the_same_seed_and_another_with_another() -> None:
    first = list(islice(make(MODEL, seed=1), 500))
    assert first == list(islice(make(MODEL, seed=1), 500)) == list(make(MODEL, seed=1, messages=500))
    assert first != list(islice(make(MODEL, seed=2), 500))


def test_at_ten_times_the_scale_there_is_ten_times_as_much_of_all_in_the_same_time() -> None:
    made = list(make(MODEL, scale=10))
    assert len(made) == pytest.approx(300_000, rel=0.02)
    assert 59 < made[-1].at <= 60
    assert all(one.at <= other.at for one, other in pairwise(made))
    roots = Counter(each.topic.split("/")[0] for each in made)
    assert roots["plant"] / len(made) == pytest.approx(0.75, abs=0.01)
    assert len({each.topic for each in made}) == 2_900
    assert len({each.publisher for each in made}) == 420
    assert {words[1] for each in made if (words := each.topic.split("/"))[0] == "plant"} >= {"north", "l2-39"}


def test_a_model_comes_back_from_its_file_and_what_is_none_is_refused(tmp_path: Path) -> None:
    MODEL.save(tmp_path / "model.json")
    assert load(tmp_path / "model.json") == MODEL
    for text in ("[]", "{}", '{"workload": 2}', "x"):
        (tmp_path / "other").write_text(text)
        with pytest.raises(ValueError, match="no workload model"):
            load(tmp_path / "other")
    told = json.loads(MODEL.json())
    told["kinds"][0]["topics"] = 0  # as edited by hand
    (tmp_path / "other").write_text(json.dumps(told))
    with pytest.raises(ValueError, match="the levels of 'plant' are no tree of 0 topics"):
        load(tmp_path / "other")
    for scale in (0, -1, math.nan, math.inf):
        with pytest.raises(ValueError, match="more than 0"):
            write(make(MODEL, scale=scale), tmp_path / "load.gz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.json", "other"]


def test_the_harness_reads_what_is_written(tmp_path: Path) -> None:
    odd = Kind("$x", 1.0, 1, (Level(1, 1, names(["+ . #"])),), 0, 0, (5.0,) * len(PROBABILITIES), 5, 1, 1)
    for number, model in enumerate((MODEL, Model(3, 0.0, 1.0, (3.0,), 1.0, (odd,)))):
        made = list(make(model, messages=2_000))
        assert write(made, tmp_path / f"{number}.jsonl.gz") == len(made)
        read = recording.load(str(tmp_path / f"{number}.jsonl.gz"), 10_000)
        assert [Message(round(e.at + made[0].at, 6), e.topic, e.payload_bytes, e.publisher) for e in read] == made
    (tmp_path / "not").write_text('{"at": 0, "topic": "a/+", "bytes": 1}')
    with pytest.raises(Refused):
        recording.load(str(tmp_path / "not"), 10)
