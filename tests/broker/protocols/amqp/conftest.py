"""What the tests of AMQP begin with."""

import pytest

from tests.broker.protocols.amqp.world import World


@pytest.fixture
def world() -> World:
    return World()
