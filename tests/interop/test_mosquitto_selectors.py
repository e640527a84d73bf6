"""Selectors of mosquitto_sub: the User Property `where`, and the suffix of a filter as EMQX spells it."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.conftest import StartBroker, TestBroker
from tests.interop.mosquitto import Sub, pub, run

FILTER = "sensor/+/t?location=roomA&value>25"
COMMAND = Path(sys.executable).parent / "fanlight"

both = pytest.mark.parametrize("version", [3, 5])


def publish(broker: TestBroker, payload: str, topic: str = "sensor/1/t", **headers: str) -> None:
    properties = [word for name, value in headers.items() for word in ("-D", "publish", "user-property", name, value)]
    pub(broker.mqtt_port, "-t", topic, "-m", payload, "-q", 1, *properties)


def publish_three(broker: TestBroker) -> None:
    publish(broker, "hot", location="roomA", value="26")
    publish(broker, "cold", location="roomA", value="24")
    publish(broker, "elsewhere", location="roomB", value="30")


def test_the_user_property_where(broker: TestBroker) -> None:
    where = ("-D", "subscribe", "user-property", "where", "location = 'roomA' AND value > 25")
    with Sub(broker.mqtt_port, "-t", "sensor/#", "-q", 1, *where) as sub:
        publish_three(broker)
        publish(broker, "end", "sensor/end", location="roomA", value="1e2")
        assert [message.payload for message in sub.until("sensor/end")] == [b"hot"]


@both
def test_the_suffix_of_a_filter(start_broker: StartBroker, version: int) -> None:
    broker = start_broker(mqtt_filter_suffix=True)
    with Sub(broker.mqtt_port, "-t", FILTER, "-t", "end", "-q", 1, version=version) as sub:
        publish_three(broker)
        publish(broker, "end", "end")
        assert [message.payload for message in sub.until("end")] == [b"hot"]
        asked = [COMMAND, "explain", "sensor/1/t", "--http", broker.http_url, "--json"]
        asked += ["--fields", '{"location": "roomA", "value": 24}']
        answer = json.loads(subprocess.run(asked, check=True, capture_output=True).stdout)
    (filtered,) = answer["filtered"]
    assert (filtered["filter"], filtered["where"]) == ("sensor/+/t", "location = 'roomA' AND value > 25")
    assert filtered["reason"] == "value is 24; the selector wants > 25"


@both
def test_a_malformed_suffix_is_refused(start_broker: StartBroker, version: int) -> None:
    broker = start_broker(mqtt_filter_suffix=True)
    _, _, complaint = run("mosquitto_sub", broker.mqtt_port, "-t", "sensor/+/t?value>warm", version=version)
    assert "denied" in complaint
    broker.wait_for_line("request_refused")
    (line,) = [json.loads(line) for line in broker.lines if "request_refused" in line]
    assert line["code"] == "TOPIC_FILTER_INVALID"
    assert "byte 6 (counting from 0): > compares numbers, found 'warm'" in line["text"]


def test_the_suffix_of_a_session_outlives_kill_9(start_broker: StartBroker, tmp_path: Path) -> None:
    settings = {"mqtt_filter_suffix": True, "data": tmp_path / "data", "data_free_bytes_min": "1MiB"}
    session = ("-c", "-i", "watcher", "-x", 3_600, "-q", 1, "-t", FILTER)
    broker = start_broker(**settings)
    with Sub(broker.mqtt_port, *session):
        pass
    broker.kill()
    broker = start_broker(**settings)
    publish_three(broker)
    with Sub(broker.mqtt_port, *session) as sub:
        publish(broker, "end", "sensor/end/t", location="roomA", value="99")
        assert [message.payload for message in sub.until("sensor/end/t")] == [b"hot"]


def publish_in_vain(broker: TestBroker) -> None:
    """By both protocols; each is answered with no subscription."""
    native = [COMMAND, "pub", "stock.a", "x", "--header", "price=80", "--receipt", "--url", broker.url]
    done = subprocess.run(native, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (5, "0\n")
    assert done.stderr == "fanlight pub: nobody is subscribed, or no selector is true of it\n"
    mqtt = ("-d", "-q", 1, "-t", "stock/a", "-m", "x", "-D", "publish", "user-property", "price", "80")
    assert "received PUBACK (Mid: 1, RC:16)" in run("mosquitto_pub", broker.mqtt_port, *mqtt)[1]


def test_publishers_learn_that_nobody_gets_it_and_the_counters_why(broker: TestBroker) -> None:
    publish_in_vain(broker)
    with Sub(broker.mqtt_port, "-t", "stock/#", "-D", "subscribe", "user-property", "where", "price > 100"):
        publish_in_vain(broker)
        publish_in_vain(broker)
    with urllib.request.urlopen(f"{broker.http_url}/metrics") as page:
        metrics = page.read().decode()
    assert "fanlight_messages_filtered_total 4.0" in metrics
    assert "fanlight_messages_unroutable_total 2.0" in metrics
