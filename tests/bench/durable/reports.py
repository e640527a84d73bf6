"""A report of durable rows with figures that are easy to compute with."""

from typing import Any

from fanlight_bench.durable.plan import METRICS
from fanlight_bench.peers.results import Report, medians


def run(scenario: str, contender: str, number: int = 0, **figures: Any) -> dict[str, Any]:
    return {"scenario": scenario, "contender": contender, "round": number, **figures}


def report(*runs: dict[str, Any], missing: dict[str, str] | None = None) -> Report:
    names = dict.fromkeys(one["contender"] for one in runs)
    about = {"broker": "b", "version": "1.2", "protocol": "mqtt", "syncs": "fdatasync", "configuration": "as it comes"}
    return {
        "date": "2026-01-02T03:04:05+00:00",
        "machine": {"processor": "P", "processors": 2, "memory_bytes": 2**30, "system": "Linux 6", "python": "3.11.2"},
        "storage": {"device": "vda", "file_system": "ext4 (rw)", "write_cache": "write back"},
        "effort": {
            "rounds": 3, "pairs": 10, "duration": 2.0, "warmup": 0.5, "patience": 1.0, "fan_out_sessions": 10,
            "fan_out_messages": 20, "backlog": 30, "backlog_sessions": 40, "shared": 30, "shared_sessions": 7,
            "drain": 1.0, "sessions": 50, "subscriptions": 3, "retained": 60, "restart_backlog": 30,
        },
        "complete": True,
        "contenders": {name: {"title": name.title(), **about} for name in names},
        "scenarios": {name: {"title": f"row {name}"} for name in dict.fromkeys(one["scenario"] for one in runs)},
        "missing": missing or {},
        "runs": list(runs),
        "medians": medians(runs, METRICS),
    }  # fmt: skip
