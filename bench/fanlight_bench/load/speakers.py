"""The speaker of each protocol."""

from collections.abc import Callable

from fanlight_bench.load.scenario import Scenario
from fanlight_bench.load.speak_amqp import AmqpSpeaker
from fanlight_bench.load.speak_mqtt import MqttSpeaker
from fanlight_bench.load.speak_native import NativeSpeaker
from fanlight_bench.load.speak_nats import NatsSpeaker
from fanlight_bench.load.speaker import Speaker
from fanlight_bench.load.target import Target

SPEAKERS: dict[str, Callable[[Target, Scenario], Speaker]] = {
    "fanlight": NativeSpeaker, "mqtt": MqttSpeaker, "mqtt5": MqttSpeaker, "nats": NatsSpeaker,
    "amqp": AmqpSpeaker,
}  # fmt: skip


def speaker(target: Target, scenario: Scenario) -> Speaker:
    """The speaker for a target. Raises Refused."""
    return SPEAKERS[target.protocol](target, scenario)
