"""What every kind of scenario is measured with: phases, moments, counters, and the Result that they come to."""

import dataclasses
import time
from typing import Any

from fanlight_bench.load import connect
from fanlight_bench.load import scenario as scenarios
from fanlight_bench.load.connect import Connection
from fanlight_bench.load.result import FAULTS, GENERATOR_BUSY, Result
from fanlight_bench.load.run import Plan, Progress
from fanlight_bench.load.scenario import Scenario
from fanlight_bench.load.speaker import Speaker
from fanlight_bench.load.speakers import speaker
from fanlight_bench.load.target import Target
from fanlight_bench.load.usage import Usage, broker_pids, busy, each, others, resident_bytes, spent, usage


class Watch:
    """One run. counters: shown while it runs, faults included; memory: of the broker."""

    def __init__(self, scenario: Scenario, target: Target, plan: Plan) -> None:
        self.scenario = scenario
        self.target = target
        self.plan = plan
        self.pids = list(plan.pids) if plan.pids else broker_pids(target.host, target.port)
        self.own: list[int] = []  # processes of the generator, if it is not this one
        self.counters: dict[str, int] = {}
        self.faults = dict.fromkeys(FAULTS, 0)
        self.memory = {"before": resident_bytes(self.pids)}
        self._phase = ""
        self._since = 0.0

    def begin(self, phase: str) -> Usage:
        """A phase begins; the moment it does."""
        self._phase = phase
        self._since = time.monotonic()
        self.tick()
        return self.now()

    def tick(self) -> None:
        """Tell how it goes."""
        if self.plan.progress is not None:
            said = {**self.faults, **self.counters}
            self.plan.progress(Progress(self._phase, time.monotonic() - self._since, said))

    def now(self) -> Usage:
        """This moment."""
        return usage(self.pids, self.own)

    def remember(self, name: str) -> None:
        """Note the broker's memory under this name."""
        self.memory[name] = resident_bytes(self.pids)

    def address(self) -> tuple[str, int]:
        """Where the broker is. Raises OSError."""
        return connect.address(self.target.host, self.target.port)

    def speaker(self) -> Speaker:
        """Who speaks to it. Raises Refused."""
        return speaker(self.target, self.scenario)

    def result(self, first: Usage, last: Usage, **known: Any) -> Result:
        """What was found between two moments; known: fields of Result that this kind of scenario has."""
        seconds = last.wall - first.wall
        broker = spent(first.broker, last.broker)
        busiest = max(busy(first, last), default=0.0)
        delivered, published = known.get("delivered", 0), known.get("published", 0)
        self.memory.setdefault("after", resident_bytes(self.pids))
        values: dict[str, Any] = {
            "scenario": self.scenario.name,
            "url": self.target.url,
            "protocol": self.target.protocol,
            "parameters": {
                **scenarios.as_json(self.scenario),
                "options": dataclasses.asdict(self.scenario.choices),
            },
            "processes": 1,
            "seconds": seconds,
            "published": published,
            "delivered": delivered,
            "acknowledged": 0,
            "published_per_second": published / seconds,
            "delivered_per_second": delivered / seconds,
            "acknowledged_per_second": 0.0,
            "delivered_megabytes_per_second": delivered * self.scenario.payload_bytes / seconds / 1e6,
            "checked": delivered,
            "broker_us_per_delivery": each(broker, delivered, 1e6),
            "broker_us_per_publish": each(broker, published, 1e6),
            "broker_busy": broker / seconds if broker is not None else None,
            "generator_busy": busiest,
            "generator_bound": busiest > GENERATOR_BUSY,
            "others_busy": others(first, last, broker),
            "latency_us": {},
            "connections": 0,
            "subscriptions": 0,
            "connect_seconds": 0.0,
            "subscribe_seconds": 0.0,
            "subscribe_broker_seconds": None,
            "memory": self.memory,
            "bytes_per_connection": None,
            "bytes_per_subscription": None,
            "slow": {},
            "faults": self.faults,
            "complaint": "",
        }
        return Result(**{**values, **known, "metrics": {k: v for k, v in known["metrics"].items() if v is not None}})


def close(connections: list[Connection], speaker: Speaker) -> None:
    """Say goodbye on these and close them."""
    for connection in connections:
        connection.close(speaker.goodbye())
