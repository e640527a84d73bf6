"""One story that every AMQP client lives through: confirms, a return, acknowledgements, a kill of the broker, the rest.

Each client is a process that prints what it sees; all of them are on one broker, which is killed once, when each has
said `ready`. What was confirmed and not acknowledged before is there afterwards, in order, in a durable queue.

    amqplib_story.cjs    JavaStory.java    pika_story.py (SelectConnection, AsyncioConnection)    kombu_story.py
    faststream_story.py (FastStream, aio-pika)
"""

import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fanlight_bench.launch import Server
from tests.conftest import StartBroker, TestBroker
from tests.interop.mqttjs_peer import LIBRARY as MQTTJS
from tests.require import command

LIMIT_SECONDS = 60.0  # for what comes at once, on a machine that is busy with something else
HERE = Path(__file__).parent
AMQPLIB = MQTTJS.with_name("amqplib")
JAVA_CLIENT = Path("/usr/share/java/amqp-client.jar")
BEFORE = [
    "confirmed 100", "ready", "returned 312 NO_ROUTE nobody", f"took {','.join(str(number) for number in range(60))}",
]  # fmt: skip
LEFT = [str(number) for number in range(60, 100)]


def amqplib(port: str) -> list[str]:
    node = command("node", package="nodejs")
    if not AMQPLIB.is_dir():
        pytest.skip("needs amqplib in build/interop: `make test` installs it where there is npm")
    return [node, str(HERE / "amqplib_story.cjs"), str(AMQPLIB), port]


def java(port: str) -> list[str]:
    program = command("java", package="default-jre-headless")
    if not JAVA_CLIENT.exists():
        pytest.skip(f"needs {JAVA_CLIENT} (package librabbitmq-client-java)")
    jars = ":".join(str(JAVA_CLIENT.with_name(name)) for name in ("amqp-client.jar", "slf4j-api.jar"))
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"]  # which it would spend its time on
    return [program, *options, "-cp", jars, str(HERE / "JavaStory.java"), port]


def python(script: str, *arguments: str) -> Callable[[str], list[str]]:
    return lambda port: [sys.executable, str(HERE / script), port, *arguments]


CLIENTS: dict[str, Callable[[str], list[str]]] = {
    "amqplib": amqplib,
    "java": java,
    "select": python("pika_story.py", "select"),
    "asyncio": python("pika_story.py", "asyncio"),
    "kombu": python("kombu_story.py"),
    "aio-pika": python("faststream_story.py", "aio-pika"),
    "faststream": python("faststream_story.py", "faststream"),
}


def turn_away(port: int, count: int) -> None:
    """Refuse so many connections as a broker that dies does: they are reset, or closed in the handshake."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        listener.settimeout(LIMIT_SECONDS)
        for number in range(count):
            connection, _ = listener.accept()
            with connection:
                if number % 2:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                else:
                    connection.settimeout(LIMIT_SECONDS)
                    connection.recv(1024)  # with octets that nobody has read it would be reset, too


class Stage:
    """The broker, and the clients that have come so far."""

    def __init__(self, start: StartBroker, folder: Path) -> None:
        self._start = start
        self._data = folder
        self._clients: dict[str, Server] = {}
        self.broker = self.start_broker(0)
        self.port = self.broker.amqp_port
        self.killed = False

    def start_broker(self, port: int) -> TestBroker:
        broker = self._start(amqp=True, data=self._data, durability="written", amqp_port=port)
        broker.wait_for(lambda: "amqp" in broker.addresses, LIMIT_SECONDS)
        return broker

    def client(self, name: str) -> Server:
        if name not in self._clients:
            assert not self.killed
            self._clients[name] = Server(CLIENTS[name](str(self.port)), listeners=())
        return self._clients[name]

    def kill_once(self) -> None:
        if not self.killed:
            self.killed = True
            self.broker.kill()
            turn_away(self.port, 4 * len(self._clients))
            self.broker = self.start_broker(self.port)

    def close(self) -> None:
        for client in self._clients.values():
            client.kill()


@pytest.fixture(scope="module")
def stage(start_module_broker: StartBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = Stage(start_module_broker, tmp_path_factory.mktemp("stage"))
    yield stage
    stage.close()


def until(client: Server, line: str) -> None:
    client.wait_for(lambda: line in client.lines, LIMIT_SECONDS)


@pytest.mark.parametrize("name", CLIENTS)
def test_confirms_a_return_and_acknowledgements(stage: Stage, name: str) -> None:
    client = stage.client(name)
    until(client, "ready")
    assert sorted(line for line in client.lines if not line.startswith("SLF4J: ")) == BEFORE


def tool(stage: Stage, name: str, *arguments: str, input: str = "") -> str:
    program = command(name, package="amqp-tools")
    url = f"amqp://guest:guest@127.0.0.1:{stage.port}"  # with a / behind it: the vhost whose name is empty
    done = subprocess.run(
        [program, f"--url={url}", *arguments], input=input, capture_output=True, text=True, check=True,
        timeout=LIMIT_SECONDS,
    )  # fmt: skip
    return done.stdout


def test_what_the_tools_of_rabbitmq_c_have_published_before_the_kill(stage: Stage) -> None:
    assert not stage.killed
    tool(stage, "amqp-declare-queue", "-d", "-q", "left")
    tool(stage, "amqp-publish", "-p", "-r", "left", "-b", "before")
    tool(stage, "amqp-declare-queue", "-d", "-q", "left")  # they have no confirms; this answer waits for the store


@pytest.mark.parametrize("name", CLIENTS)
def test_what_was_confirmed_and_not_acknowledged_is_there_after_a_kill(stage: Stage, name: str) -> None:
    client = stage.client(name)
    stage.kill_once()
    until(client, "done")
    # The acknowledgements were followed by an equal declare, whose answer waits until they are stored.
    assert list(client.lines)[-3:] == ["lost", f"took {','.join(LEFT)}", "done"]
    assert client.wait(LIMIT_SECONDS) == 0


def test_the_tools_of_rabbitmq_c(stage: Stage) -> None:
    stage.kill_once()
    assert tool(stage, "amqp-consume", "-q", "left", "-c", "1", "cat") == "before"
    assert tool(stage, "amqp-declare-queue", "-d", "-q", "tools").strip() == "tools"
    tool(stage, "amqp-publish", "-p", "-r", "tools", "-b", "first", "-H", "a: 1")
    tool(stage, "amqp-publish", "-p", "-r", "tools", "-l", input="second\nthird\nfourth\n")
    assert tool(stage, "amqp-get", "-q", "tools") == "first"
    assert tool(stage, "amqp-consume", "-q", "tools", "-p", "1", "-c", "2", "cat") == "second\nthird\n"
    assert tool(stage, "amqp-delete-queue", "-q", "tools").strip() == "1"
