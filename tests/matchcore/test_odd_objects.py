"""Objects that are not what they seem: they are read as what they hold, or refused by name; the process lives on."""

import ctypes
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import matchcore
from matchcore import FilterIndex, FrozenIndex, NameIndex, freeze


def test_a_frozen_index_that_nobody_froze_has_no_bytes() -> None:
    class Own(FrozenIndex):
        def __init__(self) -> None:
            pass

    for made in (FrozenIndex.__new__(FrozenIndex), Own()):
        assert made.match("a") == ()
        assert made.nbytes > 0
        uses: list[Callable[[Any], object]] = [
            lambda one: one.to_bytes(), memoryview, pickle.dumps, lambda one: FrozenIndex.from_buffer(one),
        ]  # fmt: skip
        for use in uses:
            with pytest.raises((ValueError, TypeError, BufferError)):
                use(made)


def test_a_subclass_that_makes_none_or_an_old_one_is_a_type_error() -> None:
    data = freeze(FilterIndex())

    class NoneOfThem(FrozenIndex):
        def __new__(cls, *_: object) -> Any:
            return None

    class AnOldOne(FrozenIndex):
        def __new__(cls, *_: object) -> Any:
            return data

    for kind in (NoneOfThem, AnOldOne):
        with pytest.raises(TypeError, match="made no new FrozenIndex"):
            kind.from_buffer(data)
    with pytest.raises(TypeError):
        matchcore.frozen.freeze(None)  # type: ignore[arg-type]


class AnyOrder(int):
    """As large and as small as one likes."""

    def __le__(self, other: object) -> bool:
        return True

    __lt__ = __ge__ = __gt__ = __le__


@pytest.mark.parametrize("words", [0, -1, 1 << 20, 1 << 31, 1 << 70])
@pytest.mark.parametrize("make", [FilterIndex, NameIndex])
def test_limits_that_lie_about_their_order_are_refused(make: Callable[[int], object], words: int) -> None:
    with pytest.raises(ValueError, match="max_words"):
        make(AnyOrder(words))


class Bytes(bytes):
    def __bytes__(self) -> bytes:
        return b"#"


class Text(str):
    def encode(self, *_: object) -> bytes:
        return b"#"

    def __str__(self) -> str:
        return "amqp"


def test_a_parsed_filter_says_what_was_parsed() -> None:
    honest = matchcore.parse_filter("+/a", "mqtt")
    for text in (Bytes(b"+/a"), Text("+/a")):
        parsed = matchcore.parse_filter(text, Text("mqtt"))
        assert parsed == honest
        assert (type(parsed.text), type(parsed.syntax)) == (bytes, str)
        assert parsed.refuses_dollar


class Struct(ctypes.Structure):
    _fields_ = (("text", ctypes.c_char * 7),)


def test_a_buffer_of_topics_needs_no_length() -> None:
    """Only the buffer protocol, as the documentation says."""
    index = FilterIndex()
    index.insert("a.*", 1)
    index.insert("b.#", 2)
    for buffer in (pickle.PickleBuffer(b"a.xb.yc"), Struct(b"a.xb.yc")):
        ends, ids = index.match_many(buffer, offsets=[0, 3, 6, 7])
        assert (ends.tolist(), ids.tolist()) == ([0, 1, 2, 2], [1, 2])


def test_saving_takes_the_place_of_a_file_and_of_nothing_else(tmp_path: Path) -> None:
    frozen = freeze(FilterIndex())
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileExistsError, match="pipe"):
        frozen.save(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()
    assert [entry.name for entry in tmp_path.iterdir()] == ["pipe"]
    raw = os.fsencode(tmp_path / "filters")
    frozen.save(raw)
    assert len(FrozenIndex.open(raw)) == 0
    for nonsense in (1, None, b"a\0b"):
        with pytest.raises((TypeError, ValueError)):
            frozen.save(nonsense)  # type: ignore[arg-type]
