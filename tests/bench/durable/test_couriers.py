"""What is said to brokers that keep messages: the bytes of each protocol, and where a publish is patched."""

import json

import pytest

pytest.importorskip("fanlight_bench.load.generator", reason="needs epoll")
from fanlight_bench.durable.couriers import AmqpCourier, Courier, JetStreamCourier, MqttCourier
from fanlight_bench.load.protocol import ACKNOWLEDGEMENT, GRANTED, OTHER, REFUSAL, WELCOME
from fanlight_bench.load.speaker import Refused

COURIERS: list[Courier] = [MqttCourier(), AmqpCourier("quorum"), JetStreamCourier()]


def test_an_mqtt_session_is_kept_when_it_is_a_consumers() -> None:
    assert MqttCourier().hello("me", kept=True) == b"\x10\x0e\x00\x04MQTT\x04\x00\x00\x00\x00\x02me"
    assert MqttCourier().hello("me", kept=False) == b"\x10\x0e\x00\x04MQTT\x04\x02\x00\x00\x00\x02me"


def test_an_mqtt_consumer_subscribes_with_qos_1_and_only_once() -> None:
    said = [*MqttCourier().consumer(0, "kept", 7, again=False)]
    assert said == [(b"\x82\x10\x00\x01\x00\x0bkept/000007\x01", 1)]
    assert [*MqttCourier().consumer(0, "kept", 7, again=True)] == []


def test_an_mqtt_publish_has_qos_1_and_may_be_retained() -> None:
    frame, _ = MqttCourier().publish("me", "kept", 3)
    assert frame.octets == b"\x32\x12\x00\x0bkept/000000\x00\x00\x00\x00\x00"
    assert MqttCourier().publish("me", "kept", 3, retain=True)[0].octets == b"\x33" + frame.octets[1:]


@pytest.mark.parametrize("courier", COURIERS, ids=lambda courier: type(courier).__name__)
def test_a_publish_says_where_its_parts_are(courier: Courier) -> None:
    frame, topic_at = courier.publish("me", "kept", 300)
    octets = frame.octets
    assert octets[topic_at - 5 : topic_at + 6] in (b"kept/000000", b"kept.000000")
    assert octets[frame.payload_at : frame.payload_at + 300] == bytes(300)
    if courier.dialect.number_bytes == 2:
        assert octets[frame.number_at : frame.payload_at] == b"\0\0"
    elif courier.dialect.number_bytes:
        assert octets[frame.number_at : frame.number_at + 10] == b"0000000000"


def test_the_handshake_of_amqp_is_said_at_once() -> None:
    said = AmqpCourier("quorum").hello("me", kept=True)
    assert said.startswith(b"AMQP\0\0\x09\x01\x01\x00\x00")
    kinds = [kind for kind, _ in AmqpCourier("quorum").dialect.frames(said[8:])[0]]
    assert len(kinds) == 3  # connection.start-ok, tune-ok, open
    assert b"\x05PLAIN\x00\x00\x00\x0c\x00guest\x00guest\x05en_US\xce" in said
    assert b"\x00\x0a\x00\x1f\x00\x01\x00\x02\x00\x00\x00\x00\xce" in said  # one channel, 128 KiB, no heartbeat
    assert said.endswith(b"\x00\x0a\x00\x28\x01/\x00\x00\xce")


def test_a_queue_of_amqp_is_durable_and_of_its_type() -> None:
    (step,) = AmqpCourier("quorum").prepare("kept", [3])
    _, (declare, answers) = step
    assert answers == 1
    assert declare.endswith(
        b"\x00\x32\x00\x0a\x00\x00\x0bkept.000003\x02\x00\x00\x00\x18\x0cx-queue-typeS\x00\x00\x00\x06quorum\xce"
    )


def test_a_publish_of_amqp_is_persistent_and_confirmed() -> None:
    frame, _ = AmqpCourier("classic").publish("me", "kept", 3)
    assert frame.octets == (
        b"\x01\x00\x01\x00\x00\x00\x14\x00\x3c\x00\x28\x00\x00\x00\x0bkept.000000\x00\xce"
        b"\x02\x00\x01\x00\x00\x00\x0f\x00\x3c\x00\x00" + (3).to_bytes(8) + b"\x10\x00\x02\xce"
        b"\x03\x00\x01\x00\x00\x00\x03\x00\x00\x00\xce"
    )
    assert [*AmqpCourier("classic").publisher("me")][-1] == (b"\x01\x00\x01\x00\x00\x00\x05\x00\x55\x00\x0a\x00\xce", 1)


def test_a_stream_is_made_before_its_consumers() -> None:
    streams, consumers = JetStreamCourier().prepare("kept", [0, 1])
    (inbox, _), (request, answers) = streams
    assert inbox == b"SUB _INBOX.prepare.* 1\r\nPING\r\n"
    head, said, _ = request.split(b"\r\n")
    assert (head, answers) == (b"PUB $JS.API.STREAM.CREATE.kept _INBOX.prepare.0000000000 %d" % len(said), 1)
    assert json.loads(said) == {
        "name": "kept", "subjects": ["kept.*"], "storage": "file", "retention": "workqueue"
    }  # fmt: skip
    made = [json.loads(piece.split(b"\r\n")[1])["config"] for piece, _ in consumers]
    assert [one["filter_subject"] for one in made] == ["kept.000000", "kept.000001"]
    assert {one["ack_policy"] for one in made} == {"explicit"}


@pytest.mark.parametrize(
    ("courier", "kind", "frame"),
    [
        (MqttCourier(), WELCOME, b"\x20\x02\x00\x05"),
        (MqttCourier(), GRANTED, b"\x90\x03\x00\x01\x80"),
        (MqttCourier(), GRANTED, b"\x90\x03\x00\x01\x00"),  # QoS 0 is no acknowledgement
        (AmqpCourier("quorum"), REFUSAL, b"\x01\x00\x01\x00\x00\x00\x08\x00\x14\x00\x28\x01\x94\x01x\xce"),
        (JetStreamCourier(), REFUSAL, b"-ERR 'no'\r\n"),
    ],
)
def test_a_refusal_is_an_error(courier: Courier, kind: int, frame: bytes) -> None:
    with pytest.raises(Refused):
        courier.is_answer(kind, frame)


def test_what_is_an_answer() -> None:
    assert MqttCourier().is_answer(WELCOME, b"\x20\x02\x01\x00")
    assert MqttCourier().is_answer(GRANTED, b"\x90\x03\x00\x01\x01")
    assert AmqpCourier("quorum").is_answer(GRANTED, b"")
    assert not AmqpCourier("quorum").is_answer(OTHER, b"")
    assert JetStreamCourier().is_answer(ACKNOWLEDGEMENT, b"")
    assert not JetStreamCourier().is_answer(WELCOME, b"INFO {}\r\n")
