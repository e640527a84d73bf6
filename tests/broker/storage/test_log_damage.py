"""Damage: each kind of byte flipped is found, named by file and offset, and nothing false is served."""

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.storage.disk import PythonDisk
from tests.broker.storage.logs import OpenLog, opened

SMALL = 8192
BODY = bytes(1200)  # three entries fill a segment
ENTRY = 1240  # bytes of an entry on the disk, with its header
FIRST, SECOND, THIRD = (4096 + ENTRY * number for number in range(3))


def filled(folder: Path, entries: int = 9) -> list[bytes]:
    """Entries in three files, each synced by itself; their bodies."""
    one = opened(folder, segment_bytes=SMALL)
    bodies = [b"%04d" % number + BODY for number in range(1, entries + 1)]
    one.write(*bodies)
    one.log.close()
    return bodies


def flip(path: Path, offset: int, bit: int = 0) -> None:
    octets = bytearray(path.read_bytes())
    octets[offset] ^= 1 << bit
    path.write_bytes(octets)


def damaged(folder: Path) -> OpenLog:
    return opened(folder, segment_bytes=SMALL)


@pytest.mark.parametrize(
    "offset", [0, 4, 8, 16, 24, 26, 32, 33, 34, 36, 1000, 1237], ids=lambda offset: f"byte {offset} of the entry"
)
@pytest.mark.parametrize("at", [FIRST, SECOND, THIRD])
def test_a_flipped_bit_of_an_entry_is_named_by_file_and_offset(tmp_path: Path, at: int, offset: int) -> None:
    bodies = filled(tmp_path)
    path = tmp_path / "log-00000002"
    flip(path, at + offset)
    one = damaged(tmp_path)
    lost = 4 + (at - FIRST) // ENTRY
    assert [str(each) for each in one.log.damage] == [
        f"{path}: damaged at byte {at}: entries {lost} to {lost} are lost"
    ]
    assert [body for _, _, body in one.found] == [body for number, body in enumerate(bodies, 1) if number != lost]
    kept = tmp_path / "damaged" / "log-00000002-2"
    assert kept.read_bytes() == path.read_bytes()
    one.write(b"new")
    one.log.close()


def test_a_damaged_file_is_not_used_again(tmp_path: Path) -> None:
    filled(tmp_path)
    flip(tmp_path / "log-00000002", SECOND)
    one = damaged(tmp_path)
    one.write(b"new")
    kept = tmp_path / "damaged" / "log-00000002-2"
    before = kept.read_bytes()
    one.log.reclaim()
    one.raise_floor(10)
    assert len(one.log.lots) == 3
    one.write(BODY, BODY, BODY, BODY, BODY, BODY, BODY)
    one.log.prepare()
    assert not (tmp_path / "log-00000002").exists()
    assert kept.read_bytes() == before
    one.log.close()


@pytest.mark.parametrize("copy", [0, 2048])
@pytest.mark.parametrize("offset", [0, 8, 12, 16, 24, 32, 63])
def test_a_segment_is_read_by_the_other_copy_of_its_header(tmp_path: Path, copy: int, offset: int) -> None:
    bodies = filled(tmp_path)
    flip(tmp_path / "log-00000002", copy + offset)
    one = damaged(tmp_path)
    assert [body for _, _, body in one.found] == bodies
    one.log.close()


def test_a_segment_without_a_header_is_lost_kept_aside_and_named(tmp_path: Path) -> None:
    bodies = filled(tmp_path)
    path = tmp_path / "log-00000002"
    for copy in (0, 2048):
        flip(path, copy + 16)
    before = path.read_bytes()
    one = damaged(tmp_path)
    assert [str(each) for each in one.log.damage] == [
        f"{path}: damaged at byte 0: both copies of the header",
        f"{tmp_path / 'log-00000001'}: damaged at byte {4096 + 3 * ENTRY}: entries 4 to 6 are lost",
    ]
    assert [body for _, _, body in one.found] == bodies[:3] + bodies[6:]
    (kept,) = (tmp_path / "damaged").glob("log-00000002-*")
    assert kept.read_bytes() == before
    assert not path.exists()
    one.log.close()


def test_a_file_that_is_missing_is_noticed(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / "log-00000002").unlink()
    one = damaged(tmp_path)
    assert [(each.first, each.last) for each in one.log.damage] == [(4, 6)]
    one.log.close()


def test_the_first_file_missing_is_noticed_unless_a_checkpoint_covers_it(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / "log-00000001").unlink()
    one = opened(tmp_path, segment_bytes=SMALL, after=3)
    assert one.log.damage == []
    one.log.close()
    one = damaged(tmp_path)
    assert [(each.first, each.last) for each in one.log.damage] == [(1, 3)]
    assert [sequence for sequence, _, _ in one.found] == [4, 5, 6, 7, 8, 9]
    one.log.close()


def test_a_log_that_ends_before_its_checkpoint_goes_on_behind_that(tmp_path: Path) -> None:
    # A power cut may bring back an older file that was given back, and not the newer one.
    filled(tmp_path)
    (tmp_path / "log-00000003").unlink()
    one = opened(tmp_path, segment_bytes=SMALL, after=8)
    assert one.log.damage == []
    assert one.entry(b"new") == 9
    one.log.close()


def test_the_last_group_may_be_torn_and_is_no_damage(tmp_path: Path) -> None:
    one = opened(tmp_path, segment_bytes=SMALL)
    one.write(b"a", b"b")
    for body in (b"c", b"d", b"e"):
        one.entry(body)
    one.work()  # one group
    one.log.close()
    flip(tmp_path / "log-00000001", 4096 + 2 * 40 + 20)  # of c; d and e are whole
    two = opened(tmp_path, segment_bytes=SMALL)
    assert ([body for _, _, body in two.found], two.log.damage) == ([b"a", b"b"], [])
    two.write(b"f")
    three = opened_after_close(two)
    assert [body for _, _, body in three.found] == [b"a", b"b", b"f"]
    three.log.close()


def test_a_group_behind_the_gap_proves_that_it_was_synced(tmp_path: Path) -> None:
    one = opened(tmp_path, segment_bytes=SMALL)
    one.write(b"a")
    for body in (b"b", b"c"):
        one.entry(body)
    one.work()
    one.write(b"d")
    one.log.close()
    flip(tmp_path / "log-00000001", 4096 + 40 + 20)  # of b
    two = opened(tmp_path, segment_bytes=SMALL)
    assert [(each.offset, each.first, each.last) for each in two.log.damage] == [(4096 + 40, 2, 2)]
    assert [body for _, _, body in two.found] == [b"a", b"c", b"d"]
    two.log.close()


def opened_after_close(one: OpenLog) -> OpenLog:
    one.log.close()
    return opened(one.log.folder, segment_bytes=SMALL)


def test_a_message_cannot_have_bytes_that_pass_for_an_entry(tmp_path: Path) -> None:
    """Not even those of a whole entry of the same log: the salt is another in each life."""
    filled(tmp_path / "other", 2)
    forged = (tmp_path / "other" / "log-00000001").read_bytes()[SECOND : SECOND + ENTRY]  # entry 2 of generation 1
    one = opened(tmp_path / "log", segment_bytes=SMALL, salt=2)
    one.write(b"a")
    one.entry(bytes(5) + forged)  # 8 bytes before it: a multiple of 8 in the file
    one.work()
    one.log.close()
    path = tmp_path / "log" / "log-00000001"
    assert path.read_bytes().index(forged) % 8 == 0
    flip(path, 4096 + 40 + 8)
    two = opened(tmp_path / "log", segment_bytes=SMALL)
    assert [body for _, _, body in two.found] == [b"a"]
    two.log.close()


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3), st.integers(0, SMALL - 1), st.integers(0, 7))
def test_any_bit_that_is_flipped_loses_one_entry_at_most_and_says_so(
    tmp_path_factory: pytest.TempPathFactory, file: int, offset: int, bit: int
) -> None:
    folder = tmp_path_factory.mktemp("log")
    bodies = filled(folder)
    flip(folder / f"log-{file:08}", offset, bit)
    one = damaged(folder)
    found = [body for _, _, body in one.found]
    lost = [number for number, body in enumerate(bodies, 1) if body not in found]
    assert found == [body for body in bodies if body in found]
    if lost == [9]:  # nothing behind it proves that it was synced
        assert one.log.damage == []
    else:
        assert [each.first for each in one.log.damage] == [each.last for each in one.log.damage] == lost
    assert len(lost) <= 1
    one.log.close()


class Counting(PythonDisk):
    """Counts the bytes that are read."""

    octets = 0

    def operate(self, name: str, path: bytes | int, data: bytes | int | None, offset: int) -> None:
        if name == "read":
            assert isinstance(data, int)
            self.octets += data


def test_bytes_that_look_like_thousands_of_long_entries_are_read_a_few_times(tmp_path: Path) -> None:
    """What messages say may look so, in a file that is used again or after damage: 12 GiB were read of 16 MiB."""
    fake = struct.pack("<IIQQQ", 0xBAD, 6 << 20, 2, 7, 7)
    body = bytes(4) + fake * 2_000 + bytes(1 << 20)
    one = opened(tmp_path, segment_bytes=16 << 20)
    one.write(body, b"behind it")
    one.log.close()
    flip(tmp_path / "log-00000001", 4096)
    disk = Counting()
    two = opened(tmp_path, segment_bytes=16 << 20, disk=disk)
    assert [each for _, _, each in two.found] == [b"behind it"]
    assert "entries 1 to 1 are lost" in str(two.log.damage[0])
    assert disk.octets < 128 << 20
    two.log.close()
