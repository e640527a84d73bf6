from collections.abc import Mapping
from typing import Any

from fanlight_broker.protocols.mqtt.version import Version
from fanlight_broker.wire.message import Format, Message

class PublishFormat(Format):
    version: Version
    has_properties: bool
    left_out: int
    def __init__(self, version: Version, *, stateful: bool = False) -> None: ...
    def read(self, message: Message) -> Any: ...
    def rewritten(self, message: Message, topic: bytes, headers: Mapping[str, Any]) -> Message | None: ...
    def write(self, content: Any) -> Message | None: ...

MQTT_3_1_1: PublishFormat
MQTT_5_0: PublishFormat
FORMATS: dict[Version, PublishFormat]
