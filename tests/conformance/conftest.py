"""The two ways of a PUBLISH: in the compiled lane, or each one through Python."""

from typing import Any

import pytest

from fanlight_broker.core.enforcement import UNKNOWN
from fanlight_broker.protocols.mqtt import lane
from fanlight_broker.protocols.mqtt.lane import MqttLane


def plain_lane(*arguments: Any, **options: Any) -> MqttLane:
    """One that leaves every PUBLISH to Python."""
    made = MqttLane(*arguments, **options)
    made.badge = UNKNOWN
    return made


@pytest.fixture(params=["compiled", "plain"])
def either_lane(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test is run both ways: a client must not see which."""
    if request.param == "plain":
        monkeypatch.setattr(lane, "MqttLane", plain_lane)
