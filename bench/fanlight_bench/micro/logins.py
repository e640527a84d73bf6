"""Logins: what a check of a token costs, reading a users file, and rules that clients bring along; ns each.

    HS256, RS256, ... a token checked as the broker does, whole
    hand-off          a thread of a pool given nothing to do, and its end heard of: the loop's part of it
    plain, tomllib    a users file as `fanlightd user` writes it, a user of it, and the same text read by tomllib alone
    decide, filter    PersonalGrant.decide and decide_filter, each client with four filters of its own
    grant             the class of such a client that comes and goes
"""

import asyncio
import base64
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from fanlight_bench.micro.case import Case, Effort, Group, timed
from fanlight_broker.auth import users_file
from fanlight_broker.auth.hashing import hasher
from fanlight_broker.auth.scram_keys import ScramKeys
from fanlight_broker.auth.tokens import TokenRules, Tokens
from fanlight_permissions.decisions import Action, Asker, Grant
from fanlight_permissions.own_rules import own_rules
from fanlight_permissions.table import PermissionTable, table_without_rules

SECRET = "0123456789abcdef" * 3
CLAIMS = {"sub": "alice", "groups": ["ops", "dev"]}


def check(tokens: Tokens, text: str, times: int) -> None:
    for _ in range(times):
        tokens.check(text)


def hand_off(loop: asyncio.AbstractEventLoop, pool: ThreadPoolExecutor, times: int) -> None:
    async def all_of_them() -> None:
        for _ in range(times):
            await loop.run_in_executor(pool, int)

    loop.run_until_complete(all_of_them())


def tokens(folder: Path, times: int) -> Iterator[Case]:
    keys: dict[str, Any] = {
        "HS256": None, "RS256": rsa.generate_private_key(65537, 2048), "ES256": ec.generate_private_key(ec.SECP256R1()),
        "EdDSA": ed25519.Ed25519PrivateKey.generate(), "RS256, 4096 bits": rsa.generate_private_key(65537, 4096),
    }  # fmt: skip
    for name, key in keys.items():
        file = folder / name
        if key is None:
            file.write_text(SECRET)
        else:
            file.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
        text = jwt.encode({**CLAIMS, "exp": time.time() + 1e6}, key or SECRET, name.partition(",")[0])
        yield Case(name, times, partial(timed, check, Tokens(TokenRules(file)), text, times), ("hand-off",))


def users(count: int) -> str:
    """The text of a file, each user with keys for SCRAM, groups and limits."""
    hash, scram = hasher().hash("x"), ScramKeys.of("x").text()
    return f'decoy_key = "{base64.b64encode(bytes(32)).decode()}"\n' + "".join(
        f'\n[users.pump{number}]\npassword = "{hash}"\nscram = "{scram}"\ngroups = ["sensors", "site{number % 50}"]\n'
        f"limits = {{ connections = {number % 9 + 1} }}\n"
        for number in range(count)
    )


def decide(grants: Sequence[Grant]) -> None:
    for number, grant in enumerate(grants):
        grant.decide(Action.PUBLISH, b"site/%d/temp" % number, "mqtt")


def decide_filters(grants: Sequence[Grant]) -> None:
    for number, grant in enumerate(grants):
        grant.decide_filter(Action.SUBSCRIBE, b"site/%d/cmd/+" % number, "mqtt")


def classify(table: PermissionTable, askers: Sequence[Asker]) -> None:
    for asker in askers:
        table.release(table.grant_of(asker))


def owners(count: int) -> list[Asker]:
    return [
        Asker(user=f"pump{number}", own=own_rules([
            {"effect": "deny", "publish": f"site/{number}/config"},
            {"publish": f"site/{number}/#", "subscribe": [f"site/{number}/cmd/+", "all/cmd"]},
        ]))
        for number in range(count)
    ]  # fmt: skip


def groups(effort: Effort) -> Iterator[Group]:
    times = 20 if effort.quick else 300
    loop, pool = asyncio.new_event_loop(), ThreadPoolExecutor(1)
    try:
        with tempfile.TemporaryDirectory() as folder:
            cases = [*tokens(Path(folder), times), Case("hand-off", times, partial(timed, hand_off, loop, pool, times))]
            yield Group("tokens", cases, {})
    finally:
        pool.shutdown()
        loop.close()
    count = effort.sized(10_000, 200)
    text = users(count)
    yield Group(f"users file, {count:,} users", [
        Case("plain", count, partial(timed, users_file.parse, text, "users.toml"), ("tomllib",)),
        Case("tomllib", count, partial(timed, tomllib.loads, text)),
    ], {"bytes": len(text)})  # fmt: skip
    table, askers = table_without_rules(), owners(count)
    grants = [table.grant_of(asker) for asker in askers]
    yield Group(f"own rules, {count:,} clients", [
        Case("decide", count, partial(timed, decide, grants)),
        Case("filter", count, partial(timed, decide_filters, grants), ("decide",)),
        Case("grant", count, partial(timed, classify, table_without_rules(), askers), ("decide",)),
    ], {"classes": table.classes})  # fmt: skip
