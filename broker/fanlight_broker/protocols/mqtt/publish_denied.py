"""What happens to a PUBLISH that is not permitted, where MQTT has no error for that: in 3.1.1, or with QoS 0."""

from enum import StrEnum


class PublishDenied(StrEnum):
    DROP = "drop"  # it is acknowledged, if it expects that, and counted
    CLOSE = "close"  # as MQTT 3.1.1 allows in section 3.3.5
