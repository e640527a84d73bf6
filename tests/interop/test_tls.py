"""MQTT over TLS, alone and under WebSocket, with clients of others: who trusts whom."""

import pytest

from tests.certificates import Certificates
from tests.conftest import StartBroker, TestBroker
from tests.interop.mosquitto import Sub, pub, run
from tests.interop.paho_peer import PahoPeer
from tests.interop.peer import Endpoint, Message, Wanted


def start(start_broker: StartBroker, certificates: Certificates, **settings: object) -> TestBroker:
    broker = start_broker(tls_certificate=certificates.server, native_tls_port=0, http_tls_port=0, **settings)
    broker.wait_for(lambda: {"mqtt_tls", "mqtt_websocket_tls"} <= broker.addresses.keys(), 60)
    return broker


@pytest.mark.parametrize("version", [3, 5])
@pytest.mark.parametrize("listener", ["mqtt_tls", "mqtt_websocket_tls"])
async def test_paho_speaks_with_a_broker_that_it_trusts(
    start_broker: StartBroker, signed: Certificates, version: int, listener: str
) -> None:
    broker = start(start_broker, signed)
    endpoint = Endpoint(broker.addresses[listener][1], websocket="websocket" in listener, ca=signed.ca)
    plain, secured = PahoPeer(Endpoint(broker.mqtt_port), version), PahoPeer(endpoint, version)
    for peer, name in ((plain, "plain"), (secured, "secured")):
        await peer.connect(Wanted(name))
        await peer.subscribe(f"to/{name}", 2)
    payload = bytes(range(256)) * 1024
    await plain.publish(Message("to/secured", payload, 2))
    await secured.publish(Message("to/plain", payload, 2))
    assert (await secured.message()).payload == payload
    assert (await plain.message()).payload == payload
    await plain.disconnect()
    await secured.disconnect()


async def test_mosquitto_speaks_with_a_broker_that_it_trusts_and_with_no_other(
    start_broker: StartBroker, signed: Certificates, certificates: Certificates
) -> None:
    broker = start(start_broker, signed)
    port = broker.addresses["mqtt_tls"][1]
    with Sub(port, "-t", "a", "-q", 1, "--cafile", signed.ca) as sub:
        pub(port, "-t", "a", "-m", "x", "-q", 1, "--cafile", signed.ca, version=3)
        assert [message.payload for message in sub.messages(1)] == [b"x"]
    status, _, complaint = run("mosquitto_pub", port, "-t", "a", "-m", "x", "--cafile", certificates.ca)
    assert status != 0
    assert "TLS" in complaint


def test_a_broker_that_asks_for_certificates_lets_in_who_shows_one(
    start_broker: StartBroker, signed: Certificates
) -> None:
    broker = start(
        start_broker, signed, tls_client_ca=signed.ca, tls_client_certificates="required",
        environment={"FANLIGHT_PASSWORD": "sesame"},
    )
    port, alice = broker.addresses["mqtt_tls"][1], signed.sign("alice", "alice", common_name="alice")
    shown = ["--cafile", signed.ca, "--cert", alice, "--key", alice]
    with Sub(port, "-t", "a", "-q", 1, *shown) as sub:
        pub(port, "-t", "a", "-m", "x", "-q", 1, *shown)
        assert [message.payload for message in sub.messages(1)] == [b"x"]
    status, _, _ = run("mosquitto_pub", port, "-t", "a", "-m", "x", "-q", 1, "--cafile", signed.ca)
    assert status != 0
    broker.wait_for(lambda: any('"user": "alice"' in line for line in broker.lines), 60)
