"""The two ways of a PUBLISH: in the compiled lane, or each one through Python."""

from typing import Any

import pytest

from broker.protocols.mqtt import lane


class PlainLane(lane.Lane):
    """Leaves every PUBLISH to Python."""

    def begin(self, *arguments: Any, **options: Any) -> None:
        super().begin(*arguments, **options)
        self.plain = True


@pytest.fixture(params=["compiled", "plain"])
def either_lane(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test is run both ways: a client must not see which."""
    if request.param == "plain":
        monkeypatch.setattr(lane, "Lane", PlainLane)
