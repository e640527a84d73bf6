"""Rules that tokens and users bring along, with real keys, clients and processes: paho, the SDK, HTTP, a restart."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

import fanlight
from fanlight_broker.protocols.mqtt.version import V3, V5
from tests.conftest import StartBroker, TestBroker
from tests.interop.paho_peer import PahoPeer
from tests.interop.peer import Endpoint, Message, Refused, Wanted
from tests.system.test_credentials import ACCEPTED, REFUSED, mqtt, reload
from tests.system.test_users import user
from tests.system.views import ask

KEYS: dict[str, Any] = {
    "ES256": ec.generate_private_key(ec.SECP256R1()), "RS256": rsa.generate_private_key(65537, 2048),
}  # fmt: skip
RULES = [
    {"effect": "deny", "publish": "site/7/config"},
    {"publish": "site/7/#", "subscribe": ["site/7/cmd/+", "site/%u/own", "site/private"]},
]
FILE = """
[[deny]]
name = "private"
everything = "site/private"

[[allow]]
group = "backend"
everything = "#"
"""


def token(algorithm: str = "ES256", **claims: object) -> str:
    return jwt.encode({"sub": "pump7", "exp": time.time() + 3600, **claims}, KEYS[algorithm], algorithm)


BACKEND = {"sub": "backend", "groups": ["backend"]}


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "keys.pem"
    file.write_bytes(
        b"".join(
            key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo) for key in KEYS.values()
        )
    )
    return file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "permissions.toml"
    path.write_text(FILE)
    return path


@asynccontextmanager
async def paho(broker: TestBroker, version: int, password: str, **wanted: Any) -> AsyncIterator[PahoPeer]:
    peer = PahoPeer(Endpoint(broker.mqtt_port), version)
    await peer.connect(Wanted(**{"client_id": "", "user": "pump7", "password": password, **wanted}))
    try:
        yield peer
    finally:
        await peer.disconnect()


def sdk(broker: TestBroker, **claims: object) -> Any:
    return fanlight.connect(f"fanlight://127.0.0.1:{broker.port}", password=token(**claims), reconnect=False)


@pytest.mark.parametrize("algorithm", KEYS)
@pytest.mark.parametrize("version", [3, 5])
async def test_a_paho_client_may_do_what_its_token_allows(
    start_broker: StartBroker, keys: Path, file: Path, version: int, algorithm: str
) -> None:
    broker = await asyncio.to_thread(start_broker, token_keys_file=str(keys), permissions=str(file))
    refused = 0x80 if version == 3 else 0x87
    async with (
        sdk(broker, **BACKEND) as backend, paho(broker, version, token(algorithm, permissions=RULES)) as client,
        backend.subscribe("site.#") as seen,
    ):  # fmt: skip
        assert await client.subscribe("site/7/cmd/+") == 0
        assert await client.subscribe("site/pump7/own") == 0
        for filter in ("site/7/#", "site/other/own", "site/private", "#"):
            assert await client.subscribe(filter) == refused
        await client.publish(Message("site/7/config", b"no", 1), Message("site/8/t", b"no", 1))
        await client.publish(Message("site/private", b"no", 1), Message("site/7/t", b"yes", 1))
        assert (await anext(seen)).payload == b"yes"
        await backend.publish("site.7.other", b"unseen")
        await backend.publish("site.7.cmd.go", b"go")
        assert (await client.message()).payload == b"go"
    broker.may_complain = True  # of what it has refused


async def test_an_sdk_client_and_http_have_the_same_rules(
    start_broker: StartBroker, keys: Path, tmp_path: Path
) -> None:
    log = tmp_path / "audit.log"
    broker = await asyncio.to_thread(start_broker, token_keys_file=str(keys), audit_log=str(log))
    async with (
        sdk(broker, permissions=RULES) as client, sdk(broker, sub="other") as other, other.subscribe("#") as seen
    ):  # fmt: skip
        await client.publish("site.7.t", b"1", receipt=True)
        for topic in ("site.7.config", "elsewhere"):
            with pytest.raises(fanlight.NotPermitted):
                await client.publish(topic, b"", receipt=True)
        with pytest.raises(fanlight.NotPermitted):
            async with client.subscribe("#"):
                pass
        await other.publish("elsewhere", b"2", receipt=True)  # it brings no rules along, and there is no file
        assert [(await anext(seen)).payload for _ in range(2)] == [b"1", b"2"]
    for claims, status in (
        ({"permissions": RULES}, 403), ({"permissions": [{"admin": "read"}]}, 200), ({}, 200),
    ):  # fmt: skip
        found, text = await asyncio.to_thread(ask, broker.http_url + "/stats", bearer=token(**claims))
        assert found == status, text
    broker.may_complain = True
    await asyncio.to_thread(broker.terminate)
    notes = [json.loads(line) for line in log.read_text().splitlines()]
    logins = {each["user"]: each["permissions"] for each in notes if each["kind"] == "login"}
    assert '"publish":["site/7/#"]' in logins["pump7"]
    assert logins["other"] is None
    assert {each["rule"] for each in notes if each["kind"] == "permission_refused"} >= {"own rule 1", "(no rule)"}


@pytest.mark.parametrize(
    "rules",
    [
        "all", {"publish": "#"}, [{"publish": "a/#/b"}], [{"publish": "a", "user": "bob"}], [{"where": "a > 1"}],
        [{"publish": "a"}] * 65, [[[[[]]]]], [{"publish": [{"a": 1}]}], [None],
    ],
)  # fmt: skip
async def test_a_token_whose_rules_are_not_sound_does_not_let_in(module_tokens: TestBroker, rules: object) -> None:
    with pytest.raises(fanlight.AuthenticationFailed, match="permission"):
        await sdk(module_tokens, sub=f"u{hash(str(rules))}", permissions=rules)
    async with sdk(module_tokens) as client:  # and the broker goes on
        await client.publish("a", b"", receipt=True)


@pytest.fixture(scope="module")
def module_tokens(
    start_module_broker: Callable[..., TestBroker], tmp_path_factory: pytest.TempPathFactory
) -> TestBroker:
    file = tmp_path_factory.mktemp("keys") / "keys.pem"
    file.write_bytes(KEYS["ES256"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    broker = start_module_broker(token_keys_file=str(file))
    broker.may_complain = True
    return broker


@pytest.mark.parametrize("version", [V3, V5])
async def test_a_token_of_ten_megabytes_ends_the_connection_and_nothing_else(
    module_tokens: TestBroker, version: Any
) -> None:
    broker = module_tokens
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.mqtt_port)
    size = 10 * 1024 * 1024
    remaining = bytes((size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14 & 0x7F | 0x80, size >> 21))
    writer.write(b"\x10" + remaining + b"\x00\x04MQTT" + bytes((version.value, 0xC2, 0, 60)) + b"eyJ" * 100_000)
    assert len(await asyncio.wait_for(reader.read(), 60)) < 100
    writer.close()
    long = token(padding="x" * 20_000)
    async with mqtt(broker, version, "c", user_name="pump7", password=long.encode()) as client:
        assert client.code == REFUSED[version]
    async with sdk(broker) as other:
        await other.publish("a", b"", receipt=True)


@pytest.mark.parametrize("name", ["+", "a#", "a/b", "$SYS", "site/7"])
async def test_a_user_name_with_wildcards_gets_nothing_by_it(module_tokens: TestBroker, name: str) -> None:
    rules = [{"everything": ["%u/#", "site/%u/t"]}]
    async with sdk(module_tokens, sub=name, permissions=rules) as client:
        for topic in ("a.b.c", "site.x.t", "site.7.t", "b"):
            with pytest.raises(fanlight.NotPermitted):
                await client.publish(topic, b"", receipt=True)
        for filter in ("#", "site.*.t", "$SYS.#", "a.#"):
            with pytest.raises(fanlight.NotPermitted):
                async with client.subscribe(filter):
                    pass


async def test_a_session_keeps_the_rules_of_its_token_over_a_restart(
    start_broker: StartBroker, keys: Path, tmp_path: Path
) -> None:
    flags = {"token_keys_file": str(keys), "data": str(tmp_path / "data")}
    broker = await asyncio.to_thread(start_broker, **flags)
    wanted = {"client_id": "pump7", "clean": False, "expiry": 3600}
    mine = token(permissions=[{"effect": "deny", "subscribe": "t/secret"}, {"subscribe": "t/+"}])
    peer = PahoPeer(Endpoint(broker.mqtt_port), 5)
    await peer.connect(Wanted(user="pump7", password=mine, **wanted))
    assert await peer.subscribe("t/+", 1) == 1
    await peer.cut()
    await asyncio.to_thread(broker.terminate)
    broker = await asyncio.to_thread(start_broker, **flags)
    async with paho(broker, 5, token(sub="other"), user="other") as other:
        await other.publish(Message("t/secret", b"t.secret", 1), Message("t/open", b"t.open", 1))
    async with paho(broker, 5, mine, **wanted) as back:
        assert (await back.message()).payload == b"t.open"
        assert back.inbox.empty()
    with pytest.raises(Refused):
        async with paho(broker, 5, token(permissions=[{"effect": "deny", "connect": True}]), **wanted):
            pass
    broker.may_complain = True


async def test_users_of_the_file_have_rules_and_lose_their_connection_when_these_change(
    start_broker: StartBroker, tmp_path: Path, file: Path
) -> None:
    users = tmp_path / "users.toml"
    for name in ("pump7", "bob"):
        assert (await asyncio.to_thread(user, "add", users, name, password=f"of {name}")).returncode == 0
    before = users.read_text()
    own = 'permissions = [{ publish = "site/7/#" }, { effect = "deny", subscribe = "site/7/x" }]\n'
    users.write_text(before.replace("[users.pump7]\n", f"[users.pump7]\n{own}"))
    broker = await asyncio.to_thread(start_broker, users_file=str(users), permissions=str(file))
    url = f"fanlight://127.0.0.1:{broker.port}"
    async with fanlight.connect(url, user="pump7", password="of pump7", reconnect=False) as client:
        await client.publish("site.7.t", b"", receipt=True)
        with pytest.raises(fanlight.NotPermitted):
            await client.publish("site.8.t", b"", receipt=True)
    async with fanlight.connect(url, user="bob", password="of bob", reconnect=False) as client:
        with pytest.raises(fanlight.NotPermitted):
            await client.publish("site.7.t", b"", receipt=True)
    # A command that changes the user leaves its rules as they are, and a broken file changes nothing.
    changed = await asyncio.to_thread(user, "passwd", users, "bob", password="of bob")
    assert changed.returncode == 0
    assert own in users.read_text()
    sound = users.read_text()
    await asyncio.to_thread(reload, broker)
    async with (
        mqtt(broker, V5, "a", user_name="pump7", password=b"of pump7") as pump7,
        mqtt(broker, V5, "c", user_name="bob", password=b"of bob") as bob,
    ):
        assert (pump7.code, bob.code) == (ACCEPTED, ACCEPTED)
        users.write_text(sound.replace('publish = "site/7/#"', 'publich = "site/7/#"'))
        failed = sum("reload_failed" in line for line in broker.lines)
        broker.process.send_signal(1)
        await asyncio.to_thread(
            broker.wait_for, lambda: sum("reload_failed" in line for line in broker.lines) > failed, 60
        )
        assert any("there is no 'publich'; did you mean publish?" in line for line in broker.lines)
        users.write_text(sound.replace("site/7/x", "site/7/y"))
        await asyncio.to_thread(reload, broker)
        assert (await pump7.rest())[0] == 0xE0
        bob.writer.write(b"\xc0\x00")
        await bob.answered(0xD0)
    broker.may_complain = True


async def test_anonymous_clients_have_the_rules_of_their_group(
    start_broker: StartBroker, keys: Path, tmp_path: Path
) -> None:
    file = tmp_path / "permissions.toml"
    file.write_text('[[allow]]\ngroup = "anonymous"\nsubscribe = "public/#"\n[[allow]]\nuser = "*"\neverything = "#"\n')
    broker = await asyncio.to_thread(
        start_broker, token_keys_file=str(keys), permissions=str(file), allow_anonymous=True
    )
    async with fanlight.connect(f"fanlight://127.0.0.1:{broker.port}", reconnect=False) as anybody:
        async with anybody.subscribe("public.#") as seen, sdk(broker) as known:
            await known.publish("public.a", b"1", receipt=True)
            assert (await anext(seen)).payload == b"1"
        for topic in ("public.a", "other"):
            with pytest.raises(fanlight.NotPermitted):
                await anybody.publish(topic, b"", receipt=True)
    with pytest.raises(fanlight.AuthenticationFailed, match="clients without a user"):
        await sdk(broker, sub="eve", groups=["anonymous"])
    broker.may_complain = True
