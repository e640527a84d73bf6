"""Requests and replies: closed loop round trips through the broker, there and back.

By topics alone, so that all protocols do the same: requester i asks on its topic, which its responder has by a
wildcard, and is answered on a topic of its own. The latency is that of the round trip, for which two messages go
through the broker.
"""

import dataclasses
import time

from fanlight_bench.load import connect
from fanlight_bench.load.connect import Connection
from fanlight_bench.load.kinds import Requests
from fanlight_bench.load.kinds.watch import Watch, close
from fanlight_bench.load.requests import ClientRequests, requests
from fanlight_bench.load.result import Result, percentiles
from fanlight_bench.load.round_trips import RoundTrips
from fanlight_bench.load.run import Plan
from fanlight_bench.load.scenario import Scenario
from fanlight_bench.load.speakers import speaker
from fanlight_bench.load.target import Target
from fanlight_bench.load.usage import each, spent

SLICE_SECONDS = 0.1
COUNTED = ("repeated", "reordered", "misrouted", "damaged", "refused", "closed")


def measure(scenario: Scenario, target: Target, plan: Plan) -> Result:
    """Run it. Raises as `run` does."""
    options: Requests = scenario.choices
    watch = Watch(scenario, target, plan)
    speaks = speaker(target, dataclasses.replace(scenario, qos=0))
    says = requests(speaks)
    responders = [Connection(f"bench-responder-{number}") for number in range(options.responders)]
    requesters = [Connection(f"bench-requester-{number}") for number in range(options.requesters)]
    try:
        watch.begin("connecting")
        connect.talk([*responders, *requesters], speaks, watch.address())
        watch.begin("subscribing")
        for number, connection in enumerate(responders):
            connection.say([says.subscribe([(1, says.spelled(f"{scenario.topic}/ask/{number}/+"))])])
        for number, connection in enumerate(requesters):
            connection.say([says.subscribe([(1, says.spelled(_answer(scenario, number)))])])
        connect.talk([*responders, *requesters], says)
        round_trips = _round_trips(scenario, options, says, responders, requesters)

        def run(seconds: float) -> None:
            end = time.monotonic() + seconds
            while (left := end - time.monotonic()) > 0 and not round_trips.broken():
                round_trips.run(min(left, SLICE_SECONDS))
                watch.counters.update(published=round_trips.asked, received=round_trips.answered)
                watch.faults.update({name: getattr(round_trips, name) for name in COUNTED})
                watch.tick()

        watch.begin("warming up")
        round_trips.start()
        run(plan.warmup)
        round_trips.begin()
        first, before = watch.begin("measuring"), round_trips.answered
        run(plan.duration)
        last, then = watch.now(), round_trips.answered
        latency = percentiles(round_trips.latency) if round_trips.latency.total else {}
        watch.begin("draining")
        round_trips.drain(plan.drain)
        lost = round_trips.asked - round_trips.answered
        watch.faults.update({name: getattr(round_trips, name) for name in COUNTED}, lost=lost)
        made = then - before
        return watch.result(
            first,
            last,
            published=2 * made,
            delivered=2 * made,
            checked=2 * round_trips.answered,
            connections=len(responders) + len(requesters),
            subscriptions=len(responders) + len(requesters),
            latency_us=latency,
            complaint=speaks.explain(round_trips.complaint()) if round_trips.complaint() else "",
            metrics={
                "round_trips_per_second": made / (last.wall - first.wall),
                "broker_us_per_round_trip": each(spent(first.broker, last.broker), made, 1e6),
            },
        )
    finally:
        close([*responders, *requesters], speaks)


def _round_trips(
    scenario: Scenario,
    options: Requests,
    says: ClientRequests,
    responders: list[Connection],
    requesters: list[Connection],
) -> RoundTrips:
    round_trips = RoundTrips(says.dialect, scenario.payload_bytes, options.outstanding)
    for connection in responders:
        round_trips.add_responder(connection.socket.fileno(), bytes(connection.rest))
    for number, connection in enumerate(requesters):
        responder = number % len(responders)
        round_trips.add_requester(
            connection.socket.fileno(),
            responder,
            _talk(says, f"{scenario.topic}/ask/{responder}/{number}"),
            _talk(says, _answer(scenario, number)),
            bytes(connection.rest),
        )
    return round_trips


def _talk(says: ClientRequests, topic: str) -> tuple[bytes, bytes, int]:
    publish = says.speaker.publish(topic, 1)
    return publish.frame.octets, publish.topic, publish.frame.payload_at


def _answer(scenario: Scenario, requester: int) -> str:
    return f"{scenario.topic}/answer/{requester}"
