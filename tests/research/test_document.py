"""docs/matching.md says what the code and the committed results say, and the example on paper is right."""

import pytest

from fanlight_bench import reporting
from fanlight_matchers import against, collect, document, paper
from matchcore.reference import ReferenceFilterIndex

TEXT = document.DOCUMENT.read_text(encoding="utf-8")


def test_the_drawings_in_the_document_are_those_of_the_code() -> None:
    assert document.rewritten(TEXT, None) == TEXT


def test_the_tables_in_the_document_are_those_of_the_committed_results() -> None:
    report = against.load(collect.RESULTS)
    assert not report["quick"]
    assert document.rewritten(TEXT, report) == TEXT


def test_the_document_has_every_table_and_drawing_once() -> None:
    used = [match[2] for match in reporting.BLOCK.finditer(TEXT)]
    assert sorted(used) == sorted([*document.TABLES, *paper.blocks()])


@pytest.mark.parametrize("buckets", [False, True])
@pytest.mark.parametrize("topic", paper.TOPICS)
def test_the_seven_find_what_the_oracle_finds_in_either_tier(topic: str, buckets: bool) -> None:
    oracle = ReferenceFilterIndex()
    for id, text in enumerate(paper.FILTERS):
        oracle.insert(text, id)
    assert paper.index(buckets).match(topic) == oracle.match(topic)


def test_the_seven_are_in_the_tiers_that_the_document_says() -> None:
    assert paper.index()._tiers() | {"exact": 2, "pool": 4, "buckets": 0} == paper.index()._tiers()
    told = paper.index(buckets=True)._tiers()
    assert told | {"exact": 2, "pool": 0, "buckets": 4, "classes": 3} == told


def last_and(lines: list[str]) -> list[int]:
    """The columns that are left in the last line that ands."""
    line = [line for line in lines if line.startswith("and")][-1]
    return [i for i, mark in enumerate(mark for mark in line.split() if mark in "1.") if mark == "1"]


def test_the_rows_drawn_and_to_the_answer() -> None:
    answer = set(paper.index().match(paper.ASKED))
    assert set(last_and(paper.optimised())) == answer
    columns, _ = paper.pool_rows(paper.index())
    found = {id for at in last_and(paper.pool()) for id, text in enumerate(paper.FILTERS) if text == columns[at]}
    assert found == answer - {2}  # which is in the exact tier


def test_the_classes_drawn_are_those_whose_buckets_match() -> None:
    lines = paper.classes()
    buckets = [line.removeprefix("class ") for line in lines if line.startswith("class ") and line.endswith("<")]
    asked = {int(line.split(",")[0]) for line in buckets}
    assert asked == set(last_and(lines))
