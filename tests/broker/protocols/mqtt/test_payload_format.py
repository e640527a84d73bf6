"""The Payload Format Indicator (MQTT 5, 3.3.2.3.2), looked at where the settings say so."""

import pytest

from fanlight_broker.protocols.mqtt.options import MqttOptions
from fanlight_broker.protocols.mqtt.packets import ConnAck, Disconnect, PubAck, PubComp, PubRec, WillFields
from fanlight_broker.protocols.mqtt.properties import Properties
from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from tests.broker.protocols.mqtt.world import World, connect

NO_TEXT = b"caf\xe9"
TEXT = Properties(payload_format_indicator=1)


def checking() -> World:
    return World(options=MqttOptions(payload_format_check=True))


@pytest.mark.parametrize(("qos", "answer"), [(1, PubAck), (2, PubRec)])
def test_a_payload_that_is_not_the_text_it_is_said_to_be_is_refused(qos: int, answer: type[PubAck | PubRec]) -> None:
    world = checking()
    listener, peer = world.connect("s"), world.connect("p")
    listener.subscribe("a")
    for _ in range(2):  # with its route worked out, and known
        (refused,) = peer.publish("a", NO_TEXT, qos, payload_format_indicator=1)
        assert isinstance(refused, answer)
        assert refused.reason_code is ReasonCode.PAYLOAD_FORMAT_INVALID
        (*_, accepted) = peer.publish("a", "caf\u00e9".encode(), qos, payload_format_indicator=1)
        assert isinstance(accepted, PubAck | PubComp)
        assert accepted.reason_code < ReasonCode.UNSPECIFIED_ERROR
    assert [message.payload for message in listener.messages()] == ["caf\u00e9".encode()] * 2


def test_of_qos_0_there_is_no_answer_but_the_end() -> None:
    peer = checking().connect("p")
    (goodbye,) = peer.publish("a", NO_TEXT, payload_format_indicator=1)
    assert isinstance(goodbye, Disconnect)
    assert goodbye.reason_code is ReasonCode.PAYLOAD_FORMAT_INVALID
    assert peer.gone


def test_octets_that_nobody_calls_text_are_not_looked_at() -> None:
    world = checking()
    listener = world.connect("s")
    listener.subscribe("a")
    world.connect("p").publish("a", NO_TEXT, payload_format_indicator=0)
    world.connect("q").publish("a", NO_TEXT)
    assert len(listener.messages()) == 2


def test_a_will_is_looked_at_when_it_is_left() -> None:
    peer = checking().open()
    peer.say(connect("p", will=WillFields("a", NO_TEXT, properties=TEXT)))
    refused = peer.next()
    assert isinstance(refused, ConnAck)
    assert refused.reason_code is ReasonCode.PAYLOAD_FORMAT_INVALID


def test_by_default_nothing_is_looked_at() -> None:
    world = World()
    listener = world.connect("s")
    listener.subscribe("a")
    world.connect("p", will=WillFields("a", NO_TEXT, properties=TEXT)).publish("a", NO_TEXT, payload_format_indicator=1)
    assert len(listener.messages()) == 1
