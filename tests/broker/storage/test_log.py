"""The log: entries come back in order, whole; one broker for each folder."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.storage.crc32c import crc32c
from fanlight_broker.storage.log import Log
from fanlight_broker.storage.segments import LogError
from tests.broker.storage.logs import opened, reopened


def test_what_was_appended_comes_back_in_order(tmp_path: Path) -> None:
    one = opened(tmp_path)
    assert one.found == []
    one.entry(b"a", b"b", type=1)
    one.entry(b"", type=255)
    one.work()
    assert (one.log.appended, one.log.synced) == (2, 2)
    two = reopened(one)
    assert two.found == [(1, 1, b"a"), (1, 1, b"b"), (2, 255, b"")]
    assert two.entry(b"c") == 3
    assert [body for _, _, body in reopened(two).found] == [b"a", b"b", b"", b"c"]


def test_an_entry_is_open_until_it_is_sealed_and_has_one_sequence(tmp_path: Path) -> None:
    one = opened(tmp_path)
    assert one.log.append(1, b"a") == one.log.append(1, b"b") == one.log.appended == 1
    one.work()
    assert one.log.synced == 0
    one.log.seal()
    one.log.seal()  # there is nothing more
    one.work()
    assert one.log.synced == one.log.appended == 1


def test_replay_begins_behind_the_entry_asked_for(tmp_path: Path) -> None:
    one = opened(tmp_path)
    one.write(*(b"%d" % number + bytes(3000) for number in range(20)))
    two = reopened(one, after=15)
    assert [sequence for sequence, _, _ in two.found] == [16, 17, 18, 19, 20]
    assert two.log.damage == []
    assert reopened(two, after=20).found == []


def test_the_time_and_the_number_of_an_entry_are_kept(tmp_path: Path) -> None:
    now = 1_700_000_000.123
    log = Log(tmp_path, lambda: None, clock=lambda: now, segment_bytes=16384, threaded=False)
    assert list(log.replay()) == []
    log.append(1, b"a")
    log.seal()
    log.close()
    (file,) = tmp_path.glob("log-*")
    octets = file.read_bytes()
    assert int.from_bytes(octets[4096 + 26 : 4096 + 32], "little") == 1_700_000_000_123
    log = Log(tmp_path, lambda: None, segment_bytes=16384, threaded=False)
    assert list(log.replay()) == [(1, now, 1, b"a")]
    log.close()


def test_the_bytes_of_an_entry(tmp_path: Path) -> None:
    one = opened(tmp_path, clock=lambda: 0x0102_0304_0506 / 1000)
    one.log.number_from(7)
    one.entry(b"hello", type=9)
    one.work()
    (file,) = tmp_path.glob("log-*")
    octets = file.read_bytes()
    header = octets[:4096]
    assert header[:8] == b"fanlight"
    assert header[8:12] == (2).to_bytes(4, "little")
    assert header[12:16] == crc32c(header[:12] + header[16:64]).to_bytes(4, "little")
    assert header[16:32] == (1).to_bytes(8, "little") * 2  # generation and salt
    assert header[32:2048] == bytes(2016)  # the floor, among others
    assert header[2048:4096] == header[:2048]
    entry = octets[4096 : 4096 + 40]
    length, sequence, number = (7).to_bytes(4, "little"), (1).to_bytes(8, "little"), (7).to_bytes(8, "little")
    rest = length + sequence + number + bytes(2) + bytes([6, 5, 4, 3, 2, 1]) + b"\x09\x05hello"
    assert entry == crc32c(header[16:32] + rest).to_bytes(4, "little") + rest + b"\0"
    assert octets[4096 + 40 :] == bytes(16384 - 4096 - 40)
    one.log.close()


def test_an_entry_longer_than_a_segment_gets_a_longer_one(tmp_path: Path) -> None:
    one = opened(tmp_path)
    one.write(b"a", bytes(3_000_000), b"b")
    assert [len(body) for _, _, body in reopened(one).found] == [1, 3_000_000, 1]


def test_a_log_is_replayed_before_it_is_appended_to(tmp_path: Path) -> None:
    log = Log(tmp_path, lambda: None, threaded=False)
    calls: list[Callable[[], object]] = [
        lambda: log.append(1, b"a"),
        lambda: log.live(1, 1),
        lambda: log.raise_floor(1),
        lambda: log.reclaim(),
        lambda: log.number_from(1),
    ]
    for call in calls:
        with pytest.raises(LogError, match="was not replayed"):
            call()
    with pytest.raises(LogError, match="seek comes first"):
        log.reader().next_entry()
    assert list(log.replay()) == []
    with pytest.raises(RuntimeError, match="already"):
        next(log.replay())
    log.close()
    with pytest.raises(LogError, match="closed"):
        log.append(1, b"a")


def test_publishers_are_held_back_while_too_much_waits_for_the_disk(tmp_path: Path) -> None:
    one = opened(tmp_path, buffer_bytes_max=1000)
    one.entry(bytes(800))
    assert not one.log.full
    one.log.append(1, bytes(300))
    assert one.log.full
    one.log.seal()
    assert one.log.full
    one.work()
    assert not one.log.full
    assert one.log.buffered == 0
    one.log.close()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.lists(st.integers(0, 5000), min_size=1, max_size=5).map(lambda sizes: ("entry", sizes)),
            st.sampled_from([("work", []), ("reopen", [])]),
        ),
        max_size=30,
    )
)
def test_the_log_is_a_list_of_entries(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, list[int]]]
) -> None:
    one = opened(tmp_path_factory.mktemp("log"))
    model: list[tuple[int, int, bytes]] = []
    entries = 0
    for kind, sizes in steps:
        if kind == "entry":
            entries += 1
            bodies = [bytes([entries % 251]) * size for size in sizes]
            assert one.entry(*bodies, type=entries % 256) == entries
            model += [(entries, entries % 256, body) for body in bodies]
        elif kind == "work":
            one.work()
            assert one.log.synced == one.log.written == entries
        else:
            one = reopened(one)
            assert one.found == model
            assert one.log.damage == []
    assert reopened(one).found == model


def test_the_writer_thread_syncs_and_wakes_the_loop(tmp_path: Path) -> None:
    one = opened(tmp_path, threaded=True)
    for number in range(500):
        one.entry(b"%d" % number)
    one.wait(500)
    assert one.reports[-1] == (500, None)
    assert 1 <= len(one.reports) <= one.log.groups
    assert one.log.buffered == 0
    assert [body for _, _, body in reopened(one).found] == [b"%d" % number for number in range(500)]


def test_closing_writes_what_waits(tmp_path: Path) -> None:
    one = opened(tmp_path, threaded=True)
    for number in range(500):
        one.entry(b"%d" % number)
    one.log.append(1, b"open")
    one.log.close()
    assert one.log.synced == 501
    assert len(opened(tmp_path).found) == 501


HOLDER = """
import sys
from fanlight_broker.storage.log import Log
log = Log(sys.argv[1], lambda: None)
print("open", flush=True)
sys.stdin.read()
"""


def test_two_processes_cannot_have_one_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(LogError, match=rf"in use by another broker \(process {holder.pid}\): stop it, or give"):
            opened(tmp_path)
        holder.communicate()
    opened(tmp_path).log.close()


def as_version(folder: Path, version: int) -> None:
    """Make a log of one file that is closed one of another version."""
    (file,) = folder.glob("log-*")
    with file.open("r+b") as written:
        header = bytearray(written.read(64))
        header[8:12] = version.to_bytes(4, "little")
        header[12:16] = crc32c(header[:12] + header[16:]).to_bytes(4, "little")
        for at in (0, 2048):
            written.seek(at)
            written.write(header)


def test_a_newer_format_is_refused_and_an_older_one_is_read(tmp_path: Path) -> None:
    opened(tmp_path).log.close()
    one = opened(tmp_path)
    one.write(b"a")
    one.log.close()
    as_version(tmp_path, 3)
    with pytest.raises(LogError, match=r"log-00000001: format 3 is of a newer Fanlight; this one reads up to 2: start"):
        opened(tmp_path)
    as_version(tmp_path, 1)
    again = opened(tmp_path)
    assert again.log.damage == []
    again.log.close()
