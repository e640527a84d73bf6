"""RabbitMQ's users, of a file that it has written."""

import json
from pathlib import Path

import pytest

from fanlight_broker.auth.files import PasswordFileError
from fanlight_broker.auth.hashing import matches
from fanlight_broker.auth.rabbitmq_users import parse

DEFINITIONS = Path(__file__).parents[2] / "data/rabbitmq/definitions.json"


def test_users_of_an_export_keep_their_passwords() -> None:
    hashes, left_out = parse(DEFINITIONS.read_text("utf-8"), "x")
    assert (sorted(hashes), left_out) == (["ann", "bob", "guest"], [])
    for user, password in (("ann", "wonder"), ("bob", "builder"), ("guest", "guest")):
        assert matches(hashes[user], password)
        assert not matches(hashes[user], password + "x")


def test_users_that_cannot_log_in_here_are_left_out() -> None:
    users = [
        {"name": "certified", "password_hash": "", "hashing_algorithm": "rabbit_password_hashing_sha256"},
        {"name": "old", "password_hash": "eA==", "hashing_algorithm": "rabbit_password_hashing_md5"},
        {"name": "a:b", "password_hash": "eA=="},
    ]
    hashes, left_out = parse(json.dumps({"users": users}), "x")
    assert hashes == {}
    assert [each.partition(":")[0] for each in left_out[:2]] == ["user 'certified'", "user 'old'"]
    assert len(left_out) == 3


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"users": [1]}', '{"users": [{}]}'])
def test_what_is_no_file_of_definitions(text: str) -> None:
    with pytest.raises(PasswordFileError):
        parse(text, "x")
