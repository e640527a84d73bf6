"""Keep alive and idle time do not count the time in which the broker stood still."""

from fanlight_broker.protocols.mqtt.packets import PingReq, WillFields
from tests.broker.protocols.mqtt import world as mqtt
from tests.broker.protocols.native import world as native


def stand_still(world: mqtt.World | native.World, seconds: float) -> None:
    """As core/standstill.py notes it."""
    world.now += seconds
    world.broker.ledger.standstill += seconds
    world.pass_time(0)


def test_an_mqtt_client_has_its_whole_keep_alive_besides_a_standstill() -> None:
    world = mqtt.World()
    peer = world.connect(keep_alive=4)
    world.pass_time(5)
    stand_still(world, 3_600)
    assert not peer.gone
    world.pass_time(1)
    assert peer.gone


def test_a_client_that_is_silent_is_cut_off_after_a_standstill_all_the_same() -> None:
    world = mqtt.World()
    watcher = world.connect("watcher")
    watcher.subscribe("died/#")
    peer = world.connect("silent", keep_alive=1, will=WillFields("died/silent", b""))
    stand_still(world, 2)
    assert (peer.gone, watcher.messages()) == (False, [])
    world.pass_time(2)
    assert peer.gone
    assert [message.topic for message in watcher.messages()] == ["died/silent"]


def test_a_packet_read_before_the_standstill_is_noticed_gives_no_more_than_the_keep_alive() -> None:
    world = mqtt.World()
    peer = world.connect(keep_alive=4)
    world.now += 3_600
    peer.say(PingReq())
    world.broker.ledger.standstill += 3_600
    world.pass_time(0)
    world.pass_time(5.9)
    assert not peer.gone
    world.pass_time(0.2)
    assert peer.gone


def test_a_native_client_is_pinged_and_closed_by_its_own_silence_alone() -> None:
    world = native.World(idle_seconds_max=8)
    peer = world.connect()
    stand_still(world, 3_600)
    assert peer.frames() == []
    world.pass_time(4)
    assert peer.next()[0] == 11
    stand_still(world, 3_600)
    assert (peer.gone, peer.frames()) == (False, [])
    world.pass_time(4)
    assert peer.gone
