"""The users of RabbitMQ's file of definitions, with the hashes of their passwords.

    {"users": [{"name": "ann", "password_hash": "<base64>", "hashing_algorithm": "rabbit_password_hashing_sha256",
                "tags": ["administrator"]}, ...], ...}

Source: rabbitmq.com/docs/passwords, and files that RabbitMQ 3.10.8 has written.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from fanlight_broker.auth.files import PasswordFileError
from fanlight_broker.auth.hashing import why_not_a_hash
from fanlight_broker.auth.password_file import why_not_a_user

ALGORITHMS: Final = {
    "rabbit_password_hashing_sha256": "$rabbitmq$sha256$", "rabbit_password_hashing_sha512": "$rabbitmq$sha512$",
}  # fmt: skip


def parse(text: str, name: str) -> tuple[dict[str, str], list[str]]:
    """The hashes by user, and why users are left out. `name` is for errors. Raises PasswordFileError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PasswordFileError(f"{name}: is not JSON: {error}") from None
    users = document.get("users") if isinstance(document, dict) else None
    if not isinstance(users, list) or not all(isinstance(each, dict) for each in users):
        raise PasswordFileError(f"{name}: is no file of definitions: it has no list of objects `users`")
    hashes: dict[str, str] = {}
    left_out: list[str] = []
    for at, each in enumerate(users):
        user = each.get("name")
        if not isinstance(user, str):
            raise PasswordFileError(f"{name}: users[{at}].name: is no text")
        hash = _hash_of(each)
        if reason := why_not_a_user(user) or (why_not_a_hash(hash) if hash else "no password"):
            left_out.append(f"user {user!r}: {reason}")
        else:
            hashes[user] = hash
    return hashes, left_out


def _hash_of(user: Mapping[str, Any]) -> str:
    """"" for a user without a password, who logs in by other means; no hash for an unknown algorithm."""
    hash, algorithm = user.get("password_hash"), user.get("hashing_algorithm", "rabbit_password_hashing_sha256")
    if not hash:
        return ""
    return ALGORITHMS.get(algorithm, f"${algorithm}$") + str(hash)
