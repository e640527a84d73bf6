"""The bytes of a record index: mapped, checked, and never read outside."""

from pathlib import Path

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matchcore import FrozenRecordIndex, InvalidFrozenIndex, RecordIndex
from matchcore.record_file import RecordFile, pack_record_file
from matchcore.record_rows import RowSection, answer
from matchcore.record_texts import TextCodes, group_by_code
from matchcore.record_writing import encode_bits, encode_rows, encode_slices

WHERES = ["region = 'r1'", "price > 3 OR price IS NULL", "NOT region LIKE 'r%2' AND open", "id >= 'n5' AND price < 60"]


def small() -> bytes:
    index = RecordIndex()
    for number in range(100):
        index.append({"region": f"r{number % 4}", "id": f"n{number}", "price": number / 4, "open": number % 3 == 0})
    return index.to_bytes()


def test_a_file_that_is_mapped_answers_as_the_index_in_memory_does(tmp_path: Path) -> None:
    (tmp_path / "records").write_bytes(small())
    mapped, memory = FrozenRecordIndex.open(tmp_path / "records"), FrozenRecordIndex(small())
    for where in WHERES:
        assert mapped.ids(where).tolist() == memory.ids(where).tolist() != []
    assert len(mapped) == 100
    assert mapped.nbytes == len(small())


def test_damage_of_any_byte_is_an_error_or_not_read(tmp_path: Path) -> None:
    data = small()
    wanted = [FrozenRecordIndex(data).ids(where).tolist() for where in WHERES]
    errors = 0
    for at in range(len(data)):
        damaged = data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]
        for where, found in zip(WHERES, wanted, strict=True):
            try:
                assert FrozenRecordIndex(damaged).ids(where).tolist() == found
            except InvalidFrozenIndex:
                errors += 1
    assert errors > len(data)
    for size in range(0, len(data), 5):
        with pytest.raises(InvalidFrozenIndex):
            FrozenRecordIndex(data[:size])
    (tmp_path / "empty").touch()
    with pytest.raises(InvalidFrozenIndex, match="empty"):
        FrozenRecordIndex.open(tmp_path / "empty")


@given(st.integers(0, 7), st.integers(0, 400), st.binary(min_size=1, max_size=8))
def test_sections_that_lie_under_a_right_checksum_are_errors_or_answers(which: int, at: int, more: bytes) -> None:
    """Whoever can write the file can make its checksums right: that ends in no crash."""
    whole = RecordFile(small())
    sections = [bytearray(whole.section(number)) for number in range(len(whole._places))]
    section = sections[which % len(sections)]
    at %= len(section)
    section[at : at + len(more)] = more
    data = pack_record_file(100, whole.described, [bytes(one) for one in sections])
    for where in WHERES:
        try:
            index = FrozenRecordIndex(data)
            found = index.ids(where).tolist()
            assert found == sorted({*found} & {*range(100)})
            index.count_by("region", where)
            index.sum("price", where)
        except InvalidFrozenIndex:
            pass


@given(st.binary(max_size=40), st.integers(0, 200_000))
def test_rows_of_random_bytes_are_errors_or_records_that_there_are(row: bytes, records: int) -> None:
    data = numpy.array([1, len(row)], "<u4").tobytes() + row
    try:
        section = RowSection(data)
        found = answer(records, [(0, 0, 0), (5, 0, 0)], [(section, 0)], None, True)
        each = answer(records, [(1, 0, 0)], [], [(section, 0)])
    except ValueError:
        return
    assert len(found) == 0 or found[-1] < records
    assert (numpy.diff(found.astype(int)) > 0).all()
    assert each[0] >= len(found)


@pytest.mark.parametrize("step", [(0, 256, 0), (9, 0, 0), (5, 0, 1), (2, 0, -1), (-1, 0, 0)])
def test_a_program_that_leaves_its_registers_or_rows_is_refused(step: tuple[int, int, int]) -> None:
    section = RowSection(encode_rows(numpy.array([1], numpy.uint32), numpy.array([0, 1], numpy.int64)))
    with pytest.raises(ValueError, match="step 0 of a program"):
        answer(10, [step], [(section, 0)])


@given(st.lists(st.lists(st.binary(max_size=12), max_size=30), max_size=6))
def test_texts_get_the_same_codes_as_in_a_dictionary(batches: list[list[bytes]]) -> None:
    codes, wanted = TextCodes(7), list[bytes]()
    for texts in batches:
        ends = numpy.cumsum([3, *map(len, texts)], dtype=numpy.int32)
        codes.add(ends, b"..." + b"".join(texts) + b"behind")
        wanted += texts
    found, words = codes.finish()
    assert [words[code] for code in found.tolist()] == wanted
    assert words == list(dict.fromkeys(wanted))
    assert len(codes) == len(words)
    ids, bounds = group_by_code(found.astype(numpy.int32), numpy.arange(len(words), dtype=numpy.int32))
    for word in range(len(words)):
        rows = ids[bounds[word] : bounds[word + 1]].tolist()
        assert rows == [row for row, text in enumerate(wanted) if text == words[word]]


def test_texts_outside_of_their_data_are_refused() -> None:
    codes = TextCodes()
    for ends in ([0, 9], [-1, 2], [2, 1]):
        with pytest.raises(ValueError, match="outside"):
            codes.add(numpy.array(ends, numpy.int32), b"abc")
    with pytest.raises(ValueError, match="of 1"):
        codes.add(numpy.array([0, 1], numpy.int32), b"abc", 1, 1)
    with pytest.raises(ValueError, match="code 3 of 1"):
        group_by_code(numpy.array([3], numpy.int32), numpy.array([0], numpy.int32))
    assert codes.rows == 0


def test_many_texts_keep_their_codes_when_the_table_grows() -> None:
    codes = TextCodes(3)
    texts = [b"%d" % (number % 5_000) for number in range(12_000)]
    codes.add(numpy.cumsum([0, *map(len, texts)], dtype=numpy.int32), b"".join(texts))
    found, words = codes.finish()
    assert words == texts[:5_000]
    assert found.tolist() == [number % 5_000 for number in range(12_000)]
    assert codes.nbytes >= 4 * 12_000 + 24 * 5_000


@settings(max_examples=60, deadline=None)
@given(
    records=st.sampled_from([0, 1, 63, 64, 65, 4_097, 65_535, 65_536, 65_537, 140_000]),
    bits=st.integers(1, 6), seed=st.integers(0, 99), density=st.sampled_from([0.0, 0.001, 0.05, 0.5, 0.999, 1.0]),
    in_runs=st.booleans(),
)  # fmt: skip
def test_slices_made_bit_by_bit_are_those_made_number_by_number(
    records: int, bits: int, seed: int, density: float, in_runs: bool
) -> None:
    random = numpy.random.default_rng(seed)
    codes = random.integers(0, 1 << bits, records, dtype=numpy.uint64)
    known = random.random(records) < density
    if in_runs:
        codes, known = numpy.sort(codes), numpy.sort(known)
    digits = [(codes >> bit & 1).astype(numpy.uint32) for bit in range(bits)]
    expected = encode_slices(known.view(numpy.uint8), digits, [2] * bits)
    assert encode_bits(known.view(numpy.uint8), codes, bits) == expected


def test_codes_are_one_a_record() -> None:
    with pytest.raises(ValueError, match="a code for each record"):
        encode_bits(numpy.ones(3, numpy.uint8), numpy.ones(2, numpy.uint64), 1)
