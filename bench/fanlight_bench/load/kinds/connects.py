"""A storm of connects: clients come as fast as they are let in, stay for a while, and go.

The latency is that of a handshake, from connect(2) to the broker's welcome, with `at_once` of them under way.
"""

from fanlight_bench.load.kinds import Connects
from fanlight_bench.load.kinds.storm import Storm
from fanlight_bench.load.kinds.watch import Watch
from fanlight_bench.load.result import Result, percentiles
from fanlight_bench.load.run import Plan
from fanlight_bench.load.scenario import Scenario
from fanlight_bench.load.target import Target
from fanlight_bench.load.usage import each, spent


def measure(scenario: Scenario, target: Target, plan: Plan) -> Result:
    """Run it. Raises OSError when the broker is not there, or this machine is out of sockets."""
    options: Connects = scenario.choices
    watch = Watch(scenario, target, plan)
    with Storm(watch, options.at_once, options.stay) as storm:
        watch.begin("warming up")
        storm.run(plan.warmup)
        storm.begin()
        first = watch.begin("measuring")
        storm.run(plan.duration)
        last = watch.now()
        made, seconds = storm.made, last.wall - first.wall
        watch.remember("after")
        watch.begin("draining")
        watch.faults["lost"] = storm.all_answer(plan.drain)
        return watch.result(
            first,
            last,
            connections=made,
            connect_seconds=seconds,
            latency_us=percentiles(storm.latency) if made else {},
            complaint=storm.complaint,
            metrics={
                "connects_per_second": made / seconds,
                "broker_us_per_connect": each(spent(first.broker, last.broker), made, 1e6),
            },
        )
