"""Connections that do nothing: what each takes in memory, how fast they are made, what they cost the broker at rest.

At the end each must still answer a ping; one that does not is lost.
"""

from fanlight_bench.load.kinds import Idle
from fanlight_bench.load.kinds.storm import Storm
from fanlight_bench.load.kinds.watch import Watch
from fanlight_bench.load.result import Result, percentiles
from fanlight_bench.load.run import Plan
from fanlight_bench.load.scenario import Scenario
from fanlight_bench.load.target import Target
from fanlight_bench.load.usage import each, spent

CONNECT_SECONDS = 120.0  # to connect all; a broker that needs longer is not measured further


def measure(scenario: Scenario, target: Target, plan: Plan) -> Result:
    """Run it. Raises OSError when the broker is not there, or this machine is out of sockets."""
    options: Idle = scenario.choices
    watch = Watch(scenario, target, plan)
    with Storm(watch, options.at_once) as storm:
        connecting = watch.begin("connecting")
        storm.run(CONNECT_SECONDS, options.connections)
        connected = watch.now()
        made, seconds = storm.made, connected.wall - connecting.wall
        latency = percentiles(storm.latency) if made else {}
        watch.remember("connected")
        first = watch.begin("idle")
        storm.hold(plan.duration)
        last = watch.now()
        watch.remember("after")
        watch.begin("draining")
        watch.faults["lost"] = options.connections - made + storm.all_answer(plan.drain)
        idle = spent(first.broker, last.broker)
        apiece = each(spent(watch.memory["before"], watch.memory["connected"]), made)
        return watch.result(
            connecting,
            connected,
            connections=made,
            connect_seconds=seconds,
            latency_us=latency,
            bytes_per_connection=apiece,
            complaint=storm.complaint,
            metrics={
                "bytes_per_connection": apiece,
                "connects_per_second": made / seconds,
                "broker_us_per_connect": each(spent(connecting.broker, connected.broker), made, 1e6),
                "idle_broker_busy": idle / (last.wall - first.wall) if idle is not None else None,
            },
        )
