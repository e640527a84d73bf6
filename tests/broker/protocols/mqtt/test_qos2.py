"""What acknowledgements of QoS 1 and 2 do to messages in flight (MQTT 5, 4.3.2, 4.3.3)."""

from fanlight_broker.protocols.mqtt import qos2
from tests.broker.wire.windows import World


def test_quality_2_takes_three_steps_and_its_place_until_the_last() -> None:
    """4.3.3"""
    world = World(receive_max=1)
    world.publish(2, times=2)
    assert world.got() == [(0, 2, 0, 1)]
    assert not qos2.acknowledge(world.window, 1, 0.0)
    assert not qos2.complete(world.window, 1, 0.0)
    assert qos2.receive(world.window, 1)
    assert world.got() == []
    assert qos2.receive(world.window, 1)  # PUBREC again: PUBREL again
    assert not qos2.refuse(world.window, 1, 0.0)
    assert qos2.complete(world.window, 1, 0.0)
    assert not qos2.receive(world.window, 1)
    assert world.got() == [(1, 2, 0, 2)]


def test_an_identifier_that_is_not_in_flight_changes_nothing() -> None:
    world = World()
    world.publish()
    for identifier in (2, 9, 65_535):
        assert not world.window.acknowledge(identifier, 0.0)
        assert not qos2.receive(world.window, identifier)
        assert not qos2.complete(world.window, identifier, 0.0)
        assert not qos2.refuse(world.window, identifier, 0.0)
    assert world.window.in_flight == 1


def test_a_negative_acknowledgement_discards_the_message_and_makes_room() -> None:
    world = World(receive_max=1)
    world.publish(1)
    world.publish(2)
    world.publish(1)
    world.got()
    assert qos2.refuse(world.window, 1, 0.0)
    assert qos2.refuse(world.window, 2, 0.0)
    assert [number for number, *_ in world.got()] == [1, 2]
    assert (world.ledger.refused, world.window.in_flight) == (2, 1)
