"""A filter that matches the stream is subscribed to and given up again, many times a second: what does the stream lose?

Every subscription changes the audience of all topics that its filter matches. The subscriber reads all that it gets
and does not check it: how much that is depends on the moment at which the broker takes each change.
"""

from fanlight_bench.load.kinds import Resubscribe, beside
from fanlight_bench.load.kinds.resubscriber import Resubscriber
from fanlight_bench.load.kinds.watch import Watch
from fanlight_bench.load.result import Result
from fanlight_bench.load.run import Plan
from fanlight_bench.load.scenario import Scenario
from fanlight_bench.load.target import Target


def measure(scenario: Scenario, target: Target, plan: Plan) -> Result:
    """Run it. Raises as `run` does."""
    options: Resubscribe = scenario.choices
    watch = Watch(scenario, target, plan)
    with Resubscriber(watch, options) as resubscriber:
        return beside.measure(watch, options.turns, resubscriber)
