"""Hashes: argon2, and those that mosquitto_passwd and RabbitMQ wrote."""

import base64
import hashlib
import subprocess
from pathlib import Path

import pytest

from fanlight_broker.auth import password_file
from fanlight_broker.auth.hashing import matches, why_not_a_hash
from tests.require import command


@pytest.mark.parametrize("kind", ["sha512-pbkdf2", "sha512", "argon2id"])
def test_a_hash_that_mosquitto_passwd_wrote_is_checked(tmp_path: Path, kind: str) -> None:
    passwd = command("mosquitto_passwd", package="mosquitto")
    arguments = [passwd, "-c", "-b", "-H", kind, str(tmp_path / "passwd"), "alice", "wonder ä"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    if kind == "argon2id" and done.returncode:  # one that is older than 2.1 does not know it
        assert "argon2id" in done.stderr or "hash type" in done.stderr.lower()
        return
    assert done.returncode == 0, done.stderr
    hash = password_file.read(tmp_path / "passwd")["alice"]
    assert matches(hash, "wonder ä")
    assert not matches(hash, "wonder")


def mosquitto(iterations: str, salt: bytes = b"salt" * 3, size: int = 64) -> str:
    digest = hashlib.pbkdf2_hmac("sha512", b"x", salt, 101)[:size].ljust(size, b"x")
    return f"$7${iterations}${base64.b64encode(salt).decode()}${base64.b64encode(digest).decode()}"


@pytest.mark.parametrize(
    "hash",
    [mosquitto("0"), mosquitto("1000001"), mosquitto("-1"), mosquitto("101", size=32), mosquitto("101")[:-1],
     mosquitto("101").replace("$7$", "$8$"), mosquitto("101") + "\n"],
)
def test_what_is_no_hash_is_refused(hash: str) -> None:
    assert why_not_a_hash(hash)


def test_a_hash_of_known_parts_is_one() -> None:
    assert not why_not_a_hash(mosquitto("101"))
    assert matches(mosquitto("101"), "x")
    assert not matches(mosquitto("101"), "y")
    assert not matches(mosquitto("102"), "x")


# By `rabbitmqctl export_definitions` of RabbitMQ 3.10.8 ("wonder"), and the example of rabbitmq.com/docs/passwords.
RABBITMQ = "$rabbitmq$sha256$ITRSaYWgkqiJQOgE+JrneYPjBNIPPnMqZDZgOky4SeNXnG83"


def test_a_hash_that_rabbitmq_wrote_is_checked() -> None:
    assert not why_not_a_hash(RABBITMQ)
    assert matches(RABBITMQ, "wonder")
    assert not matches(RABBITMQ, "wonde")
    assert matches("$rabbitmq$sha256$kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR", "test12")
    salted = base64.b64encode(b"salt" + hashlib.sha512(b"salt" + b"x").digest()).decode()
    assert matches(f"$rabbitmq$sha512${salted}", "x")
    for hash in (f"$rabbitmq$sha256${salted}", RABBITMQ[:-4], RABBITMQ + "\n", RABBITMQ.replace("sha256", "md5")):
        assert why_not_a_hash(hash)
