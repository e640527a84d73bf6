"""The bytes of a FrozenIndex: wherever they lie they are an index, and what is none is told."""

import gc
import os
import pickle
import random
import subprocess
import sys
from contextlib import suppress
from multiprocessing import shared_memory
from pathlib import Path

import numpy
import pytest

import matchcore
from matchcore import FrozenIndex, InvalidFrozenIndex, freeze
from matchcore.frozen import checksum_of
from tests.matchcore.test_frozen import TOPICS, answers, of_all_kinds

HEADER = 1_024  # bytes up to the first section
HEAD = 32  # of them, those before what the checksum is of


# ---- where its bytes lie -----------------------------------------------------------------------------------


def test_saved_and_opened(tmp_path: Path) -> None:
    index = of_all_kinds()
    path = tmp_path / "filters.frozen"
    freeze(index).save(path)
    opened = FrozenIndex.open(path)
    assert answers(opened) == answers(index)
    index.insert("dev.3.#", 500)
    freeze(index).save(str(path))  # over the old one, which stays for who has it open
    assert answers(opened) != answers(index) == answers(FrozenIndex.open(str(path)))
    assert [file.name for file in tmp_path.iterdir()] == ["filters.frozen"]
    path.unlink()
    assert opened.match("exact.4.one") == (4, 6, 77, 78)


def test_what_cannot_be_saved_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        freeze(of_all_kinds()).save(tmp_path / "taken")
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]
    with pytest.raises(FileNotFoundError):
        FrozenIndex.open(tmp_path / "missing")


def test_any_buffer_will_do_and_is_kept_alive() -> None:
    index = of_all_kinds()
    expected = answers(index)
    data = freeze(index).to_bytes()
    room = bytearray(data)
    opened = [
        FrozenIndex.from_buffer(data),
        FrozenIndex.from_buffer(room),
        FrozenIndex.from_buffer(memoryview(b"12345678" + data)[8:]),
        FrozenIndex.from_buffer(numpy.frombuffer(data, dtype=numpy.uint8).copy()),
        FrozenIndex.from_buffer(numpy.frombuffer(data, dtype=numpy.int64)),
        FrozenIndex.from_buffer(freeze(index), verify=False),
    ]
    del data
    gc.collect()
    assert [answers(one) for one in opened] == [expected] * len(opened)
    with pytest.raises(BufferError):
        room.clear()
    del opened
    room.clear()


def test_a_buffer_that_is_not_aligned_or_not_in_one_piece_is_refused() -> None:
    data = freeze(of_all_kinds()).to_bytes()
    with pytest.raises(InvalidFrozenIndex, match="multiple of 8"):
        FrozenIndex.from_buffer(memoryview(b"1" + data)[1:])
    with pytest.raises(TypeError):
        FrozenIndex.from_buffer(memoryview(data)[::2])
    with pytest.raises(TypeError):
        FrozenIndex.from_buffer("text")  # type: ignore[arg-type]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickled(protocol: int) -> None:
    index = of_all_kinds()
    assert answers(pickle.loads(pickle.dumps(freeze(index), protocol))) == answers(index)


def test_pickled_without_a_copy() -> None:
    frozen = freeze(of_all_kinds())
    buffers: list[pickle.PickleBuffer] = []
    told = pickle.dumps(frozen, 5, buffer_callback=buffers.append)
    assert len(told) < 200
    assert answers(pickle.loads(told, buffers=buffers)) == answers(frozen)


ELSEWHERE = """
import pickle, sys
from multiprocessing import resource_tracker, shared_memory
from matchcore import FrozenIndex
path, name, topics = sys.argv[1], sys.argv[2], sys.argv[3:]
shared = shared_memory.SharedMemory(name)
resource_tracker.unregister(shared._name, "shared_memory")  # or, before 3.13, this process would remove it
indexes = [pickle.load(sys.stdin.buffer), FrozenIndex.open(path), FrozenIndex.from_buffer(shared.buf)]
print([[index.match(topic) for topic in topics] for index in indexes], [index.version for index in indexes])
del indexes
shared.close()
"""


def test_asked_in_another_process(tmp_path: Path) -> None:
    """By pickle, by file and by shared memory."""
    index = of_all_kinds()
    frozen = freeze(index)
    path = tmp_path / "filters.frozen"
    frozen.save(path)
    size = len(memoryview(frozen))
    shared = shared_memory.SharedMemory(create=True, size=size)
    try:
        shared.buf[:size] = memoryview(frozen)
        done = subprocess.run(
            [sys.executable, "-c", ELSEWHERE, str(path), shared.name, *TOPICS],
            input=pickle.dumps(frozen), capture_output=True, timeout=60, check=True,
            env=os.environ | {"PYTHONPATH": str(Path(matchcore.__file__).parent.parent)},
        )  # fmt: skip
        expected = [index.match(topic) for topic in TOPICS]
        assert done.stdout.decode().strip() == f"{[expected] * 3} {[index.version] * 3}"
    finally:
        shared.close()
        shared.unlink()


def test_topics_as_arrow_has_them() -> None:
    index = of_all_kinds()
    frozen = freeze(index)
    data = "".join(TOPICS).encode()
    offsets = numpy.cumsum([0, *map(len, TOPICS)], dtype=numpy.int32)
    ends, found = frozen.match_many(data, offsets=offsets)
    assert [tuple(found[ends[i] : ends[i + 1]].tolist()) for i in range(len(TOPICS))] == [
        index.match(t) for t in TOPICS
    ]


# ---- what is no index --------------------------------------------------------------------------------------


def test_what_is_no_frozen_index_is_named_so(tmp_path: Path) -> None:
    data = freeze(of_all_kinds()).to_bytes()
    empty = tmp_path / "empty"
    empty.touch()
    other = tmp_path / "other"
    other.write_bytes(b"PAR1" * 1_000)
    with pytest.raises(InvalidFrozenIndex, match=r"empty.*it is empty") as caught:
        FrozenIndex.open(empty)
    assert (caught.value.source, caught.value.reason) == (str(empty), "it is empty")
    assert isinstance(caught.value, ValueError)
    with pytest.raises(InvalidFrozenIndex, match=r"other.*does not begin"):
        FrozenIndex.open(other)
    for at, change, reason in [
        (8, (1).to_bytes(4, "little"), "format"),
        (12, bytes([1, 2, 3, 4]), "byte order"),
        (16, (len(data) + 64).to_bytes(8, "little"), "shorter or longer"),
        (24, b"12345678", "checksum"),
    ]:
        with pytest.raises(InvalidFrozenIndex, match=reason):
            FrozenIndex.from_buffer(data[:at] + change + data[at + len(change) :])


def test_cut_off_anywhere_it_is_told() -> None:
    data = freeze(of_all_kinds()).to_bytes()
    for size in [*range(HEADER), *range(HEADER, len(data), 61)]:
        for verify in (True, False):
            with pytest.raises(InvalidFrozenIndex):
                FrozenIndex.from_buffer(data[:size], verify=verify)
    with pytest.raises(InvalidFrozenIndex):
        FrozenIndex.from_buffer(data + bytes(64))


def test_a_byte_that_was_changed_is_told() -> None:
    data = bytearray(freeze(of_all_kinds()).to_bytes())
    dice = random.Random(3)
    for at in [*range(HEADER), *range(HEADER, len(data), 7)]:
        was = data[at]
        data[at] ^= dice.randrange(1, 256)
        with pytest.raises(InvalidFrozenIndex):
            FrozenIndex.from_buffer(data)
        data[at] = was
    FrozenIndex.from_buffer(data)


def test_forged_bytes_lead_no_search_astray() -> None:
    """A byte or a number changed and the checksum made to fit: refused, or answered with whatever."""
    dice = random.Random(5)
    data = bytearray(freeze(of_all_kinds()).to_bytes())
    taken = 0
    for _ in range(2_500):
        at = dice.randrange(HEAD + 8, len(data) - 4)
        if dice.random() < 0.2:
            at = dice.randrange(HEAD + 8, 128) // 4 * 4
        size = dice.choice([1, 1, 2, 4])
        was = data[at : at + size]
        data[at : at + size] = dice.choice([bytes(size), b"\xff" * size, dice.randbytes(size), b"\x01\0\0\0"[:size]])
        forged = bytes(data)
        data[at : at + size] = was
        forged = forged[:24] + checksum_of(forged).to_bytes(8, "little") + forged[32:]
        try:
            index = FrozenIndex.from_buffer(forged)
        except InvalidFrozenIndex:
            continue
        taken += 1
        for topic in TOPICS:
            with suppress(matchcore.TopicError):
                index.match(topic)
                index.match_any(topic)
        with suppress(matchcore.TopicError):
            index.match_many(TOPICS)
    assert 100 < taken < 2_500
