"""The listeners of a broker, by its settings."""

from dataclasses import replace

import pytest

from broker.auth import Credentials, PasswordAuthenticator
from broker.config import Settings
from broker.core.broker import Broker
from broker.doors import Doors


@pytest.mark.parametrize("mqtt", [True, False])
async def test_what_mqtt_counts_is_shown_where_mqtt_is_spoken(mqtt: bool) -> None:
    settings = replace(Settings(), mqtt=mqtt)
    authenticator = PasswordAuthenticator(Credentials())
    doors = Doors(settings, Broker(settings.limits, lambda: None), authenticator, None)
    shown = {name for figures in doors.figures() for name in (*figures.counters(), *figures.reasons())}
    assert ("mqtt_errors" in shown) is mqtt
    assert len(doors.listeners) == 1 + mqtt
    await authenticator.close()
