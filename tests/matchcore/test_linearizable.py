"""Several threads ask while one changes: each answer is that of one moment between the call and its return.

The changes are decided beforehand, so every state the index is ever in, and its answer to each question, is known. A
reader notes how many changes were done before it asked and how many had begun when it had its answer: the answer of one
of the states between must be its own, whole. An answer mixed of two states is none of them, for each change adds or
takes a filter that several topics of the batch match.
"""

import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy
import pytest

from matchcore import FilterIndex, explain
from matchcore.reference import matches

CHANGES = 600
TOPICS = 150
READERS = 3


@pytest.fixture(autouse=True)
def switch_often() -> Iterator[None]:
    """Threads change places every twenty microseconds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(2e-5)
    yield
    sys.setswitchinterval(before)


class History:
    """Filters 0..n-1, the changes, and after each of them the answers, as bytes."""

    def __init__(self, dice: random.Random) -> None:
        words = ["a", "b", "c", "$d", "long word of more than 16"]
        self.topics = [".".join(dice.choices(words, k=dice.choice([2, 3, 3, 4]))) for _ in range(TOPICS)]
        pieces = [*words, "*", "*", "#"]
        made = {".".join(dice.choices(pieces, k=dice.choice([1, 2, 3, 3, 4]))) for _ in range(600)}
        takes = {text: [matches(text, "amqp", topic, "amqp") for topic in self.topics] for text in sorted(made)}
        # Those that are seen, so that no two states after one another answer the same.
        self.filters = [text for text, row in takes.items() if sum(row) > 1][:120]
        rows = numpy.array([takes[text] for text in self.filters], dtype=bool)
        held: set[int] = set()
        self.changes: list[tuple[bool, int]] = []
        self.answers = [self.answer(rows, held)]
        for _ in range(CHANGES):
            id = dice.randrange(len(self.filters))
            self.changes.append((id not in held, id))
            held ^= {id}
            self.answers.append(self.answer(rows, held))

    @staticmethod
    def answer(rows: Any, held: set[int]) -> tuple[bytes, bytes]:
        """What match_many says of all topics: the offsets and the ids."""
        ids = numpy.array(sorted(held), dtype=numpy.uint32)
        topics, which = numpy.nonzero(rows[ids].T) if held else (ids, ids)
        offsets = numpy.zeros(TOPICS + 1, dtype=numpy.int64)
        numpy.cumsum(numpy.bincount(topics, minlength=TOPICS), out=offsets[1:])
        return offsets.tobytes(), ids[which].tobytes()

    def row(self, state: int, topic: int) -> tuple[int, ...]:
        offsets, ids = (numpy.frombuffer(part, kind) for part, kind in zip(self.answers[state], "lI", strict=True))
        return tuple(ids[offsets[topic] : offsets[topic + 1]].tolist())


def run(
    history: History, ask: Callable[[FilterIndex, int], Any], tuning: dict[str, int]
) -> list[tuple[int, int, int, Any]]:
    """(changes done before, changes begun after, topic, answer) of each call of `ask`."""
    index = FilterIndex()
    index._tune(**tuning)
    begun = done = 0
    seen: list[tuple[int, int, int, Any]] = []
    problems: list[BaseException] = []
    answered = threading.Semaphore(0)
    ready = threading.Barrier(READERS + 1)

    def read(number: int) -> None:
        dice = random.Random(number)
        try:
            ready.wait(30)
            while done < CHANGES and not problems:
                topic = dice.randrange(TOPICS)
                before = done
                with suppress(RuntimeError):  # explain says so when the index changed meanwhile
                    answer = ask(index, topic)
                    seen.append((before, begun, topic, answer))
                    answered.release()
        except BaseException as error:
            problems.append(error)

    readers = [threading.Thread(target=read, args=(number,)) for number in range(READERS)]
    for thread in readers:
        thread.start()
    ready.wait(30)
    try:
        for change, (adds, id) in enumerate(history.changes, 1):
            begun = change
            assert (index.insert if adds else index.remove)(history.filters[id], id)
            done = change
            if change % 8 == 4:  # the others' turn, that there be answers of many states
                while answered.acquire(blocking=False):
                    pass
                assert answered.acquire(timeout=30)
    finally:
        done = CHANGES
        for thread in readers:
            thread.join()
    assert problems == []
    return seen


TUNINGS = [{}, {"split": 1, "small": 0, "pool_least": 1_000_000}, {"split": 2, "small": 5, "pool_least": 4}]


@pytest.mark.parametrize("tuning", TUNINGS, ids=["pool", "buckets", "both"])
def test_match_many_without_the_gil_answers_for_one_moment(tuning: dict[str, int]) -> None:
    history = History(random.Random(1))
    joined = b"".join(topic.encode() for topic in history.topics)
    ends = numpy.cumsum([0, *(len(topic.encode()) for topic in history.topics)])

    def ask(index: FilterIndex, topic: int) -> tuple[bytes, bytes]:
        offsets, ids = (
            index.match_many(history.topics) if topic % 2 else index.match_many(memoryview(joined), offsets=ends)
        )
        return offsets.tobytes(), ids.tobytes()

    seen = run(history, ask, tuning)
    for before, after, _, answer in seen:
        assert answer in history.answers[before : after + 1]
    assert len({answer for *_, answer in seen}) > 50


@pytest.mark.parametrize("tuning", TUNINGS, ids=["pool", "buckets", "both"])
def test_match_match_any_and_explain_from_threads_answer_for_one_moment(tuning: dict[str, int]) -> None:
    history = History(random.Random(2))

    def ask(index: FilterIndex, topic: int) -> Any:
        text = history.topics[topic]
        match topic % 3:
            case 0:
                return index.match(text)
            case 1:
                return index.match_any(text)
            case _:
                return tuple(sorted(found.id for found in explain(index, text)))

    seen = run(history, ask, tuning)
    for before, after, topic, answer in seen:
        states = [history.row(state, topic) for state in range(before, after + 1)]
        assert answer in (map(bool, states) if isinstance(answer, bool) else states)
    assert len({(topic, answer) for *_, topic, answer in seen}) > 100
