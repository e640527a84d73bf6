"""CRC-32C: the vectors of RFC 3720, B.4, and that both ways agree."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.storage.crc32c import crc32c, crc32c_by_table
from fanlight_broker.storage.range_crc import crc_of_range

ISCSI_READ = bytes.fromhex(
    "01c00000000000000000000000000000140000000000040000000014000000182800000000000000" "0200000000000000"
)
VECTORS = [
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
    (ISCSI_READ, 0xD9963A56),
    (b"123456789", 0xE3069283),
    (b"", 0),
]


@pytest.mark.parametrize("compute", [crc32c, crc32c_by_table])
@pytest.mark.parametrize(("data", "expected"), VECTORS)
def test_known_vectors(compute: Callable[[bytes], int], data: bytes, expected: int) -> None:
    assert compute(data) == expected


@given(st.binary(max_size=100), st.binary(max_size=100))
def test_both_ways_agree_and_can_be_continued(first: bytes, second: bytes) -> None:
    assert crc32c(first + second) == crc32c_by_table(first + second)
    assert crc32c(second, crc32c(first)) == crc32c(first + second)
    assert crc32c_by_table(second, crc32c_by_table(first)) == crc32c(first + second)


@given(st.binary(max_size=400), st.data(), st.integers(0, 2**32 - 1))
def test_the_checksum_of_a_range_is_that_of_its_bytes(data: bytes, choice: st.DataObject, seed: int) -> None:
    first = choice.draw(st.integers(0, len(data)))
    end = choice.draw(st.integers(first, len(data)))
    assert crc_of_range(data, first, end, seed) == crc32c(data[first:end], seed)


def test_a_range_must_be_of_the_data() -> None:
    for first, end in ((-1, 1), (2, 1), (0, 4)):
        with pytest.raises(ValueError, match="is no range of 3 bytes"):
            crc_of_range(b"abc", first, end)
