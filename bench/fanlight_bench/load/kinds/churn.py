"""Subscriptions come and go while a stream passes: what does it lose by that?

No filter of theirs matches the stream: the broker's own work is seen, not deliveries. Filters that match it are those
of resubscribe.py. At the end a few messages are published for filters that are in force and for some that are not any
more.
"""

from fanlight_bench.load.kinds import Churn, beside
from fanlight_bench.load.kinds.churner import Churner
from fanlight_bench.load.kinds.watch import Watch
from fanlight_bench.load.result import Result
from fanlight_bench.load.run import Plan
from fanlight_bench.load.scenario import Scenario
from fanlight_bench.load.target import Target


def measure(scenario: Scenario, target: Target, plan: Plan) -> Result:
    """Run it. Raises as `run` does."""
    options: Churn = scenario.choices
    watch = Watch(scenario, target, plan)
    with Churner(watch, options) as churner:
        return beside.measure(watch, options.turns, churner)
