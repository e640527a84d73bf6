"""The plan of a comparison: the scenarios, which contenders are left out and why, the order, and the time it takes.

A scenario is one of fanlight_bench.load, named here by its letter in the tables. Runs are interleaved: a round of a
scenario has one run of each contender, then the next round follows, so that other work of the machine affects all
equally. A contender whose difference shows after a run or two takes part in some rounds only. A contender that would
take too long is left out by declaration, with the reason, which the report repeats.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fanlight_bench.peers.contenders import CONTENDERS, Contender

STREAM = ("fanlight", "mqtt", "mqtt5", "nats")  # what can be said in all protocols
MQTT = ("mqtt", "mqtt5")
STOP_SECONDS = 0.7  # of a run besides its start, set-up and measured time: drain, stop, folders


@dataclass(frozen=True)
class PlannedScenario:
    """A scenario of the comparison."""

    letter: str
    scenario: str  # of bench/fanlight_bench/load
    title: str
    schemes: tuple[str, ...] = STREAM
    setup_seconds: float = 0.3  # about
    target: float | None = None  # µs of processor time per delivery
    least_seconds: float = 0.0  # to run for, however short the others are
    changes: Mapping[str, Any] = field(default_factory=dict)   # of the scenario's values
    left_out: Mapping[str, str] = field(default_factory=dict)  # contender -> why

    def why_not(self, contender: Contender) -> str | None:
        """Why it does not take part; None: it does. A protocol that cannot say it needs no words."""
        return self.left_out.get(contender.name)


_AMQTT_SLOW = "amqtt compares every filter with every message: at 10,000 filters it delivers some 500 a second"
_RABBIT_SLOW = "RabbitMQ takes 0.6 ms to enter a filter: the set-up alone would take minutes"
_AMQTT_CHURN = "at 10,000 changes a second amqtt delivers some 50 messages a second, and does not come to the end"
_RABBIT_CHURN = "RabbitMQ takes 0.6 ms to enter a filter: it falls behind 10,000 changes a second"
_RABBIT_CONNECTS = "RabbitMQ takes some 180 KB and more than a millisecond for a connection"
_NULL_SIMPLE = "the null broker knows neither acknowledgements of MQTT nor MQTT 5"
_NULL_STREAMS = "the null broker is the floor of moving messages; it is not made to hold anything"
_NATS_SLOW = "nats-server takes 0.2 ms to enter a filter by MQTT"
_RABBIT_QOS = "the MQTT of this RabbitMQ grants QoS 1 where 2 is asked for"
_AMQTT_RETAINED = "amqtt takes five seconds for a look-up among 100,000 retained messages"
_RABBIT_RETAINED = "RabbitMQ's MQTT finds no retained message by a filter with wildcards"
_NATS_QOS = "the MQTT of this nats-server ends at QoS 1"
_NULL = {"null-native": _NULL_STREAMS, "null-mqtt": _NULL_STREAMS}
_MANY = {"amqtt": _AMQTT_SLOW, "rabbitmq": _RABBIT_SLOW, **_NULL}

ASKED = {
    asked.letter: asked
    for asked in (
        PlannedScenario("A", "fan-out", "1 publisher, 100 subscribers", target=0.06),
        PlannedScenario("B", "pairs", "50 pairs, writes of 32 messages", target=0.26),
        PlannedScenario("B1", "pairs-unbatched", "50 pairs, a write a message", target=5.8),
        PlannedScenario("FI", "fan-in", "100 publishers, 1 subscriber"),
        PlannedScenario("C", "wildcard", "1,000 topics, 5 wildcard subscribers each", target=0.10),
        PlannedScenario(
            "C100k", "wildcard-100k", "as C, with 100,000 other filters", setup_seconds=4.0, target=0.12,
            left_out={**_MANY, "nats-mqtt": _NATS_SLOW},
        ),
        PlannedScenario("CX", "wildcard-topics", "as C, 20,000 topics", setup_seconds=1.0, target=0.15),
        PlannedScenario("CT", "cold-topics", "topics that are used once"),
        PlannedScenario(
            "D", "acknowledged", "10 pairs, QoS 1 (native: receipts)", schemes=("fanlight", *MQTT), target=2.0,
            left_out={"null-mqtt": _NULL_SIMPLE},
        ),
        PlannedScenario(
            "Q2", "exactly-once", "10 pairs, QoS 2", schemes=MQTT,
            left_out={"null-mqtt": _NULL_SIMPLE, "nats-mqtt": _NATS_QOS, "rabbitmq": _RABBIT_QOS},
        ),
        PlannedScenario("P5", "mqtt5-properties", "50 pairs, properties of MQTT 5", schemes=("mqtt5",)),
        PlannedScenario("A5", "mqtt5-aliases", "50 pairs, topic aliases of MQTT 5", schemes=("mqtt5",)),
        PlannedScenario("E", "latency", "10 pairs, 5,000 messages/s in all"),
        PlannedScenario(
            "G", "million", "1,000,000 wildcard filters, then publish", setup_seconds=15.0, target=0.6,
            left_out={**_MANY, "nats-mqtt": _NATS_SLOW},
        ),
        PlannedScenario("H", "large", "64 KiB, 1 publisher, 10 subscribers", target=25.0),
        PlannedScenario(
            "F", "idle-connections", "10,000 connections that do nothing", setup_seconds=6.0,
            left_out={"rabbitmq": _RABBIT_CONNECTS, **_NULL},
        ),
        PlannedScenario("S", "connect-storm", "clients that connect as fast as they are let in", left_out=_NULL),
        PlannedScenario(
            "R", "churn", "as C, and 10,000 subscriptions a second that come and go",
            left_out={"amqtt": _AMQTT_CHURN, "rabbitmq": _RABBIT_CHURN, **_NULL},
        ),
        PlannedScenario("RR", "requests", "questions and answers, one at a time each", left_out=_NULL),
        PlannedScenario(
            "RT", "retained", "100,000 retained messages, asked for 100 at a time", schemes=MQTT,
            setup_seconds=3.0, left_out={"rabbitmq": _RABBIT_RETAINED, "amqtt": _AMQTT_RETAINED, **_NULL},
        ),
        # Long enough for the slow one's outbox to be full most of the time: before, there is nothing to be seen.
        PlannedScenario(
            "W0", "slow-consumer", "1 publisher, 100 subscribers, 1,000 bytes, all fast", changes={"slow": 0},
            least_seconds=5.0,
        ),
        PlannedScenario("W", "slow-consumer", "as W0, and one of them reads 10 kB/s", least_seconds=5.0),
    )
}


@dataclass(frozen=True)
class Step:
    """One run."""

    asked: PlannedScenario
    contender: Contender
    scheme: str
    round: int


def steps(asked: Sequence[PlannedScenario], contenders: Sequence[Contender], rounds: int) -> Iterator[Step]:
    """All runs in the order in which they are made: A B C, A B C, ... of one scenario, then of the next."""
    for one in asked:
        taking_part = [
            (contender, scheme)
            for contender in contenders
            if one.why_not(contender) is None and (scheme := contender.scheme(one.schemes)) is not None
        ]
        for number in range(rounds):
            for contender, scheme in taking_part:
                if number % contender.every == 0:
                    yield Step(one, contender, scheme, number)


def left_out(asked: Sequence[PlannedScenario], contenders: Sequence[Contender]) -> list[dict[str, str]]:
    """Who does not take part in what by declaration, as the report has it."""
    return [
        {"scenario": one.letter, "contender": contender.name, "reason": reason}
        for one in asked
        for contender in contenders
        if contender.scheme(one.schemes) is not None and (reason := one.why_not(contender)) is not None
    ]


def seconds(planned: Sequence[Step], duration: float, warmup: float) -> float:
    """About how long these runs take together."""
    return sum(
        step.contender.peer.start_seconds + step.asked.setup_seconds + warmup
        + max(duration, step.asked.least_seconds) + STOP_SECONDS
        for step in planned
    )  # fmt: skip


def contenders(only: Sequence[str] = ()) -> list[Contender]:
    """These, or all. A name is that of a contender or of its broker. KeyError: nobody is called so."""
    for name in only:
        if name not in CONTENDERS and all(one.peer.name != name for one in CONTENDERS.values()):
            raise KeyError(name)
    return [one for one in CONTENDERS.values() if not only or one.name in only or one.peer.name in only]
