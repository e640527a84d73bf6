"""What is reported to a store is there after a restart."""

from pathlib import Path

from tests.broker.storage.stored_world import StoredWorld


def test_a_message_for_an_absent_session_survives_a_crash(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    peer = world.connect("c", expiry=60.0, clean_start=False)
    peer.subscribe("t", qos=1)
    peer.leave()
    world.publish("t", "x", 1)
    world.turn()
    world.crash()
    again = world.connect("c", expiry=60.0, clean_start=False)
    assert again.present
    assert again.got() == ["t x 1"]
    assert world.publish("t", "y", 1) == 1
    assert again.got() == ["t y 1"]


def test_a_retained_message_survives_a_crash(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    world.publish("t", "x", retain=True)
    world.publish("u", "x", retain=True)
    world.publish("u", "", retain=True)
    world.turn()
    world.crash()
    peer = world.connect("c")
    peer.subscribe("#", qos=1, retained=True)
    assert peer.got() == ["t x 0 retain"]


def test_a_delayed_will_does_not_begin_the_expiry_of_its_session_anew(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    world.connect("c", expiry=100.0, clean_start=False, will=world.will("w", delay=50.0)).leave()
    world.turn()
    world.later(50.0)  # the will is published: the session is reported once more
    world.turn()
    world.crash(stopped=30.0)
    world.later(15.0)
    assert len(world.broker.sessions) == 1
    world.later(6.0)
    assert len(world.broker.sessions) == 0


def test_a_second_restart_does_not_begin_the_expiry_of_a_session_anew(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    world.connect("c", expiry=100.0, clean_start=False)
    world.turn()
    for _ in range(3):
        world.crash(stopped=30.0)  # it is away from the first start on
        world.round()
    world.later(39.0)
    assert len(world.broker.sessions) == 1
    world.later(2.0)
    assert len(world.broker.sessions) == 0


def test_what_is_in_flight_of_a_group_that_was_left_keeps_its_place_in_two_restarts(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    peer = world.connect("c", expiry=60.0, clean_start=False)
    group, _ = peer.subscribe("s", qos=1, group="g")
    peer.subscribe("t", qos=1)
    world.publish("s", "first", 1)
    world.publish("t", "second", 1)
    world.broker.sessions.unsubscribe(peer.session, group.filter, "g")
    world.turn()
    for _ in range(3):
        world.crash()
        again = world.connect("c", expiry=60.0, clean_start=False)
        assert [line.split()[1] for line in again.got()] == ["first", "second"]
        world.turn()


def nbytes(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.iterdir())


def test_the_folder_is_bounded_and_has_what_is_of_use(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path, garbage_bytes=200_000)
    absent = world.connect("absent", expiry=60.0, clean_start=False)
    absent.subscribe("old", qos=1)
    absent.leave()
    world.publish("old", "old", 1)
    world.publish("kept", "x", retain=True)
    peer = world.connect("c", expiry=60.0, clean_start=False)
    peer.subscribe("t", qos=1)
    most = 0
    for _ in range(400):
        for _ in range(10):
            world.publish("t", "x" * 1_000, 1)
        world.turn()
        peer.got()
        peer.acknowledge()
        world.slices()
        world.turn()
        world.log.prepare()  # which removes files that are too many
        most = max(most, nbytes(world.log.folder))
    assert world.checkpoint.rounds > 10
    assert most < 1_000_000  # of 4 MB that were written
    world.publish("t", "last", 1)
    world.turn()
    world.crash()
    assert world.broker.retained.get(b"kept", "mqtt", world.now) is not None
    assert [line.split()[1] for line in world.connect("c", expiry=60.0, clean_start=False).got()] == ["last"]
    again = world.connect("absent", expiry=60.0, clean_start=False)
    assert again.got() == ["old old 1"]


def test_a_folder_with_nothing_of_use_is_small_after_a_round(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    absent = world.connect("c", expiry=60.0, clean_start=False)
    absent.subscribe("t", qos=1)
    absent.leave()
    for n in range(1_000):
        world.publish("t", f"{n}" + "x" * 1_000, 1)
    world.turn()
    world.round()
    world.turn()
    before = nbytes(world.log.folder)
    assert before > 1_000_000  # all of it waits
    world.broker.sessions.end(absent.session, world.now)
    for _ in range(3):
        world.publish("u", "", retain=True)  # the floor is synced in two headers before files go
        world.round()
    world.log.prepare()
    assert nbytes(world.log.folder) < 400_000  # four files for later use, and what is written to


def test_one_message_of_each_file_that_still_waits_does_not_keep_the_file(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path, garbage_bytes=200_000)
    absent = world.connect("absent", expiry=60.0, clean_start=False)
    absent.subscribe("old", qos=1)
    absent.leave()
    peer = world.connect("c", expiry=60.0, clean_start=False)
    peer.subscribe("t", qos=1)
    for n in range(400):
        if n % 6 == 0:
            world.publish("old", f"old{n}", 1)  # about one in each segment
        for _ in range(10):
            world.publish("t", "x" * 1_000, 1)
        world.turn()
        peer.got()
        peer.acknowledge()
        world.slices()
        world.turn()
        world.log.prepare()
    assert world.log.compactions > 1
    assert world.log.compactions_given_up == 0
    assert nbytes(world.log.folder) < 1_200_000  # of 4 MB that were written
    world.crash()
    again = world.connect("absent", expiry=60.0, clean_start=False, receive_max=100)
    assert [line.split()[1] for line in again.got()] == [f"old{n}" for n in range(0, 400, 6)]


def test_what_comes_after_the_end_is_not_promised_and_no_failure(tmp_path: Path) -> None:
    world = StoredWorld(tmp_path)
    peer = world.connect("c", expiry=60.0, clean_start=False)
    peer.subscribe("t", qos=1)
    world.turn()
    world.checkpoint.begin()
    world.store.close()
    world.log.close()
    synced = world.store.position.synced
    world.publish("t", "too late", 1)
    peer.subscribe("u", qos=1)
    world.slices()  # of the round
    world.turn()
    assert world.store.failure is None
    assert world.store.position.synced == synced
    assert world.store.position.appended > synced
