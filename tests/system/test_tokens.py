"""Tokens as passwords of MQTT and native clients and as Bearer of HTTP, and keys that change."""

import asyncio
import time
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from fanlight_broker.protocols.mqtt.reason_codes import ReasonCode
from fanlight_broker.protocols.mqtt.version import V3, V5, Version
from tests.conftest import StartBroker, TestBroker
from tests.system.test_credentials import ACCEPTED, REFUSED, mqtt, native_code, reload
from tests.system.views import ask

KEY, OTHER = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())


def write(file: Path, key: ec.EllipticCurvePrivateKey) -> None:
    file.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


def token(key: ec.EllipticCurvePrivateKey = KEY, **claims: object) -> str:
    return jwt.encode({"sub": "alice", "exp": time.time() + 3600, "aud": "broker", **claims}, key, "ES256")


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "keys.pem"
    write(file, KEY)
    return file


@pytest.fixture
def broker(start_broker: StartBroker, keys: Path) -> TestBroker:
    return start_broker(token_keys_file=str(keys), token_audience="broker")


@pytest.mark.parametrize("version", [V3, V5])
async def test_a_token_is_the_password_of_an_mqtt_client(broker: TestBroker, version: Version) -> None:
    for text, code in [
        (token(), ACCEPTED), (token(OTHER), REFUSED[version]), (token(exp=time.time() - 60), REFUSED[version]),
        (token(sub="bob"), REFUSED[version]), ("password", REFUSED[version]),
    ]:
        async with mqtt(broker, version, "c", user_name="alice", password=text.encode()) as client:
            assert client.code == code


async def test_a_token_is_the_password_of_a_native_client_and_the_bearer_of_http(broker: TestBroker) -> None:
    assert await native_code(broker, password=token()) == ACCEPTED
    assert await native_code(broker, password=token(OTHER)) == "authentication_failed"
    for path in ("/connections", "/metrics"):
        for bearer, status in [(token(), 200), (token(OTHER), 401), ("x", 401), (None, 401)]:
            found, text = await asyncio.to_thread(ask, broker.http_url + path, bearer=bearer)
            assert found == status, text
    assert not any("eyJ" in line for line in broker.lines)


async def test_a_key_that_is_taken_away_ends_the_connections_that_it_let_in(broker: TestBroker, keys: Path) -> None:
    async with mqtt(broker, V5, "c", user_name="alice", password=token().encode()) as client:
        assert client.code == ACCEPTED
        write(keys, OTHER)
        reload(broker)
        assert (await client.rest())[:3:2] == bytes((0xE0, ReasonCode.NOT_AUTHORIZED))
    assert await native_code(broker, password=token()) == "authentication_failed"
    assert await native_code(broker, password=token(OTHER)) == ACCEPTED
