"""The broker that evaluates each selector in turn: it delivers the same, and has no index of selectors."""

import dataclasses
import sys

import pytest
from hypothesis import settings
from hypothesis.stateful import invariant

pytest.importorskip("fanlight_bench.load.generator", reason="needs epoll")
from fanlight_bench.launch import Broker as BrokerProcess
from fanlight_bench.load import scenario
from fanlight_bench.load.run import run
from fanlight_bench.micro import in_a_row
from fanlight_bench.peers.plan import IN_A_ROW
from fanlight_broker.core import router
from fanlight_broker.core.broker import Broker
from fanlight_broker.core.condition import condition_of
from fanlight_broker.core.limits import Limits
from tests.broker.core.parts import at_once, connect, subscribe
from tests.broker.core.test_screens import ScreensMachine, message_of


class RowMachine(ScreensMachine):
    """The machine of the product's screens, whose oracles know nothing of either kind."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(router, "Screens", in_a_row.RowScreens)
        self.patch.setattr(in_a_row, "ROW", 2)

    def teardown(self) -> None:
        self.patch.undo()
        super().teardown()

    @invariant()
    def no_screen_is_larger_than_a_row(self) -> None:
        if hasattr(self, "broker"):
            screens = self.broker.router.screens
            assert isinstance(screens, in_a_row.RowScreens)
            assert all(len(screen.ids) <= 2 for screen in screens._own.values())


TestRows = RowMachine.TestCase
TestRows.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)


def test_a_filter_with_many_selectors_has_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router, "Screens", in_a_row.RowScreens)
    broker = Broker(Limits(), lambda: None, at_once)
    client, _ = connect(broker)
    for number in range(50):
        subscribe(broker, client, number, b"a", condition=condition_of(f"x = {number % 10}"))
    route = broker.router.route(b"a", "amqp")
    assert route.screens is not None
    assert [each.screen._shape()["keys"] for each in route.screens.screens] == [0, 0, 0, 0]
    assert len(broker.router.for_message(route, message_of(b"a", {"x": 7}), None)) == 5


def test_it_serves_the_scenario_that_it_is_compared_in() -> None:
    made = scenario.load("selectors")
    made = made.with_changes(background=dataclasses.replace(made.background, subscriptions=800, connections=40))
    with BrokerProcess(command=[sys.executable, "-m", IN_A_ROW]) as broker:
        result = run(made, broker.url, duration=0.1, warmup=0.0)
    assert result.ok, (result.faults, result.complaint)
    assert result.delivered > 0
