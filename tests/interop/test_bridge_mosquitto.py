"""Bridges between Fanlight and mosquitto: both ways, through cuts and kills of either side."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.certificates import Certificates
from tests.conftest import StartBroker
from tests.interop.bridged import (
    MosquittoBroker,
    bridge,
    free_port,
    gather_until,
    in_order,
    publish_many,
    route,
    up,
    write_bridges,
)
from tests.interop.mosquitto import Sub, pub
from tests.system.mqtt_peer import MqttPeer
from tests.system.views import eventually, view

TEN_MINUTES = 60_000  # messages: 100 a second for ten minutes
MANY = 2_000
# As mosquitto_passwd has written it: the user plant, with the password sesame.
PASSWORDS = (
    "plant:$7$101$UDDFcvUXAH+x61J3$YKTmSHYP9IFSuggw737t3HM4n4IhLKxmO/8lT2lx"
    "swwe+NR4PkQZlk+xyOtez/tFYIXWcP81cUIpIKO4S++YoQ==\n"
)
TOPICS = ["plant/a", "plant/b", "plant/c"]


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[MosquittoBroker]:
    with MosquittoBroker(tmp_path / "mosquitto", free_port()) as started:
        yield started


@pytest.mark.parametrize("version", ["5.0", "3.1.1"])
def test_messages_pass_both_ways_once(
    version: str, tmp_path: Path, mosquitto: MosquittoBroker, start_broker: StartBroker
) -> None:
    """With prefixes on either side, and none comes back to where it was published."""
    file = write_bridges(tmp_path / "b.toml", [bridge(
        "far", mosquitto.port, route("a/#", "both", local_prefix="in/", remote_prefix="site/7/"),
        route("", "in", local_prefix="time", remote_prefix="clock/now"), version=version,
    )])
    broker = start_broker(bridges=file)
    up(broker, "far")
    with Sub(mosquitto.port, "-t", "#", "-q", 1) as far, Sub(broker.mqtt_port, "-t", "#", "-q", 1) as near:
        pub(broker.mqtt_port, "-t", "in/a/1", "-m", "out", "-q", 2, "-D", "publish", "content-type", "text/plain")
        far.messages(1)
        pub(mosquitto.port, "-t", "site/7/a/2", "-m", "in", "-q", 1)
        near.messages(2)
        pub(mosquitto.port, "-t", "clock/now", "-m", "noon", "-q", 0)
        near.messages(3)
        pub(broker.mqtt_port, "-t", "in/a/end", "-m", "end", "-q", 1)
        near.until("in/a/end")
        out, *_ = far.until("site/7/a/end")
        assert [(each.topic, each.payload) for each in far.printed] == [
            ("site/7/a/1", b"out"), ("site/7/a/2", b"in"), ("clock/now", b"noon"), ("site/7/a/end", b"end"),
        ]
        assert [(each.topic, each.payload) for each in near.printed] == [
            ("in/a/1", b"out"), ("in/a/2", b"in"), ("time", b"noon"), ("in/a/end", b"end"),
        ]
        assert out.qos == 1
        assert out.content_type == ("text/plain" if version == "5.0" else "")


async def test_a_cut_of_ten_minutes_loses_nothing(tmp_path: Path, start_broker: StartBroker) -> None:
    """60,000 messages wait while the other side is away, through a kill of this one; all come, in order."""
    port, data = free_port(), tmp_path / "data"
    file = write_bridges(tmp_path / "b.toml", [bridge("far", port, route("plant/#"))])
    with MosquittoBroker(tmp_path / "mosquitto", port) as mosquitto:
        async with await MqttPeer.connect(port, "reader", clean_start=False, session_expiry_interval=9_999) as reader:
            await reader.subscribe("plant/#", qos=1)
        broker = start_broker(bridges=file, data=data)
        up(broker, "far")
        mosquitto.terminate()
        broker.wait_for_line('"bridge_down"')
        await publish_many(broker.mqtt_port, TOPICS, TEN_MINUTES)
        assert (await view(broker, "/bridges"))["bridges"][0]["waiting"] == TEN_MINUTES
        broker.kill()
    again = start_broker(bridges=file, data=data)
    with MosquittoBroker(tmp_path / "mosquitto", port):
        async with await MqttPeer.connect(port, "reader", clean_start=False, session_expiry_interval=9_999) as reader:
            got = await gather_until(reader, {b"%d" % number for number in range(TEN_MINUTES)})
    assert in_order(got)
    assert len(got) == len(set(got))  # nothing was on its way when something was killed
    again.wait_for_line('"bridge_down"')


async def test_a_kill_of_the_other_side_loses_nothing(tmp_path: Path, start_broker: StartBroker) -> None:
    port = free_port()
    file = write_bridges(tmp_path / "b.toml", [bridge("far", port, route("plant/#"))])
    wanted = {b"%d" % number for number in range(MANY)}
    got: list[tuple[str, bytes]] = []
    with MosquittoBroker(tmp_path / "mosquitto", port, saves=True) as mosquitto:
        broker = start_broker(bridges=file)
        up(broker, "far")
        async with await MqttPeer.connect(port, "reader", clean_start=False, session_expiry_interval=9_999) as reader:
            await reader.subscribe("plant/#", qos=1)
            publishing = asyncio.create_task(publish_many(broker.mqtt_port, TOPICS, MANY))
            got += await gather_until(reader, {b"%d" % (MANY // 4)})
            mosquitto.kill()
            got += await gather_until(reader, wanted, until_closed=True)
        await publishing
    with MosquittoBroker(tmp_path / "mosquitto", port, saves=True):
        async with await MqttPeer.connect(port, "reader", clean_start=False, session_expiry_interval=9_999) as reader:
            got += await gather_until(reader, wanted - {payload for _, payload in got})
        assert in_order(got)
        broker.terminate()


async def test_a_kill_of_this_side_loses_nothing(tmp_path: Path, start_broker: StartBroker) -> None:
    port = free_port()
    file = write_bridges(tmp_path / "b.toml", [bridge("far", port, route("plant/#", "in"))])
    wanted = {b"%d" % number for number in range(MANY)}
    expiry = {"clean_start": False, "session_expiry_interval": 9_999}
    with MosquittoBroker(tmp_path / "mosquitto", port):
        broker = start_broker(bridges=file, data=tmp_path / "data")
        up(broker, "far")
        async with await MqttPeer.connect(broker.mqtt_port, "reader", **expiry) as reader:
            await reader.subscribe("plant/#", qos=1)
            publishing = asyncio.create_task(publish_many(port, TOPICS, MANY))
            got = await gather_until(reader, {b"%d" % (MANY // 4)})
            broker.kill()
            got += await gather_until(reader, wanted, until_closed=True)
        await publishing
        again = start_broker(bridges=file, data=tmp_path / "data")
        async with await MqttPeer.connect(again.mqtt_port, "reader", **expiry) as reader:
            got += await gather_until(reader, wanted - {payload for _, payload in got})
        assert in_order(got)
        again.terminate()


@pytest.mark.parametrize("version", ["5.0", "3.1.1"])
def test_retained_messages_pass_both_ways_and_stay_retained(
    version: str, tmp_path: Path, start_broker: StartBroker
) -> None:
    """Those from before the bridge, those that change, and those that a far side without its state has lost."""
    port = free_port()
    file = write_bridges(tmp_path / "b.toml", [
        bridge("far", port, route("out/#"), route("in/#", "in"), version=version)
    ])
    with MosquittoBroker(tmp_path / "first", port) as mosquitto:
        pub(port, "-t", "in/before", "-m", "1", "-r", "-q", 1)
        broker = start_broker(bridges=file)
        up(broker, "far")
        pub(broker.mqtt_port, "-t", "out/now", "-m", "2", "-r", "-q", 1)
        pub(port, "-t", "in/now", "-m", "3", "-r", "-q", 1)
        broker.wait_for(lambda: len(kept(broker.mqtt_port, "in/#", 2)) == 2, 60)
        assert kept(broker.mqtt_port, "in/#", 2) == {("in/before", b"1"), ("in/now", b"3")}
        assert kept(port, "out/#", 1) == {("out/now", b"2")}
        mosquitto.terminate()
    with MosquittoBroker(tmp_path / "second", port):
        up(broker, "far", 2)
        assert kept(port, "out/#", 1) == {("out/now", b"2")}
        broker.terminate()


def kept(port: int, filter: str, count: int) -> set[tuple[str, bytes]]:
    """The retained messages, when there are so many."""
    with Sub(port, "-t", filter, "-q", 1) as reader:
        return {(each.topic, each.payload) for each in reader.messages(count)}


def test_tls_with_a_client_certificate_and_a_wrong_ca(
    tmp_path: Path, certificates: Certificates, start_broker: StartBroker
) -> None:
    port, mine = free_port(), certificates.sign("bridge", common_name="plant-7")
    other = Certificates(folder_in(tmp_path))
    more = (
        f"cafile {certificates.ca}\ncertfile {certificates.server}\nkeyfile {certificates.server}\n"
        "require_certificate true\nuse_identity_as_username true"
    )
    with MosquittoBroker(tmp_path / "mosquitto", port, more) as mosquitto:
        file = write_bridges(tmp_path / "b.toml", [
            bridge("right", port, route("a/#"), tls_ca=str(certificates.ca), tls_certificate=str(mine)),
            bridge("stranger", port, route("b/#"), tls_ca=str(other.ca), tls_certificate=str(mine)),
            bridge("bare", port, route("c/#"), tls_ca=str(certificates.ca)),
        ])
        broker = start_broker(bridges=file)
        up(broker, "right")
        mosquitto.wait_for(lambda: any("u'plant-7'" in line for line in mosquitto.lines), 60)
        broker.wait_for(lambda: any("certificate is not accepted" in line for line in broker.lines), 60)
        broker.wait_for(lambda: any('"bare"' in line and "bridge_down" in line for line in broker.lines), 60)


def folder_in(folder: Path) -> Path:
    (folder / "other").mkdir()
    return folder / "other"


async def test_wrong_credentials_are_said_once_and_the_file_is_read_again(
    tmp_path: Path, start_broker: StartBroker
) -> None:
    """The password file is read at each attempt: who mends it restarts nothing."""
    port, users, secret = free_port(), tmp_path / "users", tmp_path / "secret"
    users.write_text(PASSWORDS)
    users.chmod(0o600)
    secret.write_text("wrong\n")
    file = write_bridges(tmp_path / "b.toml", [
        bridge("far", port, route("a/#"), user="plant", password_file=str(secret), version="3.1.1")
    ])
    with MosquittoBroker(tmp_path / "mosquitto", port, f"allow_anonymous false\npassword_file {users}"):
        broker = start_broker(bridges=file)
        await eventually(broker, lambda found: found["bridges"][0]["failures"] > 2, "/bridges")
        secret.write_text("sesame\n")
        up(broker, "far")
        down = [line for line in broker.lines if '"bridge_down"' in line]
        assert len(down) == 1
        assert "not_authorized" in down[0]
        assert not [line for line in broker.lines if "wrong" in line or "sesame" in line]
