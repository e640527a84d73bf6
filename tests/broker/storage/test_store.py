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
