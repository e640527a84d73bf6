"""What an AMQP part gives its connections: settings, and counters that they share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fanlight_broker.protocols.amqp.publish_sites import PublishCounts

FRAME_MAX: Final = 131_072  # bytes of a frame, offered in connection.tune
CHANNEL_MAX: Final = 2_047
CONSUMERS_MAX: Final = 10_000  # of a channel; a client with more has a queue for each message
GETTERS: Final = 1 << 31  # numbers of a channel's consumers from here on are those of basic.get

COUNTERS: Final = {
    "amqp_channels_opened": "AMQP channels opened",
    "amqp_channel_errors": "AMQP channels that the broker closed with an error",
    "amqp_confirms": "Publisher confirms sent: basic.ack",
    "amqp_confirm_refusals": "Publisher confirms sent: basic.nack",
    "amqp_returned": "Messages returned to their publishers: mandatory, and nobody got them",
    "amqp_discarded": "Messages that were refused without a confirm that could say so: a full queue, a full store",
}


@dataclass(frozen=True, slots=True)
class AmqpOptions:
    message_bytes_max: int
    heartbeat_seconds: int
    consumer_timeout_seconds: int = 1_800  # in which a delivery is to be acknowledged; 0: without a bound


@dataclass(slots=True)
class AmqpCounts(PublishCounts):
    """channels: that are open now; the others only grow."""

    channels: int = 0
    channels_opened: int = 0
    channel_errors: int = 0
    returned: int = 0

    def counters(self) -> Mapping[str, int]:
        return {name: getattr(self, name.removeprefix("amqp_")) for name in COUNTERS}
