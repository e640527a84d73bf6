"""The part of a connection that the modules of single packets (on_publish.py, on_subscribe.py) use."""

from typing import Protocol

from fanlight_broker.core.errors import FanlightError
from fanlight_broker.core.namespace import Namespace
from fanlight_broker.core.subscriber import Session, Subscriber
from fanlight_broker.protocols.mqtt.lane import MqttLane
from fanlight_broker.protocols.mqtt.options import Counts, MqttOptions
from fanlight_broker.protocols.mqtt.packets import Packet
from fanlight_broker.protocols.mqtt.version import Version


class Peer(Protocol):
    """The client at the other end, once it is connected."""

    broker: Namespace
    lane: MqttLane
    version: Version | None
    options: MqttOptions
    counts: Counts
    receive_max: int  # the Receive Maximum of CONNACK

    @property
    def session(self) -> Session: ...
    @property
    def subscriber(self) -> Subscriber: ...
    @property
    def limits_packets(self) -> bool: ...
    def send(self, packet: Packet) -> None: ...
    def answer(self, octets: bytes) -> None: ...
    def check_size(self) -> None: ...
    def note_error(self, error: FanlightError) -> None: ...
