"""The plan of a comparison: the scenarios, which contenders are left out and why, the order, and the time it takes.

A scenario is one of fanlight_bench.load, named here by its letter in the tables. Runs are interleaved: a round of a
scenario has one run of each contender, then the next round follows, so that other work of the machine affects all
equally. A contender whose difference shows after a run or two takes part in some rounds only, but in all of a scenario
that only its protocol can express. A scenario that takes long has fewer rounds. A contender that would take too long,
or adds nothing, is left out by declaration, with the reason, which the report repeats. All of it, with the defaults of
the command line, takes 26 minutes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fanlight_bench.load.scenario import Background
from fanlight_bench.peers.contenders import CONTENDERS, Contender

STREAM = ("fanlight", "mqtt", "mqtt5", "nats")  # what can be said in all protocols
MQTT = ("mqtt", "mqtt5")
TLS = ("fanlight+tls", "mqtt+tls", "nats+tls")
WEBSOCKET = ("mqtt+ws", "nats+ws")  # the native protocol has none, and Debian's Mosquitto is built without it
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
    rounds_max: int = 99        # of one that takes long: however many the others have
    changes: Mapping[str, Any] = field(default_factory=dict)   # of the scenario's values
    settings: Mapping[str, str] = field(default_factory=dict)  # of Fanlight, which then takes part alone
    module: str = ""                                           # that Fanlight is run by, instead of fanlightd
    left_out: Mapping[str, str] = field(default_factory=dict)  # contender -> why

    def why_not(self, contender: Contender) -> str | None:
        """Why it does not take part; None: it does. A protocol that cannot say it needs no words."""
        return self.left_out.get(contender.name)


_AMQTT_SLOW = "amqtt compares every filter with every message: at 10,000 filters it delivers some 500 a second"
_RABBIT_SLOW = "RabbitMQ takes 0.6 ms to enter a filter: the set-up alone would take minutes"
_NULL_SIMPLE = "the null broker knows neither acknowledgements of MQTT nor MQTT 5"
_NULL_STREAMS = "the null broker is the floor of moving messages; it is not made to hold anything"
_NATS_SLOW = "nats-server takes 0.2 ms to enter a filter by MQTT"
_RABBIT_QOS = "the MQTT of this RabbitMQ grants QoS 1 where 2 is asked for"
_AMQTT_RETAINED = "amqtt takes five seconds for a look-up among 100,000 retained messages"
_RABBIT_RETAINED = "RabbitMQ's MQTT finds no retained message by a filter with wildcards"
_NATS_QOS = "the MQTT of this nats-server ends at QoS 1"
_SLOW_START = "the other rows show how far it is behind; a run of it takes ten times as long as another's"
_FEW = "a row in which NATS on one processor and Mosquitto stand for the others"
_ONE = "a row about one of Fanlight's limits: beside it stands NATS on one processor"
_SELECTORS = "a row about selectors, which it does not have"
_OWN = "a row about a setting of Fanlight"
_SAME = "its outboxes are those of the native protocol"
_NULL = {"null-native": _NULL_STREAMS, "null-mqtt": _NULL_STREAMS}
_LIMITS = dict.fromkeys(("fanlight-mqtt5", "nats", "nats-mqtt", "rabbitmq", "amqtt", "null-native", "null-mqtt"), _FEW)
_NATS_ONLY = {**_LIMITS, "mosquitto": _ONE}
_ALONE = {**_LIMITS, **dict.fromkeys(("nats-1cpu", "mosquitto"), _OWN), "fanlight-mqtt": _SAME}
_NO_SELECTORS = {"mosquitto": _SELECTORS, **_NULL}
SELECTING = ("fanlight", "mqtt5")  # what has selectors
IN_A_ROW = "fanlight_bench.micro.in_a_row"
# 200 subscribers read nothing, one reads all: 2,000 messages a second of 1,000 bytes. The kernel's buffers take them
# for a second or two, an outbox of 8 MiB for four more; then the policy acts, for the rest of twenty.
_STALLED = {"subscribers": 201, "slow": 200, "slow_bytes_per_second": 1.0, "rate": 2_000.0}
POLICIES = {"Wp": "pause", "Wn": "drop_newest", "Wo": "drop_oldest", "Wd": "disconnect"}
_SLOW = dict.fromkeys(("rabbitmq", "amqtt"), _SLOW_START)
_MANY = {"amqtt": _AMQTT_SLOW, "rabbitmq": _RABBIT_SLOW, **_NULL}

ASKED = {
    asked.letter: asked
    for asked in (
        PlannedScenario("A", "fan-out", "1 publisher, 100 subscribers", target=0.06),
        PlannedScenario("B", "pairs", "50 pairs, writes of 32 messages", target=0.26),
        PlannedScenario("B1", "pairs-unbatched", "50 pairs, a write a message", target=5.8, left_out=_SLOW),
        PlannedScenario("FI", "fan-in", "100 publishers, 1 subscriber", rounds_max=1, left_out=_LIMITS),
        PlannedScenario("C", "wildcard", "1,000 topics, 5 wildcard subscribers each", target=0.10),
        PlannedScenario(
            "C100k", "wildcard-100k", "as C, with 100,000 other filters", setup_seconds=4.0, target=0.12, rounds_max=1,
            left_out={**_LIMITS, **_MANY, "nats-mqtt": _NATS_SLOW},
        ),
        PlannedScenario("CX", "wildcard-topics", "as C, 20,000 topics", setup_seconds=1.0, target=0.15, left_out=_SLOW),
        PlannedScenario("CT", "cold-topics", "topics that are used once", rounds_max=2, left_out=_LIMITS),
        PlannedScenario(
            "D", "acknowledged", "10 pairs, QoS 1 (native: receipts)", schemes=("fanlight", *MQTT), target=2.0,
            rounds_max=2, left_out={"null-mqtt": _NULL_SIMPLE},
        ),
        PlannedScenario(
            "Q2", "exactly-once", "10 pairs, QoS 2", schemes=MQTT,
            left_out={**_SLOW, "null-mqtt": _NULL_SIMPLE, "nats-mqtt": _NATS_QOS, "rabbitmq": _RABBIT_QOS},
        ),
        PlannedScenario("AT", "fan-out", "as A, by TLS", schemes=TLS, rounds_max=2),
        PlannedScenario("B1T", "pairs-unbatched", "as B1, by TLS", schemes=TLS, rounds_max=2),
        PlannedScenario("AW", "fan-out", "as A, over WebSocket", schemes=WEBSOCKET, rounds_max=2),
        PlannedScenario("B1W", "pairs-unbatched", "as B1, over WebSocket", schemes=WEBSOCKET, rounds_max=2),
        PlannedScenario("P5", "mqtt5-properties", "50 pairs, properties of MQTT 5", schemes=("mqtt5",)),
        PlannedScenario("A5", "mqtt5-aliases", "50 pairs, topic aliases of MQTT 5", schemes=("mqtt5",)),
        PlannedScenario("E", "latency", "10 pairs, 5,000 messages/s in all"),
        PlannedScenario(
            "G", "million", "1,000,000 wildcard filters, then publish", setup_seconds=15.0, target=0.6, rounds_max=1,
            left_out={**_LIMITS, **_MANY, "nats-mqtt": _NATS_SLOW},
        ),
        PlannedScenario("H", "large", "64 KiB, 1 publisher, 10 subscribers", target=25.0, rounds_max=2, left_out=_SLOW),
        PlannedScenario(
            "F", "idle-connections", "10,000 connections that do nothing", setup_seconds=6.0, rounds_max=1,
            left_out=_LIMITS,
        ),
        PlannedScenario(
            "S", "connect-storm", "clients that connect as fast as they are let in", rounds_max=2, left_out=_LIMITS,
        ),
        PlannedScenario(
            "R", "churn", "as C, and 10,000 subscriptions a second that come and go", rounds_max=2,
            left_out=_LIMITS,
        ),
        PlannedScenario(
            "RR", "requests", "questions and answers, one at a time each", rounds_max=1, left_out=_SLOW | _NULL,
        ),
        PlannedScenario(
            "RT", "retained", "100,000 retained messages, asked for 100 at a time", schemes=MQTT,
            setup_seconds=3.0, rounds_max=1, left_out={"rabbitmq": _RABBIT_RETAINED, "amqtt": _AMQTT_RETAINED, **_NULL},
        ),
        # Long enough for the slow one's outbox to be full most of the time: before, there is nothing to be seen.
        PlannedScenario(
            "W0", "slow-consumer", "1 publisher, 100 subscribers, 1,000 bytes, all fast", changes={"slow": 0},
            least_seconds=5.0, rounds_max=2, left_out=_LIMITS,
        ),
        PlannedScenario(
            "W", "slow-consumer", "as W0, and one of them reads 10 kB/s", least_seconds=5.0, rounds_max=2,
            left_out=_LIMITS,
        ),
        # Where a broker falls off: the rows above flatter those that remember what they have seen.
        PlannedScenario(
            "T1k", "cycled-topics", "1,000 topics in turn, 1 subscriber of all", changes={"topics": 1_000},
            rounds_max=2, left_out=_LIMITS,
        ),
        PlannedScenario(
            "T70k", "cycled-topics", "as T1k, 70,000 topics", setup_seconds=1.0, rounds_max=2, left_out=_LIMITS,
        ),
        PlannedScenario(
            "T1M", "cycled-topics", "as T1k, 1,000,000 topics", setup_seconds=15.0, changes={"topics": 1_000_000},
            least_seconds=3.0, rounds_max=1, left_out=_NATS_ONLY,
        ),
        PlannedScenario(
            "CX100k", "wildcard-topics", "as CX, 100,000 topics", setup_seconds=5.0, changes={"topics": 100_000},
            least_seconds=2.0, rounds_max=1, left_out=_NATS_ONLY,
        ),
        PlannedScenario(
            "CT1", "cold-topics", "topics that are used once, 1 subscriber", rounds_max=2, left_out=_LIMITS,
            changes={"subscribers": 1},
        ),
        PlannedScenario("AM", "mixed-fan-out", "as A, 32 topics in turn", rounds_max=2, left_out=_LIMITS),
        *(
            PlannedScenario(
                letter, "resubscribe", f"as {row}, and {changes:,} times a second one more subscribes to all topics",
                changes={"options": {"changes": changes}, **more}, least_seconds=2.0, rounds_max=2, left_out=_NATS_ONLY,
            )
            for letter, row, changes, more in (
                ("M100", "C", 100, {}), ("M1k", "C", 1_000, {}),
                ("MX10", "CX", 10, {"topics": 20_000}), ("MX100", "CX", 100, {"topics": 20_000}),
            )
        ),
        PlannedScenario(
            "LT", "pauses", "`#` is subscribed to and given up over 1,000,000 live topics", setup_seconds=20.0,
            least_seconds=4.0, rounds_max=1, left_out=_NATS_ONLY,
        ),
        PlannedScenario(
            "P0", "retained-stream", "1,000 topics, 1 subscriber of all, not retained", schemes=MQTT,
            changes={"retain": False}, left_out=_LIMITS,
        ),
        PlannedScenario("P", "retained-stream", "as P0, each message retained", schemes=MQTT, left_out=_LIMITS),
        PlannedScenario(
            "SC", "reconnect", "as C, and 2,000 clients a second that connect and go", least_seconds=2.0,
            rounds_max=2, left_out=_LIMITS,
        ),
        PlannedScenario(
            "WS", "slow-consumer", "as W0, and one of them reads nothing", changes={"slow_bytes_per_second": 1.0},
            least_seconds=20.0, rounds_max=1, left_out=_NATS_ONLY,
        ),
        PlannedScenario(
            "V0", "slow-consumer", "2,000 messages/s of 1,000 bytes, 1 subscriber", least_seconds=5.0, rounds_max=1,
            left_out=_LIMITS, changes={"subscribers": 1, "slow": 0, "rate": 2_000.0},
        ),
        *(
            PlannedScenario(
                letter, "slow-consumer", f"as V0, and 200 that read nothing, `slow_policy = {policy}`",
                changes=_STALLED, settings={"slow_policy": policy}, least_seconds=20.0, rounds_max=1, left_out=_ALONE,
            )
            for letter, policy in POLICIES.items()
        ),
        *(
            PlannedScenario(
                letter, scenario, title, schemes=SELECTING, setup_seconds=setup, rounds_max=1, changes=changes,
                module=module, left_out=_NO_SELECTORS,
            )
            for letter, scenario, title, setup, module, changes in (
                ("K0", "selectors", "20 topics with 4 headers, 1 subscriber of all", 0.3, "",
                 {"background": Background()}),
                ("K", "selectors", "as K0, and 1,000 subscriptions with selectors a topic: 10 get a message", 1.5, "",
                 {}),
                ("KR", "selectors", "as K, each selector evaluated in turn", 1.5, IN_A_ROW, {}),
                ("KX", "selectors-without-keys", "as K, patterns that cannot be indexed", 1.5, "", {}),
                ("KXR", "selectors-without-keys", "as KX, each selector evaluated in turn", 1.5, IN_A_ROW, {}),
            )
        ),
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
        for number in range(min(rounds, one.rounds_max)):
            for contender, scheme in taking_part:
                if len(one.schemes) == 1 or number % contender.every == 0:
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
