"""`check` finds each kind of damage and changes nothing; `repair` makes the store sound, and a broker starts on it."""

import shutil
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanlight_broker.storage import records
from fanlight_broker.storage.checking import CheckError, Findings, check
from fanlight_broker.storage.log import Log
from fanlight_broker.storage.records import read_ended
from fanlight_broker.storage.repair import ended_record, plan, repair
from fanlight_broker.storage.segment_header import header_of, read_page, with_generation
from fanlight_broker.storage.segment_walk import walk
from tests.broker.storage.stored_world import StoredWorld
from tests.broker.storage.test_log_damage import flip
from tests.broker.storage.test_pager import absent
from tests.broker.wire.formats import LineFormat

FORMATS = {"lines": LineFormat("lines")}
SEGMENT = 64 << 10
MESSAGES = 40  # of 5,000 bytes: four files


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def filled(root: Path) -> Path:
    """A store with all there is; its folder."""
    world = StoredWorld(root)
    absent(world, "away")
    absent(world, "away-too")
    member = world.connect("member", expiry=60.0, clean_start=False)
    member.subscribe("t", qos=1, group="g")
    here = world.connect("here", expiry=60.0, clean_start=False, receive_max=3, will=world.will("w"))
    here.subscribe("t", qos=1)
    world.publish("kept", "x", retain=True)
    for number in range(MESSAGES):
        world.publish("t", f"{number:05}" * 1_000, 1)
        world.turn()
    world.log.prepare()
    world.log.close()
    return world.log.folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def store(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "0"))


def found_in(folder: Path) -> Findings:
    before = contents(folder)
    found = check(folder, FORMATS)
    assert contents(folder) == before
    return found


def repaired(folder: Path) -> Findings:
    """After a repair: it is sound, and a broker starts on it and stores on."""
    repair(check(folder, FORMATS), segment_bytes=SEGMENT)
    found = check(folder, FORMATS)
    assert [str(problem) for problem in found.problems] == []
    world = StoredWorld(folder.parent)
    assert world.recovered.sessions == found.sessions
    assert world.recovered.retained == found.retained
    assert world.log.damage == []
    world.publish("t", "after", 1)
    world.turn()
    world.log.close()
    after = check(folder, FORMATS)
    assert after.sound
    assert after.waiting + after.in_flight > found.waiting + found.in_flight or not found.sessions
    return found


def test_a_sound_store_is_counted(store: Path) -> None:
    found = found_in(store)
    assert found.sound
    assert (found.sessions, found.subscriptions, found.queues) == (4, 4, 1)
    assert found.waiting + found.in_flight == 4 * MESSAGES
    assert found.in_flight >= 3
    assert (found.retained, found.marks) == (1, 0)
    assert found.segments == 4
    assert found.bytes == sum(path.stat().st_size for path in store.glob("log-*"))
    view = found.view()
    assert (view["sound"], view["waiting"], view["problems"]) == (True, found.waiting, [])


def test_a_flipped_bit_is_named_with_the_messages_that_are_lost(store: Path) -> None:
    path = store / "log-00000002"
    offset = 4096 + 5100 * 3
    flip(path, offset)
    found = found_in(store)
    (problem,) = found.problems
    assert problem.file == "log-00000002"
    assert 4096 < problem.offset <= offset < problem.offset + 5200
    assert "up to 1 messages" in problem.lost
    assert found.waiting + found.in_flight == 4 * (MESSAGES - 1)
    assert list(plan(found)) == [f"1 entry is given up, beginning with {found.gaps[0].first}"]
    before = path.read_bytes()
    repaired(store)
    assert (store / "damaged" / "log-00000002-2").read_bytes() == before


@pytest.mark.parametrize("at", [20, 514])
def test_a_damaged_index_costs_nothing_and_is_made_again(store: Path, at: int) -> None:
    whole = (store / "index-00000002").read_bytes()
    flip(store / "index-00000002", at)
    found = found_in(store)
    (problem,) = found.problems
    assert (problem.file, problem.lost) == ("index-00000002", "nothing")
    assert problem.offset in (0, 512, 515)[at > 512 :]
    assert problem.what.startswith("the index of log-00000002 is damaged: ")
    assert list(plan(found)) == ["log-00000002 gets its index again"]
    repaired(store)
    assert (store / "index-00000002").read_bytes() == whole


@pytest.mark.parametrize("copy", [0, 1])
def test_one_damaged_copy_of_a_header_costs_nothing_and_is_written_again(store: Path, copy: int) -> None:
    path = store / "log-00000003"
    whole = path.read_bytes()
    flip(path, copy * 2048 + 20)
    found = found_in(store)
    (problem,) = found.problems
    assert (problem.file, problem.offset, problem.lost) == ("log-00000003", copy * 2048, "nothing")
    repair(found)
    assert path.read_bytes() == whole
    repaired(store)


@pytest.mark.parametrize("number", [1, 2, 4])
def test_a_file_without_a_header_is_moved_aside_and_its_entries_given_up(store: Path, number: int) -> None:
    path = store / f"log-{number:08}"
    for copy in (0, 2048):
        flip(path, copy + 16)
    before = path.read_bytes()
    found = found_in(store)
    assert found.problems[0].what == "both copies of the header are damaged"
    assert not found.sound
    assert f"log-{number:08} is moved to damaged/" in list(plan(found))
    repaired(store)
    (kept,) = (store / "damaged").glob(f"log-{number:08}-*")
    assert kept.read_bytes() == before


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_missing_file_is_noticed(store: Path, number: int) -> None:
    (store / f"log-{number:08}").unlink()
    found = found_in(store)
    assert len(found.gaps) == 1
    repaired(store)


def test_damage_across_two_files_is_given_up_in_the_first(store: Path) -> None:
    first, second = store / "log-00000002", store / "log-00000003"
    walked = walk(first)
    assert walked is not None
    flip(first, walked.end - 100)
    flip(second, 4096)
    found = found_in(store)
    assert len(found.gaps) == 1
    assert found.gaps[0].last == found.gaps[0].first + 1
    repaired(store)


def test_a_torn_end_is_no_damage(store: Path) -> None:
    path = store / "log-00000004"
    walked = walk(path)
    assert walked is not None
    flip(path, walked.end - 100)
    assert found_in(store).sound


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1 << 32), flips=st.integers(1, 4))
def test_whatever_is_flipped_a_repair_makes_it_sound(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, seed: int, flips: int
) -> None:
    random = Random(seed)
    folder = Path(shutil.copytree(whole, tmp_path_factory.mktemp("flipped") / "0"))
    for _ in range(flips):
        path = random.choice(sorted(folder.glob("log-*")))
        flip(path, random.choice((random.randrange(4096), random.randrange(path.stat().st_size))), random.randrange(8))
    if not found_in(folder).sound:
        repair(check(folder, FORMATS), segment_bytes=SEGMENT)
    assert [str(problem) for problem in check(folder, FORMATS).problems] == []
    world = StoredWorld(folder.parent)
    assert world.log.damage == []
    world.log.close()
    shutil.rmtree(folder.parent)


def test_a_copy_that_could_not_be_delivered_is_dropped(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    absent(world, "away")
    for payload in ("x", "y"):
        world.publish("t", payload, 1)
        world.turn()
    queue, first = 1, world.store.records.last_number - 1
    world.log.close()
    log = Log(tmp_path / "0", lambda: None, threaded=False, segment_bytes=SEGMENT)
    assert list(log.replay())
    # Given to a window, and back without saying how it is to be delivered.
    log.number_from(first + 2)
    assigned, returned = queue << 2 | records.ASSIGNED, queue << 2 | records.RETURNED
    log.append(records.MOVES, bytes([assigned, first << 1, 1, 1, returned, 0]))
    log.seal()
    log.write_group()
    log.close()
    found = found_in(tmp_path / "0")
    assert found.dangling == [(queue, first)]
    (problem,) = found.problems
    assert str(problem).startswith(f"message {first} of session 'away': how it is to be delivered")
    assert repaired(tmp_path / "0").waiting == 1


def restated(root: Path) -> Path:
    """A store whose messages are all before its floor; its folder."""
    world = StoredWorld(root)
    absent(world, "away")
    absent(world, "away-too")
    for number in range(MESSAGES):
        world.publish("t", f"{number:05}" * 1_000, 1)
        world.turn()
    world.round()
    world.log.close()
    return world.log.folder


@pytest.mark.parametrize("damage", ["byte", "headers", "missing"])
def test_copies_whose_message_is_lost_are_named_and_dropped(tmp_path: Path, damage: str) -> None:
    folder = restated(tmp_path)
    path = folder / "log-00000002"
    if damage == "missing":
        path.unlink()
    else:
        for offset in (4096 + 5100 * 3,) if damage == "byte" else (16, 2048 + 16):
            flip(path, offset)
    found = found_in(folder)
    lost = {number for _, number in found.dangling}
    assert len(found.dangling) == 2 * len(lost)
    assert len(lost) == 1 if damage == "byte" else len(lost) > 5
    assert any(str(problem).startswith(f"message {min(lost)} of session 'away'") for problem in found.problems)
    assert f"{2 * len(lost)} copies of messages that are lost or unreadable: dropped" in list(plan(found))
    assert repaired(folder).waiting == 2 * (MESSAGES - len(lost))


def test_older_damage_is_found_and_left_out(store: Path) -> None:
    log = Log(store, lambda: None, threaded=False, segment_bytes=SEGMENT)
    assert list(log.replay())
    log.number_from(1_000)
    for _ in range(2):
        log.append(records.ENDED, b"")
        log.seal()
        assert log.write_group()
        log.raise_floor(log.synced)
    log.close()
    path = store / "log-00000002"
    flip(path, 4096 + 5100 * 3)
    found = found_in(store)
    (problem,) = found.problems
    assert (problem.file, found.gaps) == ("log-00000002", [])
    assert "older entries" in problem.what
    repair(found)
    assert check(store, FORMATS).sound
    assert (store / "damaged" / "log-00000002-2").exists()


def test_ended_records_are_what_the_store_reads() -> None:
    copies = [(1, 5), (1, 300), (7, 2), (7, 3), (1 << 40, 1 << 50)]
    ended = [(queue, first) for queue, first, last in read_ended(ended_record(copies)) if first == last]
    assert ended == copies


def test_what_cannot_be_checked_says_why(tmp_path: Path, store: Path) -> None:
    with pytest.raises(CheckError, match="is no folder"):
        check(tmp_path / "none", FORMATS)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckError, match="is no store"):
        check(tmp_path / "empty", FORMATS)
    with pytest.raises(CheckError, match="which is not spoken here"):
        check(store, {})
    log = Log(store, lambda: None, threaded=False)
    with pytest.raises(CheckError, match="in use by another broker"):
        check(store, FORMATS)
    for _ in log.replay():
        pass
    log.append(99, b"of a later version")
    log.seal()
    log.write_group()
    log.close()
    with pytest.raises(CheckError, match="a record of type 99, which this version does not know"):
        check(store, FORMATS)


def test_headers_are_read_and_made_as_the_log_does(store: Path) -> None:
    page = read_page(store / "log-00000002")
    header = header_of(page)
    assert header is not None
    assert (header.generation, header.copies) == (2, (page[:2048], page[2048:]))
    assert with_generation(header.whole, 2) == page
    assert header_of(bytes(4096)) is None
    earlier = header_of(with_generation(header.whole, 1))
    assert earlier is not None
    assert (earlier.generation, earlier.salt) == (1, header.salt)
