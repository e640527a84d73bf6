"""The audit log: a file of JSON lines, rotated, and what is lost is counted."""

import json
import os
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fanlight_broker import audit
from fanlight_broker.auditing import AuditFile


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


Open = Callable[..., AuditFile]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    made: list[AuditFile] = []

    def one(path: Path | None = None, **bounds: int) -> AuditFile:
        most = {"bytes_max": 1 << 20, "files_max": 3, "queue_max": 1000, **bounds}
        made.append(AuditFile(path or tmp_path / "audit", **most))
        return made[-1]

    yield one
    for each in made:
        each.close()


def test_a_note_is_a_line_of_a_file_for_its_owner_only(opened: Open, tmp_path: Path) -> None:
    file = opened()
    before = audit.use(file)
    try:
        audit.note("login", user="al\nice\x1b[31m", groups=frozenset({"b", "a"}), expires=None, password="wonder")
    finally:
        audit.use(before)
    audit.note("login", user="nobody takes it")
    file.close()
    (line,) = lines(tmp_path / "audit")
    assert list(line) == ["time", "kind", "user", "groups", "expires", "password"]
    assert line["kind"] == "login"
    assert line["groups"] == ["a", "b"]
    assert "\x1b" not in line["user"]
    assert "wonder" not in (tmp_path / "audit").read_text()
    assert (tmp_path / "audit").stat().st_mode & 0o777 == 0o600


def test_it_is_rotated_by_size_and_the_oldest_is_deleted(opened: Open, tmp_path: Path) -> None:
    file = opened(bytes_max=4096)
    for number in range(300):
        file.note("login", {"number": number, "filling": "x" * 100})
    file.close()
    files = ["audit", "audit.1", "audit.2"]
    assert sorted(os.listdir(tmp_path)) == files
    assert all((tmp_path / each).stat().st_size <= 4096 for each in files)
    kept = [line["number"] for each in reversed(files) for line in lines(tmp_path / each)]
    assert kept == list(range(kept[0], 300))
    assert file.rotations >= 3
    assert file.lost == 0


def test_one_file_begins_anew(opened: Open, tmp_path: Path) -> None:
    file = opened(bytes_max=4096, files_max=1)
    for number in range(100):
        file.note("login", {"number": number, "filling": "x" * 100})
    file.close()
    assert os.listdir(tmp_path) == ["audit"]
    assert lines(tmp_path / "audit")[-1]["number"] == 99


def test_a_file_that_was_there_is_continued_and_opened_again_when_asked(opened: Open, tmp_path: Path) -> None:
    for _ in range(2):
        file = opened()
        file.note("login", {})
        file.close()
    assert len(lines(tmp_path / "audit")) == 2
    file = opened()
    os.rename(tmp_path / "audit", tmp_path / "taken away")
    file.reopen()
    file.note("login", {})
    file.close()
    assert len(lines(tmp_path / "audit")) == 1


class Standstill:
    """A disk that stands still until the test lets it go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go_on, self._write = threading.Event(), threading.Event(), os.write
        monkeypatch.setattr("fanlight_broker.auditing.os.write", self)

    def __call__(self, fd: int, octets: bytes) -> int:
        self.begun.set()
        self.go_on.wait()
        return self._write(fd, octets)


def test_a_disk_that_stands_still_holds_nobody_up_and_what_is_lost_is_said(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, file = Standstill(monkeypatch), opened(queue_max=16)
    file.note("login", {"number": 0})
    disk.begun.wait()
    for number in range(1, 30):
        file.note("login", {"number": number})
    assert (file.waiting, file.lost, file.notes) == (16, 13, 30)
    disk.go_on.set()
    file.close()
    found = lines(tmp_path / "audit")
    assert [line["count"] for line in found if line["kind"] == "lost"] == [13]
    assert [line["number"] for line in found if line["kind"] == "login"] == list(range(17))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full (Linux)")
def test_a_full_disk_is_counted_and_logged_once(opened: Open, caplog: pytest.LogCaptureFixture) -> None:
    file = opened(Path("/dev/full"))
    for _ in range(3):
        file.note("login", {})
    file.close()
    assert file.lost == 3
    assert [record.message.split()[0] for record in caplog.records] == ["audit_failed"]


def test_half_a_line_is_taken_back(opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, sizes = os.write, queue.SimpleQueue[int | None]()
    for size in (7, None, None):
        sizes.put(size)

    def write(fd: int, octets: bytes) -> int:
        return real(fd, octets[: sizes.get()])

    monkeypatch.setattr("fanlight_broker.auditing.os.write", write)
    file = opened()
    file.note("login", {"number": 1})
    file.note("login", {"number": 2})
    file.close()
    assert [line.get("number", line.get("count")) for line in lines(tmp_path / "audit")] == [1, 2]
    assert file.lost == 1
