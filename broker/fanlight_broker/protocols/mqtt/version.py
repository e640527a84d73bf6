"""The versions that are spoken, by their Protocol Level on the wire (3.1.2.2)."""

from enum import IntEnum
from typing import Final

PROTOCOL_NAME: Final = "MQTT"
PROTOCOL_NAME_3_1: Final = "MQIsdp"  # MQTT 3.1, level 3: known, and refused


class Version(IntEnum):
    MQTT_3_1_1 = 4
    MQTT_5_0 = 5


V3: Final = Version.MQTT_3_1_1
V5: Final = Version.MQTT_5_0
