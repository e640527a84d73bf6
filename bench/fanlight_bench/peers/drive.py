"""One run by fanlight_bench.load, and its result in the words of a report. Nothing else here knows the generator."""

from fanlight_bench import procfs
from fanlight_bench.load import scenario as scenarios
from fanlight_bench.load.run import run
from fanlight_bench.peers.plan import PlannedScenario
from fanlight_bench.peers.results import METRICS, Row

SUBSCRIPTIONS_MIN = 10_000  # below that what a subscription takes is lost in the growth of the process
CONNECTIONS_MIN = 1_000


def drive(asked: PlannedScenario, url: str, duration: float, warmup: float, pid: int) -> Row:
    """Load the broker at this address, whose process is `pid`; the metrics of the run.

    Raises ValueError or OSError: the scenario is unknown, the broker cannot be reached or refuses the load.
    """
    made = scenarios.load(asked.scenario).with_changes(**asked.changes)
    result = run(made, url, duration=duration, warmup=warmup, pids=[pid, *procfs.descendants(pid)])
    row: Row = {
        "deliveries_per_second": result.delivered_per_second,
        "messages_per_second": result.published_per_second,
        "us_per_delivery": result.broker_us_per_delivery,
        "us_per_message": result.broker_us_per_publish,
        "broker_busy": result.broker_busy,
        "generator_busy": result.generator_busy,
        "generator_bound": result.generator_bound,
        "others_busy": result.others_busy,
        "resident_bytes": result.memory.get("after"),
        "checked": result.checked,
        "faults": {name: count for name, count in result.faults.items() if count},
        "complaint": result.complaint,
    }
    for name, metric in (("p50", "p50_us"), ("p90", "p90_us"), ("p99", "p99_us"), ("p99.9", "p999_us")):
        row[metric] = result.latency_us.get(name)
    if result.subscriptions >= SUBSCRIPTIONS_MIN:
        row["bytes_per_subscription"] = result.bytes_per_subscription
        row["subscribe_cpu_seconds"] = result.subscribe_broker_seconds
    if result.connections >= CONNECTIONS_MIN:
        row["bytes_per_connection"] = result.bytes_per_connection
    # What scenarios have that are not one stream of messages.
    return row | {name: value for name, value in result.metrics.items() if name in METRICS}
