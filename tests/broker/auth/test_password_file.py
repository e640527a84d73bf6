"""The password file: read whole, told by line what is wrong, rewritten by renaming."""

import os
import threading
from pathlib import Path

import argon2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanlight_broker.auth.password_file import PasswordFileError, parse, read, set_hash, why_not_a_user

# Costs as low as argon2 allows: these tests are about the file.
HASHER = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
# The salts are fixed, for they are in the names of tests, which every worker must give alike.
ONE, TWO = (HASHER.hash(word, salt=word.ljust(16).encode()) for word in ("one", "two"))


def test_a_file_is_users_and_hashes_between_comments_and_empty_lines() -> None:
    text = f"# users\n\nalice:{ONE}\r\n  \nbob smith:{TWO}"
    assert parse(text, "users") == {"alice": ONE, "bob smith": TWO}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("alice", "is not user:hash"),
        (f":{ONE}", "must not be empty"),
        (f" alice:{ONE}", "spaces at its ends"),
        (f"a\x1bb:{ONE}", "control characters"),
        (f"{'x' * 256}:{ONE}", "at most 255 bytes"),
        ("alice:", "no argon2 hash; `fanlightd passwd FILE USER` writes one"),
        ("alice:hunter2", "no argon2 hash"),
        ("alice:$2b$12$abcdefghijklmnopqrstuv", "no argon2 hash"),
        (f"alice:{ONE}x:y", "no argon2 hash"),
        ("alice:" + ONE.replace("m=8", "m=99999999"), "costs out of range"),
        ("alice:" + ONE.replace("t=1", "t=0"), "costs out of range"),
        (f"bob:{TWO}", "'bob' is on line 1 already"),
    ],
)
def test_a_malformed_line_is_told_by_its_number_and_not_shown(line: str, said: str) -> None:
    with pytest.raises(PasswordFileError, match=r"^users, line 3: ") as caught:
        parse(f"bob:{ONE}\n\n{line}\n", "users")
    assert said in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert "$" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_told_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(PasswordFileError, match="no such file; create it: fanlightd passwd"):
        read(tmp_path / "none")
    with pytest.raises(PasswordFileError, match="Is a directory"):
        read(tmp_path)
    (tmp_path / "users").write_bytes(b"# \n\xff\n")
    with pytest.raises(PasswordFileError, match=r"users, line 2: is not UTF-8"):
        read(tmp_path / "users")


def test_a_new_file_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "users"
    assert set_hash(path, "alice", ONE) is False
    assert read(path) == {"alice": ONE}
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["users"]


def test_changing_one_user_leaves_all_else_and_the_mode(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text(f"# head\nalice:{ONE}\n\n# about bob\nbob:{ONE}\n")
    path.chmod(0o640)
    assert set_hash(path, "alice", TWO) is True
    assert path.read_text() == f"# head\nalice:{TWO}\n\n# about bob\nbob:{ONE}\n"
    assert set_hash(path, "bob", None) is True
    assert path.read_text() == f"# head\nalice:{TWO}\n\n# about bob\n"
    assert path.stat().st_mode & 0o777 == 0o640


def test_deleting_a_user_who_is_not_there_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text(f"alice:{ONE}")
    before = path.stat()
    assert set_hash(path, "bob", None) is False
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_line_without_an_end_is_not_glued_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text(f"alice:{ONE}")
    set_hash(path, "bob", TWO)
    assert read(path) == {"alice": ONE, "bob": TWO}


def test_a_malformed_file_is_not_rewritten(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text("precious\n")
    with pytest.raises(PasswordFileError, match="line 1"):
        set_hash(path, "alice", ONE)
    assert path.read_text() == "precious\n"
    assert os.listdir(tmp_path) == ["users"]


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    link.symlink_to(real)
    set_hash(link, "alice", ONE)
    assert link.is_symlink()
    assert read(real) == {"alice": ONE}


def test_writers_at_once_lose_no_user_and_readers_see_whole_files(tmp_path: Path) -> None:
    path = tmp_path / "users"
    set_hash(path, "first", ONE)

    def write(writer: int) -> None:
        for number in range(10):
            set_hash(path, f"user{writer}-{number}", TWO)

    writers = [threading.Thread(target=write, args=(each,)) for each in range(4)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert "first" in read(path)
    assert len(read(path)) == 41


@given(st.dictionaries(st.text().filter(lambda user: not why_not_a_user(user)), st.sampled_from([ONE, TWO])))
def test_every_user_name_that_is_allowed_survives_the_file(users: dict[str, str]) -> None:
    text = "".join(f"{user}:{hash}\n" for user, hash in users.items())
    assert parse(text, "users") == users


@given(st.text())
def test_no_text_does_worse_than_a_password_file_error(text: str) -> None:
    try:
        parse(text, "users")
    except PasswordFileError as error:
        assert str(error).startswith("users, line ")  # noqa: PT017 - either outcome is fine, a third is not
