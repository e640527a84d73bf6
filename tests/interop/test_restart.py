"""A real client's session and a retained message, over a broker that is killed and started again."""

from pathlib import Path

from paho.mqtt.client import CallbackAPIVersion, Client, MQTTMessage, MQTTv5
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.conftest import TestBroker

PATIENCE = 60  # times that a client waits for up to a second for what should come at once


class Reader:
    """A client whose session is kept, run by hand until something has come."""

    def __init__(self, broker: TestBroker, name: str, *, expiry: int = 3_600) -> None:
        self.got: list[str] = []
        self.present: bool | None = None
        self.acknowledged = 0
        self.client = Client(CallbackAPIVersion.VERSION2, name, protocol=MQTTv5)
        self.client.on_connect = lambda client, data, flags, reason, properties: self._connected(flags.session_present)
        self.client.on_message = lambda client, data, message: self._message(message)
        self.client.on_subscribe = lambda *ignored: self._acknowledged()
        self.client.on_publish = lambda *ignored: self._acknowledged()
        properties = Properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = expiry
        self.client.connect("127.0.0.1", broker.mqtt_port, clean_start=False, properties=properties)
        while self.present is None:
            self.client.loop()

    def _connected(self, present: bool) -> None:
        self.present = present

    def _message(self, message: MQTTMessage) -> None:
        again = " again" if message.dup else ""
        self.got.append(f"{message.topic} {message.payload.decode()} {message.qos}{again}")

    def _acknowledged(self) -> None:
        self.acknowledged += 1

    def subscribe(self, filter: str, qos: int) -> None:
        self._wait_for(self.client.subscribe, filter, qos)

    def publish(self, topic: str, payload: str, qos: int = 1, *, retain: bool = False) -> None:
        self._wait_for(self.client.publish, topic, payload, qos, retain)

    def _wait_for(self, call: object, *arguments: object) -> None:
        before = self.acknowledged
        assert callable(call)
        call(*arguments)
        for _ in range(PATIENCE):
            if self.acknowledged > before:
                return
            self.client.loop()
        raise AssertionError(f"no acknowledgement of {arguments}")

    def read(self, messages: int) -> list[str]:
        while len(self.got) < messages:
            self.client.loop()
        return self.got

    def leave(self) -> None:
        self.client.disconnect()
        self.client.loop()


def test_what_was_acknowledged_is_there_after_a_kill(tmp_path: Path) -> None:
    with TestBroker(data=tmp_path / "data") as broker:
        reader = Reader(broker, "reader")
        reader.subscribe("orders/#", 1)
        reader.leave()
        writer = Reader(broker, "writer", expiry=0)
        writer.publish("orders/1", "queued")
        writer.publish("orders/2", "twice", 2)
        writer.publish("rates", "retained", retain=True)
        broker.kill()
    with TestBroker(data=tmp_path / "data") as broker:
        reader = Reader(broker, "reader")
        assert reader.present
        assert reader.read(2) == ["orders/1 queued 1", "orders/2 twice 1"]
        late = Reader(broker, "late", expiry=0)
        late.subscribe("rates", 1)
        assert late.read(1) == ["rates retained 1"]
        assert not Reader(broker, "writer", expiry=0).present


def test_a_broker_that_is_started_with_a_shared_subscription_goes_on_acknowledging(tmp_path: Path) -> None:
    with TestBroker(data=tmp_path / "data") as broker:
        Reader(broker, "member").subscribe("$share/group/orders/#", 1)
        broker.kill()
    with TestBroker(data=tmp_path / "data") as broker:
        member = Reader(broker, "member")
        Reader(broker, "writer").publish("orders/1", "first")
        assert member.read(1) == ["orders/1 first 1"]
        assert broker.complaints() == []  # recovery reports a change before the part has a store to seal
