"""The User Property `fanlight-delay` (docs/mqtt.md): by packets, with each QoS."""

from dataclasses import replace
from typing import Any

import pytest

from fanlight_broker.core.limits import Limits
from fanlight_broker.protocols.mqtt.options import MqttOptions
from fanlight_broker.protocols.mqtt.packets import PubAck, PubComp, Publish, PubRec, PubRel
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3
from tests.broker.core.held_journal import HeldJournal
from tests.broker.protocols.mqtt.world import Peer, World


def after(seconds: str, *more: tuple[str, str]) -> dict[str, Any]:
    return {"user_properties": (("before", "1"), ("fanlight-delay", seconds), *more)}


def plain(packet: Any) -> Any:
    """Without the id of the delayed message."""
    ((name, id),) = packet.properties.user_properties
    assert (name, id.isdigit()) == ("fanlight-delayed-id", True)
    return replace(packet, properties=Properties())


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("known", [False, True])
def test_a_delayed_message_is_acknowledged_at_once_and_arrives_when_it_is_due(qos: int, known: bool) -> None:
    world = World()
    publisher, reader = world.connect("p"), world.connect("r")
    reader.subscribe("t", qos=2)
    if known:
        publisher.publish("t", b"now", 1)
        assert len(reader.messages()) == 1
    answers = publisher.publish("t", b"x", qos, **after("2.5"))
    expected: list[type] = [[], [PubAck], [PubRec, PubComp]][qos]  # type: ignore[assignment]
    assert [type(answer) for answer in answers] == expected
    assert all(answer.reason_code is ReasonCode.SUCCESS for answer in answers)  # type: ignore[union-attr]
    assert reader.packets() == []
    world.pass_time(2)
    assert reader.packets() == []
    world.pass_time(0.5)
    (message,) = reader.messages()
    assert (message.payload, message.qos) == (b"x", qos)
    assert message.properties.user_properties == (("before", "1"), ("fanlight-delay", "2.5"))


@pytest.mark.parametrize("qos", [1, 2])
def test_its_acknowledgement_has_the_id_that_cancels_it(qos: int) -> None:
    world = World()
    publisher, reader = world.connect("p"), world.connect("r")
    reader.subscribe("t", qos=2)
    answer = publisher.publish("t", b"x", qos, **after("2"))[0]
    ((name, id),) = answer.properties.user_properties  # type: ignore[union-attr]
    assert name == "fanlight-delayed-id"
    world.broker.delayed.cancel(int(id))
    world.pass_time(2)
    assert reader.messages() == []
    assert publisher.publish("t", b"y", qos)[0].properties == Properties()  # type: ignore[union-attr]


@pytest.mark.parametrize("qos", [1, 2])
def test_a_client_that_wants_no_problem_information_gets_no_id(qos: int) -> None:
    world = World()
    publisher = world.connect("p", request_problem_information=False)
    assert publisher.publish("t", b"x", qos, **after("2"))[0].properties == Properties()  # type: ignore[union-attr]


def test_a_message_of_qos_2_that_is_repeated_is_not_delayed_again() -> None:
    world = World()
    publisher, reader = world.connect("p"), world.connect("r")
    reader.subscribe("t", qos=2)
    for dup in (False, True):
        publisher.say(Publish("t", b"x", 2, packet_id=7, dup=dup, properties=Properties(**after("1"))))
        answer = publisher.next()
        assert (answer if dup else plain(answer)) == PubRec(7)
    publisher.say(PubRel(7))
    world.pass_time(1)
    assert len(reader.messages()) == 1


@pytest.mark.parametrize("value", ["", "-1", "nan", "inf", "1e3", "1_0", " 1", "0x1", ".5", "5.", "\u0661", "9" * 13])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_value_that_is_no_decimal_is_refused_and_the_connection_stays(value: str, qos: int) -> None:
    world = World()
    publisher, reader = world.connect("p"), world.connect("r")
    reader.subscribe("t", qos=2)
    publisher.publish("t", b"now", 1)
    reader.messages()
    answers = publisher.publish("t", b"x", qos, **after(value))
    assert [answer.reason_code for answer in answers] == [ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR] * bool(qos)  # type: ignore[union-attr]
    world.pass_time(1)
    assert reader.packets() == []
    assert publisher.publish("t", b"y", 1) == [PubAck(publisher.packet_id)]
    assert publisher.protocol.refused == 1


def test_two_delays_are_refused_and_too_many_properties_as_ever() -> None:
    world = World(options=MqttOptions(user_properties_max=3))
    publisher = world.connect("p")
    (answer,) = publisher.publish("t", b"x", 1, **after("1", ("fanlight-delay", "2")))
    assert answer.reason_code is ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR  # type: ignore[union-attr]
    (answer,) = publisher.publish("t", b"x", 1, **after("1", ("a", "")))
    assert answer.reason_code is ReasonCode.SUCCESS  # type: ignore[union-attr]
    (last,) = publisher.publish("t", b"x", 1, **after("1", ("a", ""), ("a", "")))
    assert last.reason_code is ReasonCode.QUOTA_EXCEEDED  # type: ignore[union-attr]
    assert len(world.broker.delayed) == 1


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_one_above_a_limit_is_refused(qos: int) -> None:
    world = World(delay_seconds_max=60)
    publisher = world.connect("p")
    answers = publisher.publish("t", b"x", qos, **after("60.5"))
    assert [answer.reason_code for answer in answers] == [ReasonCode.QUOTA_EXCEEDED] * bool(qos)  # type: ignore[union-attr]
    world.broker.use(Limits(delay_seconds_max=61))
    assert len(publisher.publish("t", b"x", qos, **after("60.5"))) == qos
    assert len(world.broker.delayed) == 1


def test_a_delay_of_nothing_is_none_and_other_names_delay_nothing() -> None:
    world = World()
    publisher, reader = world.connect("p"), world.connect("r")
    reader.subscribe("t")
    publisher.publish("t", b"1", 1, **after("0"))
    others = (("Fanlight-Delay", "9"), ("fanlight_delay", "9"), ("x", "fanlight-delay"))
    publisher.publish("t", b"2", user_properties=others)
    assert [message.payload for message in reader.messages()] == [b"1", b"2"]


def test_properties_that_are_the_same_again_delay_again_and_then_no_more() -> None:
    """The lane does not look at properties that are those of the packet before."""
    world = World()
    publisher, reader = world.connect("p"), world.connect("r")
    reader.subscribe("t")
    properties = Properties(**after("1"))
    publisher.say(*(Publish("t", b"%d" % n, properties=properties) for n in range(3)), Publish("t", b"now"))
    assert [message.payload for message in reader.messages()] == [b"now"]
    world.pass_time(1)
    assert [message.payload for message in reader.messages()] == [b"0", b"1", b"2"]


def test_an_alias_a_retain_flag_and_an_expiry_go_with_it() -> None:
    world = World()
    publisher, reader = world.connect("p"), world.connect("r", session_expiry_interval=100)
    reader.subscribe("t", qos=1)
    publisher.say(Publish("t", b"0", properties=Properties(topic_alias=1)))
    publisher.say(Publish("", b"x", 1, True, packet_id=3, properties=Properties(
        topic_alias=1, message_expiry_interval=10, **after("50"),
    )))  # fmt: skip
    assert plain(publisher.next()) == PubAck(3)
    reader.messages()
    world.pass_time(50)
    (message,) = reader.messages()
    assert (message.topic, message.payload, message.properties.message_expiry_interval) == ("t", b"x", 10)
    world.pass_time(9)
    late = world.connect("late")
    late.subscribe("t")
    (message,) = late.messages()
    assert (message.payload, message.retain, message.properties.message_expiry_interval) == (b"x", True, 1)


def test_in_3_1_1_there_is_none() -> None:
    world = World()
    publisher, reader = world.connect("p", V3), world.connect("r")
    reader.subscribe("t")
    publisher.say(Publish("t", b"\x26\0\x0efanlight-delay\0\x011"))
    assert len(reader.messages()) == 1


def test_acknowledgements_wait_for_their_sync_and_keep_their_order() -> None:
    """[MQTT-4.6.0-2]"""
    world = World()
    journal = HeldJournal(world.broker)
    publisher, other = world.connect("p"), world.connect("o")
    assert delayed(publisher, 1) == []
    assert publisher.publish("t", b"x", 1, packet_id=2) == []
    assert delayed(publisher, 3, 2) == []
    assert len(other.publish("t", b"x", 1)) == 1
    journal.sync(1, world.now)
    world.turn()
    assert [(type(each), each.packet_id) for each in publisher.packets()] == [(PubAck, 1), (PubAck, 2)]  # type: ignore[union-attr]
    journal.sync(None, world.now)
    world.turn()
    assert plain(publisher.next()) == PubRec(3)
    journal.position.refusing = True
    (answer,) = delayed(publisher, 4)
    assert answer.reason_code is ReasonCode.QUOTA_EXCEEDED


def delayed(peer: Peer, packet_id: int, qos: int = 1) -> list[Any]:
    return peer.publish("t", b"x", qos, packet_id=packet_id, **after("5"))
