"""Scenarios that are not one stream of messages, in short, against the real broker; and that they see faults."""

import json
import socket
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("fanlight_bench.load.round_trips", reason="needs epoll")
from fanlight_bench.load import scenario as scenarios
from fanlight_bench.load.connect import Connection
from fanlight_bench.load.kinds import retained
from fanlight_bench.load.kinds.churner import Churner
from fanlight_bench.load.kinds.resubscriber import Resubscriber
from fanlight_bench.load.kinds.watch import Watch
from fanlight_bench.load.requests import requests
from fanlight_bench.load.result import Result
from fanlight_bench.load.round_trips import RoundTrips
from fanlight_bench.load.run import Plan, Progress, run
from fanlight_bench.load.scenario import BadScenario, Scenario
from fanlight_bench.load.speak_mqtt import packet, string
from fanlight_bench.load.speaker import Refused
from fanlight_bench.load.speakers import speaker
from fanlight_bench.load.target import parse
from tests.conftest import TestBroker

PROTOCOLS = ["fanlight", "mqtt", "mqtt5"]
SMALL = {
    "connect-storm": {"stay": 20, "at_once": 10},
    "idle-connections": {"connections": 30, "at_once": 10},
    "churn": {"changes": 2_000, "standing": 100, "connections": 2, "turns": 1},
    "resubscribe": {"turns": 1},
    "reconnect": {"connects": 200, "stay": 5, "turns": 1},
    "pauses": {"times": 2},
    "requests": {"requesters": 3},
    "replay": {"speed": 0, "messages": 2_000},
    "retained": {"stored": 600, "per_filter": 100, "connections": 2},
}


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker() as started:
        yield started
        assert started.complaints() == []


def measured(broker: TestBroker, protocol: str, name: str, **options: object) -> Result:
    port = broker.port if protocol == "fanlight" else broker.mqtt_port
    scenario = scenarios.load(name).with_changes(options={**SMALL[name], **options})
    return run(scenario, f"{protocol}://127.0.0.1:{port}", duration=0.3, warmup=0.1, drain=5.0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_storm_connects_and_nobody_is_left_without_an_answer(broker: TestBroker, protocol: str) -> None:
    result = measured(broker, protocol, "connect-storm")
    assert result.ok, result
    assert result.connections > 20
    assert result.metrics["broker_us_per_connect"] > 0
    assert 0 < result.latency_us["p50"] <= result.latency_us["p99"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_idle_connections_are_held_and_still_answer(broker: TestBroker, protocol: str) -> None:
    result = measured(broker, protocol, "idle-connections")
    assert result.ok, result
    assert result.connections == 30
    assert result.memory["connected"] is not None


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_churn_changes_subscriptions_while_the_stream_loses_nothing(broker: TestBroker, protocol: str) -> None:
    result = measured(broker, protocol, "churn")
    assert result.ok, result
    assert result.metrics["changes_per_second"] > 0
    assert result.metrics["with_delivered_per_second"] > 0
    assert result.metrics["without_delivered_per_second"] > 0
    assert result.subscriptions == 50 + 100


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", ["resubscribe", "reconnect"])
def test_a_stream_loses_nothing_while_its_audience_changes_or_clients_come_and_go(
    broker: TestBroker, name: str, protocol: str
) -> None:
    result = measured(broker, protocol, name)
    assert result.ok, result
    assert result.metrics["changes_per_second"] > 0
    assert result.metrics["with_delivered_per_second"] > 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_client_waits_while_another_subscribes_to_all_topics(broker: TestBroker, protocol: str) -> None:
    port = broker.port if protocol == "fanlight" else broker.mqtt_port
    scenario = scenarios.load("pauses").with_changes(topics=2_000, options=SMALL["pauses"])
    result = run(scenario, f"{protocol}://127.0.0.1:{port}", duration=0.2, warmup=0.0, drain=5.0)
    assert result.ok, result
    assert result.metrics["topics_seen"] == 2_000
    assert 0 < result.metrics["pause_ms"] <= result.metrics["pause_ms_max"]
    assert result.metrics["pause_ms_without"] > 0
    assert result.latency_us["max"] >= 999 * result.metrics["pause_ms_max"]


@pytest.mark.parametrize("protocol", PROTOCOLS[1:])
def test_a_stream_of_retained_messages_leaves_none_behind(broker: TestBroker, protocol: str) -> None:
    before = kept(broker)
    scenario = scenarios.load("retained-stream").with_changes(topics=20)
    found: list[int] = []

    def look(progress: Progress) -> None:
        if progress.phase == "measuring" and not found:
            found.append(kept(broker))

    url = f"{protocol}://127.0.0.1:{broker.mqtt_port}"
    assert run(scenario, url, duration=0.3, warmup=0.1, drain=5.0, progress=look).ok
    assert found == [before + 20]
    assert kept(broker) == before


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_requests_are_answered(broker: TestBroker, protocol: str) -> None:
    result = measured(broker, protocol, "requests")
    assert result.ok, result
    assert result.metrics["round_trips_per_second"] > 0
    assert result.published == result.delivered > 0


@pytest.mark.parametrize("protocol", PROTOCOLS[1:])
def test_what_is_retained_is_found_and_forgotten_afterwards(broker: TestBroker, protocol: str) -> None:
    for _ in range(2):  # the second would find what the first has left
        result = measured(broker, protocol, "retained")
        assert result.ok, result
        assert result.delivered == result.checked == result.subscriptions * 100 > 0


def kept(broker: TestBroker) -> int:
    """How many retained messages the broker has."""
    with urllib.request.urlopen(f"{broker.http_url}/stats", timeout=60) as answer:
        return int(json.load(answer)["retained_messages"])


def test_who_interrupts_it_finds_no_retained_messages_left(broker: TestBroker) -> None:
    before, found = kept(broker), list[int]()

    def interrupt(progress: Progress) -> None:
        if progress.phase == "looking up":
            found.append(kept(broker))
            raise KeyboardInterrupt

    scenario = scenarios.load("retained").with_changes(options=SMALL["retained"])
    with pytest.raises(KeyboardInterrupt):
        run(scenario, f"mqtt://127.0.0.1:{broker.mqtt_port}", duration=60.0, progress=interrupt)
    assert found[0] >= before + 600
    assert kept(broker) == before


def test_native_clients_cannot_run_a_stream_of_retained_messages(broker: TestBroker) -> None:
    with pytest.raises(Refused, match="no retained messages"):
        run("retained-stream", broker.url, duration=0.1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_recording_is_replayed_and_all_of_it_delivered(broker: TestBroker, protocol: str) -> None:
    result = measured(broker, protocol, "replay")
    assert result.ok, result
    assert result.published <= result.metrics["recorded"] == 2_000
    assert result.checked == 4 * result.published > 0


def test_copies_of_a_recording_are_replayed_side_by_side_at_its_own_pace(broker: TestBroker, tmp_path: Path) -> None:
    path = tmp_path / "part-0.json"
    path.write_text("".join(f'{{"at": {at / 100}, "topic": "a/b.c/{at % 3}", "bytes": 30}}\n' for at in range(20)))
    (tmp_path / "_SUCCESS").touch()
    result = measured(broker, "mqtt", "replay", file=str(tmp_path), speed=1.0, scale=3, messages=60)
    assert result.ok, result
    assert result.published == 60
    assert result.checked == 60 * 4
    assert result.seconds > 0.18


def test_a_protocol_without_retained_messages_says_so(broker: TestBroker) -> None:
    with pytest.raises(Refused, match="no retained messages"):
        measured(broker, "fanlight", "retained")


def test_progress_is_told_in_every_phase(broker: TestBroker) -> None:
    told: list[Progress] = []
    scenario = scenarios.load("idle-connections").with_changes(options=SMALL["idle-connections"])
    run(scenario, broker.url, duration=0.2, warmup=0.0, progress=told.append)
    assert list(dict.fromkeys(each.phase for each in told)) == ["connecting", "idle", "draining"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('kind = "storm"', "kind 'storm'"),
        ('kind = "idle"\n[options]\nclients = 3', "clients is unknown"),
        ('kind = "idle"\n[options]\nconnections = 0', "at least 1"),
        ('kind = "idle"\n[options]\nconnections = "many"', "a value like 10000"),
        ("[options]\nconnections = 3", "a stream has none"),
    ],
)
def test_a_kind_and_its_options_are_checked(text: str, complaint: str) -> None:
    with pytest.raises(BadScenario, match=complaint):
        scenarios.parse("own", f'title = "t"\ntopic = "a/b"\n{text}')


def test_a_resubscriber_sees_an_answer_that_does_not_come_and_a_connection_that_ends() -> None:
    scenario = scenarios.load("resubscribe")
    watch = Watch(scenario, MQTT, Plan(1.0, 0.0))
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with Resubscriber(watch, scenario.choices) as resubscriber:
        resubscriber._connection._socket = ours
        resubscriber._change()
        resubscriber._listen(0.0)
        assert theirs.recv(1_000).endswith(string("site/#") + b"\0")
        theirs.sendall(delivery("site/1", b"x") * 3)
        resubscriber._listen(1.0)
        assert resubscriber.found() == ({"unacknowledged": 1, "refused": 0}, "")
        theirs.sendall(b"\x90\x03\0\1\0")
        resubscriber._listen(1.0)
        assert resubscriber.found() == ({"unacknowledged": 0, "refused": 0}, "")
        theirs.close()
        resubscriber._listen(1.0)
        counts, complaint = resubscriber.found()
    assert counts["refused"] == 1
    assert "closed the connection" in complaint


def test_options_that_are_left_out_have_their_defaults_in_the_result(broker: TestBroker) -> None:
    options = measured(broker, "mqtt", "idle-connections").parameters["options"]
    assert options == {"connections": 30, "at_once": 10}


# --- faults: the broker here is the test, and speaks MQTT 3.1.1 ------------------------------------------------------

MQTT = parse("mqtt://127.0.0.1:1")


def delivery(topic: str, payload: bytes) -> bytes:
    return packet(0x30, string(topic) + payload)


@dataclass
class Asked:
    """One requester, who has asked once, and its responder."""

    round_trips: RoundTrips
    requester: socket.socket
    responder: socket.socket

    def question(self) -> bytes:
        self.round_trips.run(0.01)
        self.requester.setblocking(False)
        return self.requester.recv(1_000)


@pytest.fixture
def asked() -> Iterator[Asked]:
    pairs = [socket.socketpair() for _ in range(2)]
    for ours, _ in pairs:
        ours.setblocking(False)
    speaks = speaker(MQTT, Scenario("test", "test", "ask"))
    round_trips = RoundTrips(speaks.dialect, 64, 1)
    question, answer = (speaks.publish(topic, 1) for topic in ("ask", "answer"))
    responder = round_trips.add_responder(pairs[1][0].fileno())
    round_trips.add_requester(
        pairs[0][0].fileno(),
        responder,
        (question.frame.octets, question.topic, question.frame.payload_at),
        (answer.frame.octets, answer.topic, answer.frame.payload_at),
    )
    round_trips.start()
    yield Asked(round_trips, pairs[0][1], pairs[1][1])
    for pair in pairs:
        for end in pair:
            end.close()


def test_a_round_trip_is_counted_and_the_next_question_asked(asked: Asked) -> None:
    asked.responder.sendall(asked.question())
    asked.round_trips.run(0.01)
    answer = asked.responder.recv(1_000)
    assert b"answer" in answer
    asked.requester.sendall(answer)
    asked.round_trips.run(0.01)
    assert (asked.round_trips.answered, asked.round_trips.asked) == (1, 2)
    assert asked.round_trips.latency.total == 1
    asked.requester.sendall(answer)
    asked.round_trips.run(0.01)
    assert asked.round_trips.repeated == 1


def test_changed_and_misrouted_round_trips_are_faults(asked: Asked) -> None:
    question = asked.question()
    asked.responder.sendall(question.replace(b"xyz", b"xyZ") + question.replace(b"ask", b"asc"))
    asked.requester.sendall(question)  # a question is not an answer: its topic is another
    asked.round_trips.run(0.01)
    assert asked.round_trips.damaged == 3
    asked.round_trips.drain(0.01)
    assert asked.round_trips.answered == 0
    assert not asked.round_trips.broken()
    asked.responder.close()
    asked.round_trips.run(0.01)
    assert asked.round_trips.broken()


@pytest.fixture
def asker() -> Iterator[tuple[retained.Asker, retained.Store, socket.socket]]:
    ours, theirs = socket.socketpair()
    scenario = scenarios.load("retained").with_changes(options={"stored": 6, "per_filter": 3})
    says = requests(speaker(MQTT, scenario))
    store = retained.Store(says, scenario, scenario.choices)
    connection = Connection("asker")
    connection._socket = ours
    yield retained.Asker(connection, says, store), store, theirs
    ours.close()
    theirs.close()


def test_a_look_up_sees_what_is_missing_repeated_foreign_or_changed(
    asker: tuple[retained.Asker, retained.Store, socket.socket],
) -> None:
    it, store, theirs = asker
    it.ask(0)
    stored = [delivery(store.topic(number), store.payload(number)) for number in range(6)]
    theirs.sendall(b"\x90\x03\0\1\0" + stored[0] + stored[0] + stored[5] + stored[1].replace(b"xyz", b"xyZ"))
    it.receive()
    it.give_up()
    assert it.faults == {"lost": 2, "repeated": 1, "misrouted": 1, "damaged": 1}
    assert it.busy


def test_a_churner_sees_a_delivery_that_it_should_not_get_and_one_that_does_not_come() -> None:
    scenario = scenarios.load("churn").with_changes(options={"connections": 1, "standing": 2})
    watch = Watch(scenario, MQTT, Plan(1.0, 0.0))
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with Churner(watch, scenario.choices) as churner:
        (member,) = churner._members
        member.connection._socket = ours
        member.newest = 2
        churner._by_number[ours.fileno()] = member
        churner._epoll.register(ours, 1)
        churner._probe(member)
        sent = theirs.recv(10_000)
        assert sent.endswith(b"\xc0\0")
        assert len(member.probes) == 2
        churner._take(member, delivery("churn/9/any/9/rest", b"") + delivery(member.probes.copy().pop().decode(), b""))
        assert (churner.misrouted, len(member.probes)) == (1, 1)
    theirs.close()


@pytest.mark.parametrize(("silent", "fault"), [(True, "lost"), (False, "closed")])
def test_a_connection_that_does_not_answer_at_the_end_is_lost_and_one_that_ends_is_closed(
    silent: bool, fault: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:

        def welcome_and_no_more() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1_000)
                connection.sendall(b"\x20\x02\0\0")
                if silent:
                    while connection.recv(1_000):
                        pass

        served = pool.submit(welcome_and_no_more)
        scenario = scenarios.load("idle-connections").with_changes(options={"connections": 1})
        url = f"mqtt://127.0.0.1:{server.getsockname()[1]}"
        result = run(scenario, url, duration=0.2, warmup=0.0, drain=0.1)
        served.result(10)
    assert {name: count for name, count in result.faults.items() if count} == {fault: 1}
    assert bool(result.complaint) == (not silent)


def test_a_broker_that_is_gone_is_a_fault_and_not_the_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        port = server.getsockname()[1]
        scenario = scenarios.load("idle-connections").with_changes(options={"connections": 1})
        server.close()
        result = run(scenario, f"mqtt://127.0.0.1:{port}", duration=0.1, warmup=0.0)
    assert result.faults["refused"] >= 1
    assert not result.ok
    assert "refused" in result.complaint.lower()
