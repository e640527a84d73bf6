"""What a broker does not import before it listens: half of its start and half of its memory at rest, once."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from socket import create_connection
from urllib.request import urlopen

import pytest

import fanlight.sync

SECONDS = 120  # a safety net
LISTENERS = ("native", "native_websocket", "mqtt", "mqtt_websocket", "amqp", "http")
PORTS = [f"--{name.replace('_', '-')}-port=0" for name in LISTENERS]

# Each with what it is imported for, and when.
LATER = {
    "numpy": "arrays of matchcore's match_many, which the broker does not call",
    "aiohttp": "the first HTTP client (admin/entrance.py)",
    "prometheus_client": "the same",
    "wsproto": "the first WebSocket client (listeners.LateUpgrade)",
    "h11": "the same",
    "argon2": "the first password (auth/hashing.py)",
    "tomllib": "a settings file",
    "jwt": "tokens (setting `token_keys_file`)",
    "cryptography": "the same",
    "opentelemetry": "spans (setting `trace_endpoint`)",
    "difflib": "advice for a mistyped name",
    "tempfile": "writing a password file",
    "shutil": "the copies and repairs of a store",
    "annotated_types": "nothing",
    "structlog": "nothing",
    "rich": "nothing",
    "sqlite3": "a store (setting `data`)",
    "pyarrow": "an archive (setting `archive`)",
    "multiprocessing": "nothing",
    "unittest": "nothing",
    "pickle": "nothing",
    "fanlight_broker.storing": "a store",
    "fanlight_broker.storage": "a store, an archive",
    "fanlight_broker.net.websocket": "the first WebSocket client",
    "fanlight_broker.net.tls_socket": "a TLS port",
    "fanlight_broker.core.explain": "the first /explain",
    "matchcore.explanation": "the same",
    "matchcore.frozen": "an index that is written to a file, which no broker does",
    "matchcore.inclusion": "filters that are compared, which no broker does",
    "matchcore.subsumption": "the same",
    "matchcore.reference": "tests",
    "matchcore.rules": "rules",
    **dict.fromkeys(
        (
            "fanlight_broker.core.condition", "fanlight_broker.core.screener", "fanlight_broker.core.field_reader",
            "matchcore.json_body", "matchcore.msgpack_body", "matchcore.body_reader",
            "fanlight_broker.core.stored_screener",
            "matchcore.where", "matchcore.patterns", "matchcore.selector", "matchcore.kleene", "matchcore.fields",
            "matchcore.normal_form", "matchcore.screen", "matchcore.program", "matchcore.access", "matchcore.cover",
            "matchcore.glance", "matchcore.values", "matchcore.selecting", "matchcore.reasons",
        ),
        "the first selector (core/selectors.py)",
    ),
}

# What was imported until the broker was ready, and whether there are passes of the garbage collector: asked for by a
# line on standard input.
PROGRAM = """\
import gc, sys, threading

def listen():
    for _ in sys.stdin:
        print("MODULES", gc.isenabled(), gc.get_freeze_count(), *sorted(sys.modules), file=sys.stderr, flush=True)

threading.Thread(target=listen, daemon=True).start()
from fanlight_broker.__main__ import main
raise SystemExit(main())
"""


class Started:
    """A broker with the default listeners, which says what it has imported."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "serve", *PORTS, "--log-format=json"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.listening: dict[str, int] = {}
        assert self.process.stdout is not None
        for line in self.process.stdout:
            entry = json.loads(line)
            if entry["event"] == "listening":
                self.listening[entry["listener"]] = entry["port"]
            if entry["event"] == "ready":
                break

    def modules(self) -> set[str]:
        """The modules and packages imported so far. The garbage collector has gone on since."""
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        word, collecting, frozen, *names = self.process.stderr.readline().split()
        assert (word, collecting) == ("MODULES", "True")
        assert int(frozen) > 10_000
        return set(names)


@pytest.fixture
def started() -> Iterator[Started]:
    broker = Started()
    yield broker
    broker.process.terminate()
    broker.process.communicate(timeout=SECONDS)


def test_a_broker_listens_before_it_imports_what_is_needed_later(started: Started) -> None:
    assert started.modules() & set(LATER) == set()
    assert set(started.listening) == set(LISTENERS)
    with urlopen(f"http://127.0.0.1:{started.listening['http']}/healthz", timeout=SECONDS) as answer:
        assert answer.status == 200
    assert {"aiohttp", "prometheus_client"} < started.modules()
    assert not {"numpy", "wsproto"} & started.modules()


def test_what_comes_later_exists() -> None:
    """A name of ours that is moved or misspelt would forbid nothing."""
    ours = [name for name in LATER if name.startswith(("fanlight_broker.", "matchcore."))]
    assert [name for name in ours if importlib.util.find_spec(name) is None] == []


def test_the_first_selector_brings_what_it_needs(started: Started) -> None:
    needed = {"fanlight_broker.core.condition", "fanlight_broker.core.screener", "matchcore.where", "matchcore.screen"}
    with fanlight.sync.connect(f"fanlight://127.0.0.1:{started.listening['native']}") as client:
        client.subscribe("a.#")
        client.publish("a.b", b"plain")
        assert not needed & started.modules()
        dear = client.subscribe("a.#", where="price > 100")
        assert needed < started.modules()
        client.publish("a.b", b"cheap", headers={"price": 1})
        client.publish("a.b", b"dear", headers={"price": 101})
        assert next(iter(dear)).payload == b"dear"
    assert not {"numpy", "fanlight_broker.storage"} & started.modules()


def test_the_first_websocket_client_brings_what_it_needs(started: Started) -> None:
    address = ("127.0.0.1", started.listening["mqtt_websocket"])
    for _ in range(2):
        with create_connection(address, timeout=SECONDS) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n")
            assert client.recv(4096).startswith(b"HTTP/1.1 400 ")
    assert {"wsproto", "h11"} < started.modules()
