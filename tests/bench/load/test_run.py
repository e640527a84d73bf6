"""Whole runs: against brokers that make mistakes, the null broker, and the real one, in each protocol."""

import dataclasses
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fanlight_bench.load.generator", reason="needs epoll")
from fanlight_bench import frames, null_server
from fanlight_bench.launch import Server
from fanlight_bench.load import scenario as scenarios
from fanlight_bench.load.protocol import GRANTED, WELCOME
from fanlight_bench.load.run import Progress, run
from fanlight_bench.load.scenario import Background, BadScenario, Scenario
from fanlight_bench.load.speaker import Refused
from fanlight_bench.load.speakers import speaker
from fanlight_bench.load.spelling import expand
from fanlight_bench.load.target import parse
from fanlight_bench.load.usage import broker_pids
from matchcore.kleene import Untyped, attribute_of, holds
from matchcore.where import parse_where
from tests.bench.load import broker as mistakes
from tests.bench.load.broker import Mistake, faulty
from tests.conftest import TestBroker

PAIRS = Scenario(
    "two", "two pairs", "dev/{i}", publishers=2, subscribers=2, topics=2, batch=1, window=8, eager=False
)  # fmt: skip


@pytest.mark.parametrize(
    ("mistake", "faults"),
    [
        (None, {}),
        (mistakes.lose, {"lost": 1}),
        (mistakes.repeat, {"repeated": 1}),
        (mistakes.misroute, {"lost": 1, "misrouted": 1}),
        (mistakes.damage, {"lost": 1, "damaged": 1}),
    ],
    ids=["none", "lose", "repeat", "misroute", "damage"],
)
def test_a_brokers_mistake_is_in_the_result(mistake: Mistake | None, faults: dict[str, int]) -> None:
    with faulty(mistake) as url:
        result = run(PAIRS, url, duration=0.1, warmup=0.02, drain=0.2)
    assert {name: count for name, count in result.faults.items() if count} == faults
    assert result.ok == (not faults)
    assert result.checked > 3


def test_at_a_rate_what_a_broker_holds_back_until_the_end_counts_in_the_latency() -> None:
    """Coordinated omission: what comes in the drain was due long before, and is what the run is about."""
    draining = threading.Event()

    def hold(_: mistakes.FaultyBroker, subscriber: socket.socket, packet: bytes) -> None:
        draining.wait(10)
        subscriber.sendall(packet)

    def tell(progress: Progress) -> None:
        if progress.phase == "draining":
            draining.set()

    with faulty(hold) as url:
        result = run(dataclasses.replace(PAIRS, rate=100.0), url, duration=0.3, warmup=0.0, drain=10, progress=tell)
    assert result.ok, result.faults
    assert result.latency_us["max"] > 200_000


def test_a_broker_that_hangs_up_ends_the_run(progress: list[Progress]) -> None:
    with faulty(mistakes.hang_up) as url:
        result = run(PAIRS, url, duration=60.0, warmup=60.0, drain=0.2, progress=progress.append)
    assert result.faults["closed"] == 1
    assert result.faults["lost"] > 0
    assert [*dict.fromkeys(step.phase for step in progress)] == [
        "connecting", "subscribing", "warming up", "measuring", "draining",
    ]  # fmt: skip
    assert progress[-1].counters["published"] > 0


@pytest.fixture(scope="module")
def null() -> Iterator[Server]:
    with null_server.start() as server:
        yield server


@pytest.fixture
def progress() -> list[Progress]:
    return []


@pytest.mark.parametrize("protocol", ["fanlight", "mqtt", "mqtt5"])
@pytest.mark.parametrize(
    "name", ["fan-out", "fan-in", "pairs", "pairs-unbatched", "wildcard", "latency", "large", "cold-topics"]
)
def test_the_null_broker_has_no_faults(null: Server, name: str, protocol: str) -> None:
    result = run(name, f"{protocol}://127.0.0.1:{null.addresses['mqtt'][1]}", duration=0.05, warmup=0.02)
    assert result.ok, result.faults
    assert result.checked > 0
    assert result.broker_us_per_delivery is not None


def test_idle_connections_are_open_and_watched(null: Server) -> None:
    url = f"mqtt://127.0.0.1:{null.addresses['mqtt'][1]}"
    result = run(PAIRS.with_changes(idle=150), url, duration=0.05, warmup=0.0)
    assert result.ok, result.faults
    assert result.connections == 154


def test_a_load_without_publishers_holds_its_connections(null: Server) -> None:
    url = f"mqtt://127.0.0.1:{null.addresses['mqtt'][1]}"
    result = run(Scenario("idle", "", "a", publishers=0, subscribers=0, idle=10), url, duration=0.05, warmup=0.0)
    assert result.ok, result.faults
    assert (result.connections, result.published, result.delivered, result.latency_us) == (10, 0, 0, {})
    assert result.broker_us_per_delivery is None


def test_the_broker_is_found_by_its_port_and_the_null_broker_stops_when_it_is_told(null: Server) -> None:
    assert broker_pids("127.0.0.1", null.addresses["mqtt"][1]) == [null.pid]
    assert broker_pids("192.0.2.1", null.addresses["mqtt"][1]) == []  # of another machine (RFC 5737)
    assert null.terminate() == 0


def test_background_subscriptions_are_checked_like_the_others(module_broker: TestBroker) -> None:
    crowd = Background(subscriptions=1_000, connections=3, filters=("dev/{i%10}/+/{i/10}/#",))
    made = Scenario("crowd", "", "dev/{i%10}/x/{i/10}", publishers=2, topics=20, subscribers=0, background=crowd)
    result = run(made, f"mqtt://127.0.0.1:{module_broker.mqtt_port}", duration=0.1, warmup=0.0)
    assert result.ok, result.faults
    assert result.subscriptions == 1_000
    assert result.connections == 5
    assert result.checked > 0


EVERYWHERE = [
    "fan-out", "fan-in", "pairs", "wildcard-10k", "wildcard-topics", "latency", "large", "cold-topics", "slow-consumer",
]  # fmt: skip
RUNS = [
    *[(name, protocol) for name in EVERYWHERE for protocol in ("fanlight", "mqtt", "mqtt5")],
    *[("acknowledged", protocol) for protocol in ("fanlight", "mqtt", "mqtt5")],
    ("exactly-once", "mqtt"), ("exactly-once", "mqtt5"), ("mqtt5-properties", "mqtt5"), ("mqtt5-aliases", "mqtt5"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "protocol"), RUNS)
def test_the_broker_has_no_faults(module_broker: TestBroker, name: str, protocol: str) -> None:
    port = module_broker.port if protocol == "fanlight" else module_broker.mqtt_port
    made = scenarios.load(name)
    if name == "slow-consumer":
        made = made.with_changes(subscribers=20)
    result = run(made, f"{protocol}://127.0.0.1:{port}", duration=0.1, warmup=0.02)
    assert result.ok, (result.faults, result.complaint)
    assert result.checked > 0
    assert json.loads(json.dumps(result.as_json()))["checked"] == result.checked


def crowd(name: str, **changes: Any) -> Scenario:
    """A scenario of selectors with fewer of them."""
    made = scenarios.load(name)
    less = dataclasses.replace(made.background, subscriptions=400, connections=20, **changes)
    return made.with_changes(background=less)


@pytest.mark.parametrize("protocol", ["fanlight", "mqtt5"])
@pytest.mark.parametrize("name", ["selectors", "selectors-without-keys"])
def test_background_subscriptions_with_selectors_get_what_the_scenario_says(
    module_broker: TestBroker, name: str, protocol: str
) -> None:
    port = module_broker.port if protocol == "fanlight" else module_broker.mqtt_port
    # Few enough messages that a slow machine has delivered most of them when the time is over.
    result = run(crowd(name).with_changes(rate=500), f"{protocol}://127.0.0.1:{port}", duration=1.0, warmup=0.0)
    assert result.ok, (result.faults, result.complaint)
    assert result.subscriptions == 401
    assert result.delivered > result.published  # the one subscriber of all, and one of the crowd


@pytest.mark.parametrize(
    ("where", "fault"),
    [("symbol = 's{i/20%100}' AND price > 120", "lost"), ("price > 100", "misrouted")],
    ids=["denies too much", "accepts too much"],
)
def test_a_delivery_that_a_selector_wrongly_denies_or_accepts_is_a_fault(
    module_broker: TestBroker, where: str, fault: str
) -> None:
    made = crowd("selectors", where=where)
    result = run(made, f"fanlight://127.0.0.1:{module_broker.port}", duration=0.1, warmup=0.0, drain=0.2)
    assert result.faults[fault] > 0


@pytest.mark.parametrize("name", ["selectors", "selectors-without-keys"])
def test_what_a_scenario_says_of_its_selectors_is_what_they_mean(name: str) -> None:
    made = scenarios.load(name)
    background = made.background
    for number in range(0, background.subscriptions, 997):
        selector = parse_where(expand(background.where, number))
        for topic in range(made.topics):
            headers = {key: expand(str(value), topic) for key, value in made.headers.items()}
            met = all(headers[key] == expand(value, number) for key, value in background.met_by.items())
            fields = {attribute_of(key): Untyped(value) for key, value in headers.items()}
            assert (holds(selector, fields) is True) == met, (number, topic)


def test_topics_with_slashes_are_measured_in_the_native_protocol_as_well(module_broker: TestBroker) -> None:
    made = dataclasses.replace(scenarios.load("pairs"), topic="dev/{i}x/temp", filters=("+/{i}x/#",))
    result = run(made, f"fanlight://127.0.0.1:{module_broker.port}?syntax=mqtt", duration=0.1, warmup=0.02)
    assert result.ok, result.faults
    assert result.checked > 0


@pytest.mark.parametrize(
    ("name", "url", "why"),
    [
        ("exactly-once", "fanlight://127.0.0.1:1", "exactly-once is of QoS 2; fanlight has up to 1"),
        ("acknowledged", "nats://127.0.0.1:1", "nats has up to 0"),
        ("mqtt5-aliases", "mqtt://127.0.0.1:1", "needs topic aliases"),
        ("selectors", "mqtt://127.0.0.1:1", "needs headers or selectors"),
        ("selectors", "nats://127.0.0.1:1", "needs headers or selectors"),
    ],
)
def test_what_a_protocol_cannot_do_is_refused_before_anything_is_opened(name: str, url: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        run(name, url)


@pytest.mark.parametrize(
    ("url", "answer", "why"),
    [
        ("fanlight://host", frames.encode(frames.ERROR, None, "not_permitted", "who?"), "ERROR None not_permitted who"),
        ("mqtt://host", b"\x20\x02\x00\x05", "CONNACK with 0x05"),
        ("mqtt5://host", b"\x20\x03\x00\x87\x00", "CONNACK with 0x87"),
        ("mqtt5://host", b"\x90\x04\x00\x01\x00\x87", "1 of 1 subscriptions refused, the first with 0x87"),
        ("nats://host", b"-ERR 'Authorization Violation'\r\n", "Authorization Violation"),
    ],
)
def test_a_refusal_is_told_in_the_brokers_words(url: str, answer: bytes, why: str) -> None:
    speaks = speaker(parse(url), scenarios.load("pairs"))
    ((kind, frame),) = speaks.dialect.frames(answer)[0]
    with pytest.raises(Refused, match=why):
        speaks.is_answer(kind, frame)


def test_a_broker_that_grants_too_little_for_the_scenario_is_refused() -> None:
    speaks = speaker(parse("mqtt5://host"), scenarios.load("acknowledged"))
    with pytest.raises(Refused, match="Receive Maximum is 16"):
        speaks.is_answer(WELCOME, b"\x20\x06\x00\x00\x03\x21\x00\x10")
    with pytest.raises(Refused, match="QoS 0 granted, and 1 asked for"):
        speaks.is_answer(GRANTED, b"\x90\x04\x00\x01\x00\x00")
    aliases = speaker(parse("mqtt5://host"), scenarios.load("mqtt5-aliases"))
    with pytest.raises(Refused, match="1 topic aliases are wanted; the broker's Topic Alias Maximum is 0"):
        aliases.is_answer(WELCOME, b"\x20\x03\x00\x00\x00")


def test_background_subscriptions_of_one_connection_that_overlap_are_refused() -> None:
    crowd = Background(subscriptions=2, connections=1, filters=("dev/{i}", "+/0"))
    made = Scenario("overlap", "", "dev/0", subscribers=0, background=crowd)
    with faulty(None) as url, pytest.raises(BadScenario, match="two subscriptions of subscriber 0 match stream 0"):
        run(made, url)
