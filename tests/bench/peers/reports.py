"""Reports that no broker was needed for: the figures are chosen, so that bars, tables and plots can be told."""

from typing import Any

from fanlight_bench.peers.contenders import CONTENDERS
from fanlight_bench.peers.plan import ASKED
from fanlight_bench.peers.results import medians

COST = {  # us a delivery in every scenario
    "fanlight-native": 0.05, "fanlight-mqtt": 0.06, "fanlight-mqtt5": 0.07, "nats-1cpu": 0.15, "nats": 0.2,
    "nats-mqtt": 0.7, "mosquitto": 8.0, "rabbitmq": 50.0, "amqtt": 30.0, "null-native": 0.02, "null-mqtt": 0.025,
}  # fmt: skip


def run(scenario: str, contender: str, number: int = 0, **figures: Any) -> dict[str, Any]:
    """A run without a fault."""
    cost = COST[contender]
    row = {
        "scenario": scenario, "contender": contender, "round": number, "scheme": "mqtt", "us_per_delivery": cost,
        "deliveries_per_second": 1e6 / cost, "messages_per_second": 1e4 / cost, "broker_busy": 1.0,
        "generator_busy": 0.6, "others_busy": 0.1, "generator_bound": False, "resident_bytes": 60_000_000, "faults": {},
    }  # fmt: skip
    return row | figures


def report(runs: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """A report of these runs, or of three of everybody in everything."""
    if runs is None:
        runs = [
            run(letter, name, number, **_more(letter, name))
            for letter in ASKED for number in range(3) for name in CONTENDERS
        ]  # fmt: skip
    return {
        "date": "2026-11-21T12:00:00+00:00",
        "machine": {
            "processor": "A Processor", "processors": 2, "memory_bytes": 24 * 2**30, "machine": "x86_64",
            "system": "Linux 6.1", "python": "3.11.7",
        },
        "effort": {"rounds": 3, "duration": 2.0, "warmup": 0.5},
        "complete": True,
        "contenders": {
            name: {
                "title": one.title, "broker": one.peer.name, "version": "1.2", "schemes": list(one.schemes),
                "one_thread": one.peer.one_thread, "configuration": "listen: PORT\n",
            }
            for name, one in CONTENDERS.items()
        },
        "scenarios": {
            letter: {"scenario": one.scenario, "title": one.title, "target": one.target}
            for letter, one in ASKED.items()
        },
        "left_out": [{"scenario": "G", "contender": "amqtt", "reason": "it would take an hour"}],
        "missing": [],
        "runs": runs,
        "medians": medians(runs),
    }  # fmt: skip


def _more(letter: str, name: str) -> dict[str, float]:
    if letter == "E":
        return {"p50_us": 70 + COST[name], "p99_us": 130 + COST[name], "p999_us": 400 + COST[name]}
    if letter == "G":
        return {"bytes_per_subscription": 390.0, "subscribe_cpu_seconds": 7.0}
    return {}
