"""mosquitto_pub, mosquitto_sub and mosquitto_rr of Debian, in both versions."""

import asyncio
import itertools
from pathlib import Path

import pytest

from tests.conftest import TestBroker
from tests.interop.mosquitto import Sub, file_of, pub, run
from tests.interop.paho_peer import PahoPeer
from tests.interop.peer import Endpoint, Message, Said, Wanted

COUNT = 100
LINES = b"".join(b"%d\n" % number for number in range(COUNT))
EXPECTED = [b"%d" % number for number in range(COUNT)]

_numbers = itertools.count(1)

both = pytest.mark.parametrize("version", [3, 5])


@pytest.fixture
def name() -> str:
    """The first word of this test's topics."""
    return f"m{next(_numbers)}"


@pytest.fixture
def port(module_broker: TestBroker) -> int:
    return module_broker.mqtt_port


@both
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_lines_arrive_once_and_in_order(port: int, name: str, version: int, qos: int) -> None:  # 4.6
    with Sub(port, "-t", f"{name}/+", "-q", qos, version=version) as sub:
        pub(port, "-t", f"{name}/a", "-q", qos, "-l", version=version, given=LINES)
        came = sub.messages(COUNT)
        assert [message.payload for message in came] == EXPECTED
        assert {(message.qos, message.retain) for message in came} == {(qos, False)}


@both
def test_a_file_of_256_kib_arrives_whole(port: int, name: str, version: int, tmp_path: Path) -> None:
    content = bytes(range(256)) * 1024
    with Sub(port, "-t", name, "-q", 2, version=version) as sub:
        pub(port, "-t", name, "-q", 2, "-f", file_of(tmp_path, content), version=version)
        assert [message.payload for message in sub.messages(1)] == [content]


@both
def test_filters_overlap_and_topics_are_left_out(port: int, name: str, version: int) -> None:  # 3.3.4
    filters = ["-t", f"{name}/+/AAPL", "-t", f"{name}/#", "-t", f"{name}/nasdaq/AAPL"]
    with Sub(port, *filters, "-q", 1, version=version) as sub:
        sub.wait_for_line("Subscribed (mid: 1): 1, 1, 1")
        for topic in ("nasdaq/AAPL", "nyse/AAPL", "other"):
            pub(port, "-t", f"{name}/{topic}", "-m", topic, "-q", 1, version=version)
        pub(port, "-t", name, "-m", "end", "-q", 1, version=version)
        assert [message.payload for message in sub.until(name)] == [b"nasdaq/AAPL", b"nyse/AAPL", b"other"]


@both
def test_retained_messages_are_set_told_and_removed(port: int, name: str, version: int) -> None:  # 3.3.1.3
    for topic in "abc":
        pub(port, "-t", f"{name}/{topic}", "-m", topic, "-r", "-q", 1, version=version)
    pub(port, "-t", f"{name}/b", "-n", "-r", "-q", 1, version=version)
    with Sub(port, "-t", f"{name}/#", "-q", 1, version=version) as sub:
        assert {(message.topic, message.retain) for message in sub.messages(2)} == {
            (f"{name}/a", True), (f"{name}/c", True)
        }
        with Sub(port, "-t", f"{name}/+", "--remove-retained", version=version):
            assert [message.payload for message in sub.messages(4)[2:]] == [b"", b""]
    with Sub(port, "-t", f"{name}/#", "-q", 1, version=version) as late:
        pub(port, "-t", f"{name}/end", "-m", "", "-q", 1, version=version)
        assert late.until(f"{name}/end") == []


@both
def test_a_will_comes_after_kill_9_and_not_after_a_disconnect(port: int, name: str, version: int) -> None:  # 3.1.2.5
    def mortal(last: str) -> list[object]:
        return ["-t", "nothing", "--will-topic", f"{name}/{last}", "--will-payload", "gone", "--will-qos", 1]

    with Sub(port, "-t", f"{name}/#", "-q", 1, version=version) as sub:
        assert run("mosquitto_sub", port, *mortal("polite"), "-E", version=version)[0] == 0
        with Sub(port, *mortal("killed"), version=version) as killed:
            killed.kill()
            came = sub.messages(1)
        assert [(message.topic, message.payload, message.qos) for message in came] == [(f"{name}/killed", b"gone", 1)]


def test_a_disconnect_with_will_is_taken_at_its_word(port: int, name: str) -> None:  # 3.14.2.1
    with Sub(port, "-t", f"{name}/#", "-q", 1) as sub:
        with Sub(port, "-t", "nothing", "--will-topic", f"{name}/will") as other:
            other.terminate()  # mosquitto_sub ends with reason code 0x04 then, in 5.0
        assert [message.topic for message in sub.messages(1)] == [f"{name}/will"]


@both
def test_a_session_goes_on_with_what_came_meanwhile(port: int, name: str, version: int) -> None:  # 4.1
    mine = ["-c", "-i", f"{name}-sub", "-q", 2, "-t", f"{name}/+"]
    assert run("mosquitto_sub", port, *mine, "-E", version=version)[0] == 0  # which ends when it has subscribed
    pub(port, "-t", f"{name}/a", "-q", 2, "-l", version=version, given=LINES)
    with Sub(port, *mine, version=version, ready="received CONNACK (0)") as sub:
        assert [message.payload for message in sub.messages(COUNT)] == EXPECTED


@both
def test_a_shared_subscription_gives_each_line_to_one(port: int, name: str, version: int) -> None:  # 4.8.2
    filters = ["-t", f"$share/crew/{name}/job", "-t", f"{name}/end", "-q", 1]
    with Sub(port, *filters, version=version) as one, Sub(port, *filters, version=version) as two:
        pub(port, "-t", f"{name}/job", "-q", 1, "-l", version=version, given=LINES)
        pub(port, "-t", f"{name}/end", "-q", 1, "-m", "", version=version)
        shares = [[int(message.payload) for message in sub.until(f"{name}/end")] for sub in (one, two)]
    assert sorted(shares[0] + shares[1]) == list(range(COUNT))
    assert all(shares)


@both
def test_a_wrong_password_is_refused_with_the_reason(guarded_broker: TestBroker, version: int) -> None:  # 3.2.2.2
    port = guarded_broker.mqtt_port
    status, _, complaint = run("mosquitto_pub", port, "-t", "a", "-m", "", "-u", "x", "-P", "no", version=version)
    assert status != 0
    assert "bad user name or password" in complaint.lower()
    pub(port, "-t", "a", "-m", "", "-u", "x", "-P", "sesame", version=version)


def test_properties_are_printed_as_they_were_given(port: int, name: str) -> None:  # 3.3.2.3
    given = {
        "content-type": ["text/plain"], "response-topic": ["an/answer"], "correlation-data": ["key"],
        "user-property": ["a", "1"],
    }
    with Sub(port, "-t", name) as sub:
        pub(port, "-t", name, "-m", "x", *(each for key, value in given.items()
                                          for each in ("-D", "publish", key, *value)))
        (came,) = sub.messages(1)
    assert (came.content_type, came.response_topic, came.correlation) == ("text/plain", "an/answer", "key")
    assert came.user == "a:1"


def test_a_topic_alias_stands_for_its_topic(port: int, name: str) -> None:  # 3.3.2.3.4
    with Sub(port, "-t", f"{name}/#", "-q", 1) as sub:
        pub(port, "-t", f"{name}/long", "-q", 1, "-l", "-D", "publish", "topic-alias", 1, given=LINES)
        came = sub.messages(COUNT)
        assert [message.payload for message in came] == EXPECTED
        assert {message.topic for message in came} == {f"{name}/long"}


def test_what_is_too_large_for_a_subscriber_is_left_out(port: int, name: str, tmp_path: Path) -> None:  # 3.1.2.11.4
    with Sub(port, "-t", f"{name}/#", "-q", 1, "-D", "connect", "maximum-packet-size", 1000) as sub:
        pub(port, "-t", f"{name}/large", "-q", 1, "-f", file_of(tmp_path, bytes(2_000)))
        pub(port, "-t", f"{name}/small", "-q", 1, "-m", "x")
        assert [message.topic for message in sub.messages(1)] == [f"{name}/small"]


async def test_mosquitto_rr_gets_the_answer_to_its_request(port: int, name: str) -> None:  # 4.10
    server = PahoPeer(Endpoint(port), 5)
    await server.connect(Wanted(f"{name}-server"))
    await server.subscribe(f"{name}/ask", 1)
    asking = asyncio.create_task(asyncio.to_thread(
        run, "mosquitto_rr", port, "-t", f"{name}/ask", "-e", f"{name}/answer", "-m", "2+2", "-q", 1, "-W", 20,
        "-D", "publish", "correlation-data", "key", "-F", "%p %D",
    ))
    request = await server.message()
    assert (request.payload, request.said.correlation) == (b"2+2", b"key")
    assert request.said.response_topic == f"{name}/answer"
    await server.publish(Message(request.said.response_topic, b"4", 1, said=Said(correlation=b"key")))
    assert (await asking)[:2] == (0, "4 key\n")
    await server.disconnect()


@both
def test_the_brokers_own_topics_have_the_usual_names(port: int, version: int) -> None:
    status, output, _ = run("mosquitto_sub", port, "-t", "$SYS/broker/version", "-C", 1, "-W", 20, version=version)
    assert status == 0
    assert output.lower().startswith("fanlight")
